package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tidwall/sjson"

	"github.com/toolonce/toolonce/registry"
)

// Mend is one thing in a history that an API would refuse, and what stands there instead.
type Mend struct {
	// Index is where it is: the message or item, from 0, as the history was given.
	Index int
	// CallID is the id of the call that it is about, as it was given. "" for none.
	CallID string
	// Problem says what the API would refuse, Mended what was done about it. Neither holds arguments or outputs.
	Problem, Mended string
}

// String is one line for a log.
func (m Mend) String() string {
	s := fmt.Sprintf("%d: ", m.Index)
	if m.CallID != "" {
		s += fmt.Sprintf("call %.80q: ", m.CallID)
	}
	return s + m.Problem + ": " + m.Mended
}

// known tells what stands as the output of a call whose own is not in the history. ok is false where nothing is known of
// it. nil knows nothing.
type known func(ctx context.Context, tool, arguments, id string) (content string, ok bool, err error)

// past is what a history says of tool calls, whichever API it is for. It is read from front to end by spoken, answer and
// output, and then paired and settled.
type past struct {
	naming
	chained bool // the server has items that stand before it
	begun   bool // a user or the model has spoken in it

	used    map[string]bool // ids on the wire
	calls   []*pastCall
	outputs []*pastOutput
	latest  map[string]*namesakes // by id as given, in the latest answer that has it
	holders map[string]int        // how many calls have an id as given
	mends   []Mend
	noted   map[int]bool // where there are mends
}

type pastCall struct {
	toolCall
	at      int           // its message or item
	outputs []*pastOutput // those that answer it
	keep    *pastOutput   // the one that stays, nil for none
	content string        // what stands for it then
}

type pastOutput struct {
	at      int
	id      string // as given
	content string
	call    *pastCall // that it answers, nil for none
}

// namesakes are the calls of one answer that have the same id. Outputs under it are theirs in order.
type namesakes struct {
	answer int
	calls  []*pastCall
	next   int
}

func newPast(maxID, maxName int) past {
	return past{
		naming: naming{maxID: maxID, maxName: maxName}, used: map[string]bool{}, latest: map[string]*namesakes{},
		holders: map[string]int{}, noted: map[int]bool{},
	}
}

func (p *past) mend(at int, id, problem, mended string) {
	p.noted[at] = true
	p.mends = append(p.mends, Mend{Index: at, CallID: id, Problem: problem, Mended: mended})
}

// changed accounts for a change of form that nothing else has.
func (p *past) changed(at int) {
	if !p.noted[at] {
		p.mend(at, "", "it does not have the form that the API wants", "it has now")
	}
}

// answer takes in the calls of one model answer. at says where each stands. It returns those that remain.
func (p *past) answer(calls []toolCall, at []int) []*pastCall {
	p.turn++
	kept, from := delivered(calls)
	stays := map[int]bool{}
	var where []int
	for _, i := range from {
		stays[i] = true
		where = append(where, at[i])
	}
	for i, c := range calls {
		if !stays[i] {
			p.mend(at[i], c.id, "the call was delivered twice", "it stands there once")
		}
	}
	calls, at = kept, where
	p.ids(calls, p.used)
	var out []*pastCall
	for i, c := range calls {
		out = append(out, p.call(at[i], c))
	}
	return out
}

// call takes in one call, which has its id for the wire, and tells what else will be mended in it.
func (p *past) call(at int, c toolCall) *pastCall {
	call := &pastCall{toolCall: c, at: at}
	p.calls = append(p.calls, call)
	p.holders[c.id]++
	same := p.latest[c.id]
	if same == nil || same.answer != p.turn {
		same = &namesakes{answer: p.turn}
		p.latest[c.id] = same
	}
	same.calls = append(same.calls, call)
	if c.wireID != c.id {
		problem := "another call has its id"
		switch {
		case blank(c.id):
			problem = "it has no id"
		case len(c.id) > p.maxID:
			problem = fmt.Sprintf("its id is longer than %d bytes", p.maxID)
		}
		p.mend(at, c.id, problem, fmt.Sprintf("it and its output have %q", c.wireID))
	}
	if name := p.name(c.name); name != c.name {
		p.mend(at, c.id, "no tool can have its name", fmt.Sprintf("%q stands for it", name))
	}
	if !c.custom && !object(c.arguments) {
		p.mend(at, c.id, "its arguments are no JSON object", "an object stands for them")
	}
	return call
}

