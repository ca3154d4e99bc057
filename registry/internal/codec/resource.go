package codec

import (
	"bytes"
	stdjson "encoding/json"
	"reflect"
	"slices"
	"strings"
)

// OutputResource returns the dotted path of the once:"resource" field of a
// tool's output type, "" if it has none.
func OutputResource(t reflect.Type) (name string, err error) {
	if t == nil || deref(t).Kind() != reflect.Struct {
		return "", nil
	}
	var found []string
	b := &outputs{open: map[reflect.Type]bool{}}
	b.visit(deref(t), typeName(deref(t)), nil, false, &found)
	if len(b.errs) > 0 {
		return "", joinErrors(b.errs)
	}
	if len(found) == 0 {
		return "", nil
	}
	return found[0], nil
}

// outputs looks through an output type, which may hold anything.
type outputs struct {
	planner
	open map[reflect.Type]bool
}

func (b *outputs) visit(t reflect.Type, at string, path []string, many bool, found *[]string) {
	if b.open[t] {
		return
	}
	b.open[t] = true
	defer delete(b.open, t)
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Pointer:
		b.visit(t.Elem(), at, path, true, found)
		return
	case reflect.Struct:
	default:
		return
	}
	for sf := range t.Fields() {
		field := at + "." + sf.Name
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		below := append(slices.Clip(path), name)
		switch {
		case name != "":
		case sf.Anonymous && deref(sf.Type).Kind() == reflect.Struct:
			below = path
		default:
			below[len(path)] = sf.Name
		}
		if err := lintTags(sf.Tag); err != nil {
			b.fail(field, "%w", err)
		}
		text, tagged := sf.Tag.Lookup("once")
		switch {
		case !tagged && name == "-":
		case !tagged:
			b.visit(sf.Type, field, below, many, found)
		case text != "resource":
			b.fail(field, `once:%q on an output: only once:"resource" has a meaning there`, text)
		default:
			b.resource(sf, field, below, many, found)
		}
	}
}

func (b *outputs) resource(sf reflect.StructField, at string, path []string, many bool, found *[]string) {
	name := ""
	if len(path) > 0 {
		name = path[len(path)-1]
	}
	switch {
	case many:
		b.fail(at, `once:"resource" cannot be inside a pointer, list or map: it must be there once`)
	case sf.Type.Kind() == reflect.Pointer:
		b.fail(at, `once:"resource" must not be a pointer: it must always be there`)
	case !sf.IsExported() || name == "-":
		b.fail(at, `once:"resource" on a field that is not encoded: export it and give it a json name`)
	case strings.Contains(name, "."):
		b.fail(at, `the json name of a once:"resource" field cannot hold a '.': rename it`)
	case len(*found) > 0:
		b.fail(at, `a second once:"resource" field: a type has at most one`)
	case !scalar(sf.Type):
		b.fail(at, `once:"resource" must be a string, number or bool, not %s`, sf.Type)
	default:
		*found = append(*found, strings.Join(path, "."))
	}
}

func scalar(t reflect.Type) bool {
	q := &planner{plans: map[reflect.Type]*plan{}}
	p := q.of(t, "")
	return p.kind >= kBool && p.kind <= kText && p.kind != kBytes && len(q.errs) == 0
}

// ResourceOf returns the text of the field at a dotted path of an output: a
// string as it is, another scalar as canonical JSON, "" if there is none.
func ResourceOf(outputJSON []byte, name string) string {
	if name == "" {
		return ""
	}
	at := stdjson.RawMessage(outputJSON)
	for segment := range strings.SplitSeq(name, ".") {
		var o map[string]stdjson.RawMessage
		if stdjson.Unmarshal(at, &o) != nil {
			return ""
		}
		at = o[segment]
	}
	b, err := canonicalize(bytes.Clone(at))
	if err != nil {
		return ""
	}
	return resourceText(b)
}

// resourceText is the text of a canonical scalar.
func resourceText(b []byte) string {
	switch {
	case len(b) == 0, b[0] == '{', b[0] == '[', string(b) == "null":
		return ""
	case b[0] == '"':
		return unquote(b)
	}
	return string(b)
}
