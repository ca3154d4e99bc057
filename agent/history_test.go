package agent_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/transcript"
)

// agreeing is a server that checks and always answers.
func agreeing() *transcript.Server {
	return transcript.NewServer(func(transcript.Request) transcript.Step { return transcript.Step{Text: "fine"} }, nil)
}

func historyParams(raws []string) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: "demo-model"}
	for _, raw := range raws {
		p.Messages = append(p.Messages, param.Override[openai.ChatCompletionMessageParamUnion](json.RawMessage(raw)))
	}
	return p
}

// mendedChat is a history after CheckChat. It fails the test where the server refuses it, where mending again mends more,
// where the caller's slice is another one after it, and where mends and changes do not go together.
func mendedChat(t *testing.T, raws ...string) ([]string, []agent.Mend) {
	t.Helper()
	given := historyParams(raws)
	params, mends := agent.CheckChat(given)
	out := wire(t, params.Messages)
	s := agreeing()
	client := clientOf(s)
	if _, err := client.Chat.Completions.New(t.Context(), params); err != nil {
		t.Errorf("refused: %s", s.Requests()[0].Refusal)
	}
	again, more := agent.CheckChat(params)
	checkMended(t, raws, wire(t, given.Messages), out, wire(t, again.Messages), mends, more)
	return out, mends
}

func historyItems(raws []string) responses.ResponseNewParams {
	p := responses.ResponseNewParams{Model: "demo-model"}
	for _, raw := range raws {
		p.Input.OfInputItemList = append(p.Input.OfInputItemList, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(raw)))
	}
	return p
}

// mendedResponse is mendedChat for the Responses API.
func mendedResponse(t *testing.T, raws ...string) ([]string, []agent.Mend) {
	t.Helper()
	given := historyItems(raws)
	params, mends := agent.CheckResponse(given)
	out := wire(t, params.Input.OfInputItemList)
	s := agreeing()
	client := clientOf(s)
	if _, err := client.Responses.New(t.Context(), params); err != nil {
		t.Errorf("refused: %s", s.Requests()[0].Refusal)
	}
	again, more := agent.CheckResponse(params)
	checkMended(t, raws, wire(t, given.Input.OfInputItemList), out, wire(t, again.Input.OfInputItemList), mends, more)
	return out, mends
}

func checkMended(t *testing.T, raws, after, out, again []string, mends, more []agent.Mend) {
	t.Helper()
	if diff := cmp.Diff(raws, after); diff != "" {
		t.Errorf("the caller's history has changed: %s", diff)
	}
	if diff := cmp.Diff(out, again); diff != "" || more != nil {
		t.Errorf("mending again: %v %s", more, diff)
	}
	if slices.Equal(raws, out) != (mends == nil) {
		t.Errorf("mends %v of %q, which became %q", mends, raws, out)
	}
	if !slices.IsSortedFunc(mends, func(a, b agent.Mend) int { return a.Index - b.Index }) {
		t.Errorf("mends out of order: %v", mends)
	}
}

const (
	user = `{"role":"user","content":"go on"}`
	cut  = "It is not known whether it ran. Do not retry it."
)

func toolSays(id, content string) string {
	return fmt.Sprintf(`{"role":"tool","content":%s,"tool_call_id":%s}`, quote(content), quote(id))
}

func itemCall(itemID, callID, args string) string {
	return fmt.Sprintf(`{"id":%s,"type":"function_call","call_id":%s,"name":"pay","arguments":%s}`, quote(itemID), quote(callID), quote(args))
}

func itemSays(callID, output string) string {
	return fmt.Sprintf(`{"type":"function_call_output","call_id":%s,"output":%s}`, quote(callID), quote(output))
}

// problems are what mends are about, a line each.
func problems(mends []agent.Mend) []string {
	var out []string
	for _, m := range mends {
		out = append(out, fmt.Sprintf("%d %s", m.Index, m.Problem))
	}
	return out
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAMendIsOneLineForALog(t *testing.T) {
	_, mends := mendedChat(t, user, calling([3]string{strings.Repeat("x", 200), "pay", `{"card":"4111"`}), user)
	var lines []string
	for _, m := range mends {
		lines = append(lines, m.String())
	}
	id := `1: call "` + strings.Repeat("x", 80) + `": `
	wantLines(t, lines,
		id+`its id is longer than 40 bytes: it and its output have "call_178b88e33b09af40ee5f48e5231d1093"`,
		id+`its arguments are no JSON object: an object stands for them`,
		id+`it has no output: an output stands there that says that its outcome is not known`)
}
