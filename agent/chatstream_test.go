package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/tidwall/gjson"
)

// chunks makes one chunk of each delta, and the last one with finish_reason.
func chunks(finish string, deltas ...string) []string {
	var list []string
	for _, d := range deltas {
		list = append(list, `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":`+d+`,"finish_reason":null}]}`)
	}
	return append(list, `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"`+finish+`"}]}`)
}

// pieces makes a delta of entries of tool_calls.
func pieces(entries ...string) string { return `{"tool_calls":[` + strings.Join(entries, ",") + `]}` }

// addAll gives the chunks to a new stream.
func addAll(t *testing.T, list []string) (*chatStream, []delta) {
	t.Helper()
	var s chatStream
	var all []delta
	for _, c := range list {
		ds, err := s.add(c)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ds...)
	}
	return &s, all
}

// streamedAnswer is what the chunks amount to, as the SDK decodes it.
func streamedAnswer(t *testing.T, list []string) *openai.ChatCompletion {
	t.Helper()
	s, _ := addAll(t, list)
	raw, err := s.answer()
	if err != nil {
		t.Fatal(err)
	}
	var c openai.ChatCompletion
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if c.RawJSON() != string(raw) || c.Object != "chat.completion" {
		t.Errorf("the SDK reads %s of %s", c.RawJSON(), raw)
	}
	return &c
}

// callLines are the calls of a completion, a line each.
func callLines(c *openai.ChatCompletion) []string {
	lines := []string{}
	for _, t := range c.Choices[0].Message.ToolCalls {
		switch t := t.AsAny().(type) {
		case openai.ChatCompletionMessageFunctionToolCall:
			lines = append(lines, fmt.Sprintf("%s %s %s", t.ID, t.Function.Name, t.Function.Arguments))
		case openai.ChatCompletionMessageCustomToolCall:
			lines = append(lines, fmt.Sprintf("%s custom %s %s", t.ID, t.Custom.Name, t.Custom.Input))
		default:
			lines = append(lines, "nothing the SDK knows")
		}
	}
	return lines
}

