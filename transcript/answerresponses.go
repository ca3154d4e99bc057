package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// responsesAnswer is the body of a response, or the events of its stream. A
// response that is to be stored is handed to keep, under its id.
func (x *exchange) responsesAnswer(step Step, keep func(string, []json.RawMessage)) [][]byte {
	items := x.outputItems(step)
	done := x.response(step, finalStatus(step), items)
	if x.wire.Store == nil || *x.wire.Store {
		history := slices.Clone(x.items)
		for _, it := range items {
			history = append(history, encode(it))
		}
		keep("resp_"+x.digest(), history)
	}
	if !x.Stream {
		return [][]byte{encode(done)}
	}
	s := &eventStream{}
	open := x.response(step, "in_progress", nil)
	s.send("response.created", object{"response": open})
	s.send("response.in_progress", object{"response": open})
	for i, it := range items {
		s.item(i, it)
	}
	s.send("response."+finalStatus(step), object{"response": done})
	return s.events
}

func finalStatus(step Step) string {
	if step.FinishReason == "length" || step.FinishReason == "content_filter" {
		return "incomplete"
	}
	return "completed"
}

// outputItems are the items of a step: reasoning, text, calls.
func (x *exchange) outputItems(step Step) []object {
	var out []object
	id := func(prefix string) string { return fmt.Sprintf("%s_%s_%d", prefix, x.digest(), len(out)) }
	status := finalStatus(step)
	if step.Reasoning != "" {
		it := object{"type": "reasoning", "id": id("rs"), "summary": []object{{"type": "summary_text", "text": step.Reasoning}}}
		stateless := x.wire.Store != nil && !*x.wire.Store
		if stateless || slices.Contains(x.wire.Include, "reasoning.encrypted_content") {
			it["encrypted_content"] = "scripted-" + x.digest()
		}
		out = append(out, it)
	}
	if step.Text != "" {
		out = append(out, object{
			"type": "message", "id": id("msg"), "role": "assistant", "status": status,
			"content": []object{textPart(step.Text)},
		})
	}
	for _, c := range step.Calls {
		out = append(out, object{
			"type": "function_call", "id": id("fc"), "call_id": c.ID, "name": c.Name, "arguments": c.Arguments, "status": status,
		})
	}
	return out
}

func textPart(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []object{}, "logprobs": []object{}}
}

// response is the response object in the given status.
func (x *exchange) response(step Step, status string, items []object) object {
	r := object{
		"id": "resp_" + x.digest(), "object": "response", "created_at": created, "status": status, "model": step.Model,
		"background": false, "error": nil, "incomplete_details": nil, "instructions": raw(x.wire.Instructions, "null"),
		"max_output_tokens": nil, "metadata": object{}, "output": append([]object{}, items...),
		"parallel_tool_calls": raw(x.wire.Parallel, "true"), "previous_response_id": nil,
		"reasoning": object{"effort": nil, "summary": nil}, "store": x.wire.Store == nil || *x.wire.Store,
		"temperature": 1.0, "top_p": 1.0, "text": object{"format": object{"type": "text"}},
		"tool_choice": raw(x.wire.ToolChoice, `"auto"`), "tools": raw(x.wire.Tools, "[]"),
		"truncation": "disabled", "usage": nil,
	}
	if x.wire.Previous != "" {
		r["previous_response_id"] = x.wire.Previous
	}
	switch status {
	case "in_progress":
		return r
	case "incomplete":
		reason := step.FinishReason
		if reason == "length" {
			reason = "max_output_tokens"
		}
		r["incomplete_details"] = object{"reason": reason}
	}
	in, out := x.usage(step)
	r["usage"] = object{
		"input_tokens": in, "output_tokens": out, "total_tokens": in + out,
		"input_tokens_details":  object{"cached_tokens": 0},
		"output_tokens_details": object{"reasoning_tokens": 0},
	}
	return r
}

// raw echoes what was sent.
func raw(sent json.RawMessage, otherwise string) json.RawMessage {
	if given(sent) {
		return sent
	}
	return json.RawMessage(otherwise)
}

// eventStream collects the events of a streamed response.
type eventStream struct{ events [][]byte }

func (s *eventStream) send(kind string, data object) {
	data["type"], data["sequence_number"] = kind, len(s.events)
	event := append([]byte("event: "+kind+"\n"), dataEvent(encode(data))...)
	s.events = append(s.events, event)
}

// item announces an item, delivers it in pieces, and sends it whole.
func (s *eventStream) item(index int, it object) {
	id := it["id"]
	where := func(more object) object {
		more["item_id"], more["output_index"] = id, index
		return more
	}
	added := maps.Clone(it)
	if it["type"] != "reasoning" {
		added["status"] = "in_progress"
	}
	switch it["type"] {
	case "function_call":
		added["arguments"] = ""
		s.send("response.output_item.added", object{"output_index": index, "item": added})
		args, _ := it["arguments"].(string)
		for _, p := range pieces(args) {
			s.send("response.function_call_arguments.delta", where(object{"delta": p}))
		}
		s.send("response.function_call_arguments.done", where(object{"arguments": args, "name": it["name"]}))
	case "message":
		added["content"] = []object{}
		s.send("response.output_item.added", object{"output_index": index, "item": added})
		s.text(it, where)
	case "reasoning":
		added["summary"] = []object{}
		delete(added, "encrypted_content")
		s.send("response.output_item.added", object{"output_index": index, "item": added})
		s.summary(it, where)
	}
	s.send("response.output_item.done", object{"output_index": index, "item": it})
}

func (s *eventStream) text(it object, where func(object) object) {
	parts, _ := it["content"].([]object)
	for i, part := range parts {
		text, _ := part["text"].(string)
		s.send("response.content_part.added", where(object{"content_index": i, "part": textPart("")}))
		for _, p := range pieces(text) {
			s.send("response.output_text.delta", where(object{"content_index": i, "delta": p, "logprobs": []object{}}))
		}
		s.send("response.output_text.done", where(object{"content_index": i, "text": text, "logprobs": []object{}}))
		s.send("response.content_part.done", where(object{"content_index": i, "part": part}))
	}
}

func (s *eventStream) summary(it object, where func(object) object) {
	parts, _ := it["summary"].([]object)
	for i, part := range parts {
		text, _ := part["text"].(string)
		s.send("response.reasoning_summary_part.added", where(object{"summary_index": i, "part": object{"type": "summary_text", "text": ""}}))
		for _, p := range pieces(text) {
			s.send("response.reasoning_summary_text.delta", where(object{"summary_index": i, "delta": p}))
		}
		s.send("response.reasoning_summary_text.done", where(object{"summary_index": i, "text": text}))
		s.send("response.reasoning_summary_part.done", where(object{"summary_index": i, "part": part}))
	}
}
