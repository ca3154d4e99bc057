package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/transcript"
)

var ours = regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`)

func TestEmptyIDsGetIDsOfOursThatAreTheSameEachTime(t *testing.T) {
	c := completion(t, "tool_calls", calling([3]string{"", "f", `{"n":1}`}, [3]string{"", "f", `{"n":2}`}, [3]string{" ", "f", `{"n":2}`}))
	s := &spy{}
	first := answer(t, s.handle, 1, c)
	calls, outputs := ids(t, first)
	if !cmp.Equal(calls, outputs) || len(calls) != 3 || calls[0] == calls[1] || calls[1] == calls[2] {
		t.Fatal(calls, outputs)
	}
	for _, id := range calls {
		if !ours.MatchString(id) {
			t.Errorf("id %q", id)
		}
	}
	if diff := cmp.Diff([]string{`1.0  f {"n":1}`, `1.1  f {"n":2}`, `1.2   f {"n":2}`}, s.seen()); diff != "" {
		t.Error(diff)
	}
	again, _ := ids(t, answer(t, s.handle, 1, c))
	if diff := cmp.Diff(calls, again); diff != "" {
		t.Error(diff)
	}
	later, _ := ids(t, answer(t, s.handle, 2, c))
	other, err := agent.AnswerChat(t.Context(), s.handle, agent.Run{ID: "ticket-43"}, 1, c)
	if err != nil {
		t.Fatal(err)
	}
	others, _ := ids(t, other)
	if later[0] == calls[0] || others[0] == calls[0] {
		t.Error("another turn or run has the same ids")
	}
}

func TestAnIDThatComesBackInALaterTurnIsMendedOnTheWireAlone(t *testing.T) {
	server := transcript.NewServer(transcript.Steps(
		transcript.Step{Calls: []transcript.ToolCall{{ID: "call_0", Name: "read_x", Arguments: `{}`}}},
		transcript.Step{Calls: []transcript.ToolCall{{ID: "call_0", Name: "pay", Arguments: `{"n":1}`}, {ID: "", Name: "pay", Arguments: `{"n":2}`}}},
		transcript.Step{Calls: []transcript.ToolCall{{ID: "call_0", Name: "pay", Arguments: `{"n":3}`}}},
		transcript.Step{Text: "done"},
	), nil)
	s := &spy{}
	text, history, err := loop(t.Context(), clientOf(server), s.handle, run, messages{openai.UserMessage("go")})
	if err != nil || text != "done" {
		t.Fatal(err)
	}
	calls, outputs := ids(t, history)
	if !cmp.Equal(calls, outputs) || calls[0] != "call_0" || calls[1] == "call_0" || calls[3] == "call_0" {
		t.Error(calls, outputs)
	}
	if diff := cmp.Diff([]string{`1.0 call_0 read_x {}`, `2.0 call_0 pay {"n":1}`, `2.1  pay {"n":2}`, `3.0 call_0 pay {"n":3}`}, s.seen()); diff != "" {
		t.Error(diff)
	}
	if got := agent.ChatTurn(history); got != 5 {
		t.Errorf("turn %d", got)
	}
}

func TestOneIDOnTwoCallsOfATurnIsTwoCalls(t *testing.T) {
	s := &spy{}
	ms := answer(t, s.handle, 1, completion(t, "tool_calls", calling([3]string{"x", "pay", `{"n":1}`}, [3]string{"x", "pay", `{"n":2}`}, [3]string{"x", "get", `{"n":1}`})))
	calls, outputs := ids(t, ms)
	if !cmp.Equal(calls, outputs) || calls[0] != "x" || calls[1] == "x" || calls[2] == "x" || calls[1] == calls[2] || len(s.calls) != 3 {
		t.Error(calls, outputs, s.seen())
	}
}

func TestACallDeliveredTwiceIsOneCallWithOneOutput(t *testing.T) {
	for name, c := range map[string][2]string{
		"equal":       {`{"n":1}`, `{"n":1}`},
		"blanks":      {`{"n":1}`, `{ "n" : 1 }`},
		"key order":   {`{"n":1,"m":"a"}`, `{"m":"\u0061","n":1}`},
		"announced":   {``, `{"n":1}`},
		"echoed":      {`{"n":1}`, ` `},
		"both empty":  {``, ``},
		"both broken": {`{"n":`, `{"n":`},
	} {
		s := &spy{}
		ms := answer(t, s.handle, 1, completion(t, "tool_calls", calling([3]string{"x", "pay", c[0]}, [3]string{"x", "pay", c[1]}, [3]string{"y", "pay", "{}"})))
		calls, outputs := ids(t, ms)
		if diff := cmp.Diff([]string{"x", "y"}, calls); diff != "" || !cmp.Equal(calls, outputs) {
			t.Errorf("%s: %v %v", name, calls, outputs)
		}
		want := c[0]
		if name == "announced" {
			want = c[1]
		}
		if diff := cmp.Diff([]string{"1.0 x pay " + want, "1.1 y pay {}"}, s.seen()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestNumbersThatDifferBeyondAFloatAreTwoCalls(t *testing.T) {
	s := &spy{}
	answer(t, s.handle, 1, completion(t, "tool_calls", calling([3]string{"x", "pay", `{"n":9007199254740993}`}, [3]string{"x", "pay", `{"n":9007199254740992}`})))
	if len(s.calls) != 2 {
		t.Error(s.seen())
	}
}

func TestLongIDsAreShortenedOneToOne(t *testing.T) {
	long := strings.Repeat("a", 45)
	in := [][3]string{{long + "-first", "f", `{"n":1}`}, {long + "-other", "f", `{"n":2}`}, {strings.Repeat("b", 40), "f", "{}"}}
	server := transcript.NewServer(func(r transcript.Request) transcript.Step {
		if r.Turn > 2 {
			return transcript.Step{Text: "done"}
		}
		var calls []transcript.ToolCall
		for _, c := range in {
			calls = append(calls, transcript.ToolCall{ID: c[0], Name: c[1], Arguments: c[2]})
		}
		return transcript.Step{Calls: calls} // the same ids in both turns
	}, nil)
	s := &spy{}
	_, history, err := loop(t.Context(), clientOf(server), s.handle, run, messages{openai.UserMessage("go")})
	if err != nil {
		t.Fatal(err)
	}
	calls, outputs := ids(t, history)
	if !cmp.Equal(calls, outputs) || len(calls) != 6 || calls[2] != in[2][0] {
		t.Error(calls, outputs)
	}
	seen := map[string]bool{}
	for _, id := range calls {
		if seen[id] || !ours.MatchString(id) {
			t.Errorf("id %q", id)
		}
		seen[id] = true
	}
	if s.calls[0].ID != in[0][0] || s.calls[4].ID != in[1][0] {
		t.Error("the handler does not get the ids as they came")
	}
}

func TestInvalidArgumentsReachTheHandlerAndNeverTheWire(t *testing.T) {
	bad := []string{`{"p":"x`, `null`, `[]`, `"x"`, `{"to":"u1"}{"to":"u1"}`, `{"n":NaN}`, ` `}
	server := transcript.NewServer(func(r transcript.Request) transcript.Step {
		if r.Turn > 1 {
			return transcript.Step{Text: "done"}
		}
		var calls []transcript.ToolCall
		for i, a := range bad {
			calls = append(calls, transcript.ToolCall{ID: fmt.Sprint("c", i), Name: "f", Arguments: a})
		}
		return transcript.Step{Calls: append(calls, transcript.ToolCall{ID: "double", Name: "f", Arguments: `"{\"n\":2}"`})}
	}, nil)
	s := &spy{}
	client := clientOf(server)
	_, history, err := loop(t.Context(), client, s.handle, run, messages{openai.UserMessage("go")})
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range bad {
		if s.calls[i].Arguments != a {
			t.Errorf("the handler got %q of %q", s.calls[i].Arguments, a)
		}
	}
	if got := gjson.Get(wire(t, history)[1], "tool_calls.@reverse.0.function.arguments").String(); got != `{"n":2}` {
		t.Errorf("double encoding: %s", got)
	}
	for range 2 { // later turns go on
		history = append(history, openai.UserMessage("and?"))
		if _, history, err = loop(t.Context(), client, s.handle, run, history); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheMessageGoesBackAsItCame(t *testing.T) {
	m := `{"role":"assistant","content":"I <b>look</b> & pay","refusal":null,"annotations":[],"reasoning_content":"hm <é\u00e9>","vendor":{"n":12345678901234567890},"tool_calls":[{"id":"a","type":"function","index":0,"function":{"name":"f","arguments":"{\"a\": \"\\u0061<\"}"},"extra_content":{"google":{"thought_signature":"abc=="}}}]}`
	s := &spy{}
	if diff := cmp.Diff(m, wire(t, answer(t, s.handle, 1, completion(t, "tool_calls", m)))[0]); diff != "" {
		t.Error(diff)
	}
	mended := wire(t, answer(t, s.handle, 1, completion(t, "tool_calls", strings.Replace(m, `"id":"a"`, `"id":""`, 1))))[0]
	id := gjson.Get(mended, "tool_calls.0.id").String()
	if diff := cmp.Diff(strings.Replace(m, `"id":"a"`, `"id":"`+id+`"`, 1), mended); diff != "" || !ours.MatchString(id) {
		t.Error(diff)
	}
}

func TestWhatTheAPIRefusesInAHistoryIsMended(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{ // no role, no type, arguments as an object, a null entry
			`{"content":null,"tool_calls":[null,{"id":"a","function":{"name":"f","arguments":{"n":12345678901234567890}}}]}`,
			`{"content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"n\":12345678901234567890}"},"type":"function"}],"role":"assistant"}`,
		},
		{ // a name that no tool can have
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"functions.pay now","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"","arguments":"{}"}}]}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"functions_pay_now","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"unknown","arguments":"{}"}}]}`,
		},
		{ // audio goes back by its id
			`{"role":"assistant","content":null,"audio":{"id":"audio_1","data":"UklGRg==","expires_at":1,"transcript":"hi"},"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			`{"role":"assistant","content":null,"audio":{"id":"audio_1"},"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		},
	} {
		s := &spy{}
		if diff := cmp.Diff(c.want, wire(t, answer(t, s.handle, 1, completion(t, "tool_calls", c.in)))[0]); diff != "" {
			t.Error(diff)
		}
	}
}

