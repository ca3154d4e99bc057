package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/toolonce/toolonce/registry"
)

// What Chat Completions takes, in characters.
const (
	maxChatID   = 40
	maxChatName = 64
)

// AnswerChat answers every tool call of a completion, one after the other in call order, and returns what to append to
// the messages: the model's own message, then one tool message per call. Without calls it returns nil and nil, whatever
// the finish_reason: the loop is over, and the answer is c's.
//
// turn is the number of this model answer in the run, from 1, as [ChatTurn] has counted it before the request; 0 where
// the loop has no count. history is what the messages will be appended to; it is only read. Without it all goes as well
// on servers that never use an id twice.
//
// The message is sent back as it came, fields unknown to the SDK included. Only what the API would refuse is mended, and
// the handler gets what the model sent:
//   - ids: one that is empty, longer than 40 bytes, in history already or on another call of the turn gets an id of at
//     most 40 of [a-z0-9_] in the message and on its output. It is the same whenever the same turn is answered.
//   - a call that was delivered twice (one id, one tool, equal arguments, or none the other time) is one call with one output.
//   - arguments that are not a JSON object stand there as {}; a tool name that no tool can have, with _ in it.
//
// Calls of custom (free text) tools are answered with the sentence that they are refused.
//
// An error without messages means that the turn is not answered: append nothing. Give the same completion to AnswerChat
// again, and what was done is not done again but answered from the record. Such errors are an [*IncompleteError] for an
// answer with calls that was cut off or filtered (a finish_reason other than tool_calls, function_call, stop, or a
// server's own word for one of these), a completion with no choice or several, and an error of the
// handler, which ends the turn at that call.
//
// An error with messages means that the run should end but its history is whole: append them if the conversation goes
// on. That is so where the handler has given a Result with a Verdict beside its error (then the other calls are
// answered as well), and where ctx ended between two calls (those that had not started are answered as not executed).
//
// AnswerChat is safe for concurrent use as far as h is.
func AnswerChat(ctx context.Context, h registry.Handler, run Run, turn int, c *openai.ChatCompletion, history ...openai.ChatCompletionMessageParamUnion) ([]openai.ChatCompletionMessageParamUnion, error) {
	messages, err := answerChat(ctx, h, naming{run: run, turn: turn, maxID: maxChatID, maxName: maxChatName}, c, history)
	return messages, placed(run, turn, err)
}

func answerChat(ctx context.Context, h registry.Handler, n naming, c *openai.ChatCompletion, history []openai.ChatCompletionMessageParamUnion) ([]openai.ChatCompletionMessageParamUnion, error) {
	if err := checkPlace(n.run, n.turn); err != nil {
		return nil, err
	}
	if c == nil {
		return nil, errors.New("there is no completion: look at the error of the request first")
	}
	if len(c.Choices) != 1 {
		return nil, wrongChoices(len(c.Choices))
	}
	n.answer = c.ID
	choice := &c.Choices[0]
	calls := chatCalls(choice.Message)
	if len(calls) == 0 {
		return nil, nil
	}
	if !finished(choice.FinishReason, c.RawJSON() != "") {
		return nil, &IncompleteError{Reason: choice.FinishReason, Calls: len(calls)}
	}
	calls, _ = delivered(calls)
	n.ids(calls, chatIDs(history))
	message, err := n.chatMessage(chatRaw(choice.Message), calls)
	if err != nil {
		return nil, err
	}
	results, err := answerAll(ctx, h, n, calls)
	if results == nil {
		return nil, err
	}
	messages := append(make([]openai.ChatCompletionMessageParamUnion, 0, 1+len(results)), message)
	for i, r := range results {
		messages = append(messages, openai.ToolMessage(r.Content, calls[i].wireID))
	}
	return messages, err
}

// finished tells whether calls may run behind a finish_reason. Some servers send none; it must be there only where it is
// the sole sign that a stream was not cut off.
func finished(reason string, whole bool) bool {
	switch strings.ToLower(reason) {
	case "tool_calls", "function_call", "stop", "tool_call", "tool_use", "end_turn", "eos":
		return true
	case "":
		return whole
	}
	return false
}

