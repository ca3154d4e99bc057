package transcript

// chatAnswer is the body of a chat completion, or the events of its stream.
func (x *exchange) chatAnswer(step Step) [][]byte {
	if x.Stream {
		return x.chatStream(step)
	}
	return [][]byte{encode(object{
		"id": "chatcmpl-" + x.digest(), "object": "chat.completion", "created": created, "model": step.Model,
		"system_fingerprint": "fp_scripted",
		"usage":              x.chatUsage(step),
		"choices": []object{{
			"index": 0, "finish_reason": step.FinishReason, "logprobs": nil,
			"message": chatMessageOf(step),
		}},
	})}
}

func chatMessageOf(step Step) object {
	m := object{"role": "assistant", "content": contentOf(step), "refusal": nil}
	if len(step.Calls) > 0 {
		calls := make([]object, len(step.Calls))
		for i, c := range step.Calls {
			calls[i] = object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments}}
		}
		m["tool_calls"] = calls
	}
	return m
}

// contentOf is null only where calls stand in its place.
func contentOf(step Step) any {
	if step.Text == "" && len(step.Calls) > 0 {
		return nil
	}
	return step.Text
}

func (x *exchange) chatUsage(step Step) object {
	in, out := x.usage(step)
	return object{
		"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out,
		"prompt_tokens_details":     object{"cached_tokens": 0, "audio_tokens": 0},
		"completion_tokens_details": object{"reasoning_tokens": 0, "audio_tokens": 0},
	}
}

// chatStream is a chunk with the role, the text in pieces, each call announced
// and then its arguments in pieces, and the finish reason.
func (x *exchange) chatStream(step Step) [][]byte {
	withUsage := x.wire.StreamOptions != nil && x.wire.StreamOptions.IncludeUsage
	var out [][]byte
	emit := func(choices []object, usage any) {
		chunk := object{
			"id": "chatcmpl-" + x.digest(), "object": "chat.completion.chunk", "created": created, "model": step.Model,
			"system_fingerprint": "fp_scripted", "choices": choices,
		}
		if withUsage {
			chunk["usage"] = usage
		}
		out = append(out, dataEvent(encode(chunk)))
	}
	send := func(delta object, finish any) {
		emit([]object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}, nil)
	}
	first := object{"role": "assistant", "content": nil, "refusal": nil}
	if contentOf(step) != nil {
		first["content"] = ""
	}
	send(first, nil)
	for _, p := range pieces(step.Text) {
		send(object{"content": p}, nil)
	}
	for i, c := range step.Calls {
		send(object{"tool_calls": []object{{
			"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": ""},
		}}}, nil)
		for _, p := range pieces(c.Arguments) {
			send(object{"tool_calls": []object{{"index": i, "function": object{"arguments": p}}}}, nil)
		}
	}
	send(object{}, step.FinishReason)
	if withUsage {
		emit([]object{}, x.chatUsage(step))
	}
	return append(out, dataEvent([]byte("[DONE]")))
}

func dataEvent(data []byte) []byte {
	return append(append([]byte("data: "), data...), "\n\n"...)
}
