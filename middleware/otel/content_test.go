package otel_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/transcript"
)

// tell runs all that has something to tell: a result, an error's text, a made-up tool, arguments that do not fit.
func (w *world) tell(f form) {
	w.t.Helper()
	ran := 0
	w.run = func(context.Context) error {
		if ran++; ran > 1 {
			return errDeclined
		}
		return nil
	}
	w.serve(
		transcript.Step{Text: "I look at " + secretOrder, Reasoning: "thinking of " + secretOrder, Calls: []transcript.ToolCall{lookCall("call_1"), refundCall("call_2")}},
		transcript.Step{Calls: []transcript.ToolCall{
			{ID: "call_3", Name: "issue_refund", Arguments: `{"order":"` + secretOrder + `-b","cents":500}`},
			{ID: "call_4", Name: "refund_" + secretOrder, Arguments: `{}`},
			{ID: "call_5", Name: "issue_refund", Arguments: `{"order":"` + secretOrder + `","cents":"` + secretOrder + `"}`},
		}},
		transcript.Step{Text: "All done with " + secretOrder},
	)
	if err := w.do(w.t.Context(), f); err != nil {
		w.t.Fatal(err)
	}
}

func TestNoDataOfUsersIsToldByDefault(t *testing.T) {
	for _, f := range forms {
		t.Run(f.String(), func(t *testing.T) {
			w := newWorld(t, false)
			w.tell(f)
			all := w.everything()
			for _, secret := range []string{secretOrder, secretResult, secretText, secretError, secretKey, "Be kind", "look at", "cents", "api_key"} {
				if strings.Contains(all, secret) {
					t.Errorf("%q is told", secret)
				}
			}
			if strings.Count(all, "execute_tool _OTHER") != 1 {
				t.Errorf("the tool that is not registered is not told:\n%s", all)
			}
		})
	}
}

func TestContentIsToldOnDemandAndKeysNever(t *testing.T) {
	for _, f := range forms {
		t.Run(f.String(), func(t *testing.T) {
			w := newWorld(t, true)
			w.tell(f)
			if all := w.everything(); strings.Contains(all, secretKey) || strings.Contains(all, secretError) {
				t.Errorf("a key or an error's text is told:\n%s", all)
			}
			told := map[string][]string{}
			for _, s := range w.spans.GetSpans() {
				for _, kv := range s.Attributes {
					told[string(kv.Key)] = append(told[string(kv.Key)], kv.Value.String())
				}
			}
			if d := cmp.Diff(refundCall("").Arguments, told["gen_ai.tool.call.arguments"][1]); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(secretResult, told["gen_ai.tool.call.result"][1]); d != "" {
				t.Error(d)
			}
			said, asked := messagesOf(f)
			if d := cmp.Diff(said, withoutIDs(told["gen_ai.output.messages"][0])); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(asked, withoutIDs(told["gen_ai.input.messages"][1])); d != "" {
				t.Error(d)
			}
			if f.api == "responses" {
				if d := cmp.Diff(`[{"type":"text","content":"Be kind."}]`, told["gen_ai.system_instructions"][0]); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

var reasoningID = regexp.MustCompile(`"id":"rs_[^"]*"`)

func withoutIDs(s string) string { return reasoningID.ReplaceAllString(s, `"id":"rs"`) }

// messagesOf are those out of the first request, and into the second.
func messagesOf(f form) (said, asked string) {
	const (
		user   = `{"role":"user","parts":[{"type":"text","content":"Please refund it."}]}`
		text   = `{"type":"text","content":"I look at order-4711"}`
		look   = `{"type":"tool_call","id":"call_1","name":"look_up","arguments":{"order":"order-4711"}}`
		refund = `{"type":"tool_call","id":"call_2","name":"issue_refund","arguments":{"order":"order-4711","cents":500}}`
		think  = `{"type":"reasoning","content":{"id":"rs","summary":[{"text":"thinking of order-4711","type":"summary_text"}],"type":"reasoning"}}`
		out    = `{"role":"tool","parts":[{"type":"tool_call_response","id":"call_1","response":"re_secret"}]},` +
			`{"role":"tool","parts":[{"type":"tool_call_response","id":"call_2","response":"re_secret"}]}`
	)
	messages := func(finish string, parts ...string) string {
		var all []string
		for _, p := range parts {
			all = append(all, `{"role":"assistant","parts":[`+p+`]`+finish+`}`)
		}
		return strings.Join(all, ",")
	}
	parts, finish := []string{text + "," + look + "," + refund}, `,"finish_reason":"tool_calls"`
	if f.api == "responses" {
		parts, finish = []string{think, text, look, refund}, `,"finish_reason":"completed"`
	}
	return "[" + messages(finish, parts...) + "]", "[" + user + "," + messages("", parts...) + "," + out + "]"
}
