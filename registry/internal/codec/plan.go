package codec

import (
	"encoding"
	stdjson "encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type shape uint8

const (
	kBool shape = iota + 1
	kInt
	kUint
	kFloat
	kString
	kBytes  // []byte: base64
	kTime   // time.Time: RFC 3339
	kText   // encoding.TextMarshaler and TextUnmarshaler: a string
	kStruct // an object with known names
	kList   // slice or array
	kMap
	kAny
	kRaw    // a raw JSON value
	kCustom // MarshalJSON and UnmarshalJSON, described by JSONSchema
)

// plan says how the decoder and the encoder treat a Go type.
type plan struct {
	kind     shape
	typ      reflect.Type // never a pointer
	path     string       // the Go path where the type was first met
	bits     int          // of a number
	length   int          // of an array; -1 for a slice
	own      bool         // has a JSONSchema method
	elem     *plan        // of a list or map
	fields   []*field
	byName   map[string]*field
	required int  // how many fields must be there
	pointers bool // embeds a pointer
	nulls    bool // holds, at any depth, optional fields that may be encoded as null
	drops    bool // holds, at any depth, fields that are left out of the fingerprint
	hides    bool // holds, at any depth, fields that are not stored
	custom   bool // holds, at any depth, types with their own decoder
	drifts   bool // what is read by plan and its encoded form may differ: base64, nil and empty, locations of times
}

// field is one JSON member of a struct, embedded structs flattened.
type field struct {
	name       string
	quotedName string // as canonical JSON
	plan       *plan
	path       string // Go path, for error texts
	optional   bool   // pointer, omitempty or omitzero: null and absent are equal
	omits      bool   // omitempty or omitzero: encoded as absent
	quoted     bool   // json:",string"
	index      []int  // of the Go field, as reflect has it
	rank       int    // among the fields in canonical order
	zero       string // the value that is encoded as absent, "" for none
	once       onceTag
	check      *validator // of a member of the arguments; nil: the plan says it all
	within     *bounds    // what check says, where that is no more
}

// planner makes plans and collects what is wrong with the types.
type planner struct {
	plans map[reflect.Type]*plan
	errs  []error
}

func (b *planner) fail(path, format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf("%s: %w", path, fmt.Errorf(format, args...)))
}

// of returns the plan of t, which may be a pointer.
func (b *planner) of(t reflect.Type, path string) *plan {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
		if t.Kind() == reflect.Pointer {
			b.fail(path, "a pointer to a pointer has two kinds of null: use one pointer")
			return &plan{kind: kAny, typ: t, path: path}
		}
	}
	if p := b.plans[t]; p != nil {
		return p
	}
	p := &plan{typ: t, path: path, length: -1}
	b.plans[t] = p // before the fields: types may be recursive
	own, err := schemaMethods(t)
	if err != nil {
		b.fail(path, "%w", err)
	}
	p.own = own
	if !b.special(p) {
		b.byKind(p)
	}
	return p
}

// special handles the types that are not what their kind says.
func (b *planner) special(p *plan) bool {
	switch p.typ {
	case reflect.TypeFor[time.Time]():
		p.kind = kTime
		return true
	case reflect.TypeFor[stdjson.RawMessage](), reflect.TypeFor[jsontext.Value]():
		p.kind = kRaw
		return true
	case reflect.TypeFor[stdjson.Number]():
		p.kind = kAny
		b.fail(p.path, "json.Number is not supported: use int64, float64 or a string")
		return true
	case reflect.TypeFor[url.URL]():
		p.kind = kAny
		b.fail(p.path, "url.URL has no JSON form: use a string with jsonschema:\"format=uri\"")
		return true
	}
	if p.typ.Kind() == reflect.Interface {
		return false
	}
	ptr := reflect.PointerTo(p.typ)
	reads := ptr.Implements(reflect.TypeFor[stdjson.Unmarshaler]()) || ptr.Implements(reflect.TypeFor[json.UnmarshalerFrom]())
	writes := ptr.Implements(reflect.TypeFor[stdjson.Marshaler]()) || ptr.Implements(reflect.TypeFor[json.MarshalerTo]())
	readsText := ptr.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	writesText := ptr.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || ptr.Implements(reflect.TypeFor[encoding.TextAppender]())
	switch {
	case reads != writes:
		b.fail(p.path, "%s has only one of MarshalJSON and UnmarshalJSON (an embedded type may bring it): what is stored could not be read back, give it both and a JSONSchema method", p.typ)
	case reads:
		if !p.own {
			b.fail(p.path, "%s has its own JSON form (MarshalJSON, UnmarshalJSON): add a method JSONSchema() *jsonschema.Schema that describes it, on a type of yours that embeds it if need be", p.typ)
		}
		b.opaque(p)
		p.kind = kCustom
		return true
	case readsText != writesText:
		b.fail(p.path, "%s has only one of MarshalText and UnmarshalText: what is stored could not be read back, give it both", p.typ)
	case readsText:
		b.opaque(p)
		p.kind = kText
		return true
	}
	return false
}

