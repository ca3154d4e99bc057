package agent

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"
)

// CheckResponse mends the input items of params where the API would refuse them, and says where. It is as [CheckChat],
// but:
//
//   - Outputs may stand anywhere behind their call, and stay there; new ones, and those that stood before their call, go
//     behind the answer that the call is part of. Call ids may have 64 bytes.
//   - Where the server has items that are not in the input (previous_response_id, a conversation, an item_reference, a
//     compaction), an output whose call is not in the input stays as it is.
//   - The id of a call's item goes where the API would not take it. Any other item is byte for byte as it was given, or left
//     out: one whose id was there before, and reasoning that nothing of the model follows.
//
// A string as input needs nothing.
func CheckResponse(params responses.ResponseNewParams) (responses.ResponseNewParams, []Mend) {
	chained := params.PreviousResponseID.Value != "" || !param.IsOmitted(params.Conversation)
	items, mends, err := mendResponse(context.Background(), params.Input.OfInputItemList, chained, nil)
	if err != nil {
		return params, nil // the request says so
	}
	params.Input.OfInputItemList = items
	return params, mends
}

// mendResponse is CheckResponse with what k knows of the calls.
func mendResponse(ctx context.Context, items []responses.ResponseInputItemUnionParam, chained bool, k known) (responses.ResponseInputParam, []Mend, error) {
	n := len(items)
	h := responseHistory{
		past: newPast(maxResponseID, maxResponseName), given: items, raw: make([]string, n), kinds: make([]itemKind, n),
		callAt: make([]*pastCall, n), behind: make([][]*pastCall, n), ids: map[string]bool{},
	}
	h.chained = chained
	h.read()
	h.pair()
	if err := h.settle(ctx, k); err != nil {
		return nil, nil, err
	}
	h.outputAt = make([]*pastOutput, n)
	for _, o := range h.outputs {
		h.outputAt[o.at] = o
	}
	for i := range items {
		if err := h.write(i); err != nil {
			return nil, nil, err
		}
	}
	mended := h.lead()
	if len(h.mends) == 0 {
		return items, nil, nil
	}
	return mended, h.all(), nil
}

// itemKind is what an item is to the order of a history.
type itemKind uint8

const (
	itemOfModel itemKind = iota // hosted tools' items too
	itemReasoning
	itemCall
	itemOutput
	itemInstruction
	itemOfUser
)

func kindOf(item gjson.Result) itemKind {
	switch item.Get("type").String() {
	case "function_call", "custom_tool_call":
		return itemCall
	case "function_call_output", "custom_tool_call_output":
		return itemOutput
	case "reasoning":
		return itemReasoning
	case "message", "":
		switch item.Get("role").String() {
		case "assistant":
			return itemOfModel
		case "system", "developer":
			return itemInstruction
		}
		return itemOfUser
	}
	return itemOfModel
}

type responseHistory struct {
	past
	given []responses.ResponseInputItemUnionParam

	// By item.
	raw      []string
	kinds    []itemKind
	callAt   []*pastCall
	outputAt []*pastOutput
	behind   [][]*pastCall // the calls of the answer behind whose last call or output it is

	ids map[string]bool // of items
	out []written
}

// written is an item of the mended history, and where it was in the given one.
type written struct {
	responses.ResponseInputItemUnionParam
	kind itemKind
	at   int
}

func (h *responseHistory) read() {
	for i, item := range h.given {
		h.raw[i] = wireJSON(item)
		v := gjson.Parse(h.raw[i])
		h.kinds[i] = kindOf(v)
		if t := v.Get("type").String(); t == "item_reference" || t == "compaction" {
			h.chained = true
		}
	}
	var calls []toolCall
	var at []int
	for i, raw := range h.raw {
		v := gjson.Parse(raw)
		switch h.kinds[i] {
		case itemCall:
			c, _ := rawResponseCall(v)
			calls, at = append(calls, c), append(at, i)
		case itemOutput, itemInstruction, itemOfUser:
			h.ended(i, calls, at)
			calls, at = nil, nil
		case itemOfModel, itemReasoning:
		}
		if h.kinds[i] == itemOutput {
			h.output(i, v.Get("call_id").String(), text(v.Get("output")))
		} else if h.kinds[i] != itemInstruction {
			h.begun = true
		}
	}
	h.ended(len(h.given), calls, at)
}

