package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/registry"
)

// responseWire is the Responses API.
type responseWire struct {
	loop   *Loop
	run    Run
	params responses.ResponseNewParams
	opts   []option.RequestOption

	base  bool // the input of the params is checked
	input []byte
	own   responses.ResponseInputParam // the input of the params, as items
	items responses.ResponseInputParam
	used  map[string]bool // call ids
	taken map[string]bool // ids of items
}

func (w *responseWire) start(ctx context.Context) (s journal.Start, private []string, err error) {
	if !w.base {
		if err := w.checkParams(); err != nil {
			return s, nil, err
		}
		w.input = responseInput(w.params.Input)
		p := &w.params
		if p.Input.OfString.Valid() {
			w.own = responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(p.Input.OfString.Value, responses.EasyInputMessageRoleUser)}
		} else {
			items, _, err := mendResponse(ctx, p.Input.OfInputItemList, p.PreviousResponseID.Valid(), w.loop.known(w.run))
			if err != nil {
				return s, nil, err
			}
			w.own = items
			p.Input.OfInputItemList = items
		}
		p.Tools = append(slices.Clone(p.Tools), missing(p.Tools, responseTools(w.loop.tools, string(p.Model)), "name")...)
		if len(p.Tools) == 0 { // an empty list is refused, and a choice without tools
			p.Tools = nil
			if param.IsOmitted(p.Prompt) { // which has tools of its own
				p.ToolChoice = responses.ResponseNewParamsToolChoiceUnion{}
			}
		}
		w.opts = append(slices.Clone(w.opts), option.WithMiddleware(plainErrors), w.loop.serial)
		w.base = true
	}
	w.items = slices.Clone(w.own)
	w.used, w.taken = responseIDs(w.items), map[string]bool{}
	for _, item := range w.items {
		raw := wireJSON(item)
		w.taken[itemID(raw).String()] = true
		private = append(private, textsOf(raw)...)
	}
	return journal.Start{Run: w.run, API: "responses", Input: w.input}, append(private, w.params.Instructions.Value), nil
}

func (w *responseWire) checkParams() error {
	p := &w.params
	_, whole := p.Overrides()
	switch {
	case whole:
		return errWhole
	case !param.IsOmitted(p.Conversation):
		return errors.New("params have a conversation: its server keeps calls whose answer was lost on the way, which nobody could answer: send the items as input, or give previous_response_id")
	case p.Background.Value:
		return errors.New("params ask for a background response, which has no answer yet: leave Background out")
	}
	return answerable(w.loop.tools, p.Tools, "name")
}

func (w *responseWire) ask(ctx context.Context, turn int, watch func(delta) bool) (json.RawMessage, error) {
	p := w.params
	if turn > 1 {
		p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: w.items}
		if raw, changed := laterChoice(p.ToolChoice); changed {
			p.ToolChoice = param.Override[responses.ResponseNewParamsToolChoiceUnion](raw)
		}
	}
	if watch == nil {
		return w.loop.post(ctx, "responses", p, w.opts)
	}
	var res *http.Response
	stream := w.loop.client.Responses.NewStreaming(ctx, p, append(slices.Clone(w.opts), option.WithResponseInto(&res))...)
	var s responseStream
	return readStream(stream, res, &s, func(e responses.ResponseStreamEventUnion) string { return e.RawJSON() }, watch)
}

