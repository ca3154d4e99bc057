package agent

import (
	"errors"
	"fmt"

	"github.com/tidwall/gjson"
)

// delta is what one event of a stream adds, for those who watch. Nothing may run because of it.
type delta struct {
	kind deltaKind
	// text is the piece of text, refusal or reasoning; for argumentsComplete the arguments as sent so far.
	text string
	// position is the call's, in order of arrival among the calls, from 0.
	position int
	id, tool string // of the call, as sent
}

type deltaKind uint8

const (
	textDelta deltaKind = iota + 1
	refusalDelta
	reasoningDelta
	callAnnounced
	argumentsComplete
)

// What a stream may hold.
const (
	maxStream      = 64 << 20 // bytes of all its events
	maxStreamDepth = 1000     // levels of one event
)

// intake lets in the events of a stream. The first error stays. The zero value is ready.
type intake struct {
	size int
	err  error
}

// take is the event, an object, unless err is set then.
func (in *intake) take(event string) gjson.Result {
	in.size += len(event)
	switch {
	case in.err != nil:
	case in.size > maxStream:
		in.err = fmt.Errorf("the stream is over %d MiB; nothing was run; ask for a shorter answer", maxStream>>20)
	case !object(event):
		in.err = errors.New("an event of the stream is no JSON object; nothing was run; look at what stands between here and the model's server")
	default:
		var b brackets
		b.read(event)
		if b.deepest > maxStreamDepth {
			in.err = fmt.Errorf("an event of the stream has over %d levels; nothing was run; ask the model again", maxStreamDepth)
		}
	}
	if in.err != nil {
		return gjson.Result{}
	}
	return gjson.Parse(event)
}

// brackets follows a JSON text through pieces of any size. The zero value is ready.
type brackets struct {
	depth, deepest          int
	closed, quoted, escaped bool
}

func (b *brackets) read(piece string) {
	for i := range len(piece) {
		c := piece[i]
		switch {
		case b.escaped:
			b.escaped = false
		case b.quoted:
			b.escaped, b.quoted = c == '\\', c != '"'
		case c == '"':
			b.quoted = true
		case c == '{', c == '[':
			b.depth++
			b.deepest = max(b.deepest, b.depth)
		case c == '}', c == ']':
			b.depth--
			b.closed = true
		}
	}
}

// whole tells that an object or array has begun and all of it is there.
func (b *brackets) whole() bool { return b.closed && b.depth == 0 }

// joined is a JSON value that arrives in pieces. It is kept as JSON, so that an escape or a character that is cut in two
// comes out whole. The zero value is null.
type joined struct {
	kind byte // '"', '[', or '{' for all else
	text []byte
}

// add puts the next piece behind: strings and arrays are joined, of other values the last one stays.
func (j *joined) add(v gjson.Result) {
	if v.Type == gjson.Null {
		return
	}
	kind, raw := v.Raw[0], v.Raw
	switch kind {
	case '"', '[':
		raw = raw[1 : len(raw)-1]
	default:
		kind = '{'
	}
	if kind != j.kind || kind == '{' {
		j.kind, j.text = kind, nil
	}
	if kind == '[' && len(j.text) > 0 && !blank(raw) {
		j.text = append(j.text, ',')
	}
	if kind != '[' || !blank(raw) {
		j.text = append(j.text, raw...)
	}
}

// string is the text of a joined string.
func (j *joined) string() string { return gjson.ParseBytes(j.append(nil)).String() }

func (j *joined) append(b []byte) []byte {
	switch j.kind {
	case 0:
		return append(b, "null"...)
	case '"':
		return append(append(append(b, '"'), j.text...), '"')
	case '[':
		return append(append(append(b, '['), j.text...), ']')
	}
	return append(b, j.text...)
}

// fields are members of a JSON object, in order of arrival. The zero value is ready.
type fields struct {
	keys   []string
	values map[string]*joined
}

func (f *fields) at(key string) *joined {
	v := f.values[key]
	if v == nil {
		if f.values == nil {
			f.values = map[string]*joined{}
		}
		v = &joined{}
		f.keys, f.values[key] = append(f.keys, key), v
	}
	return v
}

// latest makes v the value of key, unless it says nothing: some servers end a stream with events of empty fields.
func (f *fields) latest(key string, v gjson.Result) {
	j := f.at(key)
	if j.kind != 0 && (v.Type == gjson.Null || v.Raw == `""` || v.Raw == "0") {
		return
	}
	*j = joined{}
	j.add(v)
}

// append writes the members with a comma before each.
func (f *fields) append(b []byte) []byte {
	for _, key := range f.keys {
		b = append(b, ',')
		b = gjson.AppendJSONString(b, key)
		b = append(b, ':')
		b = f.values[key].append(b)
	}
	return b
}
