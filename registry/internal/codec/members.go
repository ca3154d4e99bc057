package codec

import (
	stdjson "encoding/json"
	"slices"
	"strings"
	"unicode"
)

// object reads the members of an object by their plans.
func (r *reader) object(p *plan) (any, *Error) {
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, r.syntax(err)
	}
	if e := r.wrongKind('{', p, nil); e != nil {
		return nil, e
	}
	var doc map[string]any
	if r.tree {
		doc = map[string]any{}
	}
	var e *Error
	r.out = append(r.out, '{')
	if p != nil && p.kind == kStruct {
		e = r.fields(p, doc)
	} else {
		e = r.names(p, doc)
	}
	r.out = append(r.out, '}')
	return doc, e
}

// fields reads an object whose names are known.
func (r *reader) fields(p *plan, doc map[string]any) *Error {
	given := 0 // of the fields that must be there
	start, first := len(r.out), len(r.spans)
	for r.dec.PeekKind() != '}' {
		f, e := r.name(p)
		if e != nil {
			return e
		}
		if f == nil {
			continue
		}
		if !f.optional {
			given++
		}
		comma := len(r.out)
		if comma > start {
			r.out = append(r.out, ',')
		}
		name := len(r.out)
		r.out = append(append(r.out, f.quotedName...), ':')
		value := len(r.out)
		if e := r.member(f, doc); e != nil {
			return e
		}
		if f.zero != "" && string(r.out[value:]) == f.zero {
			r.out = r.out[:comma]
			continue
		}
		r.spans = append(r.spans, span{f.rank, name, len(r.out)})
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return r.syntax(err)
	}
	if given < p.required {
		return r.missing(p, start)
	}
	r.order(start, r.spans[first:])
	r.spans = r.spans[:first]
	return nil
}

// name reads a name and finds its field. It is nil where nothing is left to read: repeat_of, null for absent.
func (r *reader) name(p *plan) (*field, *Error) {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, r.syntax(err)
	}
	f := p.byName[string(raw[1:len(raw)-1])]
	if f == nil { // unknown, or spelled with escapes
		name := unquote(raw)
		if r.takesOff(name) {
			return nil, r.takeOff(name)
		}
		if f = p.byName[name]; f == nil {
			return nil, r.stranger(p, name)
		}
	}
	if f.optional && r.dec.PeekKind() == 'n' {
		if _, err := r.dec.ReadToken(); err != nil {
			return nil, r.syntax(err)
		}
		return nil, nil
	}
	return f, nil
}

// member reads the value of a field and has it checked.
func (r *reader) member(f *field, doc map[string]any) *Error {
	start, check, within := len(r.out), f.check, f.within
	if r.depth > 1 { // a recursive type has its fields below, too
		check, within = nil, nil
	}
	r.tree = r.tree || check != nil && within == nil
	v, e := r.value(f.plan, f)
	switch {
	case e != nil:
	case doc != nil:
		doc[f.name] = v
	case within != nil && !within.hold(r.out[start:]):
		r.broken = check.find(r.broken, stdjson.Number(r.out[start:]))
	case r.tree:
		r.tree, r.broken = false, check.find(r.broken, v)
	}
	return e
}

// order brings the members that were read from start on into canonical order.
func (r *reader) order(start int, members []span) {
	byRank := func(a, b span) int { return a.rank - b.rank }
	if slices.IsSortedFunc(members, byRank) {
		return
	}
	slices.SortFunc(members, byRank)
	end := len(r.out)
	for _, m := range members {
		if len(r.out) > end {
			r.out = append(r.out, ',')
		}
		r.out = append(r.out, r.out[m.from:m.to]...)
	}
	r.out = append(r.out[:start], r.out[end:]...)
}

// missing names the fields that must be there and are not.
func (r *reader) missing(p *plan, start int) *Error {
	present := map[string]bool{}
	for name := range members(append(r.out[start-1:len(r.out):len(r.out)], '}')) {
		present[unquote(name)] = true
	}
	var names []string
	for _, f := range p.fields {
		if !f.optional && !present[f.name] {
			names = append(names, f.name)
		}
	}
	return refuse(child(string(r.dec.StackPointer()), names[0]), "required", "is missing: %s must be given", strings.Join(names, ", "))
}

// stranger refuses a name that the struct does not have.
func (r *reader) stranger(p *plan, name string) *Error {
	if r.dec.PeekKind() == 0 {
		if _, err := r.dec.ReadToken(); err != nil {
			return r.syntax(err)
		}
	}
	for _, f := range p.fields {
		if strings.EqualFold(f.name, name) {
			return r.fail("case", "differs only in case from the field %q: use that name", f.name)
		}
	}
	var known []string
	for _, f := range p.fields {
		known = append(known, f.name)
	}
	if len(known) > maxListed {
		known = append(known[:maxListed], "...")
	}
	if len(known) == 0 {
		return r.fail("unknown", "is not a field: this tool takes no fields here")
	}
	return r.fail("unknown", "is not a field: leave it out, the fields are %s", strings.Join(known, ", "))
}

// names reads an object with free names: a map or a place without a Go type.
func (r *reader) names(p *plan, doc map[string]any) *Error {
	elem := p
	if p != nil && p.kind == kMap {
		elem = p.elem
	}
	var folded map[string]bool
	start := len(r.out)
	for r.dec.PeekKind() != '}' {
		raw, err := r.dec.ReadValue()
		if err != nil {
			return r.syntax(err)
		}
		name := unquote(raw)
		if r.takesOff(name) {
			if e := r.takeOff(name); e != nil {
				return e
			}
			continue
		}
		key := fold(name)
		if folded[key] {
			return r.fail("case", "differs only in case from another name of the object: send one of them")
		}
		if folded == nil {
			folded = map[string]bool{}
		}
		folded[key] = true
		if len(r.out) > start {
			r.out = append(r.out, ',')
		}
		r.out = append(appendQuoted(r.out, name), ':')
		v, e := r.value(elem, nil)
		if e != nil {
			return e
		}
		if doc != nil {
			doc[name] = v
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return r.syntax(err)
	}
	return nil
}

// fold maps names that differ only in case to one string, as strings.EqualFold
// compares.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for c := unicode.SimpleFold(r); c != r; c = unicode.SimpleFold(c) {
			least = min(least, c)
		}
		return least
	}, s)
}

// topNames refuses top-level names that differ only in case from a known one.
func topNames(doc []byte, known []string) *Error {
	for raw := range members(doc) {
		name := unquote(raw)
		if slices.Contains(known, name) {
			continue
		}
		for _, k := range known {
			if strings.EqualFold(k, name) {
				return refuse(child("", name), "case", "differs only in case from %q: use that name", k)
			}
		}
	}
	return nil
}
