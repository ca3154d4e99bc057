package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/registry"
)

// chatWire is Chat Completions.
type chatWire struct {
	loop   *Loop
	run    Run
	params openai.ChatCompletionNewParams
	opts   []option.RequestOption

	base     bool // the messages of the params are checked
	input    []byte
	messages []openai.ChatCompletionMessageParamUnion
	used     map[string]bool
}

func (w *chatWire) start(ctx context.Context) (s journal.Start, private []string, err error) {
	if !w.base {
		if err := w.checkParams(); err != nil {
			return s, nil, err
		}
		p := &w.params
		w.input = chatInput(p.Messages)
		messages, _, err := mendChat(ctx, p.Messages, w.loop.known(w.run))
		if err != nil {
			return s, nil, err
		}
		p.Messages = messages
		p.Tools = append(slices.Clone(p.Tools), missing(p.Tools, chatTools(w.loop.tools, string(p.Model)), "function.name")...)
		if len(p.Tools) == 0 { // an empty list is refused, and a choice without tools
			p.Tools, p.ToolChoice = nil, openai.ChatCompletionToolChoiceOptionUnionParam{}
		}
		w.opts = append(slices.Clone(w.opts), option.WithMiddleware(plainErrors), w.loop.serial)
		w.base = true
	}
	w.messages = slices.Clone(w.params.Messages)
	w.used = chatIDs(w.messages)
	for _, m := range w.messages {
		private = append(private, textsOf(wireJSON(m))...)
	}
	return journal.Start{Run: w.run, API: "chat", Input: w.input}, private, nil
}

func (w *chatWire) checkParams() error {
	p := &w.params
	_, whole := p.Overrides()
	switch {
	case whole:
		return errWhole
	case p.N.Value > 1:
		return fmt.Errorf("n is %d: running the calls of several choices would do things several times: leave N at 1", p.N.Value)
	case len(p.Functions) > 0:
		return errors.New("params have functions, the old form of tools: add them to the registry")
	}
	return answerable(w.loop.tools, p.Tools, "function.name")
}

func (w *chatWire) ask(ctx context.Context, turn int, watch func(delta) bool) (json.RawMessage, error) {
	p := w.params
	p.Messages = w.messages
	if turn > 1 {
		if raw, changed := laterChoice(p.ToolChoice); changed {
			p.ToolChoice = param.Override[openai.ChatCompletionToolChoiceOptionUnionParam](raw)
		}
	}
	if watch == nil {
		return w.loop.post(ctx, "chat/completions", p, w.opts)
	}
	if !p.StreamOptions.IncludeUsage.Valid() {
		p.StreamOptions.IncludeUsage = openai.Bool(true)
	}
	var res *http.Response
	stream := w.loop.client.Chat.Completions.NewStreaming(ctx, p, append(slices.Clone(w.opts), option.WithResponseInto(&res))...)
	var s chatStream
	return readStream(stream, res, &s, func(c openai.ChatCompletionChunk) string { return c.RawJSON() }, watch)
}

// read takes what it needs from the JSON: nothing of a stored answer is lost on the way, and a long run is quick to
// resume.
func (w *chatWire) read(turn int, raw json.RawMessage) (*answer, error) {
	root := gjson.ParseBytes(raw)
	choices := root.Get("choices").Array()
	said := root.Get("error.message").String()
	switch {
	case len(choices) == 0 && said != "":
		return nil, fmt.Errorf("the API answered with an error: %s", clipText(said))
	case !root.Get("choices").IsArray() || len(choices) == 1 && !choices[0].Get("message").IsObject():
		return nil, errors.New("the answer is no completion, it has no message; nothing was run: is the base URL right?")
	case len(choices) != 1:
		return nil, wrongChoices(len(choices))
	}
	n := naming{run: w.run, turn: turn, maxID: maxChatID, maxName: maxChatName}
	message, err := modern(choices[0].Get("message"))
	if err != nil {
		return nil, err
	}
	calls := rawChatCalls(message)
	if reason := choices[0].Get("finish_reason").String(); reason == "error" || len(calls) > 0 && !finished(reason, true) {
		return nil, &IncompleteError{Reason: reason, Calls: len(calls)}
	}
	calls, _ = delivered(calls)
	n.ids(calls, w.used)
	o := rawObject{raw: message.Raw}
	if len(calls) == 0 { // as a history that the API takes back
		o.drop("tool_calls")
		if !given(message.Get("content")) && !given(message.Get("refusal")) {
			o.set("content", "")
		}
	}
	m, err := n.chatMessage(o, calls)
	if err != nil {
		return nil, err
	}
	return &answer{
		raw: raw, text: message.Get("content").String(), aside: aside{message.Get("refusal").String(), reasoningIn(message)},
		calls: calls, final: len(calls) == 0, usage: usageOf(root.Get("usage")), history: m,
	}, nil
}

// modern gives a call in the old form, function_call, the form of today, as a stream has it.
func modern(message gjson.Result) (gjson.Result, error) {
	old := message.Get("function_call")
	if !old.IsObject() || message.Get("tool_calls.0").Exists() {
		return message, nil
	}
	o := rawObject{raw: message.Raw}
	o.drop("function_call")
	o.setRaw("tool_calls", `[{"id":"","type":"function","function":`+old.Raw+`}]`)
	return gjson.Parse(o.raw), o.err
}

func (w *chatWire) add(a *answer, results []registry.Result) {
	m, ok := a.history.(openai.ChatCompletionMessageParamUnion)
	if !ok {
		return
	}
	w.messages = append(w.messages, m)
	for i, r := range results {
		w.messages = append(w.messages, openai.ToolMessage(r.Content, a.calls[i].wireID))
	}
}

// reply is what the caller gets.
func (w *chatWire) reply(end ending, err error) (*ChatReply, error) {
	c, err := decoded[openai.ChatCompletion](end, err, func(e *RunError) { e.Messages = w.messages })
	if err != nil {
		return nil, err
	}
	return &ChatReply{ChatCompletion: c, Report: end.report, Messages: w.messages}, nil
}
