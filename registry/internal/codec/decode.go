package codec

import (
	"bytes"
	"crypto/sha256"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/go-json-experiment/json/v1"
)

// Input is what one call's arguments mean.
type Input struct {
	// Value is what the handler gets: the tool's input type, or the canonical
	// json.RawMessage of a raw tool. It was decoded from JSON.
	Value any
	// JSON is the canonical form of all fields.
	JSON []byte
	// Stored is JSON without the once:"secret" fields.
	Stored []byte
	// Key is the hash of the once:"key" fields, zero when there are none.
	Key [32]byte
	// Fingerprint is the hash of all but the once:"-" fields.
	Fingerprint [32]byte
	// Resource is the text of the once:"resource" field, "" when there is none.
	Resource string
	// RepeatOf is the operation that the call repeats on purpose, "" for none.
	// It was taken off first and is no part of the above.
	RepeatOf string
}

// The decoder keeps the wire forms of encoding/json (durations are numbers,
// bytes are base64) and drops its leniency.
var decodingOptions = json.JoinOptions(
	v1.DefaultOptionsV1(),
	v1.ReportErrorsWithLegacySemantics(false),
	jsontext.AllowDuplicateNames(false),
	jsontext.AllowInvalidUTF8(false),
	json.MatchCaseInsensitiveNames(false),
	json.RejectUnknownMembers(true),
)

// The order of members is left to canonicalize.
var encodingOptions = json.JoinOptions(
	v1.DefaultOptionsV1(),
	jsontext.AllowInvalidUTF8(false),
	jsontext.AllowDuplicateNames(false),
	jsontext.EscapeForHTML(false),
	jsontext.EscapeForJS(false),
	json.Deterministic(false),
)

// Decode reads the arguments of a call. Its errors are *Error.
func (c *Codec) Decode(arguments string) (*Input, error) {
	r := readers.Get().(*reader)
	defer r.release()
	doc, e := c.read(r, arguments)
	if e == nil {
		e = worst(c.check.find(r.broken, doc))
	}
	if e != nil {
		return nil, e
	}
	in := &Input{RepeatOf: r.repeatOf}
	if e = c.fill(in, r.out); e == nil {
		e = c.hash(in, r.out)
	}
	if e != nil {
		return nil, e
	}
	in.Stored = c.storedForm(in.JSON)
	return in, nil
}

// read leaves the unambiguous form of the arguments in r.out.
func (c *Codec) read(r *reader, arguments string) (any, *Error) {
	if e := precheck(arguments); e != nil {
		return nil, e
	}
	r.tree, r.repeats = c.check != nil, c.repeats
	text, e := r.open(arguments)
	if e != nil {
		return nil, e
	}
	if blank(text) {
		if len(c.required) > 0 {
			return nil, refuse(child("", c.required[0]), "required", "the arguments are empty: %s must be given", strings.Join(c.required, ", "))
		}
		r.reset("{}")
	}
	switch k := r.dec.PeekKind(); {
	case k == '{':
	case len(text) < len(arguments):
		return nil, refuse("", "type", "must be a JSON object, is a string")
	default:
		if _, err := r.dec.ReadValue(); err != nil {
			return nil, r.syntax(err)
		}
		return nil, refuse("", "type", "must be a JSON object, is %s", kindName(k))
	}
	doc, e := r.value(c.plan, nil)
	if e == nil {
		e = r.end()
	}
	if e == nil && c.plan == nil {
		e = topNames(r.out, c.known)
	}
	return doc, e
}

// fill decodes, and encodes and decodes again where that can make a difference:
// the handler gets exactly what any later attempt gets from the stored form.
func (c *Codec) fill(in *Input, doc []byte) *Error {
	if c.plan == nil {
		b, err := canonicalize(bytes.Clone(doc))
		if err != nil {
			return refuse("", "json", "has no canonical form")
		}
		in.JSON, in.Value = b, stdjson.RawMessage(bytes.Clone(b))
		return nil
	}
	if !c.plan.drifts {
		v := reflect.New(c.typ).Elem()
		c.plan.set(v, doc)
		in.JSON, in.Value = bytes.Clone(doc), v.Interface()
		return nil
	}
	first, err := c.typed(doc)
	if err != nil {
		return wordDecode(err)
	}
	if in.JSON, err = c.encode(first); err != nil {
		return refuse("", "value", "cannot be encoded again: its type %s is at fault", c.typ)
	}
	second, err := c.typed(in.JSON)
	if err != nil {
		return refuse("", "value", "cannot be decoded again: its type %s is at fault", c.typ)
	}
	if c.plan.custom {
		// Only a type's own methods can make the form drift.
		again, err := c.encode(second)
		if err != nil || !bytes.Equal(again, in.JSON) {
			return refuse("", "value", "has no stable form: the JSON methods of a field of %s are at fault", c.typ)
		}
	}
	in.Value = second.Elem().Interface()
	return nil
}

