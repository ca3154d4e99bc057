package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// responseStream reads the events of a streamed response. The answer is what the last event says; those before it are
// only told, and kept for servers that leave the output out of the last one. The zero value is ready. Not safe for
// concurrent use.
type responseStream struct {
	intake
	items []*streamedItem
	at    map[place]*streamedItem // by output index, and by id
	calls int
	final json.RawMessage
}

// streamedItem is one item of the output.
type streamedItem struct {
	order      int64
	kind       string
	id, callID string
	tool       string
	position   int // of a call
	raw        gjson.Result
	complete   bool // its arguments were told
}

// add takes the JSON of the next event and tells what it adds. After an error there is no answer: an event that is no
// JSON object or too deep, a stream that is too long, and the API's own error, an [*IncompleteError]. Behind the last
// event of a response all is ignored.
func (s *responseStream) add(event string) ([]delta, error) {
	if s.final != nil {
		return nil, nil
	}
	e := s.take(event)
	if s.err != nil {
		return nil, s.err
	}
	switch name := e.Get("type").String(); name {
	case "response.output_text.delta":
		return tell(textDelta, e), nil
	case "response.refusal.delta":
		return tell(refusalDelta, e), nil
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
		return tell(reasoningDelta, e), nil
	case "response.output_item.added", "response.output_item.done":
		return s.addItem(e, name == "response.output_item.done"), nil
	case "response.function_call_arguments.done", "response.custom_tool_call_input.done":
		return s.addArguments(e), nil
	case "response.completed", "response.incomplete", "response.failed":
		s.final, s.err = s.end(e.Get("response"), strings.TrimPrefix(name, "response."))
	case "error":
		s.err = s.failed(e)
	}
	return nil, s.err
}

func tell(kind deltaKind, e gjson.Result) []delta {
	if piece := e.Get("delta"); piece.Type == gjson.String && piece.Str != "" {
		return []delta{{kind: kind, text: piece.Str}}
	}
	return nil
}

func (s *responseStream) addItem(e gjson.Result, done bool) (out []delta) {
	raw := e.Get("item")
	if !raw.IsObject() {
		return nil
	}
	i, known := s.item(e.Get("output_index"), raw, done)
	if i.isCall() && !known {
		out = append(out, i.delta(callAnnounced, ""))
	}
	if !done {
		return out
	}
	if worth(raw) >= worth(i.raw) {
		i.raw = raw
	}
	return append(out, i.finish(argumentsOf(i.raw))...)
}

// item is the one that raw is about. Servers repeat output indexes, and some change ids from event to event, or both: what
// is done then is the call that was announced under its call_id.
func (s *responseStream) item(index, raw gjson.Result, done bool) (i *streamedItem, known bool) {
	n := streamedItem{
		order: math.MaxInt64, kind: raw.Get("type").String(), id: text(raw.Get("id")), callID: text(raw.Get("call_id")),
		tool: text(raw.Get("name")),
	}
	if index.Type == gjson.Number {
		n.order = index.Int()
	}
	if i = s.at[place{"", n.id}]; i == nil || !i.same(n) {
		if i = s.at[place{text(index), ""}]; i == nil || !i.same(n) {
			i = &n
		}
	}
	if i == &n && done && n.callID != "" {
		for _, a := range s.items {
			if !a.raw.Exists() && a.callID == n.callID && a.same(n) && (a.tool == "" || a.tool == n.tool) {
				i = a
				break
			}
		}
	}
	known = i != &n
	if !known {
		s.items = append(s.items, i)
		if i.isCall() {
			i.position = s.calls
			s.calls++
		}
	}
	i.callID, i.tool = cmp.Or(i.callID, n.callID), cmp.Or(i.tool, n.tool)
	if s.at == nil {
		s.at = map[place]*streamedItem{}
	}
	s.at[place{"", n.id}], s.at[place{text(index), ""}] = i, i
	delete(s.at, place{}) // nothing is known of it
	return i, known
}

func (i *streamedItem) same(n streamedItem) bool {
	mine, other := i.callID, n.callID
	if mine == "" && other == "" {
		mine, other = i.id, n.id
	}
	return i.kind == n.kind && (mine == "" || other == "" || mine == other)
}

func (i *streamedItem) isCall() bool {
	return i.kind == "function_call" || i.kind == "custom_tool_call"
}

func (i *streamedItem) delta(kind deltaKind, text string) delta {
	return delta{kind: kind, text: text, position: i.position, id: i.callID, tool: i.tool}
}

// finish tells the arguments of a call, once.
func (i *streamedItem) finish(arguments string) []delta {
	if !i.isCall() || i.complete {
		return nil
	}
	i.complete = true
	return []delta{i.delta(argumentsComplete, arguments)}
}

func (s *responseStream) addArguments(e gjson.Result) []delta {
	i := s.at[place{"", text(e.Get("item_id"))}]
	if i == nil {
		i = s.at[place{text(e.Get("output_index")), ""}]
	}
	if i == nil {
		return nil
	}
	return i.finish(argumentsOf(e))
}

// argumentsOf are the arguments of a call, or of the event that says that they are complete.
func argumentsOf(v gjson.Result) string {
	return cmp.Or(text(v.Get("arguments")), text(v.Get("input")))
}

// worth orders what was said of one item: one without arguments may be a mere announcement.
func worth(raw gjson.Result) int {
	n := 0
	if !blank(argumentsOf(raw)) {
		n += 2
	}
	if raw.Get("status").String() == "completed" {
		n++
	}
	return n
}

// end is the response of the last event. status is what the event's name says.
func (s *responseStream) end(response gjson.Result, status string) (json.RawMessage, error) {
	if !response.IsObject() {
		return nil, errors.New("the last event of the stream has no response; nothing was run; ask the model again")
	}
	o := rawObject{raw: response.Raw}
	if said := response.Get("status").String(); said == "" || said == "completed" {
		o.set("status", status) // where they differ, nothing may run
	}
	if !response.Get("output.0").Exists() {
		output, err := s.output(status)
		if err != nil {
			return nil, err
		}
		if output != "" {
			o.setRaw("output", output)
		}
	}
	return json.RawMessage(o.raw), o.err
}

// output is put together from the items that were done, "" for none.
func (s *responseStream) output(status string) (string, error) {
	slices.SortStableFunc(s.items, func(a, b *streamedItem) int { return cmp.Compare(a.order, b.order) })
	var raws []string
	for _, i := range s.items {
		switch {
		case i.raw.Exists():
			raws = append(raws, i.raw.Raw)
		case i.isCall() && status == "completed":
			return "", errors.New("the response ended without a call that it had announced; nothing was run; ask the model again")
		}
	}
	if raws == nil {
		return "", nil
	}
	return "[" + strings.Join(raws, ",") + "]", nil
}

// failed is what an event of type error says.
func (s *responseStream) failed(e gjson.Result) error {
	if nested := e.Get("error"); nested.IsObject() {
		e = nested
	}
	reason := "error"
	if code := e.Get("code").String(); code != "" {
		reason += ", " + code
	}
	return &IncompleteError{Reason: reason, Message: e.Get("message").String(), Calls: s.calls}
}

func (s *responseStream) ended() bool { return s.final != nil }

// answer is the whole response. Without an event that ends it, it is an [*IncompleteError].
func (s *responseStream) answer() (json.RawMessage, error) {
	if s.err == nil && s.final == nil {
		return nil, &IncompleteError{Calls: s.calls}
	}
	return s.final, s.err
}