// chatCalls reads the calls of a message. Entries that say nothing at all, left behind by odd indexes in a stream, are
// no calls.
func chatCalls(m openai.ChatCompletionMessage) []toolCall {
	var calls []toolCall
	for _, t := range m.ToolCalls {
		c := toolCall{raw: t.RawJSON(), id: t.ID, name: t.Function.Name, arguments: t.Function.Arguments}
		if t.Type == "custom" || t.Type != "function" && c.name == "" && t.Custom.Name != "" {
			c.custom, c.name, c.arguments = true, t.Custom.Name, t.Custom.Input
		}
		if c.name == "" && blank(c.id) && blank(c.arguments) {
			continue
		}
		calls = append(calls, c)
	}
	return calls
}

// chatRaw is a message as it came, with what the caller has changed in it since.
func chatRaw(m openai.ChatCompletionMessage) rawObject {
	o := rawObject{raw: m.RawJSON()}
	if o.raw == "" { // put together from a stream by the SDK
		o.raw = `{"role":"assistant","content":null}`
	}
	o.edited("content", m.Content)
	o.edited("refusal", m.Refusal)
	return o
}

// chatMessage is the model's message with the calls as they go over the wire.
func (n naming) chatMessage(o rawObject, calls []toolCall) (openai.ChatCompletionMessageParamUnion, error) {
	var none openai.ChatCompletionMessageParamUnion
	o.set("role", "assistant")
	if audio := gjson.Get(o.raw, "audio.id").String(); audio != "" { // the API takes the id alone
		id, err := sjson.Set("{}", "id", audio)
		if err != nil {
			return none, err
		}
		o.setRaw("audio", id)
	}
	raws := make([]string, len(calls))
	for i, c := range calls {
		raw, err := n.chatCall(c)
		if err != nil {
			return none, err
		}
		raws[i] = raw
	}
	if !sameEntries(gjson.Get(o.raw, "tool_calls"), raws) {
		o.setRaw("tool_calls", "["+strings.Join(raws, ",")+"]")
	}
	if o.err != nil {
		return none, o.err
	}
	return param.Override[openai.ChatCompletionMessageParamUnion](json.RawMessage(o.raw)), nil
}

// chatCall is a call as it goes over the wire.
func (n naming) chatCall(c toolCall) (string, error) {
	o := rawObject{raw: c.raw}
	if o.raw == "" {
		o.raw = "{}"
	}
	o.set("id", c.wireID)
	if c.custom {
		o.set("type", "custom")
		o.set("custom.name", n.name(c.name))
		o.set("custom.input", c.arguments)
	} else {
		o.set("type", "function")
		o.set("function.name", n.name(c.name))
		o.set("function.arguments", wireArguments(c.arguments))
	}
	return o.raw, o.err
}

func sameEntries(list gjson.Result, raws []string) bool {
	entries := list.Array()
	if len(entries) != len(raws) || list.IsObject() {
		return false
	}
	for i, e := range entries {
		if e.Raw != raws[i] {
			return false
		}
	}
	return true
}

// chatIDs are the call ids in a history.
func chatIDs(history []openai.ChatCompletionMessageParamUnion) map[string]bool {
	used := map[string]bool{}
	for _, m := range history {
		raw, err := json.Marshal(m)
		if err != nil {
			continue // the request says so
		}
		for _, id := range gjson.GetBytes(raw, "tool_calls.#.id").Array() {
			used[id.String()] = true
		}
		if id := gjson.GetBytes(raw, "tool_call_id"); id.Exists() {
			used[id.String()] = true
		}
	}
	return used
}

// ChatTurn is the number of the model's next answer: the assistant messages in the history, those from AnswerChat
// included, plus one. It is right as long as the history only grows: who trims it counts alone. Any count serves that gives each
// model answer of a run a number of its own, and the same number when that answer is asked for again.
func ChatTurn(history []openai.ChatCompletionMessageParamUnion) int {
	turn := 1
	for _, m := range history {
		if assistant(m) {
			turn++
		}
	}
	return turn
}

func assistant(m openai.ChatCompletionMessageParamUnion) bool {
	if m.OfAssistant != nil {
		return true
	}
	if _, ok := m.Overrides(); !ok {
		return false
	}
	raw, err := json.Marshal(m)
	return err == nil && gjson.GetBytes(raw, "role").String() == "assistant"
}