// set decodes what was read by a plan that does not drift: there is nothing left to refuse or to choose.
func (p *plan) set(v reflect.Value, b []byte) {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	switch p.kind {
	case kBool:
		v.SetBool(b[0] == 't')
	case kInt:
		n, _ := strconv.ParseInt(string(bytes.Trim(b, `"`)), 10, p.bits)
		v.SetInt(n)
	case kUint:
		n, _ := strconv.ParseUint(string(bytes.Trim(b, `"`)), 10, p.bits)
		v.SetUint(n)
	case kFloat:
		n, _ := strconv.ParseFloat(string(b), p.bits)
		v.SetFloat(n)
	case kString:
		v.SetString(unquote(b))
	case kList:
		all := slices.Collect(items(b))
		if p.length < 0 {
			v.Set(reflect.MakeSlice(v.Type(), len(all), len(all)))
		}
		for i, item := range all {
			p.elem.set(v.Index(i), item)
		}
	default: // kStruct
		for name, value := range members(b) {
			f := p.byName[string(name[1:len(name)-1])]
			f.plan.set(v.FieldByIndex(f.index), value)
		}
	}
}

// typed decodes into a new value of the tool's type; it returns the pointer.
func (c *Codec) typed(doc []byte) (v reflect.Value, err error) {
	v = reflect.New(c.typ)
	if c.plan.custom {
		doc = bytes.Clone(doc) // a type's own decoder may keep its bytes
		defer func() {
			if p := recover(); p != nil {
				err = errors.New("the decoder of a field panicked")
			}
		}()
	}
	return v, json.Unmarshal(doc, v.Interface(), decodingOptions)
}

func (c *Codec) encode(v reflect.Value) (b []byte, err error) {
	if c.plan.custom {
		defer func() {
			if p := recover(); p != nil {
				err = errors.New("the encoder of a field panicked")
			}
		}()
	}
	if b, err = json.Marshal(v.Interface(), encodingOptions); err != nil {
		return nil, err
	}
	if b, err = canonicalize(b); err != nil {
		return nil, err
	}
	if c.plan.nulls {
		b = prune(make([]byte, 0, len(b)), b, c.plan, cutNulls)
	}
	return b, nil
}

// wordDecode words an error of the typed decoder without its values.
func wordDecode(err error) *Error {
	var s *json.SemanticError
	if !errors.As(err, &s) {
		return refuse("", "value", "was refused by the decoder of its type: send another value")
	}
	what := "a valid value"
	if t := s.GoType; t != nil {
		switch {
		case t.Kind() == reflect.Slice:
			what = "standard base64"
		case t.PkgPath() == "time":
			what = "a valid RFC 3339 date-time, as in 2006-01-02T15:04:05Z"
		case t.Name() != "":
			what = "a valid " + t.Name()
		}
	}
	return refuse(string(s.JSONPointer), "value", "must be %s", what)
}

// hash fills in what is computed from the canonical form. It writes over scratch.
func (c *Codec) hash(in *Input, scratch []byte) *Error {
	in.Fingerprint = sha256.Sum256(c.identity(scratch, in.JSON))
	if c.resource != nil {
		b := lookup(in.JSON, c.resource)
		if len(b) > 0 && (b[0] == '{' || b[0] == '[') {
			return refuse(child("", unquote([]byte(c.resource[0]))), "type", "must be a string, number or boolean")
		}
		in.Resource = resourceText(b)
	}
	if len(c.keys) == 0 {
		return nil
	}
	var stack [8][]byte
	parts := stack[:0]
	for _, k := range c.keys {
		v := lookup(in.JSON, k.path)
		switch {
		case v == nil:
			return refuse(string(k.pointer), "required", "is missing: it says which operation is meant and must be given")
		case string(v) == "null":
			return refuse(string(k.pointer), "null", "must not be null: it says which operation is meant")
		}
		parts = append(parts, k.pointer, v)
	}
	in.Key = Hash(parts...)
	return nil
}

// Load turns an Input.Stored back into the value that the handler gets.
func (c *Codec) Load(canonical []byte) (any, error) {
	if c.plan == nil {
		if !stdjson.Valid(canonical) || canonical[0] != '{' {
			return nil, fmt.Errorf("loading stored arguments: %w", errNotObject)
		}
		return stdjson.RawMessage(bytes.Clone(canonical)), nil
	}
	v, err := c.typed(canonical)
	if err != nil {
		return nil, fmt.Errorf("loading stored arguments into %s: %w", c.typ, wordDecode(err))
	}
	return v.Elem().Interface(), nil
}