// output takes in an output. It answers the latest call before it that has its id.
func (p *past) output(at int, id, content string) {
	o := &pastOutput{at: at, id: id, content: content}
	if same := p.latest[id]; same != nil {
		o.call = same.calls[min(same.next, len(same.calls)-1)]
		o.call.outputs = append(o.call.outputs, o)
		same.next++
	} else if p.chained {
		p.used[id] = true // it stays as it is
	} else if !p.begun || blank(id) {
		p.orphan(o) // what is left where the front of a history was cut off
		return
	}
	p.outputs = append(p.outputs, o)
}

func (p *past) orphan(o *pastOutput) {
	p.mend(o.at, o.id, "no call before the output has its id", "it is left out")
}

// pair gives outputs that stand before their call to it, where there can be no mistake: ids of some servers come back for
// other calls.
func (p *past) pair() {
	for _, o := range p.outputs {
		if o.call != nil || p.chained {
			continue
		}
		if p.holders[o.id] != 1 {
			p.orphan(o)
			continue
		}
		c := p.latest[o.id].calls[0]
		if len(c.outputs) > 0 && c.outputs[0].at > c.at {
			p.orphan(o)
			continue
		}
		o.call = c
		c.outputs = append(c.outputs, o)
	}
}

// settle decides what stands as the output of each call.
func (p *past) settle(ctx context.Context, k known) error {
	for _, c := range p.calls {
		differs := func(o *pastOutput) bool { return o.content != c.outputs[0].content }
		if len(c.outputs) > 0 && !slices.ContainsFunc(c.outputs, differs) {
			p.keep(c, c.outputs[0], "they are equal, and one of them stands there")
			continue
		}
		var content string
		var ok bool
		if k != nil && !c.custom {
			var err error
			if content, ok, err = k(ctx, c.name, c.arguments, c.id); err != nil {
				return fmt.Errorf("looking for the output of a call of %s at %d of the history: %w", p.name(c.name), c.at, err)
			}
		}
		if len(c.outputs) == 0 {
			p.close(c, content, ok)
			continue
		}
		i := slices.IndexFunc(c.outputs, func(o *pastOutput) bool { return ok && o.content == content })
		if i >= 0 {
			p.keep(c, c.outputs[i], "the one that was recorded stands there")
		} else {
			p.keep(c, c.outputs[len(c.outputs)-1], "the last one stands there")
		}
	}
	return nil
}

func (p *past) keep(c *pastCall, o *pastOutput, mended string) {
	c.keep = o
	if n := len(c.outputs); n > 1 {
		p.mend(c.at, c.id, fmt.Sprintf("it has %d outputs", n), mended)
	}
}

// close makes an output for a call that has none. It has the same bytes every time, as long as no more is known.
func (p *past) close(c *pastCall, content string, ok bool) {
	c.content = content
	if ok {
		p.mend(c.at, c.id, "it has no output", "the recorded one stands there")
		return
	}
	c.content = cutOff(p.name(c.name)).Content
	p.mend(c.at, c.id, "it has no output", "an output stands there that says that its outcome is not known")
}

// cutOff answers a call of which nobody knows what came of it.
func cutOff(tool string) registry.Result {
	return registry.Envelope{
		Status: registry.OutcomeUnknown, Tool: tool,
		Note: "The call was cut off before its result was recorded. It is not known whether it ran. Do not retry it.",
	}.Result()
}

// all are the mends in the order of the history, nil for none.
func (p *past) all() []Mend {
	slices.SortStableFunc(p.mends, func(a, b Mend) int { return cmp.Compare(a.Index, b.Index) })
	return p.mends
}

// drop takes the value at path away.
func (o *rawObject) drop(path string) {
	if o.err == nil {
		o.raw, o.err = sjson.Delete(o.raw, path)
	}
}

// wireJSON is a parameter byte for byte as the SDK sends it, "" where it cannot: then the request says so.
func wireJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return ""
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
