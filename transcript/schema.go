package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of a strict schema.
const (
	maxProperties  = 5000
	maxDepth       = 10 // objects inside objects, the root included
	maxEnumValues  = 1000
	maxSchemaChars = 120_000 // of all names, enum and const values together
	maxEnumChars   = 15_000  // of one string enum with more than bigEnum values
	bigEnum        = 250
)

// strictKeywords are those that strict mode takes; what is not here is refused.
var strictKeywords = []string{
	"$schema", "$id", "$defs", "definitions", "$ref", "title", "description",
	"type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf",
	"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	"minItems", "maxItems",
}

var (
	strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
	schemaTypes   = []string{"string", "number", "boolean", "integer", "object", "array", "null"}
	rootUnions    = []string{"oneOf", "anyOf", "allOf", "enum", "not"}
)

// schemaProblem says what is wrong with the parameters of a function, "" if
// nothing is. Without strict only the rules hold that hold for any function.
func schemaProblem(raw json.RawMessage, strict bool) string {
	var root any
	if err := json.Unmarshal(raw, &root); err != nil {
		return err.Error()
	}
	m, ok := root.(map[string]any)
	if !ok || m["type"] != "object" {
		return fmt.Sprintf(`schema must be a JSON Schema of 'type: "object"', got 'type: "%v"'.`, typeOf(m))
	}
	for _, union := range rootUnions {
		if _, ok := m[union]; ok {
			return "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
		}
	}
	w := &schemaWalk{root: m, strict: strict}
	if problem := w.walk(nil, m, 1); problem != "" || !strict {
		return problem
	}
	return w.overLimit()
}

func typeOf(m map[string]any) any {
	if t, ok := m["type"]; ok {
		return t
	}
	return "None"
}

// schemaWalk goes through a schema once; references are resolved, not followed.
type schemaWalk struct {
	root   map[string]any
	strict bool

	properties, depth, enums, chars int
	bigEnum                         int // characters of the largest big enum
}

// in words a problem as the API does, with the path as a tuple of Python.
func in(path []string, format string, args ...any) string {
	quoted := make([]string, len(path))
	for i, p := range path {
		quoted[i] = "'" + p + "'"
	}
	tuple := strings.Join(quoted, ", ")
	if len(path) == 1 {
		tuple += ","
	}
	return fmt.Sprintf("In context=(%s), ", tuple) + fmt.Sprintf(format, args...)
}

func at(path []string, more ...string) []string { return slices.Concat(path, more) }

// walk checks one schema and those inside it.
func (w *schemaWalk) walk(path []string, schema any, depth int) string {
	m, ok := schema.(map[string]any)
	if !ok {
		if _, isBool := schema.(bool); !isBool {
			return in(path, "schema must be an object or a boolean.")
		}
		if w.strict {
			return in(path, "schema must have a 'type' key.")
		}
		return ""
	}
	if w.strict {
		if problem := w.strictNode(path, m); problem != "" {
			return problem
		}
	}
	if _, isRef := m["$ref"]; isRef {
		return w.definitions(path, m)
	}
	if hasType(m, "array") {
		if _, ok := m["items"]; !ok {
			return in(path, "array schema missing items.")
		}
	}
	if hasType(m, "object") {
		w.depth = max(w.depth, depth)
		if problem := w.object(path, m, depth); problem != "" {
			return problem
		}
	}
	if items, ok := m["items"]; ok {
		if problem := w.walk(at(path, "items"), items, depth); problem != "" {
			return problem
		}
	}
	branches, _ := m["anyOf"].([]any)
	for i, branch := range branches {
		if problem := w.walk(at(path, "anyOf", fmt.Sprint(i)), branch, depth); problem != "" {
			return problem
		}
	}
	return w.definitions(path, m)
}

// strictNode checks what strict mode wants of any schema by itself.
func (w *schemaWalk) strictNode(path []string, m map[string]any) string {
	for _, keyword := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(strictKeywords, keyword) {
			return in(path, "'%s' is not permitted.", keyword)
		}
	}
	if ref, ok := m["$ref"]; ok {
		return w.reference(path, m, fmt.Sprint(ref))
	}
	_, isUnion := m["anyOf"]
	if _, ok := m["type"]; !ok && !isUnion {
		return in(path, "schema must have a 'type' key.")
	}
	for _, t := range types(m) {
		if !slices.Contains(schemaTypes, t) {
			return in(path, "'%s' is not valid under any of the given schemas.", t)
		}
	}
	if format, ok := m["format"].(string); ok && !slices.Contains(strictFormats, format) {
		return in(path, "'%s' is not a valid format.", format)
	}
	if pattern, _ := m["pattern"].(string); strings.Contains(pattern, "(?=") || strings.Contains(pattern, "(?!") || strings.Contains(pattern, "(?<") {
		return in(path, "lookaround is not supported in 'pattern'.")
	}
	w.count(m)
	return ""
}

