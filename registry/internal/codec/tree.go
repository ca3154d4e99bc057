package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object that keeps the order of its members: the model
// writes the arguments in the order of the schema's properties.
// A tree's values are *object, []any, string, number, bool and nil.
type object struct {
	members []member
	src     string // the Go field (and type) described, for error texts
	opaque  bool   // described by its own type: the Go fields say nothing about null
	planned bool   // the plan enforces type, required and additionalProperties
}

type member struct {
	name  string
	value any
}

// number is the text of a JSON number.
type number string

func newObject(pairs ...any) *object {
	o := &object{}
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

func (o *object) get(name string) any {
	for _, m := range o.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func (o *object) has(name string) bool {
	for _, m := range o.members {
		if m.name == name {
			return true
		}
	}
	return false
}

func (o *object) set(name string, value any) {
	for i, m := range o.members {
		if m.name == name {
			o.members[i].value = value
			return
		}
	}
	o.members = append(o.members, member{name, value})
}

// take removes a member and returns its value.
func (o *object) take(name string) any {
	for i, m := range o.members {
		if m.name == name {
			o.members = append(o.members[:i:i], o.members[i+1:]...)
			return m.value
		}
	}
	return nil
}

func (o *object) object(name string) *object {
	c, _ := o.get(name).(*object)
	return c
}

func (o *object) text(name string) string {
	s, _ := o.get(name).(string)
	return s
}

func (o *object) list(name string) []any {
	l, _ := o.get(name).([]any)
	return l
}

// strings returns the strings of a list, or the one string in its place.
func (o *object) strings(name string) []string {
	switch v := o.get(name).(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// parseTree reads one JSON document; duplicate names and bad UTF-8 are errors.
func parseTree(b []byte) (any, error) {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	v, err := readTree(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("text after the JSON value")
	}
	return v, nil
}

func readTree(d *jsontext.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("more than %d levels", maxDepth)
	}
	tok, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch tok.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return tok.Bool(), nil
	case '"':
		return tok.String(), nil
	case '0':
		return number(tok.String()), nil
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			v, err := readTree(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.ReadToken()
		return list, err
	default:
		return readObject(d, depth)
	}
}

func readObject(d *jsontext.Decoder, depth int) (any, error) {
	o := &object{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		v, err := readTree(d, depth+1)
		if err != nil {
			return nil, err
		}
		o.members = append(o.members, member{key, v})
	}
	_, err := d.ReadToken()
	return o, err
}

func appendTree(b []byte, v any) []byte {
	switch v := v.(type) {
	case *object:
		b = append(b, '{')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendQuoted(b, m.name), ':')
			b = appendTree(b, m.value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendTree(b, e)
		}
		return append(b, ']')
	case string:
		return appendQuoted(b, v)
	case number:
		return append(b, v...)
	case bool:
		return fmt.Appendf(b, "%t", v)
	}
	return append(b, "null"...)
}

// appendQuoted writes s in the minimal form of RFC 8785.
func appendQuoted(b []byte, s string) []byte {
	// The only error is invalid UTF-8, which is replaced.
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func cloneTree(v any) any {
	switch v := v.(type) {
	case *object:
		c := &object{src: v.src, opaque: v.opaque, planned: v.planned, members: make([]member, len(v.members))}
		for i, m := range v.members {
			c.members[i] = member{m.name, cloneTree(m.value)}
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = cloneTree(e)
		}
		return c
	}
	return v
}
