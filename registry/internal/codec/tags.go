package codec

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// onceTag is the parsed once tag of a field.
type onceTag struct{ set, key, ignored, resource, secret bool }

const onceWords = `once takes "key", "resource", "secret", some of these with commas between them, or "-"`

func parseOnce(tag reflect.StructTag) (o onceTag, err error) {
	text, ok := tag.Lookup("once")
	if !ok {
		return o, nil
	}
	o.set = true
	words := strings.Split(text, ",")
	for i, w := range words {
		if slices.Contains(words[:i], w) {
			return o, fmt.Errorf("once:%q says %q twice", text, w)
		}
		switch w {
		case "key":
			o.key = true
		case "resource":
			o.resource = true
		case "secret":
			o.secret = true
		case "-":
			o.ignored = true
		default:
			return o, fmt.Errorf("unknown once:%q: %s", text, onceWords)
		}
	}
	if o.ignored && len(words) > 1 {
		return o, fmt.Errorf("once:%q: a field left out of the identity cannot be part of it: %s", text, onceWords)
	}
	return o, nil
}

var tagPair = regexp.MustCompile(`^ *([A-Za-z0-9_.-]+):("(?:[^"\\]|\\.)*")`)

// misspelt finds a key that is one letter away from one of ours. json is none of them: bson is a key too.
var misspelt = []string{"once", "jsonschema", "jsonschema_description", "jsonschema_extras"}

// lintTags finds what reflect ignores silently: a malformed struct tag hides
// every key after the mistake, keys are case-sensitive, and of two alike the
// first counts.
func lintTags(tag reflect.StructTag) error {
	rest := string(tag)
	seen := map[string]bool{}
	for strings.TrimLeft(rest, " ") != "" {
		m := tagPair.FindStringSubmatch(rest)
		if m == nil {
			return fmt.Errorf("malformed struct tag at %q: write key:\"value\" pairs separated by blanks", rest)
		}
		for _, known := range []string{"json", "once", "jsonschema", "jsonschema_description", "jsonschema_extras"} {
			if m[1] != known && strings.EqualFold(m[1], known) {
				return fmt.Errorf("struct tag key %q: write %q", m[1], known)
			}
		}
		for _, known := range misspelt {
			if oneOff(m[1], known) {
				return fmt.Errorf("struct tag key %q: write %q", m[1], known)
			}
		}
		if seen[m[1]] {
			return fmt.Errorf("struct tag key %q stands twice, and the second counts for nothing: write one", m[1])
		}
		seen[m[1]] = true
		rest = rest[len(m[0]):]
	}
	return nil
}

// oneOff reports whether one letter added, dropped or changed makes a into b.
func oneOff(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		return i < len(a) && a[i+1:] == b[i+1:]
	case 1:
		return a[i:] == b[i+1:]
	default:
		return false
	}
}

// tagKeys are the keys of a jsonschema tag by the JSON type of the field.
var tagKeys = map[string][]string{
	"":        {"title", "description"},
	"any":     {"title", "description", "oneof_type", "anyof_type"},
	"string":  {"title", "description", "minLength", "maxLength", "pattern", "format", "readOnly", "writeOnly", "default", "example", "enum"},
	"integer": {"title", "description", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "default", "example", "enum"},
	"boolean": {"title", "description", "default"},
	"array":   {"title", "description", "minItems", "maxItems", "uniqueItems", "default"},
}

// tagType is the JSON type whose keys the reflector applies to a field of
// type p: none where it emits a reference to a definition.
func tagType(p *plan, quoted bool) string {
	if p.own {
		return ""
	}
	switch p.kind {
	case kBool:
		return "boolean"
	case kInt, kUint, kFloat:
		if quoted {
			return "string"
		}
		return "integer"
	case kString, kTime, kText:
		return "string"
	case kBytes:
		if p.typ.Name() == "" {
			return "string"
		}
	case kList:
		if p.typ.Name() == "" {
			return "array"
		}
	case kAny:
		return "any"
	default:
	}
	return ""
}

const dropped = "would be dropped silently: put the text into jsonschema_description, escape the comma as \\\\, and repeat enum= for each value"