// ended takes in the calls of an answer that ends before item i.
func (h *responseHistory) ended(i int, calls []toolCall, at []int) {
	if len(calls) == 0 {
		return
	}
	for i < len(h.kinds) && h.kinds[i] == itemOutput {
		i++
	}
	h.behind[i-1] = h.answer(calls, at)
	for _, c := range h.behind[i-1] {
		h.callAt[c.at] = c
	}
}

// write adds item i, and behind an answer the outputs that it lacks.
func (h *responseHistory) write(i int) error {
	var err error
	switch o, c := h.outputAt[i], h.callAt[i]; h.kinds[i] {
	case itemCall:
		if c != nil {
			err = h.writeCall(c)
		}
	case itemOutput:
		switch {
		case o != nil && o.call == nil && h.chained:
			err = h.add(i, rawObject{raw: h.raw[i]})
		case o != nil && o.call != nil && o == o.call.outputs[0] && o.at > o.call.at:
			err = h.writeOutput(o.call)
		}
	case itemOfModel, itemReasoning, itemInstruction, itemOfUser:
		if id := itemID(h.raw[i]).String(); id != "" && h.ids[id] {
			h.mend(i, "", "another item has its id", "it is left out")
			break
		}
		err = h.add(i, rawObject{raw: h.raw[i]})
	}
	for _, c := range h.behind[i] {
		early := c.keep != nil && c.outputs[0].at < c.at
		if early {
			h.mend(c.outputs[0].at, c.id, "the output stands before its call", "it stands behind it")
		}
		if err == nil && (early || c.keep == nil) {
			err = h.writeOutput(c)
		}
	}
	return err
}

func itemID(raw string) gjson.Result { return gjson.Get(raw, "id") }

var callItemID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func (h *responseHistory) writeCall(c *pastCall) error {
	o := rawObject{raw: h.raw[c.at]}
	prefix := "fc"
	if c.custom {
		prefix = "ctc"
	}
	if id := itemID(o.raw); given(id) && (!strings.HasPrefix(id.String(), prefix) || !callItemID.MatchString(id.String())) {
		o.drop("id")
		h.mend(c.at, c.id, "its item has an id that is none of a call's item", "that id is left out")
	}
	h.ownID(c.at, c.id, &o)
	if o.err != nil {
		return o.err
	}
	list, err := h.responseItems([]string{o.raw}, []toolCall{c.toolCall}, []int{0}, []int{0})
	if err != nil {
		return err
	}
	o.raw = wireJSON(list[0])
	return h.add(c.at, o)
}

func (h *responseHistory) writeOutput(c *pastCall) error {
	if c.keep == nil {
		h.out = append(h.out, written{output(c.toolCall, c.content), itemOutput, c.at})
		return nil
	}
	at := c.keep.at
	o := rawObject{raw: h.raw[at]}
	h.ownID(at, c.id, &o)
	if v := gjson.Get(o.raw, "output"); v.Type != gjson.String && !v.IsArray() {
		o.set("output", text(v))
		h.mend(at, c.id, "the output is not text", "its text stands for it")
	}
	o.set("call_id", c.wireID)
	if c.wireID != c.id {
		h.noted[at] = true // with its call
	}
	return h.add(at, o)
}

// ownID takes the item's id away where another item has it.
func (h *responseHistory) ownID(at int, callID string, o *rawObject) {
	if id := itemID(o.raw).String(); id != "" && h.ids[id] {
		o.drop("id")
		h.mend(at, callID, "another item has the id of its item", "that id is left out")
	}
}

// add adds item i as o says it.
func (h *responseHistory) add(i int, o rawObject) error {
	if o.err != nil {
		return o.err
	}
	if id := itemID(o.raw).String(); id != "" {
		h.ids[id] = true
	}
	item := h.given[i]
	if o.raw != h.raw[i] {
		h.changed(i)
		item = param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(o.raw))
	}
	h.out = append(h.out, written{item, h.kinds[i], i})
	return nil
}

// lead leaves reasoning out that nothing of the model follows, and gives what remains.
func (h *responseHistory) lead() responses.ResponseInputParam {
	led := false
	items := make(responses.ResponseInputParam, 0, len(h.out))
	for _, w := range slices.Backward(h.out) {
		if w.kind == itemReasoning && !led {
			h.mend(w.at, "", "nothing of the model follows the reasoning", "it is left out")
			continue
		}
		led = w.kind == itemOfModel || w.kind == itemReasoning || w.kind == itemCall
		items = append(items, w.ResponseInputItemUnionParam)
	}
	slices.Reverse(items)
	return items
}