func TestAToolOfAnImpossibleNameIsUnknownAndTheRunGoesOn(t *testing.T) {
	server := transcript.NewServer(transcript.Steps(
		transcript.Step{Calls: []transcript.ToolCall{{ID: "a", Name: "functions.refund", Arguments: `{}`}}},
		transcript.Step{Text: "done"},
	), nil)
	_, history, err := loop(t.Context(), clientOf(server), newPayments().guarded(), run, messages{openai.UserMessage("go")})
	if err != nil {
		t.Fatal(err)
	}
	if out := gjson.Get(wire(t, history)[2], "content").String(); !strings.Contains(out, "there is no tool") {
		t.Error(out)
	}
}

func TestWhatTheLoopHasChangedIsWhatRunsAndStands(t *testing.T) {
	c := completion(t, "tool_calls", calling([3]string{"a", "f", `{"n":1}`}, [3]string{"b", "f", `{"n":2}`}))
	m := &c.Choices[0].Message
	m.Content = "edited"
	m.ToolCalls[1].Function.Arguments = `{"n":7}`
	m.ToolCalls = m.ToolCalls[1:]
	s := &spy{}
	got := wire(t, answer(t, s.handle, 1, c))
	if want := `{"role":"assistant","content":"edited","tool_calls":[{"id":"b","type":"function","function":{"name":"f","arguments":"{\"n\":7}"}}]}`; got[0] != want {
		t.Errorf("\n got %s\nwant %s", got[0], want)
	}
	if diff := cmp.Diff([]string{`1.0 b f {"n":7}`}, s.seen()); diff != "" || len(got) != 2 {
		t.Error(diff)
	}
}

