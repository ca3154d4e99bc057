package codec

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Limits of the arguments of one call.
const (
	maxSize  = 1 << 20
	maxDepth = 100
)

// reader reads arguments once, by plan: it refuses what a lax decoder would
// guess at, and writes a form of the document that leaves the typed decoder
// no choice (plain integers, no null in optional fields). Where the plan does
// not drift that is the canonical form.
type reader struct {
	in    bytes.Buffer
	dec   *jsontext.Decoder
	out   []byte
	spans []span // of the members of open objects in out
	tree  bool   // also build the document, or the member, for the validator
	depth int
	size  int // of the document

	broken []*Error // what the checks of members have found

	repeats  bool // take repeat_of off
	repeatOf string
}

// span is where a member lies, and its rank.
type span struct{ rank, from, to int }

var readers = sync.Pool{New: func() any {
	r := &reader{}
	r.dec = jsontext.NewDecoder(&r.in)
	return r
}}

var readOptions = json.JoinOptions(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false))

// maxKept is the largest buffer that is kept for the next call.
const maxKept = 1 << 16

func (r *reader) release() {
	if r.in.Cap() <= maxKept && cap(r.out) <= maxKept {
		readers.Put(r)
	}
}

// blank reports whether the arguments say nothing: servers send "" or null
// for tools without parameters.
func blank(s string) bool {
	s = strings.Trim(s, " \t\r\n")
	return s == "" || s == "null"
}

// precheck refuses what must not reach the parser.
func precheck(s string) *Error {
	if len(s) > maxSize {
		return refuse("", "size", "%d bytes are too many: send at most %d", len(s), maxSize)
	}
	if !utf8.ValidString(s) {
		at := 0
		for i, r := range s {
			if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
				at = i
				break
			}
		}
		return refuse("", "utf8", "invalid UTF-8 at byte %d: send UTF-8 text", at)
	}
	return nil
}

// open starts reading and takes off one layer of double encoding: a JSON
// string that holds the document.
func (r *reader) open(s string) (text string, err *Error) {
	r.reset(s)
	if r.dec.PeekKind() != '"' {
		return s, nil
	}
	tok, e := r.dec.ReadToken()
	if e != nil {
		return s, r.syntax(e)
	}
	s = tok.String()
	if err := r.end(); err != nil {
		return s, err
	}
	r.reset(s)
	return s, nil
}

func (r *reader) reset(s string) {
	r.in.Reset()
	r.in.WriteString(s)
	r.dec.Reset(&r.in, readOptions)
	r.out, r.spans, r.broken, r.depth, r.size, r.repeatOf = r.out[:0], r.spans[:0], nil, 0, len(s), ""
}

// end refuses text after the document.
func (r *reader) end() *Error {
	at := r.dec.InputOffset()
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return refuse("", "json", "text after the JSON object at byte %d: send one object and nothing else", at)
	}
	return nil
}

// syntax words a parser's error: its own text would quote the arguments.
func (r *reader) syntax(err error) *Error {
	var s *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return refuse("", "json", "the JSON ends early, at byte %d: send the whole object", r.size)
	case !errors.As(err, &s):
		return refuse("", "json", "cannot be read as JSON")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return refuse(string(s.JSONPointer), "duplicate", "the name is there twice: send each field once")
	case strings.Contains(s.Err.Error(), "surrogate"):
		return refuse(string(s.JSONPointer), "utf8", "half of a surrogate pair at byte %d: send whole characters", s.ByteOffset)
	}
	return refuse(string(s.JSONPointer), "json", "invalid JSON at byte %d: send one valid JSON object", s.ByteOffset)
}

func (r *reader) fail(rule, format string, args ...any) *Error {
	return refuse(string(r.dec.StackPointer()), rule, format, args...)
}

// names of JSON kinds for error texts.
func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "a list"
	default:
		return "an object"
	}
}

