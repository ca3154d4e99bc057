package agent

import (
	"context"
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/tidwall/gjson"
)

// CheckChat mends the messages of params where the API would refuse them, and says where. It runs nothing and knows
// nothing but the messages: for histories that were cut, stored elsewhere or left behind by a run that broke off.
//
//   - A call without an output gets one that says that its outcome is not known and that it must not be retried.
//   - An output without a call before it is left out. Of several outputs of one call the last stays.
//   - Outputs go directly behind the message with their calls, in call order.
//   - A call id that is empty, longer than 40 bytes or on an earlier call is another one in call and output; it depends on
//     the history up to there alone. A call that one message has twice stands there once.
//   - Arguments that are not a JSON object, names that no tool can have, empty tool_calls and content that may not be null
//     are replaced as by [AnswerChat].
//
// What needs no mend stays byte for byte, fields unknown to the SDK included, and the old function_call and its function
// messages are left alone. A history without a problem comes back as it is, with nil. Mending again mends nothing. params
// itself is never changed.
func CheckChat(params openai.ChatCompletionNewParams) (openai.ChatCompletionNewParams, []Mend) {
	messages, mends, err := mendChat(context.Background(), params.Messages, nil)
	if err != nil {
		return params, nil // the request says so
	}
	params.Messages = messages
	return params, mends
}

// mendChat is CheckChat with what k knows of the calls.
func mendChat(ctx context.Context, messages []openai.ChatCompletionMessageParamUnion, k known) ([]openai.ChatCompletionMessageParamUnion, []Mend, error) {
	n := len(messages)
	h := chatHistory{
		past: newPast(maxChatID, maxChatName), given: messages, raw: make([]string, n), tool: make([]bool, n), answers: map[int][]*pastCall{},
	}
	for i := range messages {
		h.read(i)
	}
	h.pair()
	if err := h.settle(ctx, k); err != nil {
		return nil, nil, err
	}
	for i := range messages {
		if err := h.write(i); err != nil {
			return nil, nil, err
		}
	}
	if len(h.mends) == 0 {
		return messages, nil, nil
	}
	return h.out, h.all(), nil
}

type chatHistory struct {
	past
	given   []openai.ChatCompletionMessageParamUnion
	raw     []string
	tool    []bool              // which are outputs
	answers map[int][]*pastCall // of each assistant message, empty where it has no calls
	out     []openai.ChatCompletionMessageParamUnion
}

func (h *chatHistory) read(i int) {
	h.raw[i] = wireJSON(h.given[i])
	m := gjson.Parse(h.raw[i])
	switch m.Get("role").String() {
	case "system", "developer":
		return
	case "tool":
		h.tool[i] = true
		h.output(i, m.Get("tool_call_id").String(), text(m.Get("content")))
		return
	case "assistant":
		var calls []toolCall
		if m.Get("tool_calls").IsArray() {
			calls = rawChatCalls(m)
		}
		at := make([]int, len(calls))
		for c := range calls {
			at[c] = i
		}
		h.answers[i] = h.answer(calls, at)
	}
	h.begun = true
}

// write adds message i and the outputs of its calls.
func (h *chatHistory) write(i int) error {
	if h.tool[i] {
		return nil // its call has it
	}
	calls, assistant := h.answers[i]
	if !assistant {
		h.out = append(h.out, h.given[i])
		return nil
	}
	if err := h.writeAnswer(i, calls); err != nil {
		return err
	}
	end := i + 1 // of the outputs that stand behind it already
	for end < len(h.tool) && h.tool[end] {
		end++
	}
	last := i
	for _, c := range calls {
		if len(c.outputs) > 0 {
			if at := c.outputs[0].at; at > last && at < end {
				last = at
			} else {
				h.mend(at, c.id, "the output does not stand behind its call, in call order", "it stands there")
			}
		}
		if err := h.writeOutput(c); err != nil {
			return err
		}
	}
	return nil
}

func (h *chatHistory) writeAnswer(i int, calls []*pastCall) error {
	o := rawObject{raw: h.raw[i]}
	if len(calls) > 0 {
		list := make([]toolCall, len(calls))
		for j, c := range calls {
			list[j] = c.toolCall
		}
		m, err := h.chatMessage(o, list)
		if err != nil {
			return err
		}
		o.raw = wireJSON(m)
		return h.add(i, o)
	}
	m := gjson.Parse(o.raw)
	if m.Get("tool_calls").Exists() {
		o.drop("tool_calls")
		h.mend(i, "", "its tool_calls have no call", "they are left out")
	}
	for _, part := range []string{"content", "refusal", "audio", "function_call"} {
		if given(m.Get(part)) {
			return h.add(i, o)
		}
	}
	o.set("content", "")
	h.mend(i, "", "the message says nothing", "its content is empty text")
	return h.add(i, o)
}

func (h *chatHistory) writeOutput(c *pastCall) error {
	if c.keep == nil {
		h.out = append(h.out, openai.ToolMessage(c.content, c.wireID))
		return nil
	}
	at := c.keep.at
	o := rawObject{raw: h.raw[at]}
	if !given(gjson.Get(o.raw, "content")) {
		o.set("content", "")
		h.mend(at, c.id, "the output has no content", "it is empty text")
	}
	o.set("tool_call_id", c.wireID)
	if c.wireID != c.id {
		h.noted[at] = true // with its call
	}
	return h.add(at, o)
}

// add adds message i as o says it.
func (h *chatHistory) add(i int, o rawObject) error {
	switch {
	case o.err != nil:
		return o.err
	case o.raw == h.raw[i]:
		h.out = append(h.out, h.given[i])
	default:
		h.changed(i)
		h.out = append(h.out, param.Override[openai.ChatCompletionMessageParamUnion](json.RawMessage(o.raw)))
	}
	return nil
}

// given tells a value from none and from null.
func given(v gjson.Result) bool { return v.Exists() && v.Type != gjson.Null }
