package agent

import (
	"github.com/tidwall/gjson"
)

// rawChatCalls are the calls of a message as JSON, as chatCalls are of one that the SDK has decoded.
func rawChatCalls(message gjson.Result) []toolCall {
	var calls []toolCall
	list := message.Get("tool_calls")
	if !list.IsArray() && !list.IsObject() { // some servers send a single one as it is
		return nil
	}
	for _, t := range list.Array() {
		c := toolCall{raw: t.Raw, id: t.Get("id").String(), name: t.Get("function.name").String(), arguments: text(t.Get("function.arguments"))}
		if kind := t.Get("type").String(); kind == "custom" || kind != "function" && c.name == "" && t.Get("custom.name").String() != "" {
			c.custom, c.name, c.arguments = true, t.Get("custom.name").String(), t.Get("custom.input").String()
		}
		if c.name == "" && blank(c.id) && blank(c.arguments) {
			continue
		}
		calls = append(calls, c)
	}
	return calls
}

// rawResponseCall is an output item as a call, if it is one.
func rawResponseCall(item gjson.Result) (c toolCall, ok bool) {
	c = toolCall{raw: item.Raw, id: item.Get("call_id").String(), name: item.Get("name").String(), cut: item.Get("status").String() == "incomplete"}
	switch item.Get("type").String() {
	case "function_call":
		c.arguments = text(item.Get("arguments"))
	case "custom_tool_call":
		c.custom, c.arguments = true, item.Get("input").String()
	default:
		return c, false
	}
	return c, true
}