func (w *responseWire) read(turn int, raw json.RawMessage) (*answer, error) {
	root := gjson.ParseBytes(raw)
	n := naming{run: w.run, turn: turn, maxID: maxResponseID, maxName: maxResponseName}
	a := &answer{raw: raw, usage: usageOf(root.Get("usage"))}
	var raws []string
	var calls []toolCall
	var at []int
	said, elsewhere := false, ""
	for _, item := range root.Get("output").Array() {
		if !item.IsObject() {
			continue
		}
		raws = append(raws, item.Raw)
		if c, ok := rawResponseCall(item); ok {
			calls, at = append(calls, c), append(at, len(raws)-1)
			continue
		}
		switch kind := item.Get("type").String(); kind {
		case "message":
			said = said || item.Get("phase").String() != "commentary"
			for _, part := range item.Get("content").Array() {
				a.text += part.Get("text").String()
				a.aside.refusal += part.Get("refusal").String()
			}
		case "reasoning":
			for _, part := range item.Get("summary").Array() {
				a.aside.reasoning += part.Get("text").String()
			}
		case "computer_call", "local_shell_call", "shell_call", "apply_patch_call", "mcp_approval_request":
			elsewhere = kind
		case "image_generation_call":
			said = true
		}
	}
	if err := rawIncomplete(root, len(calls)); err != nil {
		return nil, err
	}
	if said := root.Get("error.message").String(); said != "" && !root.Get("output").IsArray() {
		return nil, fmt.Errorf("the API answered with an error: %s", clipText(said))
	}
	if !root.Get("output").IsArray() {
		return nil, errors.New("the answer is no response, it has no output; nothing was run: is the base URL right?")
	}
	if elsewhere != "" && len(calls) > 0 {
		return nil, fmt.Errorf("the answer has a %s beside function calls, which this loop cannot answer; nothing was run: leave that tool out of the params", elsewhere)
	}
	calls, kept := delivered(calls)
	raws = raws[:followed(raws, at, kept)]
	if err := w.ownIDs(raws); err != nil {
		return nil, err
	}
	n.ids(calls, w.used)
	items, err := n.responseItems(raws, calls, at, kept)
	if err != nil {
		return nil, err
	}
	a.calls, a.history = calls, items
	a.final = len(calls) == 0 && (said || elsewhere != "" || root.Get("status").String() == "incomplete")
	return a, nil
}

// followed is how many items there are up to the last one that stays and is no reasoning: the API wants something behind
// that. at says where the calls stand, kept which of them stay.
func followed(raws []string, at, kept []int) int {
	goes := map[int]bool{}
	for _, i := range at {
		goes[i] = true
	}
	for _, k := range kept {
		delete(goes, at[k])
	}
	n := len(raws)
	for n > 0 && (goes[n-1] || gjson.Get(raws[n-1], "type").String() == "reasoning") {
		n--
	}
	return n
}

// ownIDs takes ids of items away that the API would not take back: those of an item before, as some servers count in each
// answer anew, and those that no item of a call can have.
func (w *responseWire) ownIDs(raws []string) error {
	for i, raw := range raws {
		id := itemID(raw)
		if !given(id) {
			continue
		}
		prefix := map[string]string{"function_call": "fc", "custom_tool_call": "ctc"}[gjson.Get(raw, "type").String()]
		if fits := strings.HasPrefix(id.String(), prefix) && (prefix == "" || callItemID.MatchString(id.String())); !fits || w.taken[id.String()] {
			o := rawObject{raw: raw}
			o.drop("id")
			if o.err != nil {
				return o.err
			}
			raws[i] = o.raw
			continue
		}
		w.taken[id.String()] = true
	}
	return nil
}

// rawIncomplete is incomplete for an answer as JSON. One that was cut off without calls is the answer, as the API gave
// it.
func rawIncomplete(root gjson.Result, calls int) error {
	e := &IncompleteError{Reason: root.Get("status").String(), Calls: calls}
	switch e.Reason {
	case "completed", "":
		return nil
	case "incomplete":
		if calls == 0 {
			return nil
		}
		if reason := root.Get("incomplete_details.reason").String(); reason != "" {
			e.Reason = reason
		}
	case "failed":
		if code := root.Get("error.code").String(); code != "" {
			e.Reason += ", " + code
		}
		e.Message = root.Get("error.message").String()
	}
	return e
}

func (w *responseWire) add(a *answer, results []registry.Result) {
	items, ok := a.history.(responses.ResponseInputParam)
	if !ok {
		return
	}
	w.items = append(w.items, items...)
	for i, r := range results {
		w.items = append(w.items, output(a.calls[i], r.Content))
	}
}

// reply is what the caller gets.
func (w *responseWire) reply(end ending, err error) (*ResponseReply, error) {
	r, err := decoded[responses.Response](end, err, func(e *RunError) { e.Items = w.items })
	if err != nil {
		return nil, err
	}
	return &ResponseReply{Response: r, Report: end.report, Items: w.items}, nil
}
