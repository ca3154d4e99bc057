package agent_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
)

// Whatever a model answers, the history that comes of it pairs.
func FuzzAnswersPair(f *testing.F) {
	for _, s := range []string{
		calling([3]string{"a", "f", `{"n":1}`}, [3]string{"a", "f", `{"n":1}`}, [3]string{"a", "f", ``}),
		calling([3]string{"", "f.g", `{"n":`}, [3]string{"call_0", "", `"{}"`}),
		`{"tool_calls":[null,{},{"id":1,"type":7,"function":{"name":"f","arguments":{"a":[]}}},{"custom":{"name":"c","input":"i"}}]}`,
		`{"role":"user","content":["x"],"audio":{"id":"a"},"refusal":{},"tool_calls":{"a":1}}`,
		`[` + call("fc_1", "c", `{}`) + `,` + call("fc_1", "c", ``) + `,{"type":"custom_tool_call","call_id":"c","input":"x"},null,{"type":"function_call"}]`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) {
			return
		}
		h := (&spy{}).handle
		var c openai.ChatCompletion
		if json.Unmarshal([]byte(`{"choices":[{"finish_reason":"stop","message":`+s+`}]}`), &c) == nil {
			ms, err := agent.AnswerChat(t.Context(), h, run, 1, &c)
			if err != nil {
				t.Fatal(err)
			}
			for _, raw := range wire(t, ms[:min(1, len(ms))]) {
				for _, a := range gjson.Get(raw, "tool_calls.#.function.arguments").Array() {
					if a.Type != gjson.String || !gjson.Valid(a.String()) || !gjson.Parse(a.String()).IsObject() {
						t.Errorf("arguments %s", a.Raw)
					}
				}
			}
			calls, outputs := ids(t, ms)
			checkPairs(t, calls, outputs, 40)
			if len(ms) > 0 && agent.ChatTurn(ms) != 2 {
				t.Error("the model's message is none of an assistant")
			}
		}
		var r responses.Response
		if json.Unmarshal([]byte(`{"status":"completed","output":`+s+`}`), &r) == nil {
			in, err := agent.AnswerResponse(t.Context(), h, run, 1, &r)
			if err != nil {
				return // an item without JSON
			}
			calls, outputs := pairs(t, in)
			if in != nil && len(calls) > len(outputs) { // outputs that the model's answer had itself
				t.Errorf("%d calls, %d outputs", len(calls), len(outputs))
			}
			checkPairs(t, calls, outputs[len(outputs)-len(calls):], 64)
		}
	})
}

func checkPairs(t *testing.T, calls, outputs []string, limit int) {
	t.Helper()
	if diff := cmp.Diff(calls, outputs); diff != "" {
		t.Error(diff)
	}
	slices.Sort(outputs)
	if n := len(outputs); len(slices.Compact(outputs)) != n {
		t.Errorf("ids come twice: %q", outputs)
	}
	for _, id := range outputs {
		if id == "" || len(id) > limit {
			t.Errorf("id %q", id)
		}
	}
}

// Whatever the body, nothing but the field changes.
func FuzzNothingButTheFieldChanges(f *testing.F) {
	for _, s := range []string{
		body(model("o1"), chatTool, userAskedForTrue), body(userAskedForTrue, model("gpt-4.1-nano"), chatTool),
		"{ \"parallel_tool_calls\" : [1,{}] , " + model("gpt-4.1-nano") + " , " + chatTool + " } ", body(userAskedForTrue), `{"a":1,"a":2}`,
		body(`"parallel\u005ftool_calls":null`, `"prompt":{}`), "[]", "", "{}", "nonsense",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := sends(t, "", chatPath, s, nil)
		if got == s {
			return
		}
		want, have := map[string]json.RawMessage{}, map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(s), &want); err != nil {
			t.Fatalf("%q became %q", s, got)
		}
		if err := json.Unmarshal([]byte(got), &have); err != nil {
			t.Fatalf("%q became %q: %v", s, got, err)
		}
		if v, ok := have["parallel_tool_calls"]; ok && string(v) != "false" {
			t.Errorf("%q became %q", s, got)
		}
		delete(want, "parallel_tool_calls")
		delete(have, "parallel_tool_calls")
		if diff := cmp.Diff(want, have); diff != "" {
			t.Error(diff)
		}
	})
}