// opaque refuses once tags that nothing would look at.
func (b *planner) opaque(p *plan) {
	if p.typ.Kind() != reflect.Struct {
		return
	}
	for sf := range p.typ.Fields() {
		if sf.Tag.Get("once") != "" {
			b.fail(p.path+"."+sf.Name, "a once tag inside a type with its own JSON form has no effect: tag the field of this type")
		}
	}
}

func (b *planner) byKind(p *plan) {
	switch t := p.typ; t.Kind() {
	case reflect.Bool:
		p.kind = kBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.kind, p.bits = kInt, t.Bits()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.kind, p.bits = kUint, t.Bits()
	case reflect.Float32, reflect.Float64:
		p.kind, p.bits = kFloat, t.Bits()
	case reflect.String:
		p.kind = kString
	case reflect.Slice, reflect.Array:
		b.list(p)
	case reflect.Map:
		p.kind = kMap
		switch k := t.Key(); {
		case k.Kind() == reflect.String, reflect.PointerTo(k).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		case k.Kind() >= reflect.Int && k.Kind() <= reflect.Uint64:
		default:
			b.fail(p.path, "map keys of type %s have no JSON form: use string keys", k)
		}
		p.elem = b.of(t.Elem(), p.path+"[]")
	case reflect.Interface:
		p.kind = kAny
		if t.NumMethod() > 0 {
			b.fail(p.path, "the interface %s cannot be decoded: use a concrete type", t)
		}
	case reflect.Struct:
		p.kind = kStruct
		b.structure(p)
	default:
		p.kind = kAny
		b.fail(p.path, "the type %s has no JSON form: leave the field out with json:\"-\"", t)
	}
}

func (b *planner) list(p *plan) {
	t := p.typ
	p.kind = kList
	if t.Kind() == reflect.Array {
		p.length = t.Len()
	} else if t.Elem().Kind() == reflect.Uint8 {
		if t.Elem() != reflect.TypeFor[byte]() {
			b.fail(p.path, "a slice of %s is base64 for the decoder and a list for the schema: use []byte", t.Elem())
		}
		p.kind = kBytes
		return
	}
	p.elem = b.of(t.Elem(), p.path+"[]")
}

// settle computes what the plan holds at any depth. Types may be recursive,
// so each plan looks at all that it reaches.
func (b *planner) settle() {
	for _, p := range b.plans {
		for _, f := range p.fields {
			if !f.optional {
				p.required++
			}
		}
		walkPlans(p, map[*plan]bool{}, func(q *plan) {
			p.drifts = p.drifts || q.pointers
			switch q.kind {
			case kCustom, kText:
				p.custom, p.drifts = true, true
			case kBytes, kTime, kMap, kAny, kRaw:
				p.drifts = true
			default:
			}
			for _, f := range q.fields {
				p.drifts = p.drifts || f.omits && !f.plan.basic()
				p.drops = p.drops || f.once.ignored
				p.hides = p.hides || f.once.secret
				p.nulls = p.nulls || f.optional && (!f.omits || f.plan.kind >= kAny)
			}
		})
	}
}

// basic reports whether only the zero value is encoded as absent: not so for
// an empty list, or a type with an IsZero method.
func (p *plan) basic() bool { return p.kind <= kString && p.typ.PkgPath() == "" }

func walkPlans(p *plan, seen map[*plan]bool, visit func(*plan)) {
	if p == nil || seen[p] {
		return
	}
	seen[p] = true
	visit(p)
	walkPlans(p.elem, seen, visit)
	for _, f := range p.fields {
		walkPlans(f.plan, seen, visit)
	}
}