func (w *schemaWalk) reference(path []string, m map[string]any, ref string) string {
	for _, keyword := range slices.Sorted(maps.Keys(m)) {
		if keyword != "$ref" && keyword != "$defs" && keyword != "definitions" {
			return in(path, "$ref cannot have keywords {'%s'}.", keyword)
		}
	}
	if !w.resolves(ref) {
		return in(path, "reference to component '%s' which was not found in the schema.", ref)
	}
	return ""
}

// resolves follows a JSON pointer from the root.
func (w *schemaWalk) resolves(ref string) bool {
	rest, local := strings.CutPrefix(ref, "#")
	if !local {
		return false
	}
	var here any = w.root
	for name := range strings.SplitSeq(strings.TrimPrefix(rest, "/"), "/") {
		if rest == "" {
			break
		}
		m, ok := here.(map[string]any)
		if !ok {
			return false
		}
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		if here, ok = m[name]; !ok {
			return false
		}
	}
	_, ok := here.(map[string]any)
	return ok
}

// object checks an object's properties and, in strict mode, that it is closed
// and complete.
func (w *schemaWalk) object(path []string, m map[string]any, depth int) string {
	props, ok := m["properties"].(map[string]any)
	if !ok && w.strict {
		return in(path, "object schema missing properties.")
	}
	if w.strict {
		if closed, ok := m["additionalProperties"].(bool); !ok || closed {
			return in(path, "'additionalProperties' is required to be supplied and to be false.")
		}
		if problem := complete(path, m, props); problem != "" {
			return problem
		}
	}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		w.properties++
		w.chars += len(name)
		if problem := w.walk(at(path, "properties", name), props[name], depth+1); problem != "" {
			return problem
		}
	}
	return ""
}

func complete(path []string, m, props map[string]any) string {
	const rule = "'required' is required to be supplied and to be an array including every key in properties. "
	list, _ := m["required"].([]any)
	required := make([]string, len(list))
	for i, name := range list {
		required[i] = fmt.Sprint(name)
	}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !slices.Contains(required, name) {
			return in(path, rule+"Missing '%s'.", name)
		}
	}
	for _, name := range required {
		if _, ok := props[name]; !ok {
			return in(path, rule+"Extra required key '%s' supplied.", name)
		}
	}
	return ""
}

// definitions checks the schemas that are only referred to.
func (w *schemaWalk) definitions(path []string, m map[string]any) string {
	for _, key := range []string{"$defs", "definitions"} {
		defs, _ := m[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(defs)) {
			w.chars += len(name)
			if problem := w.walk(at(path, key, name), defs[name], 1); problem != "" {
				return problem
			}
		}
	}
	return ""
}

// count adds up the enum and const values.
func (w *schemaWalk) count(m map[string]any) {
	if s, ok := m["const"].(string); ok {
		w.chars += len(s)
	}
	values, _ := m["enum"].([]any)
	w.enums += len(values)
	chars := 0
	for _, v := range values {
		if s, ok := v.(string); ok {
			chars += len(s)
		}
	}
	w.chars += chars
	if len(values) > bigEnum {
		w.bigEnum = max(w.bigEnum, chars)
	}
}

func (w *schemaWalk) overLimit() string {
	for _, l := range []struct {
		what       string
		got, limit int
	}{
		{"object properties in total", w.properties, maxProperties},
		{"levels of nesting", w.depth, maxDepth},
		{"enum values in total", w.enums, maxEnumValues},
		{"characters in names, enum and const values", w.chars, maxSchemaChars},
		{fmt.Sprintf("characters in an enum with over %d values", bigEnum), w.bigEnum, maxEnumChars},
	} {
		if l.got > l.limit {
			return fmt.Sprintf("Expected at most %d %s, but got %d.", l.limit, l.what, l.got)
		}
	}
	return ""
}

// types lists what "type" allows.
func types(m map[string]any) []string {
	switch t := m["type"].(type) {
	case string:
		return []string{t}
	case []any:
		out := make([]string, len(t))
		for i, v := range t {
			out[i] = fmt.Sprint(v)
		}
		return out
	}
	return nil
}

func hasType(m map[string]any, t string) bool { return slices.Contains(types(m), t) }