// lintSchemaTag finds what the reflector drops or misreads in a jsonschema tag.
func lintSchemaTag(sf reflect.StructField, f *field, p *plan) error {
	text, ok := sf.Tag.Lookup("jsonschema")
	if !ok {
		return nil
	}
	if text == "-" || strings.HasPrefix(text, "-,") {
		return errors.New(`jsonschema:"-" hides the field from the model but not from the decoder: use json:"-"`)
	}
	var errs []error
	typ := tagType(p, f.quoted)
	for i, part := range splitTag(text) {
		key, value, found := strings.Cut(part, "=")
		switch {
		case part == "" && i == 0:
		case !found && part == "required":
			if f.optional {
				errs = append(errs, errors.New(`jsonschema:"required" on an optional field: drop the pointer, omitempty or omitzero, or "required"`))
			}
		case !found && part == "nullable":
			errs = append(errs, errors.New(`jsonschema:"nullable" is not supported: use a pointer or omitempty`))
		case !found:
			errs = append(errs, fmt.Errorf("jsonschema tag: %q %s", part, dropped))
		default:
			if err := lintPair(typ, key, value, p); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// lintPair checks one key=value of a jsonschema tag on a field of that type.
func lintPair(typ, key, value string, p *plan) error {
	if !slices.Contains(tagKeys[typ], key) {
		if typ == "array" && p.elem != nil {
			// The rest goes to the items; title and the like would not.
			item := tagType(p.elem, false)
			if item != "array" && slices.Contains(tagKeys[item], key) {
				if strings.Contains(value, "=") {
					return fmt.Errorf("jsonschema tag: %s on a list ignores a value with '=': give the element type a JSONSchema method", key)
				}
				return lintValue(item, key, value, p.elem)
			}
		}
		what := typ
		if what == "" {
			what = p.typ.String()
		}
		return fmt.Errorf("jsonschema tag: key %q has no effect on a field of type %s: allowed are %s (a text with a comma belongs in jsonschema_description)", key, what, strings.Join(tagKeys[typ], ", "))
	}
	if typ == "array" && key != "description" && key != "title" && strings.Contains(value, "=") {
		return fmt.Errorf("jsonschema tag: %s on a list ignores a value with '=': give the type a JSONSchema method", key)
	}
	return lintValue(typ, key, value, p)
}

// localFormats are the formats that are asserted locally.
var localFormats = []string{
	"date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri", "uri-reference",
	"iri", "iri-reference", "uri-template", "json-pointer", "relative-json-pointer", "regex", "period", "semver",
}

func lintValue(typ, key, value string, p *plan) error {
	bad := func(want string) error {
		return fmt.Errorf("jsonschema tag: %s=%s: %s", key, value, want)
	}
	switch key {
	case "minLength", "maxLength", "minItems", "maxItems":
		if _, err := strconv.ParseUint(value, 10, 31); err != nil {
			return bad("give a whole number from 0")
		}
	case "uniqueItems":
		if value != "true" {
			return bad("any value means true: write uniqueItems=true or nothing")
		}
	case "readOnly", "writeOnly":
		if _, err := strconv.ParseBool(value); err != nil {
			return bad("write true or false")
		}
	case "pattern":
		if _, err := regexp.Compile(value); err != nil {
			return bad("not a Go regular expression (escape a comma as \\\\,): " + err.Error())
		}
	case "format":
		if !slices.Contains(localFormats, value) {
			return bad("unknown format, it would not be checked: use one of " + strings.Join(localFormats, ", "))
		}
		if p.kind == kTime && value != "date-time" {
			return bad("time.Time reads date-time only: use a string")
		}
	case "multipleOf":
		if f, err := strconv.ParseFloat(value, 64); err != nil || f <= 0 {
			return bad("give a number above 0")
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "default", "enum", "example":
		return lintTyped(typ, value, p, bad)
	}
	return nil
}

func lintTyped(typ, value string, p *plan, bad func(string) error) error {
	switch typ {
	case "boolean":
		if value != "true" && value != "false" {
			return bad("write true or false")
		}
	case "integer":
		if !isNumber(value) {
			return bad("give a JSON number")
		}
		if _, why := appendInteger(nil, []byte(value), 64, true); p.kind != kFloat && why != "" {
			if _, why = appendInteger(nil, []byte(value), 64, false); why != "" {
				return bad("give a whole number")
			}
		}
	}
	return nil
}

var numberText = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && numberText.MatchString(s) && len(s) < maxNumber
}

// splitTag splits at commas that have no backslash before them, as the
// reflector does.
func splitTag(s string) []string {
	var parts []string
	for i, p := range strings.Split(s, ",") {
		if last := len(parts) - 1; i > 0 && strings.HasSuffix(parts[last], `\`) {
			parts[last] = strings.TrimSuffix(parts[last], `\`) + "," + p
			continue
		}
		parts = append(parts, p)
	}
	return parts
}