func TestPiecesOfCallsAreJoinedToTheRightCalls(t *testing.T) {
	const f = `{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`
	for name, c := range map[string]struct{ deltas, want []string }{
		"one after the other": {
			[]string{pieces(f), pieces(`{"index":0,"function":{"arguments":"{\"x\""}}`), pieces(`{"index":0,"function":{"arguments":":1}"}}`), pieces(`{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}`)},
			[]string{`a f {"x":1}`, `b g {}`},
		},
		"interleaved": {
			[]string{pieces(f), pieces(`{"index":1,"id":"b","function":{"name":"g","arguments":"{"}}`), pieces(`{"index":0,"function":{"arguments":"{\"x\":1}"}}`), pieces(`{"index":1,"function":{"arguments":"}"}}`)},
			[]string{`a f {"x":1}`, `b g {}`},
		},
		"both in one chunk": {
			[]string{pieces(f, `{"index":1,"id":"b","function":{"name":"g"}}`), pieces(`{"index":0,"function":{"arguments":"{}"}}`, `{"index":1,"function":{"arguments":"[]"}}`)},
			[]string{`a f {}`, `b g []`},
		},
		"every call at index 0 under its own id": {
			[]string{pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), pieces(`{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":"}}`), pieces(`{"index":0,"function":{"arguments":"2}"}}`)},
			[]string{`a f {"x":1}`, `b f {"x":2}`},
		},
		"interleaved at index 0, told apart by ids": {
			[]string{pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`), pieces(`{"index":0,"id":"b","function":{"name":"g","arguments":"{"}}`), pieces(`{"index":0,"id":"a","function":{"arguments":"\"x\":1}"}}`), pieces(`{"index":0,"id":"b","function":{"arguments":"}"}}`)},
			[]string{`a f {"x":1}`, `b g {}`},
		},
		"every call at index 0 without an id": {
			[]string{pieces(`{"index":0,"id":"","function":{"name":"f","arguments":"{\"s\":\"}{\"}"}}`), pieces(`{"index":0,"id":"","function":{"name":"f","arguments":" {\"x\":2}"}}`), pieces(`{"index":0,"id":"","function":{"name":"g","arguments":"{}"}}`)},
			[]string{` f {"s":"}{"}`, ` f  {"x":2}`, ` g {}`},
		},
		"two names at index 0 in one chunk": {
			[]string{pieces(`{"index":0,"function":{"name":"f"}}`, `{"index":0,"function":{"name":"g"}}`)},
			[]string{` f `, ` g `},
		},
		"index 0 again under a new id, arguments later": {
			[]string{pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), pieces(`{"index":0,"id":"b","function":{"name":"f","arguments":""}}`), pieces(`{"index":0,"function":{"arguments":"[]"}}`)},
			[]string{`a f {}`, `b f []`},
		},
		"index 0 again, the first without an id, arguments later": {
			[]string{pieces(`{"index":0,"function":{"name":"f","arguments":"{}"}}`), pieces(`{"index":0,"id":"b","function":{"name":"f","arguments":""}}`), pieces(`{"index":0,"function":{"arguments":"[]"}}`)},
			[]string{` f {}`, `b f []`},
		},
		"no index, interleaved, told apart by ids": {
			[]string{pieces(`{"id":"a","function":{"name":"f","arguments":"{"}}`), pieces(`{"id":"b","function":{"name":"g","arguments":"["}}`), pieces(`{"id":"a","function":{"arguments":"}"}}`, `{"id":"b","function":{"arguments":"]"}}`)},
			[]string{`a f {}`, `b g []`},
		},
		"indexes at first, then ids alone": {
			[]string{pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`, `{"index":1,"id":"b","function":{"name":"g","arguments":"["}}`), pieces(`{"id":"a","function":{"arguments":"}"}}`, `{"id":"b","function":{"arguments":"]"}}`)},
			[]string{`a f {}`, `b g []`},
		},
		"the name repeated inside a text with brackets": {
			[]string{pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"s\":\"\\\"}"}}`), pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"}"}}`)},
			[]string{`a f {"s":"\"}{"}`},
		},
		"every call at index 0 under one id": {
			[]string{pieces(`{"index":0,"id":"call_0","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"index":0,"id":"call_0","function":{"name":"g","arguments":"{}"}}`)},
			[]string{`call_0 f {"x":1}`, `call_0 g {}`},
		},
		"the second index never has an id": {
			[]string{pieces(f), pieces(`{"index":1,"function":{"name":"g","arguments":""}}`), pieces(`{"index":1,"function":{"arguments":"{}"}}`)},
			[]string{`a f `, ` g {}`},
		},
		"an id that comes late": {
			[]string{pieces(`{"index":0,"function":{"name":"f","arguments":""}}`), pieces(`{"index":0,"id":"a","function":{"arguments":"{}"}}`)},
			[]string{`a f {}`},
		},
		"the name repeated": {
			[]string{pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`), pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"\"x\":{"}}`), pieces(`{"index":0,"function":{"name":"f","arguments":"}}"}}`)},
			[]string{`a f {"x":{}}`},
		},
		"the name in pieces": {
			[]string{pieces(`{"index":0,"id":"a","function":{"name":"get_","arguments":""}}`), pieces(`{"index":0,"function":{"name":"weather"}}`), pieces(`{"index":0,"function":{"name":"","arguments":"{}"}}`)},
			[]string{`a get_weather {}`},
		},
		"no index, whole calls in one chunk": {
			[]string{pieces(`{"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"id":"b","function":{"name":"f","arguments":"{}"}}`, `{"function":{"name":"g","arguments":""}}`, `{"function":{"name":"g","arguments":""}}`)},
			[]string{`a f {}`, `b f {}`, ` g `, ` g `},
		},
		"no index, pieces in one chunk": {
			[]string{pieces(`{"id":"a","function":{"name":"f"}}`, `{"function":{"arguments":"{}"}}`)},
			[]string{`a f {}`},
		},
		"no index, the last call goes on": {
			[]string{pieces(`{"id":"a","function":{"name":"f","arguments":"{"}}`), pieces(`{"function":{"arguments":"}"}}`), pieces(`{"index":null,"id":"b","function":{"name":"g","arguments":"["}}`), pieces(`{"id":"b","function":{"name":"g","arguments":"]"}}`), pieces(`{"id":null,"function":{"name":null,"arguments":" "}}`)},
			[]string{`a f {}`, `b g [] `},
		},
		"index -1":      {[]string{pieces(`{"index":-1,"id":"a","function":{"name":"f","arguments":"{"}}`), pieces(`{"index":-1,"function":{"arguments":"}"}}`)}, []string{`a f {}`}},
		"index 1 first": {[]string{pieces(`{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}`)}, []string{`a f {}`}},
		"holes":         {[]string{pieces(`{"index":2,"id":"a","function":{"name":"f","arguments":"{}"}}`), pieces(`{"index":9,"id":"b","function":{"name":"g","arguments":"{}"}}`)}, []string{`a f {}`, `b g {}`}},
		"no call at all": {
			[]string{pieces(), `{"tool_calls":null}`, `{"tool_calls":{}}`, pieces(`{}`, `null`, `7`, `{"index":0,"id":"","type":"function","function":{"name":"","arguments":""}}`)}, []string{},
		},
		"no call beside a real one": {
			[]string{pieces(`{"index":0}`, `{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}`, `{"index":2,"id":" ","function":{"arguments":" "}}`)}, []string{`a f {}`},
		},
		"no arguments":           {[]string{pieces(`{"index":0,"id":"a","function":{"name":"f"}}`), pieces(`{"index":0,"function":{"arguments":null}}`)}, []string{`a f `}},
		"an object as arguments": {[]string{pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":{"n":12345678901234567890,"s":"<\"\u00e9"}}}`), pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":{"n":12345678901234567890,"s":"<\"\u00e9"}}}`)}, []string{`a f {"n":12345678901234567890,"s":"<\"\u00e9"}`}},
		"objects as arguments, one index, no ids": {
			[]string{pieces(`{"index":0,"function":{"name":"f","arguments":{"n":1}}}`), pieces(`{"index":0,"function":{"name":"f","arguments":{"n":2}}}`)}, []string{` f {"n":1}`, ` f {"n":2}`},
		},
		"a custom call": {
			[]string{pieces(`{"index":0,"id":"a","type":"custom","custom":{"name":"sql","input":"SEL"}}`), pieces(`{"index":0,"custom":{"input":"ECT {"}}`)}, []string{`a custom sql SELECT {`},
		},
		"function_call": {
			[]string{`{"role":"assistant","function_call":{"name":"f","arguments":""}}`, `{"function_call":{"arguments":"{\"x\""}}`, `{"function_call":{"arguments":":1}"}}`}, []string{` f {"x":1}`},
		},
		"function_call beside tool_calls": {
			[]string{`{"function_call":{"name":"f","arguments":"{}"},"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`}, []string{`a f {}`},
		},
		"a character cut in two": {
			[]string{pieces(f), pieces(`{"index":0,"function":{"arguments":"{\"s\":\"\ud83d"}}`), pieces(`{"index":0,"function":{"arguments":"\ude00\"}"}}`)}, []string{`a f {"s":"😀"}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := streamedAnswer(t, chunks("tool_calls", c.deltas...))
			if diff := cmp.Diff(c.want, callLines(got)); diff != "" {
				t.Error(diff)
			}
			if raw, err := json.Marshal(got.Choices[0].Message.ToParam()); err != nil || strings.Contains(string(raw), "null,") || len(gjson.GetBytes(raw, "tool_calls").Array()) != len(c.want) {
				t.Errorf("goes back as %s, %v", raw, err)
			}
		})
	}
}

func TestEachChunkMayHaveAnIDOfItsOwn(t *testing.T) {
	list := chunks("tool_calls", pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`), pieces(`{"index":0,"function":{"arguments":"}"}}`))
	for i := range list {
		list[i] = strings.Replace(list[i], "chatcmpl-1", fmt.Sprintf("chatcmpl-%d", i+1), 1)
	}
	c := streamedAnswer(t, list)
	if diff := cmp.Diff([]string{"a f {}"}, callLines(c)); diff != "" || c.ID != "chatcmpl-1" {
		t.Error(c.ID, diff)
	}
}

