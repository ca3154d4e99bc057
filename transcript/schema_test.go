package transcript_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/transcript"
)

// strictProblem sends a schema as a strict (or not) function's parameters and
// returns what the refusal says of it, "" if it is accepted.
func strictProblem(t *testing.T, schema string, strict bool) string {
	t.Helper()
	s := transcript.NewServer(transcript.Steps(transcript.Step{Text: "ok"}), nil)
	body := fmt.Sprintf(`{"model":"m","input":"x","tools":[{"type":"function","name":"f","strict":%v,"parameters":%s}]}`, strict, schema)
	status, answer := post(t, s, "/v1/responses", body)
	if status == 200 {
		return ""
	}
	var e struct {
		Error struct{ Message, Param, Code string } `json:"error"`
	}
	if err := json.Unmarshal([]byte(answer), &e); err != nil {
		t.Fatalf("%s: %v", answer, err)
	}
	check(t, "param and code", []string{e.Error.Param, e.Error.Code}, []string{"tools[0].parameters", "invalid_function_parameters"})
	problem, ok := strings.CutPrefix(e.Error.Message, "Invalid schema for function 'f': ")
	if !ok {
		t.Errorf("message %q", e.Error.Message)
	}
	return problem
}

// one is a strict schema with one property x.
func one(x string) string {
	return `{"type":"object","properties":{"x":` + x + `},"required":["x"],"additionalProperties":false}`
}