func TestCustomToolCallsAreRefusedInASentence(t *testing.T) {
	m := `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"shell","input":"rm -rf"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	s := &spy{}
	got := wire(t, answer(t, s.handle, 1, completion(t, "tool_calls", m)))
	if got[0] != m || gjson.Get(got[1], "tool_call_id").String() != "a" {
		t.Error(got)
	}
	if out := gjson.Get(got[1], "content").String(); out != `{"toolonce":1,"status":"refused","tool":"shell","reason":"free text tools are not answered here; call a function tool with JSON arguments"}` {
		t.Error(out)
	}
	if diff := cmp.Diff([]string{`1.1 b f {}`}, s.seen()); diff != "" {
		t.Error(diff)
	}
}

func TestACompletionPutTogetherFromAStreamIsAnswered(t *testing.T) {
	server := transcript.NewServer(transcript.Steps(transcript.Step{Text: "I look.", Calls: []transcript.ToolCall{
		{ID: "a", Name: "f", Arguments: `{"n":1}`}, {ID: "", Name: "f", Arguments: `{"n":2}`},
	}}, transcript.Step{Text: "done"}), nil)
	client := clientOf(server)
	params := openai.ChatCompletionNewParams{Model: "demo-model", Messages: messages{openai.UserMessage("go")}}
	accumulate := func() (acc openai.ChatCompletionAccumulator) {
		stream := client.Chat.Completions.NewStreaming(t.Context(), params)
		for stream.Next() {
			acc.AddChunk(stream.Current())
		}
		if stream.Err() != nil {
			t.Fatal(stream.Err())
		}
		return acc
	}
	acc := accumulate()
	s := &spy{}
	params.Messages = append(params.Messages, answer(t, s.handle, 1, &acc.ChatCompletion)...)
	w := wire(t, params.Messages)
	id := gjson.Get(w[1], "tool_calls.1.id").String()
	want := `{"role":"assistant","content":"I look.","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":1}"}},{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{\"n\":2}"}}]}`
	if diff := cmp.Diff(want, w[1]); diff != "" || agent.ChatTurn(params.Messages) != 2 {
		t.Error(diff)
	}
	if end := accumulate(); end.Choices[0].Message.Content != "done" {
		t.Error(end.Choices[0].Message.Content)
	}

	acc.Choices[0].FinishReason = "" // as after a stream that was cut off
	s = &spy{}
	_, err := agent.AnswerChat(t.Context(), s.handle, run, 1, &acc.ChatCompletion)
	var ie *agent.IncompleteError
	if !errors.As(err, &ie) || s.calls != nil || !strings.Contains(err.Error(), "no end mark") {
		t.Error(err)
	}
}

func TestChatTurnCountsEveryFormOfAssistantMessage(t *testing.T) {
	s := &spy{}
	c := completion(t, "tool_calls", calling([3]string{"a", "f", "{}"}))
	history := messages{
		openai.SystemMessage("s"), openai.DeveloperMessage("d"), openai.UserMessage("assistant"),
		openai.AssistantMessage("1"),
		c.Choices[0].Message.ToParam(), openai.ToolMessage("x", "a"),
		param.Override[openai.ChatCompletionMessageParamUnion](json.RawMessage(`{"content":"3","role":"assistant"}`)),
		param.Override[openai.ChatCompletionMessageParamUnion](map[string]any{"role": "assistant", "content": "4"}),
		param.Override[openai.ChatCompletionMessageParamUnion](json.RawMessage(`{"content":"assistant","role":"user"}`)),
	}
	history = append(history, answer(t, s.handle, 5, c, history...)...)
	history = append(history, openai.UserMessage("u"))
	if got := agent.ChatTurn(history); got != 6 {
		t.Errorf("got %d, want 6", got)
	}
	if got := agent.ChatTurn(nil); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
}

func TestWithoutATurnIDsOfOursDifferByAnswer(t *testing.T) {
	s := &spy{}
	c := completion(t, "tool_calls", calling([3]string{"", "f", "{}"}))
	a, _ := ids(t, answer(t, s.handle, 0, c))
	c.ID = "chatcmpl-2"
	b, _ := ids(t, answer(t, s.handle, 0, c))
	if a[0] == b[0] {
		t.Error(a, b)
	}
}

func TestAHistoryTrimmedToTheSameTurnGetsFreshIDs(t *testing.T) {
	s := &spy{}
	c := completion(t, "tool_calls", calling([3]string{"", "f", "{}"}))
	first := answer(t, s.handle, 1, c)
	second := answer(t, s.handle, 1, c, first...)
	a, _ := ids(t, first)
	b, _ := ids(t, second)
	if a[0] == b[0] || !ours.MatchString(b[0]) {
		t.Error(a, b)
	}
}
