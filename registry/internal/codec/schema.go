package codec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// schemas are the two forms of a tool's schema: what the model is told, and
// what the arguments are checked against here.
type schemas struct {
	wire, local *object
	strict      bool
}

// makeSchemas reflects the schema of p and fits it for strict mode. problems
// say why it is not strict.
func makeSchemas(p *plan, plans map[reflect.Type]*plan) (s schemas, problems []error, err error) {
	doc, defs, err := reflectSchema(p, plans)
	if err != nil {
		return s, nil, err
	}
	tree, err := parseTree(doc)
	if err != nil {
		return s, nil, fmt.Errorf("reading the schema of %s: %w", p.typ, err)
	}
	root, ok := tree.(*object)
	if !ok {
		return s, nil, fmt.Errorf("%s: its JSONSchema method must describe an object", p.path)
	}
	if root, err = inlineRoot(root, p); err != nil {
		return s, nil, err
	}
	a := &annotator{}
	a.object(root, p)
	if d := root.object("$defs"); d != nil {
		for _, m := range d.members {
			if def, ok := m.value.(*object); ok {
				a.object(def, plans[defs[m.name]])
			}
		}
	}
	if len(a.problems) > 0 {
		return s, nil, joinErrors(a.problems)
	}
	s.local = cloneTree(root).(*object)
	relaxOpaque(s.local)
	s.wire = fit(cloneTree(root).(*object))
	pruneDefs(s.wire)
	if problems = checkStrict(s.wire); len(problems) == 0 {
		s.strict = true
		return s, nil, nil
	}
	s.wire = s.local
	return s, problems, nil
}

// inlineRoot puts the definition of the root in the place of its reference.
// The definition stays for the types that refer to it, recursive ones.
func inlineRoot(root *object, p *plan) (*object, error) {
	root.take("$schema")
	root.take("$id")
	defs, _ := root.take("$defs").(*object)
	if name, ok := strings.CutPrefix(root.text("$ref"), "#/$defs/"); ok && defs != nil && defs.object(name) != nil {
		root = cloneTree(defs.object(name)).(*object)
	}
	if root.text("type") != "object" {
		return nil, fmt.Errorf("%s: the root of a tool's schema must be of type object: mend its JSONSchema method", p.path)
	}
	if defs != nil {
		root.set("$defs", defs)
	}
	pruneDefs(root)
	return root, nil
}

// pruneDefs drops the definitions that nothing refers to.
func pruneDefs(root *object) {
	defs, _ := root.take("$defs").(*object)
	if defs == nil {
		return
	}
	used := map[string]bool{}
	var mark func(v any)
	mark = func(v any) {
		switch v := v.(type) {
		case *object:
			name, _ := strings.CutPrefix(v.text("$ref"), "#/$defs/")
			if def := defs.get(name); def != nil && !used[name] {
				used[name] = true
				mark(def)
			}
			for _, m := range v.members {
				mark(m.value)
			}
		case []any:
			for _, e := range v {
				mark(e)
			}
		}
	}
	mark(root)
	kept := &object{}
	for _, m := range defs.members {
		if used[m.name] {
			kept.members = append(kept.members, m)
		}
	}
	if len(kept.members) > 0 {
		root.set("$defs", kept)
	}
}

// annotator brings together the schema and the plan of a type: which fields
// are optional, and which Go field a part of the schema comes from.
type annotator struct{ problems []error }

func (a *annotator) object(o *object, p *plan) {
	if p == nil {
		o.opaque = true
		return
	}
	if o.src == "" {
		o.src = fmt.Sprintf("%s (%s)", p.path, p.typ)
	}
	if o.has("$ref") {
		return // the definition is annotated by itself
	}
	if p.kind >= kAny || p.own && p.kind == kStruct && !o.has("properties") {
		o.opaque = true
		return
	}
	a.types(o, p)
	switch p.kind {
	case kStruct:
		a.structure(o, p)
	case kList:
		if items := o.object("items"); items != nil {
			a.object(items, p.elem)
		}
	case kMap:
		if values := o.object("additionalProperties"); values != nil {
			a.object(values, p.elem)
		}
	default:
	}
	if p.typ == durationType && !p.own {
		addNote(o, "A duration in nanoseconds.")
	}
}

// planTypes are the JSON types that the decoder takes for each shape.
var planTypes = map[shape]string{
	kBool: "boolean", kInt: "integer", kUint: "integer", kFloat: "number", kString: "string", kBytes: "string",
	kTime: "string", kText: "string", kStruct: "object", kList: "array", kMap: "object",
}

