package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// RawSpec describes a tool known by JSON alone. Key, Ignore and Resource are
// top-level argument names.
type RawSpec struct {
	// Schema is a JSON schema of an object; nil takes any object.
	Schema json.RawMessage
	// Key names the arguments that make the business key; each must be given.
	Key []string
	// Ignore names the arguments left out of the identity.
	Ignore []string
	// Secret names the arguments that are not stored.
	Secret []string
	// Resource names the argument that says what the call is about.
	Resource string
	// Strict asks for strict mode, which the schema must obey.
	Strict bool
	// Repeat adds repeat_of to the schema, where there is one, and takes it off
	// the arguments.
	Repeat bool
}

// anyObject is what the model is told of a tool without a schema. The API
// wants properties, even none.
const anyObject = `{"type":"object","properties":{},"additionalProperties":true}`

// NewRaw makes a codec for a tool known by JSON alone. Its errors are
// mistakes in the description, all joined.
func NewRaw(s RawSpec) (*Codec, error) {
	c := &Codec{schema: json.RawMessage(anyObject), ignore: quoteAll(s.Ignore), secret: quoteAll(s.Secret), repeats: s.Repeat}
	var errs []error
	var names []string
	if s.Schema != nil {
		root, v, err := rawSchema(s.Schema)
		if err != nil {
			return nil, fmt.Errorf("raw schema: %w", err)
		}
		c.schema, c.check, c.required = bytes.Clone(s.Schema), v, root.strings("required")
		if p := root.object("properties"); p != nil {
			for _, m := range p.members {
				names = append(names, m.name)
			}
			c.known = names
		}
		if s.Strict {
			c.strict = true
			errs = append(errs, checkStrict(root)...)
		}
		if s.Repeat {
			addRepeat(root, s.Strict)
			c.schema = appendTree(nil, root)
		}
	} else if s.Strict {
		errs = append(errs, errors.New("strict mode needs a schema"))
	}
	errs = append(errs, checkNames(s, names)...)
	for _, n := range slices.Concat(names, c.required, s.Key, s.Ignore, s.Secret, []string{s.Resource}) {
		if s.Repeat && isRepeat(n) {
			errs = append(errs, fmt.Errorf(ownRepeat, n))
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("raw schema: %w", joinErrors(errs))
	}
	var keys []keyPath
	for _, k := range s.Key {
		keys = append(keys, keyPath{k})
		if !slices.Contains(c.required, k) {
			c.required = append(c.required, k)
		}
	}
	c.keys = keyFields(keys)
	if s.Resource != "" {
		c.resource = quoteAll([]string{s.Resource})
	}
	return c, nil
}

func rawSchema(b []byte) (*object, *validator, error) {
	tree, err := parseTree(b)
	if err != nil {
		return nil, nil, err
	}
	root, ok := tree.(*object)
	if !ok {
		return nil, nil, errNotObject
	}
	if types := root.strings("type"); len(types) > 0 && !slices.Contains(types, "object") {
		return nil, nil, errors.New("arguments are an object: the type at the root must be \"object\"")
	}
	if err := plainNumbers(root); err != nil {
		return nil, nil, err
	}
	v, err := compile(appendTree(nil, root))
	return root, v, err
}

// plainNumbers rewrites the numbers of a schema: the validator's arithmetic
// is exact, and 1e-999999999 would keep it busy for hours.
func plainNumbers(v any) (err error) {
	plain := func(v any) any {
		n, ok := v.(number)
		if !ok {
			err = errors.Join(err, plainNumbers(v))
			return v
		}
		b, why := appendExact(nil, []byte(n))
		if why != "" {
			err = errors.Join(err, errors.New("a number "+why))
		}
		return number(b)
	}
	switch v := v.(type) {
	case *object:
		for i, m := range v.members {
			v.members[i].value = plain(m.value)
		}
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
	}
	return err
}

// checkNames finds names that cannot occur and contradictions among them.
func checkNames(s RawSpec, names []string) []error {
	var errs []error
	for _, l := range []struct {
		what  string
		names []string
	}{{"Key", s.Key}, {"Ignore", s.Ignore}, {"Secret", s.Secret}, {"Resource", []string{s.Resource}}} {
		for i, n := range l.names {
			switch {
			case n == "" && l.what == "Resource":
			case n == "":
				errs = append(errs, fmt.Errorf("%s: an empty name", l.what))
			case slices.Contains(l.names[:i], n):
				errs = append(errs, fmt.Errorf("%s: %q is there twice", l.what, n))
			case len(names) > 0 && !slices.Contains(names, n):
				errs = append(errs, fmt.Errorf("%s: the schema has no property %q", l.what, n))
			}
		}
	}
	for _, n := range append(slices.Clone(s.Key), s.Resource) {
		if n != "" && slices.Contains(s.Ignore, n) {
			errs = append(errs, fmt.Errorf("%q is in Ignore and in Key or Resource: take it out of one", n))
		}
	}
	return errs
}
