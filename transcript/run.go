package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// Run is one saved conversation, from the first message to the last.
type Run struct {
	// ID is the id as saved. A run that was saved without one has the name of
	// its file, "#" and its number in the file, from 1.
	ID string
	// Model is the model's name as saved, "" if there is none.
	Model string
	// Messages are in the order saved.
	Messages []Message
}

// Message is one message of a conversation, whichever API carried it.
type Message struct {
	// Role is "system", "developer", "user", "assistant" or "tool".
	Role string
	// Content is the text; the texts of content parts are joined without a
	// separator. Null is "". Content that is neither text nor parts is its JSON.
	Content string
	// ToolCalls are the calls of an assistant message, in order.
	ToolCalls []ToolCall
	// ToolCallID is the id of the call that a tool message answers.
	ToolCallID string
	// Error is true for a tool message whose tool refused: nothing was done.
	Error bool
}

// ToolCall is one call as the model wrote it.
type ToolCall struct {
	// ID is the id that pairs the call with its output. In real data it may be
	// empty and may come back for another call.
	ID string
	// Name is the tool's name.
	Name string
	// Arguments is the text of the arguments, byte for byte. It need not be
	// JSON; numbers keep all their digits.
	Arguments string
}

// Call is a [ToolCall] in its place in a run, with what the tool answered.
type Call struct {
	ToolCall
	// Turn is the number of the assistant message that made the call, from 1.
	Turn int
	// Position is the index of the call in its turn, from 0.
	Position int
	// Answered tells whether the run has an output for this call; the fields
	// below are zero if not.
	Answered bool
	// Output is the content of the tool message.
	Output string
	// Error is true if the tool refused: nothing was done.
	Error bool
}

// Calls goes through the tool calls of the run in order.
//
// A call's output is looked for in the tool messages between its assistant
// message and the next one: the first with its id that answers no earlier call
// of the turn. An id that comes back in a later turn, or twice in one turn, is
// thus no obstacle. Calls may be iterated several times and concurrently, as
// long as nobody changes the run.
func (r Run) Calls() iter.Seq[Call] {
	return func(yield func(Call) bool) {
		turn := 0
		for i, m := range r.Messages {
			if m.Role != "assistant" {
				continue
			}
			turn++
			outputs := outputsAfter(r.Messages[i+1:])
			for pos, tc := range m.ToolCalls {
				c := Call{ToolCall: tc, Turn: turn, Position: pos}
				for k, o := range outputs {
					if o != nil && o.ToolCallID == tc.ID {
						c.Answered, c.Output, c.Error = true, o.Content, o.Error
						outputs[k] = nil
						break
					}
				}
				if !yield(c) {
					return
				}
			}
		}
	}
}

// outputsAfter collects the tool messages before the next assistant message.
func outputsAfter(rest []Message) []*Message {
	var out []*Message
	for i := range rest {
		switch rest[i].Role {
		case "assistant":
			return out
		case "tool":
			out = append(out, &rest[i])
		}
	}
	return out
}

// savedRun and savedMessage are the file's form. Members that are not named
// here are skipped.
type savedRun struct {
	ID           json.RawMessage    `json:"id"`
	Model        string             `json:"model"`
	Messages     *[]json.RawMessage `json:"messages"`
	Instructions json.RawMessage    `json:"instructions"` // Responses, from here on
	Input        json.RawMessage    `json:"input"`
	Output       []json.RawMessage  `json:"output"`
}

type savedMessage struct {
	Type       string          `json:"type"`
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []*savedCall    `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Error      json.RawMessage `json:"error"`
}

type savedCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

var (
	errNoMessages = errors.New(`no "messages" and no "input"`)
	errNoRole     = errors.New(`no "role"`)
)

// decodeRun reads a run object or a bare array of messages.
func decodeRun(raw []byte) (Run, error) {
	if bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("[")) {
		var ms []json.RawMessage
		if err := json.Unmarshal(raw, &ms); err != nil {
			return Run{}, err
		}
		out, err := messages(ms)
		return Run{Messages: out}, err
	}
	var s savedRun
	if err := json.Unmarshal(raw, &s); err != nil {
		return Run{}, err
	}
	ms, err := s.messages()
	if err != nil {
		return Run{}, err
	}
	id, err := textOr(s.ID)
	if err != nil {
		return Run{}, err
	}
	return Run{ID: id, Model: s.Model, Messages: ms}, nil
}

// messages are those of either API.
func (s *savedRun) messages() ([]Message, error) {
	if s.Messages != nil {
		return messages(*s.Messages)
	}
	if !given(s.Input) {
		return nil, errNoMessages
	}
	items, r := inputItems(s.Input)
	if r != nil {
		return nil, errors.New(`"input" is neither a text nor a list of items`)
	}
	return savedItems(s.Instructions, append(items, s.Output...))
}

func messages(saved []json.RawMessage) ([]Message, error) {
	out := make([]Message, 0, len(saved))
	for i, raw := range saved {
		var s savedMessage
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		if s.Role == "" && isItem(s.Type) {
			return savedItems(nil, saved)
		}
		if s.Role == "" {
			return nil, fmt.Errorf("message %d: %w", i, errNoRole)
		}
		m, err := s.message()
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// savedItems reads items of the Responses API.
func savedItems(instructions json.RawMessage, raws []json.RawMessage) ([]Message, error) {
	items := make([]responseItem, len(raws))
	for i, raw := range raws {
		it := &items[i]
		if err := json.Unmarshal(raw, it); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
		switch {
		case it.Type == "" && it.Role == "":
			return nil, fmt.Errorf(`item %d: no "type"`, i)
		case it.Type == "":
			it.Type = "message"
		}
	}
	return plainItems(instructions, items), nil
}

// isItem tells items of the Responses API from messages, which have a role.
func isItem(kind string) bool {
	it := responseItem{Type: kind}
	return it.fromModel() || it.isOutput()
}

func (s *savedMessage) message() (Message, error) {
	content, err := contentText(s.Content)
	if err != nil {
		return Message{}, err
	}
	m := Message{Role: s.Role, Content: content, ToolCallID: s.ToolCallID, Error: string(s.Error) == "true"}
	for i, c := range s.ToolCalls {
		if c == nil {
			return Message{}, fmt.Errorf("tool call %d is null", i)
		}
		args, err := textOr(c.Function.Arguments)
		if err != nil {
			return Message{}, fmt.Errorf("tool call %d: %w", i, err)
		}
		m.ToolCalls = append(m.ToolCalls, ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: args})
	}
	return m, nil
}

// contentText is the text of a message's or an output's content.
func contentText(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || raw[0] != '[' {
		return textOr(raw)
	}
	var parts []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	if isParts := json.Unmarshal(raw, &parts) == nil; !isParts {
		return string(raw), nil // a list of something else, kept as it came
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
		b.WriteString(p.Refusal)
	}
	return b.String(), nil
}

// textOr is the string that raw holds, "" for null or nothing, else raw itself:
// some programs save arguments as an object and ids as numbers.
func textOr(raw json.RawMessage) (string, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case raw[0] != '"':
		return string(raw), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}