func TestAFinishReasonIsNotTakenBack(t *testing.T) {
	for _, c := range []struct{ first, then, want string }{
		{`"stop"`, `null`, "stop"}, {`"stop"`, `""`, "stop"}, {`"stop"`, `"tool_calls"`, "tool_calls"},
		{`"stop"`, `"length"`, "length"}, {`"length"`, `"stop"`, "length"}, {`"content_filter"`, `null`, "content_filter"},
	} {
		got := streamedAnswer(t, []string{
			`{"choices":[{"delta":{"content":"hi"},"finish_reason":` + c.first + `}]}`,
			`{"choices":[{"delta":{},"finish_reason":` + c.then + `}],"usage":{"total_tokens":3}}`,
		})
		if got.Choices[0].FinishReason != c.want || got.Usage.TotalTokens != 3 {
			t.Errorf("%s, then %s: %s", c.first, c.then, got.RawJSON())
		}
	}
}

func TestTheLastUsageCounts(t *testing.T) {
	list := append(chunks("stop", `{"content":"hi"}`), `{"choices":[],"usage":{"total_tokens":3}}`, `{"choices":[],"usage":{"total_tokens":5}}`, `{"choices":[],"usage":null}`)
	if c := streamedAnswer(t, list); c.Usage.TotalTokens != 5 {
		t.Error(c.RawJSON())
	}
}

