package codec

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// validator checks arguments, or a member of them, against a schema. A nil validator takes all.
type validator struct {
	schema *jsonschema.Schema
	at     string // JSON pointer to what is checked
}

// noLoader refuses references to other documents: a schema must not make the
// process read files or the network.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("references to other documents are not followed: %s", url)
}

const schemaURL = "toolonce:///schema"

func compile(doc []byte) (*validator, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return nil, fmt.Errorf("schema is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, v); err != nil {
		return nil, err
	}
	s, err := c.Compile(schemaURL)
	if err != nil {
		return nil, err
	}
	return &validator{schema: s}, nil
}

// structural are the keywords that reading by plan enforces already.
var structural = []string{
	"type", "properties", "required", "additionalProperties", "items", "$ref", "$defs", "title", "description",
	"default", "examples", "contentEncoding", "readOnly", "writeOnly", "deprecated",
}

// constrained reports whether a local schema says more than the Go type.
func constrained(root *object) bool {
	found := false
	eachSchema(root, func(o *object) {
		if o.opaque && len(o.members) > 0 {
			found = true
		}
		for _, m := range o.members {
			if !slices.Contains(structural, m.name) {
				found = true
			}
		}
	})
	return found
}

// onlyMembers reports whether a slim schema says nothing but what each member by itself must be.
func onlyMembers(root *object) bool {
	for _, m := range root.members {
		if root.opaque || m.name != "properties" && m.name != "$defs" {
			return false
		}
	}
	return true
}

// find validates a value made of map[string]any, []any, string, json.Number, bool and nil. It appends what breaks the
// schema.
func (v *validator) find(found []*Error, value any) []*Error {
	if v == nil {
		return found
	}
	err := v.schema.Validate(value)
	if err == nil {
		return found
	}
	var ve *jsonschema.ValidationError
	if !errors.As(err, &ve) {
		return append(found, refuse(v.at, "value", "could not be checked against the schema"))
	}
	return leaves(ve, v.at, found)
}

// worst is the error that is told, nil for none.
func worst(found []*Error) *Error {
	if len(found) == 0 {
		return nil
	}
	// Objects are checked in map order: take the same error each time.
	slices.SortFunc(found, func(a, b *Error) int {
		return strings.Compare(a.Path+"\x00"+a.Rule, b.Path+"\x00"+b.Rule)
	})
	first := found[0]
	if n := len(found); n > 1 {
		first.Message += fmt.Sprintf(" (1 of %d problems)", n)
	}
	return first
}

// leaves collects the errors that say something: groups and references are
// looked through, a failed anyOf is told as one.
func leaves(e *jsonschema.ValidationError, at string, out []*Error) []*Error {
	switch e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		for _, c := range e.Causes {
			out = leaves(c, at, out)
		}
		return out
	}
	return append(out, explain(e, at))
}

// explain words one schema violation without the value that broke it.
func explain(e *jsonschema.ValidationError, at string) *Error {
	ptr := at
	for _, s := range e.InstanceLocation {
		ptr = child(ptr, s)
	}
	rule := "value"
	if k := e.ErrorKind.KeywordPath(); len(k) > 0 {
		rule = k[0]
	}
	say := func(format string, args ...any) *Error { return refuse(ptr, rule, format, args...) }
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return say("must be of type %s, is %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Required:
		ptr = child(ptr, k.Missing[0])
		return say("is missing: %s must be given", strings.Join(k.Missing, ", "))
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		rule, ptr = "unknown", child(ptr, k.Properties[0])
		return say("is not a field of this tool: leave it out")
	case *kind.Enum:
		return say("must be one of %s", list(k.Want))
	case *kind.Const:
		return say("must be %s", list([]any{k.Want}))
	case *kind.Format:
		return say("must be a valid %s%s", k.Want, formatHint(k.Want))
	case *kind.Pattern:
		return say("must match the pattern %s", k.Want)
	case *kind.MinLength:
		return say("must have at least %d characters, has %d", k.Want, k.Got)
	case *kind.MaxLength:
		return say("must have at most %d characters, has %d", k.Want, k.Got)
	case *kind.MinItems:
		return say("must have at least %d items, has %d", k.Want, k.Got)
	case *kind.MaxItems:
		return say("must have at most %d items, has %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return say("items %d and %d are equal: send each once", k.Duplicates[0], k.Duplicates[1])
	case *kind.Minimum:
		return say("must be at least %s", rat(k.Want))
	case *kind.Maximum:
		return say("must be at most %s", rat(k.Want))
	case *kind.ExclusiveMinimum:
		return say("must be more than %s", rat(k.Want))
	case *kind.ExclusiveMaximum:
		return say("must be less than %s", rat(k.Want))
	case *kind.MultipleOf:
		return say("must be a multiple of %s", rat(k.Want))
	case *kind.AnyOf, *kind.OneOf:
		return say("fits none, or too many, of the forms that the schema allows")
	}
	return say("breaks the schema's rule %q", rule)
}

func formatHint(format string) string {
	switch format {
	case "date-time":
		return ", as in 2006-01-02T15:04:05Z"
	case "date":
		return ", as in 2006-01-02"
	case "time":
		return ", as in 15:04:05Z"
	}
	return ""
}

func rat(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return fmt.Sprint(f)
}

// maxListed is how many allowed values an error names.
const maxListed = 20

func list(values []any) string {
	var out []string
	for i, v := range values {
		if i == maxListed {
			out = append(out, fmt.Sprintf("and %d more", len(values)-i))
			break
		}
		if s, ok := v.(string); ok {
			out = append(out, `"`+showName(s)+`"`)
			continue
		}
		out = append(out, showName(fmt.Sprint(v)))
	}
	return strings.Join(out, ", ")
}