// value reads one value for p (nil: a place without a Go type). f is the
// field it is for, nil in a list or map.
func (r *reader) value(p *plan, f *field) (any, *Error) {
	k := r.dec.PeekKind()
	if k == '{' || k == '[' {
		if r.depth++; r.depth > maxDepth {
			return nil, r.fail("depth", "more than %d levels: send a flatter object", maxDepth)
		}
		defer func() { r.depth-- }()
		if k == '[' {
			return r.list(p)
		}
		return r.object(p)
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, r.syntax(err)
	}
	if e := r.wrongKind(k, p, f); e != nil {
		return nil, e
	}
	switch {
	case k == '0':
		return r.number(raw, p)
	case k == '"' && f != nil && f.quoted:
		return r.quoted(raw, p)
	}
	if p != nil && p.kind == kString && bytes.IndexByte(raw, '\\') >= 0 {
		r.out = appendQuoted(r.out, unquote(raw))
	} else {
		r.out = append(r.out, raw...)
	}
	if !r.tree {
		return nil, nil
	}
	switch k {
	case 't', 'f':
		return k == 't', nil
	case '"':
		return unquote(raw), nil
	default:
		return nil, nil
	}
}

// wants is the JSON kind that a plan takes, 0 for any.
func wants(p *plan, f *field) (k jsontext.Kind, text string) {
	if p == nil {
		return 0, ""
	}
	switch p.kind {
	case kBool:
		return 't', "true or false"
	case kInt, kUint:
		if f != nil && f.quoted {
			return '"', "a whole number in a string"
		}
		return '0', "a whole number, not in quotes"
	case kFloat:
		return '0', "a number, not in quotes"
	case kString, kText:
		return '"', "a string"
	case kBytes:
		return '"', "a base64 string"
	case kTime:
		return '"', "an RFC 3339 date-time string"
	case kStruct, kMap:
		return '{', "an object"
	case kList:
		return '[', "a list"
	default:
		return 0, ""
	}
}

// wrongKind refuses a value of another JSON kind. Null is refused in lists and
// maps too, pointers or not: it says nothing there.
func (r *reader) wrongKind(k jsontext.Kind, p *plan, f *field) *Error {
	want, text := wants(p, f)
	if want == 0 || want == k || want == 't' && k == 'f' {
		return nil
	}
	if k == 'n' {
		return r.fail("null", "must not be null: send %s", text)
	}
	return r.fail("type", "must be %s, is %s", text, kindName(k))
}

func (r *reader) number(raw []byte, p *plan) (any, *Error) {
	start := len(r.out)
	var why string
	switch {
	case p == nil || p.kind == kRaw || p.kind == kCustom:
		r.out, why = appendExact(r.out, raw)
	case p.kind == kInt || p.kind == kUint:
		r.out, why = appendInteger(r.out, raw, p.bits, p.kind == kInt)
	case p.kind == kFloat:
		r.out, why = appendFloat(r.out, raw, p.bits)
	default:
		r.out, why = appendFloat(r.out, raw, 64)
	}
	if why != "" {
		return nil, r.fail("number", "%s", why)
	}
	if !r.tree {
		return nil, nil
	}
	return stdjson.Number(r.out[start:]), nil
}

// quoted reads an integer that travels in a string.
func (r *reader) quoted(raw []byte, p *plan) (any, *Error) {
	text := unquote(raw)
	why := "must hold a whole number"
	start := len(r.out)
	if numberText.MatchString(text) {
		r.out = append(r.out, '"')
		r.out, why = appendInteger(r.out, []byte(text), p.bits, p.kind == kInt)
		r.out = append(r.out, '"')
	}
	if why != "" {
		return nil, r.fail("number", "%s", why)
	}
	return string(r.out[start+1 : len(r.out)-1]), nil
}

func (r *reader) list(p *plan) (any, *Error) {
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, r.syntax(err)
	}
	if e := r.wrongKind('[', p, nil); e != nil {
		return nil, e
	}
	elem := p
	if p != nil && p.kind == kList {
		elem = p.elem
	}
	var doc []any
	r.out = append(r.out, '[')
	n := 0
	for ; r.dec.PeekKind() != ']'; n++ {
		if n > 0 {
			r.out = append(r.out, ',')
		}
		v, e := r.value(elem, nil)
		if e != nil {
			return nil, e
		}
		if r.tree {
			doc = append(doc, v)
		}
	}
	r.out = append(r.out, ']')
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, r.syntax(err)
	}
	if p != nil && p.kind == kList && p.length >= 0 && n != p.length {
		return nil, r.fail("type", "must have %d items, has %d", p.length, n)
	}
	return doc, nil
}

// unquote returns the text of a JSON string that the decoder has accepted.
func unquote(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	b, _ := jsontext.AppendUnquote(nil, raw)
	return string(b)
}
