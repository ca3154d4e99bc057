// Package codec turns a tool's input type, or its raw JSON schema, into what
// the model is told, and a call's arguments into one value, one stored form
// and one hash. Whatever the handler cannot tell apart has one hash; whatever
// is ambiguous is refused before anything happens.
package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Options of a codec made from a Go type. The zero value is strict.
type Options struct {
	// Loose allows types that strict mode cannot express (maps, any, raw
	// JSON). If the type has such parts the schema is not strict.
	Loose bool
	// Repeat adds repeat_of to the schema and takes it off the arguments.
	Repeat bool
}

// Codec is the schema and the decoder of one tool. It is safe for concurrent
// use.
type Codec struct {
	schema   json.RawMessage
	strict   bool
	check    *validator // of the whole arguments; nil: the plan and the checks of its fields say it all
	required []string   // top-level names that must be given
	keys     []keyField
	resource []string // quoted path, nil for none
	repeats  bool     // repeat_of is taken off

	// of a Go type
	typ  reflect.Type
	plan *plan
	// of a raw schema
	known  []string // top-level names, for the check of case
	ignore []string // quoted top-level names
	secret []string // the same
}

// keyField is one part of the business key.
type keyField struct {
	pointer []byte   // JSON pointer, hashed with the value
	path    []string // quoted names
}

// New makes a codec for a struct type. Its errors are mistakes in the type:
// each names the Go field and says the mend; all are joined.
func New(t reflect.Type, o Options) (*Codec, error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("input type %v: a tool's input must be a struct", t)
	}
	name := typeName(t)
	b := &planner{plans: map[reflect.Type]*plan{}}
	p := b.of(t, name)
	if p.kind != kStruct && len(b.errs) == 0 {
		b.fail(name, "has its own JSON form: a tool's input must be a plain struct")
	}
	keys, resources := b.collect(p)
	if o.Repeat {
		b.freeRepeat(p)
	}
	if len(b.errs) > 0 {
		return nil, fmt.Errorf("input type %s: %w", t, joinErrors(b.errs))
	}
	b.settle()
	s, problems, err := makeSchemas(p, b.plans)
	if err == nil && !o.Loose {
		err = joinErrors(problems)
	}
	if err != nil {
		return nil, fmt.Errorf("input type %s: %w", t, err)
	}
	if o.Repeat {
		addRepeat(s.wire, s.strict)
	}
	c := &Codec{schema: appendTree(nil, s.wire), strict: s.strict, typ: t, plan: p, keys: keyFields(keys), repeats: o.Repeat}
	for _, f := range p.fields {
		if !f.optional {
			c.required = append(c.required, f.name)
		}
	}
	if len(resources) > 0 {
		c.resource = quoteAll(resources[0])
	}
	if _, err = compile(c.schema); err != nil {
		return nil, fmt.Errorf("input type %s: %w", t, err)
	}
	if rest := slim(s.local); constrained(rest) {
		if c.check, err = compile(appendTree(nil, rest)); err == nil && onlyMembers(rest) {
			c.checkMembers(rest.object("properties"))
		}
	}
	return c, err
}

// checkMembers has only those members checked of which the schema says more than the plan.
func (c *Codec) checkMembers(rest *object) {
	members := c.check.schema.Properties
	for _, f := range c.plan.fields {
		if s := members[f.name]; s != nil {
			f.check = &validator{schema: s, at: child("", f.name)}
			if f.plan.kind == kInt && !f.quoted {
				f.within = boundsOf(rest.object(f.name), s)
			}
		}
	}
	c.check = nil
}

// typeName is where the paths of error texts begin.
func typeName(t reflect.Type) string {
	if t.Name() == "" {
		return "struct"
	}
	return t.Name()
}

// keyFields sorts the parts of the key, so that moving a field in its struct
// does not change the key.
func keyFields(paths []keyPath) []keyField {
	var out []keyField
	for _, p := range paths {
		k := keyField{path: quoteAll(p)}
		for _, name := range p {
			k.pointer = []byte(child(string(k.pointer), name))
		}
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b keyField) int { return bytes.Compare(a.pointer, b.pointer) })
	return out
}

func quoteAll(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(appendQuoted(nil, n))
	}
	return out
}

// Schema returns a copy of what the model is told.
func (c *Codec) Schema() json.RawMessage { return bytes.Clone(c.schema) }

// Strict reports whether Schema obeys OpenAI's strict mode.
func (c *Codec) Strict() bool { return c.strict }

// HasKey reports whether the input has a business key.
func (c *Codec) HasKey() bool { return len(c.keys) > 0 }

// HasSecret reports whether the input has fields that are not stored.
func (c *Codec) HasSecret() bool { return c.plan != nil && c.plan.hides || len(c.secret) > 0 }

// Secrets are the top-level names of the fields that are not stored, or hold such.
func (c *Codec) Secrets() []string {
	var names []string
	for _, quoted := range c.secret {
		names = append(names, strings.Trim(quoted, `"`))
	}
	if c.plan != nil {
		for _, f := range c.plan.fields {
			if f.once.secret || f.plan != nil && f.plan.hides {
				names = append(names, f.name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// HasResource reports whether the input names a resource.
func (c *Codec) HasResource() bool { return c.resource != nil }

// Diff is the package's Diff without the fields left out of the identity.
func (c *Codec) Diff(a, b []byte) []string { return Diff(c.identity(nil, a), c.identity(nil, b)) }

// identity returns canonical JSON without the fields that are no part of the
// identity, in the place of dst. It may return b itself.
func (c *Codec) identity(dst, b []byte) []byte {
	switch {
	case c.plan != nil && c.plan.drops:
		return prune(dst[:0], b, c.plan, cutIgnored)
	case len(c.ignore) > 0:
		return without(dst[:0], b, c.ignore)
	}
	return b
}

// storedForm returns canonical JSON without the fields that are not stored. It may return b itself.
func (c *Codec) storedForm(b []byte) []byte {
	switch {
	case c.plan != nil && c.plan.hides:
		return prune(nil, b, c.plan, cutSecret)
	case len(c.secret) > 0:
		return without(nil, b, c.secret)
	}
	return b
}

var errNotObject = errors.New("not a JSON object")
