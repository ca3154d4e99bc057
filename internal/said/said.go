// Package said reads what a model has said in a stored answer, as a person reads it. It decides nothing: what is no answer
// says nothing.
package said

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
)

// Call is a tool call. Its index in its answer is its position, as the loop counts.
type Call struct{ ID, Tool, Arguments string }

// In is what an answer of an API, "chat" or "responses", says in words and calls.
func In(api string, answer json.RawMessage) (text string, calls []Call) {
	if api == "responses" {
		return response(gjson.GetBytes(answer, "output"))
	}
	message := gjson.GetBytes(answer, "choices.0.message")
	for _, c := range message.Get("tool_calls").Array() { // a single one that stands alone, too, as some servers send it
		kind, arguments := "function", "arguments"
		if c.Get("type").String() == "custom" || !c.Get("function").Exists() {
			kind, arguments = "custom", "input"
		}
		call := Call{c.Get("id").String(), c.Get(kind + ".name").String(), c.Get(kind + "." + arguments).String()}
		if strings.TrimSpace(call.ID+call.Tool+call.Arguments) != "" {
			calls = append(calls, call)
		}
	}
	return join(message.Get("content"), message.Get("refusal")), calls
}

func response(output gjson.Result) (text string, calls []Call) {
	var parts []gjson.Result
	for _, item := range output.Array() {
		arguments := "arguments"
		switch item.Get("type").String() {
		case "message":
			for _, part := range item.Get("content").Array() {
				parts = append(parts, part.Get("text"), part.Get("refusal"))
			}
			continue
		case "custom_tool_call":
			arguments = "input"
		case "function_call":
		default:
			continue
		}
		calls = append(calls, Call{item.Get("call_id").String(), item.Get("name").String(), item.Get(arguments).String()})
	}
	return join(parts...), calls
}

func join(parts ...gjson.Result) string {
	var texts []string
	for _, p := range parts {
		if s := p.String(); s != "" {
			texts = append(texts, s)
		}
	}
	return strings.Join(texts, "\n")
}
