package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/registry"
)

// What the Responses API takes, in characters.
const (
	maxResponseID   = 64
	maxResponseName = 128
)

// AnswerResponse answers every function call of a response, one after the other in call order, and returns what to
// append to the input: all items of the response as they came (reasoning, encrypted content, items of unknown types),
// then one output per call, with the call's caller. Without calls it returns nil and nil: the loop is over. A response
// that has neither calls nor a message is not the end of a conversation; whether to go on then is the loop's choice.
//
// turn, history, mended ids, names and arguments, calls delivered twice, custom tools and errors are as in
// [AnswerChat], but ids may have 64 bytes. Calls pair by call_id; item ids stay as they are. A response that is not
// completed gives an [*IncompleteError], with or without calls.
//
// Who goes on by previous_response_id sends [ResponseOutputs] of what this returns, and gives no history: the server has
// the items already, under the ids that it gave them.
//
// Items that need an answer of another kind (computer_call, shell_call, apply_patch_call, mcp_approval_request) are
// among what is returned where there are calls beside them, and are the loop's to answer.
func AnswerResponse(ctx context.Context, h registry.Handler, run Run, turn int, r *responses.Response, history ...responses.ResponseInputItemUnionParam) (responses.ResponseInputParam, error) {
	items, err := answerResponse(ctx, h, naming{run: run, turn: turn, maxID: maxResponseID, maxName: maxResponseName}, r, history)
	return items, placed(run, turn, err)
}

// ResponseOutputs are the outputs among items, in order: all that a request with previous_response_id sends.
func ResponseOutputs(items []responses.ResponseInputItemUnionParam) responses.ResponseInputParam {
	var outputs responses.ResponseInputParam
	for _, item := range items {
		if item.OfFunctionCallOutput != nil || item.OfCustomToolCallOutput != nil {
			outputs = append(outputs, item)
		}
	}
	return outputs
}

func answerResponse(ctx context.Context, h registry.Handler, n naming, r *responses.Response, history []responses.ResponseInputItemUnionParam) (responses.ResponseInputParam, error) {
	if err := checkPlace(n.run, n.turn); err != nil {
		return nil, err
	}
	if r == nil {
		return nil, errors.New("there is no response: look at the error of the request first")
	}
	n.answer = r.ID
	calls, at := responseCalls(r)
	if err := incomplete(r, len(calls)); err != nil {
		return nil, err
	}
	if len(calls) == 0 {
		return nil, nil
	}
	calls, kept := delivered(calls)
	n.ids(calls, responseIDs(history))
	raws := make([]string, len(r.Output))
	for i, item := range r.Output {
		if raws[i] = item.RawJSON(); raws[i] == "" {
			return nil, fmt.Errorf("output item %d has no JSON: give a response as the SDK decoded it", i)
		}
	}
	items, err := n.responseItems(raws, calls, at, kept)
	if err != nil {
		return nil, err
	}
	results, err := answerAll(ctx, h, n, calls)
	if results == nil {
		return nil, err
	}
	for i, res := range results {
		items = append(items, output(calls[i], res.Content))
	}
	return items, err
}

// incomplete says why nothing of a response may run.
func incomplete(r *responses.Response, calls int) error {
	e := &IncompleteError{Reason: string(r.Status), Calls: calls}
	switch r.Status {
	case responses.ResponseStatusCompleted:
		return nil
	case responses.ResponseStatusIncomplete:
		if r.IncompleteDetails.Reason != "" {
			e.Reason = r.IncompleteDetails.Reason
		}
	case responses.ResponseStatusFailed:
		if r.Error.Code != "" {
			e.Reason += ", " + string(r.Error.Code)
		}
		e.Message = r.Error.Message
	case "":
		if r.RawJSON() != "" { // a server that sends no status
			return nil
		}
	default: // cancelled, or still being made
	}
	return e
}

// responseCalls reads the calls of a response. at says where in the output each stands.
func responseCalls(r *responses.Response) (calls []toolCall, at []int) {
	for i, item := range r.Output {
		c := toolCall{raw: item.RawJSON(), id: item.CallID, name: item.Name, cut: item.Status == "incomplete"}
		switch item.Type {
		case "function_call":
			c.arguments = item.Arguments.OfString
			if c.arguments == "" {
				c.arguments = text(gjson.Get(c.raw, "arguments"))
			}
		case "custom_tool_call":
			c.custom, c.arguments = true, item.Input
		default:
			continue
		}
		calls, at = append(calls, c), append(at, i)
	}
	return calls, at
}

// responseItems gives the output back as input. at says where all calls stood, kept which of them calls are.
func (n naming) responseItems(raws []string, calls []toolCall, at, kept []int) (responses.ResponseInputParam, error) {
	skip := map[int]bool{}
	for _, i := range at {
		skip[i] = true
	}
	call := map[int]toolCall{}
	for k, c := range calls {
		call[at[kept[k]]] = c
		delete(skip, at[kept[k]])
	}
	items := make(responses.ResponseInputParam, 0, len(raws)+len(calls))
	for i, raw := range raws {
		if skip[i] {
			continue
		}
		o := rawObject{raw: raw}
		if c, ok := call[i]; ok {
			o.set("call_id", c.wireID)
			o.set("name", n.name(c.name))
			if c.custom {
				o.set("input", c.arguments)
			} else {
				o.set("arguments", wireArguments(c.arguments))
			}
		}
		if o.err != nil {
			return nil, o.err
		}
		items = append(items, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(o.raw)))
	}
	return items, nil
}

// output is the answer to a call.
func output(c toolCall, content string) responses.ResponseInputItemUnionParam {
	caller := gjson.Get(c.raw, "caller")
	if c.custom {
		o := responses.ResponseCustomToolCallOutputParam{CallID: c.wireID}
		o.Output.OfString = param.NewOpt(content)
		if caller.IsObject() {
			o.Caller = param.Override[responses.ResponseCustomToolCallOutputCallerUnionParam](json.RawMessage(caller.Raw))
		}
		return responses.ResponseInputItemUnionParam{OfCustomToolCallOutput: &o}
	}
	o := responses.ResponseInputItemFunctionCallOutputParam{CallID: param.NewOpt(c.wireID)}
	o.Output.OfString = param.NewOpt(content)
	if caller.IsObject() {
		o.Caller = param.Override[responses.ResponseInputItemFunctionCallOutputCallerUnionParam](json.RawMessage(caller.Raw))
	}
	return responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &o}
}

// responseIDs are the call ids in a history.
func responseIDs(history []responses.ResponseInputItemUnionParam) map[string]bool {
	used := map[string]bool{}
	for _, item := range history {
		raw, err := json.Marshal(item)
		if err != nil {
			continue // the request says so
		}
		if id := gjson.GetBytes(raw, "call_id"); id.Exists() {
			used[id.String()] = true
		}
	}
	return used
}
