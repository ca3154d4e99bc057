package agent_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/transcript"
)

const (
	reasoned = `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"<&>"}`
	said     = `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"ok","annotations":[]}]}`
)

func TestItemsWithoutAProblemComeBackAsTheyAre(t *testing.T) {
	given := []string{
		user, reasoned, itemCall("fc_1", "a", `{"n":1.0}`), `{"type":"web_search_call","id":"ws_1","status":"completed"}`, itemCall("fc_2", "b", `{}`),
		itemSays("b", "2"), user, itemSays("a", "1"), said, `{"type":"custom_tool_call","id":"ctc_1","call_id":"c","name":"x","input":"free"}`,
		`{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_text","text":"<ok>"}],"x":1}`,
	}
	out, mends := mendedResponse(t, given...)
	if diff := cmp.Diff(given, out); diff != "" || mends != nil {
		t.Errorf("%v %s", mends, diff)
	}
}

func TestAStringAsInputNeedsNothing(t *testing.T) {
	p := responses.ResponseNewParams{Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("hi")}}
	if got, mends := agent.CheckResponse(p); mends != nil || got.Input.OfString.Value != "hi" || got.Input.OfInputItemList != nil {
		t.Errorf("%v %v", got, mends)
	}
}

func TestAnItemIDThatIsNoneOfACallsItemIsLeftOut(t *testing.T) {
	for _, id := range []string{"call_a", "", "fc é", "fc_" + strings.Repeat("x", 62)} {
		out, mends := mendedResponse(t, user, reasoned, itemCall(id, "call_a", `{}`), itemSays("call_a", "1"))
		wantLines(t, problems(mends), "2 its item has an id that is none of a call's item")
		wantLines(t, out, user, reasoned, `{"type":"function_call","call_id":"call_a","name":"pay","arguments":"{}"}`, itemSays("call_a", "1"))
	}
}

func TestItemsGivenTwiceAreThereOnceAndCallsKeepTheirPlace(t *testing.T) {
	out, mends := mendedResponse(t, user, reasoned, said, reasoned, itemCall("fc_1", "a", `{"n":1}`), itemSays("a", "1"), itemCall("fc_1", "a", `{"n":1}`), itemSays("a", "2"), said)
	wantLines(t, problems(mends), "3 another item has its id", "6 another call has its id", "6 another item has the id of its item", "8 another item has its id")
	wantLines(t, out[:5], user, reasoned, said, itemCall("fc_1", "a", `{"n":1}`), itemSays("a", "1"))
	if c, o := gjson.Parse(out[5]), gjson.Parse(out[6]); c.Get("id").Exists() || c.Get("call_id").String() != o.Get("call_id").String() || o.Get("output").String() != "2" {
		t.Errorf("%q", out[5:])
	}
}

func TestOutputsGivenTheIDOfAnotherItemLoseIt(t *testing.T) {
	says := func(id, callID string) string {
		return `{` + id + `"type":"function_call_output","call_id":"` + callID + `","output":"1"}`
	}
	a, b, own := itemCall("fc_1", "a", `{"n":1}`), itemCall("fc_2", "b", `{"n":2}`), `"id":"fco_1",`
	out, mends := mendedResponse(t, user, a, b, says(own, "a"), says(own, "b"))
	wantLines(t, problems(mends), "4 another item has the id of its item")
	wantLines(t, out, user, a, b, says(own, "a"), says("", "b"))
}

func TestTheSameItemsInAnotherTurnAreAnotherCall(t *testing.T) {
	call := `{"type":"function_call","call_id":"p","name":"pay","arguments":"{}"}`
	for _, between := range []string{user, `{"type":"message","role":"system","content":"s"}`} {
		out, mends := mendedResponse(t, user, call, between, call)
		wantLines(t, problems(mends), "1 it has no output", "3 another call has its id", "3 it has no output")
		if len(out) != 6 {
			t.Errorf("%q", out)
		}
	}
}

func TestAnOutputBeforeItsCallGoesBehindTheAnswer(t *testing.T) {
	out, mends := mendedResponse(t, user, itemSays("q", "2"), itemCall("fc_1", "p", `{}`), itemCall("fc_2", "q", `{}`), itemSays("p", "1"), user)
	wantLines(t, out, user, itemCall("fc_1", "p", `{}`), itemCall("fc_2", "q", `{}`), itemSays("p", "1"), itemSays("q", "2"), user)
	wantLines(t, problems(mends), "1 the output stands before its call")
	// Where the id is on two calls, or the call has an output, nobody can say whose it is.
	out, _ = mendedResponse(t, user, itemSays("p", "0"), itemCall("fc_1", "p", `{}`), itemSays("p", "1"))
	wantLines(t, out, user, itemCall("fc_1", "p", `{}`), itemSays("p", "1"))
}

