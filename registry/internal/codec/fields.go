package codec

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
)

// structure fills p's fields in the order of the struct, embedded structs
// flattened. Names that Go would resolve by depth are refused: the schema
// could not say which one is meant.
func (b *planner) structure(p *plan) {
	p.byName = map[string]*field{}
	b.embedded(p, p.typ, p.path, nil, nil)
	utf16Of := func(f *field) []uint16 { return utf16.Encode([]rune(f.name)) }
	sorted := slices.SortedFunc(slices.Values(p.fields), func(a, b *field) int { return slices.Compare(utf16Of(a), utf16Of(b)) })
	for i, f := range sorted {
		f.rank = i
	}
}

func (b *planner) embedded(p *plan, t reflect.Type, path string, index []int, stack []reflect.Type) {
	if slices.Contains(stack, t) {
		b.fail(path, "%s embeds itself: give the field a json name", t)
		return
	}
	stack = append(stack, t)
	for sf := range t.Fields() {
		sf.Index = slices.Concat(index, sf.Index)
		at := path + "." + sf.Name
		if err := lintTags(sf.Tag); err != nil {
			b.fail(at, "%w", err)
			continue
		}
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		once, err := parseOnce(sf.Tag)
		if err != nil {
			b.fail(at, "%w", err)
		}
		if name == "-" && options == "" || !sf.Anonymous && !sf.IsExported() {
			if once.set {
				b.fail(at, "a once tag on a field that is never decoded: export it and give it a json name")
			}
			continue
		}
		if sf.Anonymous && name == "" && deref(sf.Type).Kind() == reflect.Struct {
			b.embed(p, sf, at, once, stack)
			continue
		}
		if !sf.IsExported() {
			b.fail(at, "an unexported embedded type is never decoded: export it or tag it json:\"-\"")
			continue
		}
		if name == "" {
			name = sf.Name
		}
		b.add(p, sf, name, options, at, once)
	}
}

func (b *planner) embed(p *plan, sf reflect.StructField, at string, once onceTag, stack []reflect.Type) {
	switch t := deref(sf.Type); {
	case once.set:
		b.fail(at, "a once tag on an embedded struct: tag its fields")
	case sf.Type.Kind() == reflect.Pointer && !sf.IsExported():
		b.fail(at, "an embedded pointer to an unexported struct cannot be decoded: embed the struct itself")
	case b.special(&plan{typ: t, path: at}):
		b.fail(at, "%s has its own JSON form and cannot be flattened: give the field a json name", t)
	default:
		p.pointers = p.pointers || sf.Type.Kind() == reflect.Pointer
		b.embedded(p, t, at, sf.Index, stack)
	}
}

func deref(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func (b *planner) add(p *plan, sf reflect.StructField, name, options, at string, once onceTag) {
	f := &field{name: name, quotedName: string(appendQuoted(nil, name)), path: at, index: sf.Index, once: once, plan: b.of(sf.Type, at)}
	f.optional = sf.Type.Kind() == reflect.Pointer
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "":
		case "omitempty":
			f.optional, f.omits = true, true
			if k := sf.Type.Kind(); k == reflect.Struct || k == reflect.Array && sf.Type.Len() > 0 {
				b.fail(at, "omitempty does nothing on a %s: use omitzero or a pointer", k)
			}
		case "omitzero":
			f.optional, f.omits = true, true
		case "string":
			f.quoted = true
			if f.plan.kind != kInt && f.plan.kind != kUint {
				b.fail(at, "json option \"string\" is supported on integers only: leave it out")
			}
		default:
			b.fail(at, "json option %q is not supported: use omitempty, omitzero or string", option)
		}
	}
	if !fitName(name) {
		b.fail(at, "json name %q: use letters, digits, '_', '-', '.', '$', '@'", name)
	}
	for _, g := range p.fields {
		if g.name == name {
			b.fail(at, "has the same json name %q as %s: rename one or tag it json:\"-\"", name, g.path)
			return
		}
		if strings.EqualFold(g.name, name) {
			b.fail(at, "its json name differs only in case from that of %s: rename one", g.path)
		}
	}
	if f.omits && sf.Type.Kind() != reflect.Pointer && f.plan.basic() {
		f.zero = f.zeroText()
	}
	if err := lintSchemaTag(sf, f, f.plan); err != nil {
		b.fail(at, "%w", err)
	}
	p.fields = append(p.fields, f)
	p.byName[name] = f
}

// zeroText is the zero value of a basic type, in JSON.
func (f *field) zeroText() string {
	switch {
	case f.quoted:
		return `"0"`
	case f.plan.kind == kBool:
		return "false"
	case f.plan.kind == kString:
		return `""`
	}
	return "0"
}

func fitName(name string) bool {
	ok := name != "" && name != "-"
	for _, r := range name {
		ok = ok && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-.$@", r))
	}
	return ok
}

// keyPath is where a tagged field lies below the root: names in order.
type keyPath []string

// collect finds the once:"key" and once:"resource" fields below root and
// refuses those that are not always there, exactly once.
func (b *planner) collect(root *plan) (keys []keyPath, resource []keyPath) {
	type state struct {
		p                        *plan
		inList, optional, ignore bool
	}
	open := map[state]bool{} // on the way to here: types may be recursive
	var visit func(s state, path keyPath)
	visit = func(s state, path keyPath) {
		if s.p == nil || open[s] {
			return
		}
		open[s] = true
		defer delete(open, s)
		if s.p.elem != nil {
			visit(state{s.p.elem, true, s.optional, s.ignore}, path)
		}
		for _, f := range s.p.fields {
			at := append(slices.Clone(path), f.name)
			switch {
			case !f.once.key && !f.once.resource:
			case s.inList:
				b.fail(f.path, "once:\"key\" and once:\"resource\" cannot be inside a list or map: there would be many of them")
			case s.ignore:
				b.fail(f.path, "a once tag inside a field tagged once:\"-\": remove one of them")
			case f.once.key && (s.optional || f.optional):
				b.fail(f.path, "a once:\"key\" field must always be there: no pointer, omitempty or omitzero on it or around it")
			}
			if f.once.key {
				keys = append(keys, at)
			}
			if f.once.resource {
				resource = append(resource, at)
				b.checkResource(f, len(resource))
			}
			visit(state{f.plan, s.inList, s.optional || f.optional, s.ignore || f.once.ignored}, at)
		}
	}
	visit(state{p: root}, nil)
	return keys, resource
}

func (b *planner) checkResource(f *field, nth int) {
	switch f.plan.kind {
	case kBool, kInt, kUint, kFloat, kString, kText, kTime:
	default:
		b.fail(f.path, "once:\"resource\" must be a string, number or bool, not %s", f.plan.typ)
	}
	if strings.Contains(f.name, ".") {
		b.fail(f.path, "the json name of a once:\"resource\" field cannot hold a '.': rename it")
	}
	if nth == 2 {
		b.fail(f.path, "a second once:\"resource\" field: a type has at most one")
	}
}