func TestAllThatAStreamSaysIsKept(t *testing.T) {
	s, _ := addAll(t, []string{
		`{"id":"","object":"chat.completion.chunk","created":0,"model":"","prompt_filter_results":[{"x":1}],"choices":[]}`,
		`{"id":"c","created":7,"model":"m-1","system_fingerprint":null,"x_\u006eew":12345678901234567890,"choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null,"reasoning_content":"a\ud83d","reasoning_details":[{"n":1}]},"logprobs":{"content":[{"token":"a"}],"refusal":null},"finish_reason":null}]}`,
		` { "id":"d","choices":[{"delta":{"role":"","content":"he\"","reasoning_content":"\ude00","reasoning_details":[ ],"x_vendor":{"n":98765432109876543210},"audio":{"id":"au","data":"AA"}},"message":{"content":"he"},"logprobs":{"content":[{"token":"b"}]}}],"service_tier":"default"} `,
		`{"choices":[{"index":0,"delta":{"content":"llo","reasoning_details":[{"n":2},{"n":3}],"x_vendor":7,"annotations":[{"u":1}],"audio":{"id":"au","data":"BB","transcript":"t","expires_at":9},"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}","x_in":1},"extra_content":{"google":{"thought_signature":"s1"}}}]},"content_filter_results":{"hate":{}}}],"system_fingerprint":"fp"}`,
		`{"id":"","model":"","created":0,"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"extra_content":null}]},"finish_reason":"tool_calls","native_finish_reason":"done"}],"usage":{"total_tokens":3,"cost":0.10}}`,
	})
	want := `{"id":"c","object":"chat.completion","created":7,"model":"m-1","prompt_filter_results":[{"x":1}],"system_fingerprint":"fp","x_new":12345678901234567890,"service_tier":"default","usage":{"total_tokens":3,"cost":0.10},` +
		`"choices":[{"index":0,"message":{"role":"assistant","content":"he\"llo","refusal":null,"reasoning_content":"a\ud83d\ude00","reasoning_details":[{"n":1},{"n":2},{"n":3}],"x_vendor":7,"annotations":[{"u":1}],` +
		`"audio":{"id":"au","data":"AABB","transcript":"t","expires_at":9},"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}","x_in":1},"extra_content":{"google":{"thought_signature":"s1"}}}]},` +
		`"finish_reason":"tool_calls","logprobs":{"content":[{"token":"a"},{"token":"b"}],"refusal":null},"content_filter_results":{"hate":{}},"native_finish_reason":"done"}]}`
	for range 2 {
		if raw, err := s.answer(); err != nil || string(raw) != want {
			t.Errorf("%v\n got %s\nwant %s", err, raw, want)
		}
	}
}

