package said_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/internal/said"
)

func TestWordsAndCallsOfAnAnswerAreRead(t *testing.T) {
	type want struct {
		Text  string
		Calls []said.Call
	}
	for _, c := range []struct {
		api, answer string
		want        want
	}{
		{"chat", `{"choices":[{"message":{"content":"I look.","tool_calls":[
			{"id":"a","type":"function","function":{"name":"pay","arguments":"{}"}},
			{"id":"b","type":"custom","custom":{"name":"sql","input":"select"}}]}}]}`,
			want{"I look.", []said.Call{{"a", "pay", "{}"}, {"b", "sql", "select"}}}},
		{"chat", `{"choices":[{"message":{"content":null,"refusal":"no","tool_calls":{"id":"a","function":{"name":"pay","arguments":{"x":1}}}}}]}`,
			want{"no", []said.Call{{"a", "pay", `{"x":1}`}}}},
		{"responses", `{"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"one"},{"type":"refusal","refusal":"two"}]},
			{"type":"function_call","call_id":"a","name":"pay","arguments":"{}"},{"type":"custom_tool_call","call_id":"b","name":"sql","input":"select"}]}`,
			want{"one\ntwo", []said.Call{{"a", "pay", "{}"}, {"b", "sql", "select"}}}},
		{"chat", `no JSON`, want{}},
		{"responses", ``, want{}},
	} {
		var got want
		got.Text, got.Calls = said.In(c.api, json.RawMessage(c.answer))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s: %s", c.api, c.answer, diff)
		}
	}
}
