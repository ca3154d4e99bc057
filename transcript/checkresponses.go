package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxOutput is the longest output of a call in the Responses API, in bytes.
const maxOutput = 10_485_760

// responseItem is an item of a Responses request, of whichever type.
type responseItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	ID        *string         `json:"id"`
	CallID    *string         `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
	Content   json.RawMessage `json:"content"`
	Error     json.RawMessage `json:"error"` // true: saved by a program whose tool refused
}

func (it responseItem) isCall() bool {
	return it.Type == "function_call" || it.Type == "custom_tool_call"
}

func (it responseItem) isOutput() bool {
	return it.Type == "function_call_output" || it.Type == "custom_tool_call_output"
}

// fromModel tells whether the model made the item.
func (it responseItem) fromModel() bool {
	return it.isCall() || it.Type == "reasoning" || (it.Type == "message" && it.Role == "assistant")
}

func (it responseItem) callID() string {
	if it.CallID == nil {
		return ""
	}
	return *it.CallID
}

func (it responseItem) id() string {
	if it.ID == nil {
		return ""
	}
	return *it.ID
}

// checkResponses reads the input, with what went before it, and checks it.
func (x *exchange) checkResponses(history func(string) ([]json.RawMessage, bool)) *refusal {
	if given(x.wire.Conversation) {
		return bad("conversation", "", "transcript: conversations are not served here; use previous_response_id or send the whole input")
	}
	if x.wire.Previous != "" {
		before, ok := history(x.wire.Previous)
		if !ok && !x.opts.Lenient {
			return bad("previous_response_id", "previous_response_not_found", "Previous response with id '%s' not found.", x.wire.Previous)
		}
		x.items = append(x.items, before...)
	}
	sent := len(x.items) // from here on the items are this request's own
	input, r := inputItems(x.wire.Input)
	if r != nil {
		return r
	}
	x.items = append(x.items, input...)
	items := make([]responseItem, len(x.items))
	for i, raw := range x.items {
		if err := json.Unmarshal(raw, &items[i]); err != nil {
			at := fmt.Sprintf("input[%d]", i-sent)
			return bad(at, "invalid_type", "Invalid type for '%s': %v", at, err)
		}
		switch it := &items[i]; {
		case it.Type == "" && it.Role == "" && !x.opts.Lenient:
			return missing(fmt.Sprintf("input[%d].type", i-sent))
		case it.Type == "":
			it.Type = "message"
		}
	}
	x.Messages = plainItems(x.wire.Instructions, items)
	x.Turn = turnAfter(x.Messages)
	if x.opts.Lenient {
		return nil
	}
	for i := sent; i < len(items); i++ {
		if r := checkItem(fmt.Sprintf("input[%d]", i-sent), items[i]); r != nil {
			return r
		}
	}
	return x.checkItems(items)
}

// inputItems is the input as a list; a string is a user message.
func inputItems(input json.RawMessage) ([]json.RawMessage, *refusal) {
	switch {
	case !given(input):
		return nil, missing("input")
	case input[0] == '"':
		item := json.RawMessage(`{"type":"message","role":"user","content":` + string(input) + `}`)
		return []json.RawMessage{item}, nil
	}
	var items []json.RawMessage
	if json.Unmarshal(input, &items) != nil {
		return nil, bad("input", "invalid_type", "Invalid type for 'input': expected a string or an array of input items.")
	}
	return items, nil
}

// plainItems is the history in the form that scripts see.
func plainItems(instructions json.RawMessage, items []responseItem) []Message {
	var out []Message
	if text, err := contentText(instructions); err == nil && text != "" {
		out = append(out, Message{Role: "system", Content: text})
	}
	inTurn := false
	for _, it := range items {
		switch {
		case it.fromModel():
			if !inTurn {
				out = append(out, Message{Role: "assistant"})
			}
			it.addTo(&out[len(out)-1])
		case it.isOutput():
			text, err := contentText(it.Output)
			if err != nil {
				text = string(it.Output)
			}
			out = append(out, Message{Role: "tool", Content: text, ToolCallID: it.callID(), Error: string(it.Error) == "true"})
		case it.Type == "message":
			text, err := contentText(it.Content)
			if err != nil {
				text = string(it.Content)
			}
			out = append(out, Message{Role: it.Role, Content: text})
		default:
			continue // items of hosted tools are part of whatever turn they are in
		}
		inTurn = it.fromModel()
	}
	return out
}

// addTo adds an item of the model to its turn.
func (it responseItem) addTo(m *Message) {
	switch {
	case it.Type == "message":
		if text, err := contentText(it.Content); err == nil {
			m.Content += text
		}
	case it.isCall():
		args := it.Input
		if it.Arguments != nil {
			args = *it.Arguments
		}
		m.ToolCalls = append(m.ToolCalls, ToolCall{ID: it.callID(), Name: it.Name, Arguments: args})
	}
}

// checkItem checks one item by itself.
func checkItem(at string, it responseItem) *refusal {
	prefix := map[string]string{"function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs"}[it.Type]
	if it.Type == "message" && it.Role == "assistant" {
		prefix = "msg"
	}
	if it.ID != nil && prefix != "" {
		if r := checkItemID(at+".id", *it.ID, prefix); r != nil {
			return r
		}
	}
	if !it.isCall() && !it.isOutput() {
		return nil
	}
	if it.CallID == nil {
		return missing(at + ".call_id")
	}
	if r := checkID(at+".call_id", *it.CallID, maxResponseID); r != nil {
		return r
	}
	if it.isOutput() {
		return checkOutput(at+".output", it.Output)
	}
	if r := checkName(at+".name", it.Name, maxResponseName); r != nil {
		return r
	}
	if it.Type == "function_call" {
		return checkArguments(at+".arguments", it.Arguments)
	}
	return nil
}

func checkItemID(param, id, prefix string) *refusal {
	switch {
	case !toolName.MatchString(id): // ids have the alphabet of names
		return bad(param, "invalid_value", "Invalid '%s': '%s'. Expected an ID that contains letters, numbers, underscores, or dashes, but this value contained additional characters.", param, id)
	case !strings.HasPrefix(id, prefix):
		return bad(param, "invalid_value", "Invalid '%s': '%s'. Expected an ID that begins with '%s'.", param, id, prefix)
	case len(id) > maxResponseID:
		return tooLong(param, maxResponseID, len(id))
	}
	return nil
}

func checkOutput(param string, output json.RawMessage) *refusal {
	if !given(output) {
		return missing(param)
	}
	if output[0] != '"' && output[0] != '[' {
		return bad(param, "invalid_type", "Invalid type for '%s': expected one of a string or an array of objects.", param)
	}
	if text, err := contentText(output); err == nil && len(text) > maxOutput {
		return tooLong(param, maxOutput, len(text))
	}
	return nil
}

// checkItems wants each item once, each call answered once and later, nothing
// else answered, and reasoning followed by what it led to. Its indexes count
// from the start of the history.
func (x *exchange) checkItems(items []responseItem) *refusal {
	calls := map[string]int{}
	outputs := map[string]int{}
	ids := map[string]bool{}
	for i, it := range items {
		at := fmt.Sprintf("input[%d]", i)
		if ids[it.id()] {
			return bad("input", "", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", it.id())
		}
		ids[it.id()] = it.id() != ""
		id := it.callID()
		first, called := calls[id]
		answer, answered := outputs[id]
		switch {
		case it.isCall() && called && (!answered || !x.opts.RepeatedIDs):
			return duplicate(at+".call_id", "call_id", id, "input", first, i)
		case it.isCall():
			calls[id] = i
			delete(outputs, id)
		case it.isOutput() && !called:
			return bad("input", "", "No tool call found for function call output with call_id %s.", id)
		case it.isOutput() && answered:
			return duplicate(at+".call_id", "call_id", id, "input", answer, i)
		case it.isOutput():
			outputs[id] = i
		case it.Type == "reasoning" && !ledSomewhere(items[i+1:]):
			return bad("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.", it.id())
		}
	}
	for _, it := range items {
		if _, ok := outputs[it.callID()]; it.isCall() && !ok {
			return bad("input", "", "No tool output found for function call %s.", it.callID())
		}
	}
	return nil
}

// ledSomewhere tells whether an item of the model follows directly.
func ledSomewhere(rest []responseItem) bool {
	if len(rest) == 0 || rest[0].isOutput() {
		return false
	}
	return rest[0].Type != "message" || rest[0].Role == "assistant"
}