func TestAStreamMayEndWithoutCallsOrWithCallsUnderStop(t *testing.T) {
	if c := streamedAnswer(t, chunks("tool_calls", `{"content":"hi"}`)); c.Choices[0].Message.Content != "hi" || len(c.Choices[0].Message.ToolCalls) != 0 {
		t.Error(c.RawJSON())
	}
	c := streamedAnswer(t, chunks("stop", pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`)))
	if diff := cmp.Diff([]string{"a f {}"}, callLines(c)); diff != "" || c.Choices[0].FinishReason != "stop" {
		t.Error(diff)
	}
}

func TestAStreamCutAnywhereHasNoAnswer(t *testing.T) {
	list := chunks("tool_calls", `{"role":"assistant","content":null}`, pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`),
		pieces(`{"index":0,"function":{"arguments":":1}"}}`), pieces(`{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}}`))
	list = append(list[:len(list)-1], `{"choices":[],"usage":{"total_tokens":3}}`, list[len(list)-1])
	calls := []int{0, 0, 1, 1, 2, 2}
	for n := range list {
		s, _ := addAll(t, list[:n])
		raw, err := s.answer()
		ie, ok := errors.AsType[*IncompleteError](err)
		if raw != nil || !ok || ie.Reason != "" || ie.Calls != calls[n] {
			t.Errorf("after %d chunks: %s, %v", n, raw, err)
		}
	}
	streamedAnswer(t, list)
}

func TestDeltasTellWhatEachChunkAdds(t *testing.T) {
	list := chunks("tool_calls", `{"role":"assistant","content":"","reasoning_content":"hm","reasoning":"hm"}`, `{"reasoning":"so"}`, `{"content":"I \ud83d\ude00","refusal":null}`, `{"refusal":"no"}`,
		pieces(`{"index":4}`, `{"index":5,"id":"a","function":{"name":"f","arguments":""}}`), pieces(`{"index":5,"function":{"name":"f","arguments":"{\"x\":\"\ud83d"}}`),
		pieces(`{"index":6,"id":"b","function":{"name":"g","arguments":"{}"}}`, `{"index":5,"function":{"arguments":"\ude00\"}"}}`))
	_, got := addAll(t, append(list, `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`))
	want := []delta{
		{kind: reasoningDelta, text: "hm"}, {kind: reasoningDelta, text: "so"}, {kind: textDelta, text: "I 😀"}, {kind: refusalDelta, text: "no"},
		{kind: callAnnounced, id: "a", tool: "f"}, {kind: callAnnounced, position: 1, id: "b", tool: "g"},
		{kind: argumentsComplete, text: `{"x":"😀"}`, id: "a", tool: "f"}, {kind: argumentsComplete, text: "{}", position: 1, id: "b", tool: "g"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(delta{})); diff != "" {
		t.Error(diff)
	}
}
