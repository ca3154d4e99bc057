package codec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

var durationType = reflect.TypeFor[time.Duration]()

// notes are the keywords that strict mode refuses and a sentence can carry.
// They are enforced locally.
var notes = []struct{ keyword, text string }{
	{"minLength", "Length at least %s."},
	{"maxLength", "Length at most %s."},
	{"default", "Default: %s."},
	{"uniqueItems", "No duplicates."},
	{"contentEncoding", "Encoded as %s."},
	{"contentMediaType", "Content type %s."},
	{"minProperties", "At least %s properties."},
	{"maxProperties", "At most %s properties."},
	{"examples", "Examples: %s."},
	{"deprecated", "Deprecated."},
	{"readOnly", ""},
	{"writeOnly", ""},
	{"$comment", ""},
	{"$schema", ""},
	{"$id", ""},
	{"$anchor", ""},
}

// tuned are the keywords that strict mode takes of other models, and refuses of fine-tuned ones.
var tuned = []struct{ keyword, text string }{
	{"pattern", "Pattern: %s."},
	{"format", "Format: %s."},
	{"minimum", "At least %s."},
	{"maximum", "At most %s."},
	{"exclusiveMinimum", "More than %s."},
	{"exclusiveMaximum", "Less than %s."},
	{"multipleOf", "A multiple of %s."},
	{"minItems", "At least %s items."},
	{"maxItems", "At most %s items."},
	{"patternProperties", ""},
}

// Tuned is a strict schema for fine-tuned models: what they refuse is said in words.
func Tuned(schema []byte) []byte {
	v, err := parseTree(schema)
	root, ok := v.(*object)
	if err != nil || !ok {
		return schema
	}
	eachSchema(root, func(o *object) {
		for _, n := range tuned {
			if !o.has(n.keyword) {
				continue
			}
			if v := o.take(n.keyword); n.text != "" {
				addNote(o, fmt.Sprintf(n.text, noteValue(v)))
			}
		}
	})
	return appendTree(nil, root)
}

// strictFormats are the string formats that strict mode takes.
var strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

// fit rewrites a schema for strict mode as far as it goes; checkStrict says
// what is left.
func fit(root *object) *object {
	eachSchema(root, func(o *object) {
		fitKeywords(o)
		fitProperties(o)
		fitRef(o)
		slices.SortStableFunc(o.members, func(a, b member) int { return rank(a.name) - rank(b.name) })
	})
	return root
}

// rank puts what a reader wants to know first to the front.
func rank(keyword string) int {
	if i := slices.Index([]string{"title", "description", "type"}, keyword); i >= 0 {
		return i - 3
	}
	return 0
}

func fitKeywords(o *object) {
	if oneOf := o.list("oneOf"); oneOf != nil && !o.has("anyOf") {
		for i, m := range o.members {
			if m.name == "oneOf" {
				o.members[i].name = "anyOf"
			}
		}
	}
	for _, n := range notes {
		if !o.has(n.keyword) {
			continue
		}
		v := o.take(n.keyword)
		switch {
		case n.text == "" || v == false:
		case strings.Contains(n.text, "%s"):
			addNote(o, fmt.Sprintf(n.text, noteValue(v)))
		default:
			addNote(o, n.text)
		}
	}
	if f := o.text("format"); f != "" && !slices.Contains(strictFormats, f) {
		o.take("format")
		addNote(o, "Format: "+f+".")
	}
}

func noteValue(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return strings.Trim(string(appendTree(nil, v)), "[]")
}

// fitProperties makes every property required, optional ones nullable, and
// closes the object.
func fitProperties(o *object) {
	properties := o.object("properties")
	if properties == nil {
		return
	}
	required := o.strings("required")
	all := []any{}
	for i, m := range properties.members {
		all = append(all, m.name)
		if p, ok := m.value.(*object); ok && !slices.Contains(required, m.name) {
			properties.members[i].value = nullable(p)
		}
	}
	o.set("required", all)
	if !o.has("additionalProperties") {
		o.set("additionalProperties", false)
	}
}

// fitRef moves what stands beside a reference out of its way.
func fitRef(o *object) {
	ref := o.text("$ref")
	if ref == "" || len(o.members) == 1 || o.has("anyOf") {
		return
	}
	o.take("$ref")
	o.set("anyOf", []any{newObject("$ref", ref)})
}

// nullable returns a schema that takes what o takes, and null.
func nullable(o *object) *object {
	null := newObject("type", "null")
	switch {
	case o.has("anyOf"):
		for _, e := range o.list("anyOf") {
			if c, ok := e.(*object); ok && c.text("type") == "null" {
				return o
			}
		}
		o.set("anyOf", append(o.list("anyOf"), null))
		return o
	case o.has("$ref"), o.has("enum"), o.has("const"), o.has("oneOf"), slices.Contains(o.strings("type"), "object"), len(o.strings("type")) == 0:
		u := &object{src: o.src, opaque: o.opaque}
		for _, k := range []string{"title", "description"} {
			if o.has(k) {
				u.set(k, o.take(k))
			}
		}
		u.set("anyOf", []any{o, null})
		return u
	}
	if types := o.strings("type"); !slices.Contains(types, "null") {
		list := []any{}
		for _, t := range append(types, "null") {
			list = append(list, t)
		}
		o.set("type", list)
	}
	return o
}
