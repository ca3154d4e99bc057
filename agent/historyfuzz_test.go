package agent_test

import (
	"fmt"
	"strings"
	"testing"
)

// choices makes a history of what the bytes say.
type choices []byte

func (c *choices) of(list ...string) string {
	if len(*c) == 0 {
		return list[0]
	}
	b := (*c)[0]
	*c = (*c)[1:]
	return list[int(b)%len(list)]
}

func (c *choices) id() string {
	x := strings.Repeat("x", 50)
	return c.of(`"a"`, `"b"`, `"call_0"`, `""`, `" "`, `"`+x+`1"`, `"`+x+`2"`, `"`+x+x+`"`, `7`, `null`)
}

func (c *choices) name() string {
	return c.of(`"pay"`, `"read"`, `"f.g"`, `""`, `"`+strings.Repeat("n", 130)+`"`)
}

func (c *choices) arguments() string {
	return c.of(`"{}"`, `"{\"n\":1}"`, `"{\"n\": 1}"`, `""`, `"{\"p\":\"x"`, `"null"`, `"\"{}\""`, `{"n":1}`, `null`)
}

func (c *choices) text() string {
	return c.of(`"one"`, `"<two>"`, `""`, `null`, `[{"type":"text","text":"three"}]`)
}

func (c *choices) message() string {
	switch c.of("user", "tool", "assistant", "assistant", "system", "said", "function") {
	case "user":
		return `{"role":"user","content":"u"}`
	case "system":
		return `{"role":"system","content":"s"}`
	case "function":
		return `{"role":"function","name":"f","content":null}`
	case "tool":
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%s,"content":%s}`, c.id(), c.text())
	case "said":
		return fmt.Sprintf(`{"role":"assistant","content":%s%s}`, c.text(), c.of(``, `,"tool_calls":[]`, `,"tool_calls":null`, `,"tool_calls":{}`, `,"tool_calls":[{}]`, `,"refusal":"no"`))
	}
	var calls []string
	for range len(c.of("1", "22", "333")) {
		calls = append(calls, c.of(
			fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, c.id(), c.name(), c.arguments()),
			fmt.Sprintf(`{"id":%s,"type":"custom","custom":{"name":%s,"input":"free"}}`, c.id(), c.name()),
			fmt.Sprintf(`{"function":{"name":%s}}`, c.name()), `null`))
	}
	return fmt.Sprintf(`{"role":"assistant","content":%s,"tool_calls":[%s]}`, c.text(), strings.Join(calls, ","))
}

func (c *choices) item() string {
	id := c.of(``, `"id":"fc_1",`, `"id":"call_a",`, `"id":"",`, `"id":null,`, `"id":"fc_2",`, `"id":"fc é",`)
	switch c.of("user", "output", "call", "call", "system", "said", "reasoning", "search", "custom", "customoutput") {
	case "user":
		return `{"role":"user","content":"u"}`
	case "system":
		return `{"type":"message","role":"system","content":"s"}`
	case "output":
		return fmt.Sprintf(`{%s"type":"function_call_output","call_id":%s,"output":%s}`, id, c.id(), c.text())
	case "customoutput":
		return fmt.Sprintf(`{%s"type":"custom_tool_call_output","call_id":%s,"output":%s}`, id, c.id(), c.text())
	case "said":
		return fmt.Sprintf(`{"type":"message","role":"assistant","id":%s,"content":"s"}`, c.of(`"msg_1"`, `"msg_2"`))
	case "reasoning":
		return fmt.Sprintf(`{"type":"reasoning","id":%s,"summary":[]}`, c.of(`"rs_1"`, `"rs_2"`))
	case "search":
		return fmt.Sprintf(`{"type":"web_search_call","id":%s}`, c.of(`"ws_1"`, `"fc_1"`))
	case "custom":
		return fmt.Sprintf(`{%s"type":"custom_tool_call","call_id":%s,"name":%s,"input":"free"}`, id, c.id(), c.name())
	}
	return fmt.Sprintf(`{%s"type":"function_call","call_id":%s,"name":%s,"arguments":%s}`, id, c.id(), c.name(), c.arguments())
}

// Whatever the order and content of a history, the mended one passes, and mending it again changes nothing.
func FuzzMendedHistoriesPass(f *testing.F) {
	for _, s := range []string{"", "\x01", "\x02\x00\x00\x00\x00", "\x02\x02\x00\x01\x00\x00\x00\x01\x01\x00\x01\x01", strings.Repeat("\x01\x02\x03\x00", 30), "the quick brown fox jumps over the lazy dog"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), 400)]
		messages, c := []string{user}, choices(b)
		for len(c) > 0 {
			messages = append(messages, c.message())
		}
		out, _ := mendedChat(t, messages...)
		calls, outputs := ids(t, historyParams(out).Messages)
		checkPairs(t, calls, outputs, 40)

		items, c := []string{user}, choices(b)
		for len(c) > 0 {
			items = append(items, c.item())
		}
		mendedResponse(t, items...)
	})
}
