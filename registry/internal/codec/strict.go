package codec

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The limits of strict mode.
const (
	maxProperties  = 5000
	maxLevels      = 10
	maxEnum        = 1000
	maxText        = 120_000 // characters of names, enum and const values
	longEnum       = 250     // values from which an enum's own text is limited
	maxLongEnumLen = 15_000
)

// strictKeywords are the keywords that strict mode takes.
var strictKeywords = []string{
	"type", "properties", "required", "additionalProperties", "items", "$ref", "$defs", "anyOf", "enum", "const",
	"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	"minItems", "maxItems", "title", "description",
}

var lookaround = regexp.MustCompile(`\(\?(=|!|<=|<!)`)

// checker finds what strict mode would refuse in a schema.
type checker struct {
	problems                []error
	defs                    *object
	properties, enums, text int
	levels                  map[string]int // of definitions; 0 while being measured
}

// checkStrict returns one problem for each place that breaks strict mode.
func checkStrict(root *object) []error {
	c := &checker{defs: root.object("$defs"), levels: map[string]int{}}
	if root.text("type") != "object" || root.has("anyOf") || root.has("$ref") {
		c.add(root, "", "the root must be an object, without anyOf and $ref")
	}
	c.schema(root, "")
	if c.defs != nil {
		for _, m := range c.defs.members {
			c.text += len(m.name)
			if o, ok := m.value.(*object); ok {
				c.schema(o, "/$defs/"+m.name)
			}
		}
	}
	for _, l := range []struct {
		what     string
		got, max int
	}{
		{"properties", c.properties, maxProperties},
		{"enum values", c.enums, maxEnum},
		{"characters of names and enum values", c.text, maxText},
		{"levels of nesting", c.depth(root), maxLevels},
	} {
		if l.got > l.max {
			c.add(root, "", "%d %s, strict mode takes %d: make the input smaller or flatter", l.got, l.what, l.max)
		}
	}
	return c.problems
}

func (c *checker) add(o *object, at, format string, args ...any) {
	where := "schema" + at
	if o != nil && o.src != "" {
		where = o.src
	}
	c.problems = append(c.problems, fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...)))
}

func (c *checker) schema(o *object, at string) {
	if ref := o.text("$ref"); ref != "" {
		name, local := strings.CutPrefix(ref, "#/$defs/")
		if ref != "#" && (!local || c.defs == nil || c.defs.object(name) == nil) {
			c.add(o, at, "the reference %s leads nowhere: a JSONSchema method that reflects needs DoNotReference", showName(ref))
		}
		if len(o.members) > 1 {
			c.add(o, at, "nothing may stand beside $ref")
		}
		return
	}
	for _, m := range o.members {
		if !slices.Contains(strictKeywords, m.name) {
			c.add(o, at, "strict mode does not take the keyword %q", m.name)
		}
	}
	types := o.strings("type")
	if len(types) == 0 && !o.has("anyOf") && !o.has("enum") && !o.has("const") {
		c.add(o, at, "takes any value, which strict mode cannot express: give it a concrete type, or make the tool loose")
	}
	if slices.Contains(types, "object") || o.has("properties") {
		c.object(o, at)
	}
	if slices.Contains(types, "array") {
		if items, ok := o.get("items").(*object); ok {
			c.child(o, items, at+"/items")
		} else {
			c.add(o, at, "a list needs a schema of its items")
		}
	}
	for i, e := range o.list("anyOf") {
		if s, ok := e.(*object); ok {
			c.child(o, s, fmt.Sprintf("%s/anyOf/%d", at, i))
		} else {
			c.add(o, at, "a branch of anyOf takes any value")
		}
	}
	if f := o.text("format"); f != "" && !slices.Contains(strictFormats, f) {
		c.add(o, at, "strict mode does not take the format %q", f)
	}
	if lookaround.MatchString(o.text("pattern")) {
		c.add(o, at, "strict mode takes no lookaround in a pattern")
	}
	c.values(o, at)
}

// child checks a schema below o; what has no Go field of its own is shown
// under that of o.
func (c *checker) child(o, s *object, at string) {
	if s.src == "" {
		s.src = o.src
	}
	c.schema(s, at)
}

func (c *checker) object(o *object, at string) {
	properties := o.object("properties")
	if properties == nil || o.get("additionalProperties") != false {
		c.add(o, at, "an object with free names (a map), which strict mode cannot express: use a list of structs with a name and a value, or make the tool loose")
		return
	}
	required := o.strings("required")
	for _, m := range properties.members {
		c.properties++
		c.text += len(m.name)
		if !slices.Contains(required, m.name) {
			c.add(o, at, "property %q is not required: list it in required and let its type take null", m.name)
		}
		if p, ok := m.value.(*object); ok {
			c.child(o, p, child(at+"/properties", m.name))
		} else {
			c.add(o, at, "property %q takes any value", m.name)
		}
	}
}

func (c *checker) values(o *object, at string) {
	size := 0
	list := o.list("enum")
	for _, v := range append(slices.Clip(list), o.get("const")) {
		if s, ok := v.(string); ok {
			size += len(s)
		}
	}
	c.enums += len(list)
	c.text += size
	if len(list) > longEnum && size > maxLongEnumLen {
		c.add(o, at, "an enum of more than %d values may hold %d characters, this one has %d", longEnum, maxLongEnumLen, size)
	}
}

// depth counts the levels of objects; a recursive reference counts once.
func (c *checker) depth(o *object) int {
	if name, ok := strings.CutPrefix(o.text("$ref"), "#/$defs/"); ok && c.defs != nil && c.defs.object(name) != nil {
		if _, known := c.levels[name]; !known {
			c.levels[name] = 0
			c.levels[name] = c.depth(c.defs.object(name))
		}
		return c.levels[name]
	}
	deepest := 0
	if items := o.object("items"); items != nil {
		deepest = c.depth(items)
	}
	for _, e := range o.list("anyOf") {
		if s, ok := e.(*object); ok {
			deepest = max(deepest, c.depth(s))
		}
	}
	if properties := o.object("properties"); properties != nil {
		for _, m := range properties.members {
			if s, ok := m.value.(*object); ok {
				deepest = max(deepest, c.depth(s))
			}
		}
		deepest++
	}
	return deepest
}

// joinErrors joins errors, each text once, in order.
func joinErrors(errs []error) error {
	seen := map[string]bool{}
	var out []error
	for _, err := range errs {
		if !seen[err.Error()] {
			seen[err.Error()] = true
			out = append(out, err)
		}
	}
	return errors.Join(out...)
}