func TestACallWithoutOutputIsClosedBehindItsAnswer(t *testing.T) {
	call := `{"type":"function_call","call_id":"q","name":"pay","arguments":"{}","caller":{"type":"program","caller_id":"pr_1"}}`
	out, mends := mendedResponse(t, user, reasoned, itemCall("fc_1", "p", `{}`), call, itemSays("p", "1"), user, reasoned)
	wantLines(t, problems(mends), "3 it has no output", "6 another item has its id")
	closed := gjson.Parse(out[5])
	wantLines(t, append(out[:5:5], out[6:]...), user, reasoned, itemCall("fc_1", "p", `{}`), call, itemSays("p", "1"), user)
	if closed.Get("call_id").String() != "q" || !strings.Contains(closed.Get("output").String(), cut) || closed.Get("caller.caller_id").String() != "pr_1" {
		t.Errorf("%s", closed.Raw)
	}
}

func TestReasoningThatNothingFollowsIsLeftOut(t *testing.T) {
	two, three := `{"id":"rs_2","type":"reasoning","summary":[]}`, `{"id":"rs_3","type":"reasoning","summary":[]}`
	out, mends := mendedResponse(t, user, reasoned, user, said, two, three)
	wantLines(t, out, user, user, said)
	wantLines(t, problems(mends), "1 nothing of the model follows the reasoning", "4 nothing of the model follows the reasoning", "5 nothing of the model follows the reasoning")
	out, _ = mendedResponse(t, user, reasoned, two, said, three, itemSays("x", "orphan"))
	wantLines(t, out, user, reasoned, two, said)
}

func TestBadFieldsOfItemsAreMended(t *testing.T) {
	long := strings.Repeat("x", 65)
	out, mends := mendedResponse(t, user,
		`{"type":"function_call","call_id":"`+long+`","name":"f.g","arguments":"{"}`, `{"type":"function_call_output","call_id":"`+long+`"}`,
		`{"type":"function_call","call_id":"b","name":"pay","arguments":{"n":1}}`, `{"type":"function_call_output","call_id":"b","output":{"n":1}}`)
	wantLines(t, problems(mends), "1 its id is longer than 64 bytes", "1 no tool can have its name", "1 its arguments are no JSON object", "2 the output is not text",
		"3 it does not have the form that the API wants", "4 the output is not text")
	id := gjson.Get(out[1], "call_id").String()
	wantLines(t, out[1:],
		`{"type":"function_call","call_id":"`+id+`","name":"f_g","arguments":"{}"}`, `{"type":"function_call_output","call_id":"`+id+`","output":""}`,
		`{"type":"function_call","call_id":"b","name":"pay","arguments":"{\"n\":1}"}`, itemSays("b", `{"n":1}`))
}

func TestWhereTheServerHasTheCallItsOutputStays(t *testing.T) {
	server := transcript.NewServer(transcript.Steps(
		transcript.Step{Calls: []transcript.ToolCall{{ID: "call_0", Name: "pay", Arguments: "{}"}}}, transcript.Step{Text: "fine"}, transcript.Step{Text: "fine"},
	), nil)
	client := clientOf(server)
	p := responses.ResponseNewParams{Model: "demo-model", Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("pay")}}
	first, err := client.Responses.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	// An answer of the server, and a call of the same id that was made elsewhere.
	p = historyItems([]string{itemSays("call_0", "paid"), itemCall("fc_9", "call_0", `{"n":2}`), user})
	p.PreviousResponseID = openai.String(first.ID)
	mended, mends := agent.CheckResponse(p)
	out := wire(t, mended.Input.OfInputItemList)
	wantLines(t, problems(mends), "1 another call has its id", "1 it has no output")
	if out[0] != itemSays("call_0", "paid") || len(out) != 4 {
		t.Errorf("%q", out)
	}
	if _, err := client.Responses.New(t.Context(), mended); err != nil {
		t.Errorf("refused: %s", server.Requests()[1].Refusal)
	}
	for name, item := range map[string]string{
		"a reference": `{"type":"item_reference","id":"fc_1"}`, "a compaction": `{"type":"compaction","encrypted_content":"x"}`,
	} {
		if _, mends := agent.CheckResponse(historyItems([]string{itemSays("a", "1"), item})); mends != nil {
			t.Errorf("%s: %v", name, mends)
		}
	}
	p = historyItems([]string{itemSays("a", "1")})
	p.Conversation.OfString = openai.String("conv_1")
	if _, mends := agent.CheckResponse(p); mends != nil {
		t.Error(mends)
	}
	if _, mends := agent.CheckResponse(historyItems([]string{itemSays("a", "1")})); len(mends) != 1 {
		t.Errorf("without any of these: %v", mends)
	}
}