func TestStrictSchemasOfTheSubsetPass(t *testing.T) {
	for name, schema := range map[string]string{
		"empty":        `{"type":"object","properties":{},"additionalProperties":false}`,
		"dialect":      `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{},"required":[],"additionalProperties":false}`,
		"string":       one(`{"type":"string","description":"d","pattern":"^a$","format":"date-time"}`),
		"number":       one(`{"type":"number","minimum":1,"maximum":2,"exclusiveMinimum":0,"exclusiveMaximum":3,"multipleOf":0.5}`),
		"nullable":     one(`{"type":["string","null"],"enum":["a",null]}`),
		"union":        one(`{"anyOf":[{"type":"integer"},{"type":"null"}]}`),
		"array":        one(`{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":3}`),
		"object":       one(one(`{"type":"boolean"}`)),
		"recursion":    one(`{"anyOf":[{"$ref":"#"},{"type":"null"}]}`),
		"definition":   `{"type":"object","properties":{"x":{"$ref":"#/$defs/a~1b"}},"required":["x"],"additionalProperties":false,"$defs":{"a/b":` + one(`{"$ref":"#/$defs/a~1b"}`) + `}}`,
		"ten levels":   nested(10),
		"250 in enum":  one(`{"type":"string","enum":["` + strings.Repeat(strings.Repeat("v", 70)+`","`, 249) + `v"]}`),
		"1000 in enum": one(`{"type":"string","enum":["` + strings.Repeat(`v","`, 999) + `v"]}`),
	} {
		if problem := strictProblem(t, schema, true); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// nested is a strict schema of that many objects inside each other.
func nested(levels int) string {
	s := `{"type":"object","properties":{},"additionalProperties":false}`
	for range levels - 1 {
		s = one(s)
	}
	return s
}

func manyProperties(n int) string {
	props, required := make([]string, n), make([]string, n)
	for i := range n {
		props[i] = fmt.Sprintf(`"p%d":{"type":"string"}`, i)
		required[i] = fmt.Sprintf(`"p%d"`, i)
	}
	return `{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":[` + strings.Join(required, ",") + `],"additionalProperties":false}`
}

func TestStrictSchemasOutsideTheSubsetAreRefused(t *testing.T) {
	const required = "'required' is required to be supplied and to be an array including every key in properties. "
	root := "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
	cases := map[string][2]string{
		"open object":         {`{"type":"object","properties":{}}`, "In context=(), 'additionalProperties' is required to be supplied and to be false."},
		"map":                 {one(`{"type":"object","properties":{},"additionalProperties":{"type":"string"}}`), "In context=('properties', 'x'), 'additionalProperties' is required to be supplied and to be false."},
		"optional property":   {`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`, "In context=(), " + required + "Missing 'b'."},
		"extra required":      {`{"type":"object","properties":{},"required":["a"],"additionalProperties":false}`, "In context=(), " + required + "Extra required key 'a' supplied."},
		"no properties":       {`{"type":"object","additionalProperties":false}`, "In context=(), object schema missing properties."},
		"array at the root":   {`{"type":"array","items":{"type":"string"}}`, `schema must be a JSON Schema of 'type: "object"', got 'type: "array"'.`},
		"ref at the root":     {`{"$ref":"#/$defs/A","$defs":{"A":` + one(`{"type":"string"}`) + `}}`, `schema must be a JSON Schema of 'type: "object"', got 'type: "None"'.`},
		"union at the root":   {`{"type":"object","anyOf":[],"properties":{},"additionalProperties":false}`, root},
		"untyped property":    {one(`{"description":"any"}`), "In context=('properties', 'x'), schema must have a 'type' key."},
		"property true":       {one(`true`), "In context=('properties', 'x'), schema must have a 'type' key."},
		"property a string":   {one(`"string"`), "In context=('properties', 'x'), schema must be an object or a boolean."},
		"unknown type":        {one(`{"type":"strng"}`), "In context=('properties', 'x'), 'strng' is not valid under any of the given schemas."},
		"array without items": {one(`{"type":"array"}`), "In context=('properties', 'x'), array schema missing items."},
		"array of untyped":    {one(`{"type":"array","items":{}}`), "In context=('properties', 'x', 'items'), schema must have a 'type' key."},
		"branch of a union":   {one(`{"anyOf":[{"type":"string"},{"type":"object","properties":{}}]}`), "In context=('properties', 'x', 'anyOf', '1'), 'additionalProperties' is required to be supplied and to be false."},
		"dangling ref":        {one(`{"$ref":"#/$defs/A"}`), "In context=('properties', 'x'), reference to component '#/$defs/A' which was not found in the schema."},
		"ref into a leaf":     {one(`{"$ref":"#/type/x"}`), "In context=('properties', 'x'), reference to component '#/type/x' which was not found in the schema."},
		"foreign ref":         {one(`{"$ref":"other.json"}`), "In context=('properties', 'x'), reference to component 'other.json' which was not found in the schema."},
		"ref with siblings":   {one(`{"$ref":"#","description":"d"}`), "In context=('properties', 'x'), $ref cannot have keywords {'description'}."},
		"unused definition":   {`{"type":"object","properties":{},"additionalProperties":false,"$defs":{"A":{"type":"object"}}}`, "In context=('$defs', 'A'), object schema missing properties."},
		"format":              {one(`{"type":"string","format":"uri"}`), "In context=('properties', 'x'), 'uri' is not a valid format."},
		"lookaround":          {one(`{"type":"string","pattern":"^(?!a)"}`), "In context=('properties', 'x'), lookaround is not supported in 'pattern'."},
		"eleven levels":       {nested(11), "Expected at most 10 levels of nesting, but got 11."},
		"5001 properties":     {manyProperties(5001), "Expected at most 5000 object properties in total, but got 5001."},
		"1001 in enums":       {one(`{"type":"string","enum":["` + strings.Repeat(`v","`, 1000) + `v"]}`), "Expected at most 1000 enum values in total, but got 1001."},
		"characters":          {one(`{"type":"string","const":"` + strings.Repeat("v", 120000) + `"}`), "Expected at most 120000 characters in names, enum and const values, but got 120001."},
		"characters in enum":  {one(`{"type":"string","enum":["` + strings.Repeat(strings.Repeat("v", 60)+`","`, 250) + `v"]}`), "Expected at most 15000 characters in an enum with over 250 values, but got 15001."},
	}
	for _, keyword := range []string{
		"oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "minLength", "maxLength",
		"patternProperties", "propertyNames", "minProperties", "maxProperties", "contains", "uniqueItems", "default", "contentEncoding",
	} {
		cases[keyword] = [2]string{one(`{"type":"string","` + keyword + `":1}`), "In context=('properties', 'x'), '" + keyword + "' is not permitted."}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { check(t, "problem", strictProblem(t, c[0], true), c[1]) })
	}
}

func TestSchemasThatAreNotStrictKeepTheirFreedom(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object"}`: "",
		`{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"string","minLength":1}},"a":true}}`: "",
		`{"type":"object","properties":{"a":{"type":"array"}}}`:                                                                  "In context=('properties', 'a'), array schema missing items.",
		`{"type":"string"}`: `schema must be a JSON Schema of 'type: "object"', got 'type: "string"'.`,
		`[]`:                `schema must be a JSON Schema of 'type: "object"', got 'type: "None"'.`,
	} {
		check(t, schema, strictProblem(t, schema, false), want)
	}
}