// types finds schemas that promise another type than the decoder takes.
func (a *annotator) types(o *object, p *plan) {
	want := planTypes[p.kind]
	if want == "" || !o.has("type") {
		return
	}
	got := o.strings("type")
	switch {
	case len(got) == 1 && got[0] == want:
		o.planned = true
	case len(got) == 1 && got[0] == "integer" && p.kind == kFloat:
	default:
		a.problems = append(a.problems, fmt.Errorf("%s: its schema says type %s, the decoder takes %s: mend the JSONSchema method", o.src, strings.Join(got, " or "), want))
	}
}

func (a *annotator) structure(o *object, p *plan) {
	properties := o.object("properties")
	if properties == nil {
		properties = &object{}
		o.set("properties", properties)
	}
	required := o.strings("required")
	for _, m := range properties.members {
		f := p.byName[m.name]
		if f == nil {
			a.problems = append(a.problems, fmt.Errorf("%s: the schema has a property %q that %s has no field for: mend its JSONSchema method", p.path, m.name, p.typ))
			continue
		}
		if p.own && !slices.Contains(required, m.name) && !f.optional {
			a.problems = append(a.problems, fmt.Errorf("%s: optional in the schema but not in Go: use a pointer or omitempty", f.path))
		}
		prop, ok := m.value.(*object)
		if !ok {
			prop = &object{} // the schema true: any value
			properties.set(m.name, prop)
		}
		prop.src = fmt.Sprintf("%s (%s)", f.path, f.plan.typ)
		if f.quoted {
			prop.planned = true
			addNote(prop, "A whole number in a string.")
			continue
		}
		a.object(prop, f.plan)
	}
	must := []any{}
	for _, f := range p.fields {
		if !properties.has(f.name) {
			a.problems = append(a.problems, fmt.Errorf("%s: the schema has no property %q: add it, or tag the field json:\"-\"", f.path, f.name))
		}
		if !f.optional {
			must = append(must, f.name)
		}
	}
	o.set("required", must)
	if !o.has("additionalProperties") {
		o.set("additionalProperties", false)
	}
}

// relaxOpaque lets null stand for absent where a type describes itself: on
// the wire its optional properties are nullable, and only its own decoder
// knows them.
func relaxOpaque(o *object) {
	eachSchema(o, func(c *object) {
		if !c.opaque {
			return
		}
		properties := c.object("properties")
		if properties == nil {
			return
		}
		required := c.strings("required")
		for i, m := range properties.members {
			if p, ok := m.value.(*object); ok && !slices.Contains(required, m.name) {
				properties.members[i].value = nullable(p)
			}
		}
	})
}

// slim leaves in a local schema what the plan does not enforce already.
func slim(root *object) *object {
	eachSchema(root, func(o *object) {
		if o.opaque {
			return
		}
		if o.planned {
			o.take("type")
			o.take("required")
			if o.has("properties") {
				o.take("additionalProperties")
			}
		}
		for _, k := range []string{"title", "description", "default", "examples", "contentEncoding"} {
			o.take(k)
		}
		if properties := o.object("properties"); properties != nil {
			properties.members = slices.DeleteFunc(properties.members, func(m member) bool {
				c, ok := m.value.(*object)
				return ok && len(c.members) == 0
			})
		}
		if len(o.members) == 1 && (empty(o.object("items")) || empty(o.object("properties"))) {
			o.members = nil
		}
	})
	return root
}

func empty(o *object) bool { return o != nil && len(o.members) == 0 }

// eachSchema calls visit for o and every schema below it, children first.
func eachSchema(o *object, visit func(*object)) {
	for _, m := range o.members {
		switch v := m.value.(type) {
		case *object:
			switch m.name {
			case "properties", "$defs", "definitions", "patternProperties", "dependentSchemas":
				for _, p := range v.members {
					if c, ok := p.value.(*object); ok {
						c.opaque = c.opaque || o.opaque
						eachSchema(c, visit)
					}
				}
			case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames":
				v.opaque = v.opaque || o.opaque
				eachSchema(v, visit)
			}
		case []any:
			switch m.name {
			case "anyOf", "oneOf", "allOf", "prefixItems":
				for _, e := range v {
					if c, ok := e.(*object); ok {
						c.opaque = c.opaque || o.opaque
						eachSchema(c, visit)
					}
				}
			}
		}
	}
	visit(o)
}

// addNote appends a sentence to a schema's description.
func addNote(o *object, note string) {
	d := o.text("description")
	if d != "" && !strings.HasSuffix(d, ".") {
		d += "."
	}
	o.set("description", strings.TrimSpace(d+" "+note))
}
