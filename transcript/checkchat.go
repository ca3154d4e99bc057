package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// chatMessage is a message of a Chat Completions request.
type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  *[]chatCall     `json:"tool_calls"`
	ToolCallID *string         `json:"tool_call_id"`
	Audio      json.RawMessage `json:"audio"`
	Refusal    json.RawMessage `json:"refusal"`
	Function   json.RawMessage `json:"function_call"`
}

type chatCall struct {
	ID       *string `json:"id"`
	Type     string  `json:"type"`
	Function *struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
	Custom *struct {
		Name  string `json:"name"`
		Input string `json:"input"`
	} `json:"custom"`
}

func (m chatMessage) calls() []chatCall {
	if m.ToolCalls == nil {
		return nil
	}
	return *m.ToolCalls
}

func (c chatCall) id() string {
	if c.ID == nil {
		return ""
	}
	return *c.ID
}

// checkChat reads the messages and checks them.
func (x *exchange) checkChat() *refusal {
	var ms []chatMessage
	if !given(x.wire.Messages) {
		if x.opts.Lenient {
			return nil
		}
		return missing("messages")
	}
	if err := json.Unmarshal(x.wire.Messages, &ms); err != nil {
		return bad("messages", "invalid_type", "Invalid type for 'messages': %v", err)
	}
	for _, m := range ms {
		x.Messages = append(x.Messages, m.plain())
	}
	x.Turn = turnAfter(x.Messages)
	if x.opts.Lenient {
		return nil
	}
	if len(ms) == 0 {
		return emptyArray("messages")
	}
	for i, m := range ms {
		if r := checkForm(i, m); r != nil {
			return r
		}
	}
	if r := checkPairs(ms); r != nil {
		return r
	}
	return x.checkRepeats(ms)
}

// plain is the message in the form that scripts see.
func (m chatMessage) plain() Message {
	content, err := contentText(m.Content)
	if err != nil {
		content = string(m.Content)
	}
	out := Message{Role: m.Role, Content: content}
	if m.ToolCallID != nil {
		out.ToolCallID = *m.ToolCallID
	}
	for _, c := range m.calls() {
		tc := ToolCall{ID: c.id()}
		switch {
		case c.Function != nil:
			tc.Name = c.Function.Name
			if c.Function.Arguments != nil {
				tc.Arguments = *c.Function.Arguments
			}
		case c.Custom != nil:
			tc.Name, tc.Arguments = c.Custom.Name, c.Custom.Input
		}
		out.ToolCalls = append(out.ToolCalls, tc)
	}
	return out
}

func turnAfter(ms []Message) int {
	turn := 1
	for _, m := range ms {
		if m.Role == "assistant" {
			turn++
		}
	}
	return turn
}

// checkForm checks one message by itself.
func checkForm(i int, m chatMessage) *refusal {
	param := fmt.Sprintf("messages.[%d].", i)
	switch m.Role {
	case "system", "developer", "user", "function":
		return nil
	case "tool":
		if m.ToolCallID == nil {
			return bad(param+"tool_call_id", "", "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.")
		}
		if !given(m.Content) {
			return bad(param+"content", "", "Invalid value for 'content': expected a string, got null.")
		}
		return checkID(fmt.Sprintf("messages[%d].tool_call_id", i), *m.ToolCallID, maxChatID)
	case "assistant":
		if m.ToolCalls == nil {
			if !given(m.Content) && !given(m.Refusal) && !given(m.Audio) && !given(m.Function) {
				return bad(param+"content", "", "Invalid value for 'content': expected a string, got null.")
			}
			return nil
		}
		return checkCalls(fmt.Sprintf("messages[%d].tool_calls", i), *m.ToolCalls)
	}
	at := fmt.Sprintf("messages[%d].role", i)
	return bad(at, "invalid_value", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
}

func checkCalls(at string, calls []chatCall) *refusal {
	if len(calls) == 0 {
		return emptyArray(at)
	}
	for j, c := range calls {
		at := fmt.Sprintf("%s[%d]", at, j)
		switch {
		case c.ID == nil:
			return missing(at + ".id")
		case c.Type == "":
			return missing(at + ".type")
		}
		if r := checkID(at+".id", *c.ID, maxChatID); r != nil {
			return r
		}
		if c.Type != "function" {
			continue
		}
		if c.Function == nil {
			return missing(at + ".function")
		}
		if r := checkName(at+".function.name", c.Function.Name, maxChatName); r != nil {
			return r
		}
		if r := checkArguments(at+".function.arguments", c.Function.Arguments); r != nil {
			return r
		}
	}
	return nil
}

func checkID(param, id string, limit int) *refusal {
	switch {
	case id == "":
		return emptyString(param)
	case len(id) > limit:
		return tooLong(param, limit, len(id))
	}
	return nil
}

// checkArguments refuses arguments that are no JSON object: some servers do, and
// then no later request of the conversation can succeed.
func checkArguments(param string, args *string) *refusal {
	switch {
	case args == nil:
		return missing(param)
	case !isObject(*args):
		return bad(param, "invalid_value", "Invalid '%s': expected a string that holds a JSON object.", param)
	}
	return nil
}

// checkPairs wants every call answered once, right after its message, and
// nothing else answered.
func checkPairs(ms []chatMessage) *refusal {
	var open []string              // ids of the last calls that wait for their answer
	answeredAt := map[string]int{} // id to the message that answered it, in this block
	inBlock := false
	for i, m := range ms {
		if m.Role == "tool" {
			id := *m.ToolCallID
			switch first, twice := answeredAt[id]; {
			case !inBlock:
				return bad(fmt.Sprintf("messages.[%d].role", i), "", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
			case twice:
				return duplicate(fmt.Sprintf("messages.[%d].tool_call_id", i), "tool_call_id", id, "messages", first, i)
			}
			k := slices.Index(open, id)
			if k < 0 {
				return bad(fmt.Sprintf("messages.[%d].tool_call_id", i), "", "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", id)
			}
			open, answeredAt[id] = slices.Delete(open, k, k+1), i
			continue
		}
		if len(open) > 0 {
			return unanswered(i, open)
		}
		clear(answeredAt)
		for _, c := range m.calls() {
			if !slices.Contains(open, c.id()) { // an id used twice is checkRepeats' affair
				open = append(open, c.id())
			}
		}
		inBlock = len(open) > 0
	}
	if len(open) > 0 {
		return unanswered(len(ms), open)
	}
	return nil
}

func unanswered(i int, ids []string) *refusal {
	return bad(fmt.Sprintf("messages.[%d].role", i), "",
		"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s",
		strings.Join(ids, ", "))
}

func duplicate(param, what, id, list string, first, second int) *refusal {
	return bad(param, "", "Invalid parameter: Duplicate value for '%s' of '%s', in %s[%d] and %s[%d].", what, id, list, first, list, second)
}

// checkRepeats refuses an id that two calls of the history have.
func (x *exchange) checkRepeats(ms []chatMessage) *refusal {
	seen := map[string]int{}
	for i, m := range ms {
		for j, c := range m.calls() {
			first, twice := seen[c.id()]
			if twice && (first == i || !x.opts.RepeatedIDs) {
				return duplicate(fmt.Sprintf("messages[%d].tool_calls[%d].id", i, j), "tool_call_id", c.id(), "messages", first, i)
			}
			seen[c.id()] = i
		}
	}
	return nil
}
