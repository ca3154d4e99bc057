package otel

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel/attribute"
)

// message is one message as the conventions write it.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

type part struct {
	Type      string          `json:"type"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"` // of a type that is not text: the whole, as it went over the wire
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  json.RawMessage `json:"response,omitempty"`
}

func text(s string) part { return part{Type: "text", Content: quoted(s)} }

func toolCall(id, name, arguments string) part {
	return part{Type: "tool_call", ID: id, Name: name, Arguments: loose(arguments)}
}

// loose is JSON as it is, and any other text as a string.
func loose(s string) json.RawMessage {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return quoted(s)
}

func quoted(s string) json.RawMessage { return json.RawMessage(asJSON(s)) }

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil { // it holds nothing but strings, and JSON that is valid
		return ""
	}
	return string(b)
}

// inputOf is what a request says, as attributes.
func inputOf(api string, body []byte) []attribute.KeyValue {
	root := gjson.ParseBytes(body)
	if api == "responses" {
		var attrs []attribute.KeyValue
		if s := root.Get("instructions"); s.Type == gjson.String {
			attrs = given(attrs, systemInstructions, asJSON([]part{text(s.Str)}))
		}
		in := root.Get("input")
		if in.Type == gjson.String {
			return append(attrs, attribute.String(inputMessages, asJSON([]message{{Role: "user", Parts: []part{text(in.Str)}}})))
		}
		return append(attrs, attribute.String(inputMessages, asJSON(itemsOf(in))))
	}
	messages := []message{}
	for _, m := range root.Get("messages").Array() {
		messages = append(messages, chatMessage(m, ""))
	}
	return []attribute.KeyValue{attribute.String(inputMessages, asJSON(messages))}
}

// chatMessage is a message of Chat Completions.
func chatMessage(m gjson.Result, finish string) message {
	out := message{Role: m.Get("role").String(), Parts: []part{}, Finish: finish}
	if out.Role == "tool" {
		out.Parts = append(out.Parts, part{Type: "tool_call_response", ID: m.Get("tool_call_id").String(), Response: loose(m.Get("content").String())})
		return out
	}
	out.Parts = append(out.Parts, parts(m.Get("content"))...)
	if s := m.Get("refusal").String(); s != "" {
		out.Parts = append(out.Parts, text(s))
	}
	for _, c := range m.Get("tool_calls").Array() {
		out.Parts = append(out.Parts, toolCall(c.Get("id").String(), c.Get("function.name").String(), c.Get("function.arguments").String()))
	}
	return out
}

// itemsOf are items of the Responses API.
func itemsOf(items gjson.Result) []message {
	out := []message{}
	for _, i := range items.Array() {
		id := i.Get("call_id").String()
		switch kind := i.Get("type").String(); kind {
		case "", "message":
			out = append(out, message{Role: i.Get("role").String(), Parts: parts(i.Get("content"))})
		case "function_call":
			out = append(out, message{Role: "assistant", Parts: []part{toolCall(id, i.Get("name").String(), i.Get("arguments").String())}})
		case "function_call_output":
			out = append(out, message{Role: "tool", Parts: []part{{Type: "tool_call_response", ID: id, Response: loose(i.Get("output").String())}}})
		default: // reasoning, and what servers have of their own
			out = append(out, message{Role: "assistant", Parts: []part{{Type: kind, Content: json.RawMessage(i.Raw)}}})
		}
	}
	return out
}

// parts are the content of a message: a string, or a list.
func parts(content gjson.Result) []part {
	out := []part{}
	switch {
	case content.Type == gjson.String:
		return append(out, text(content.Str))
	case !content.IsArray():
		return out
	}
	for _, p := range content.Array() {
		switch kind := p.Get("type").String(); kind {
		case "text", "input_text", "output_text":
			out = append(out, text(p.Get("text").String()))
		default:
			out = append(out, part{Type: kind, Content: json.RawMessage(p.Raw)})
		}
	}
	return out
}

// pieces puts together what a streamed completion says, for its first choice.
type pieces struct {
	text  strings.Builder
	calls []*piecedCall
}

type piecedCall struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

func (p *pieces) add(chunk gjson.Result) {
	d := chunk.Get("choices.0.delta")
	p.text.WriteString(d.Get("content").String())
	p.text.WriteString(d.Get("refusal").String())
	for _, c := range d.Get("tool_calls").Array() {
		n := len(p.calls)
		if n == 0 || p.calls[n-1].index != c.Get("index").Int() {
			p.calls = append(p.calls, &piecedCall{index: c.Get("index").Int()})
			n++
		}
		last := p.calls[n-1]
		if id := c.Get("id").String(); id != "" {
			last.id = id
		}
		last.name += c.Get("function.name").String()
		last.arguments.WriteString(c.Get("function.arguments").String())
	}
}

func (p *pieces) message(finish []string) message {
	m := message{Role: "assistant", Parts: []part{}}
	if len(finish) > 0 {
		m.Finish = finish[0]
	}
	if p.text.Len() > 0 {
		m.Parts = append(m.Parts, text(p.text.String()))
	}
	for _, c := range p.calls {
		m.Parts = append(m.Parts, toolCall(c.id, c.name, c.arguments.String()))
	}
	return m
}
