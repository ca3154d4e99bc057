package codec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

func mustNew(t *testing.T, typ reflect.Type) *codec.Codec {
	t.Helper()
	c, err := codec.New(typ, codec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func compile(t *testing.T, schema []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:///s", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///s")
	if err != nil {
		t.Fatalf("%v in %s", err, schema)
	}
	return s
}

func instance(t *testing.T, text string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// strictFaults is a second opinion on strict mode, written against the
// vendor's rules and not against the code.
func strictFaults(schema []byte) (faults []string) {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		return []string{err.Error()}
	}
	allowed := strings.Fields("type properties required additionalProperties items $ref $defs anyOf enum const pattern format multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems title description")
	formats := strings.Fields("date-time time date duration email hostname ipv4 ipv6 uuid")
	if root["type"] != "object" || root["anyOf"] != nil || root["$ref"] != nil {
		faults = append(faults, "root is not a plain object")
	}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		add := func(f string, a ...any) { faults = append(faults, at+": "+fmt.Sprintf(f, a...)) }
		s, ok := v.(map[string]any)
		if !ok {
			add("not an object schema: %v", v)
			return
		}
		for k := range s {
			if !slices.Contains(allowed, k) {
				add("keyword %s", k)
			}
		}
		if ref, ok := s["$ref"].(string); ok {
			name, local := strings.CutPrefix(ref, "#/$defs/")
			defs, _ := root["$defs"].(map[string]any)
			if _, found := defs[name]; !found || !local {
				add("dangling %s", ref)
			}
			if len(s) > 1 {
				add("siblings of $ref")
			}
			return
		}
		if s["type"] == nil && s["anyOf"] == nil && s["enum"] == nil {
			add("any value")
		}
		if f, ok := s["format"].(string); ok && !slices.Contains(formats, f) {
			add("format %s", f)
		}
		kinds := fmt.Sprint(s["type"])
		if strings.Contains(kinds, "object") {
			props, ok := s["properties"].(map[string]any)
			if !ok || s["additionalProperties"] != false {
				add("open object")
			}
			required, _ := s["required"].([]any)
			if len(required) != len(props) || required == nil {
				add("%d of %d properties required", len(required), len(props))
			}
			for name, p := range props {
				if !slices.Contains(required, any(name)) {
					add("%s not required", name)
				}
				walk(at+"/"+name, p)
			}
		}
		if strings.Contains(kinds, "array") {
			walk(at+"/items", s["items"])
		}
		branches, _ := s["anyOf"].([]any)
		for i, b := range branches {
			walk(fmt.Sprintf("%s/anyOf/%d", at, i), b)
		}
	}
	walk("", root)
	defs, _ := root["$defs"].(map[string]any)
	for name, d := range defs {
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			faults = append(faults, "definition name "+name)
		}
		walk("/$defs/"+name, d)
	}
	return faults
}

func TestEveryStrictSchemaObeysStrictMode(t *testing.T) {
	for _, tc := range strictTypes {
		t.Run(tc.typ.String(), func(t *testing.T) {
			c := mustNew(t, tc.typ)
			if !c.Strict() {
				t.Error("not strict")
			}
			if faults := strictFaults(c.Schema()); faults != nil {
				t.Errorf("%q in %s", faults, c.Schema())
			}
			wire := compile(t, c.Schema())
			for _, good := range tc.good {
				if err := wire.Validate(instance(t, good)); err != nil {
					t.Errorf("the schema refuses %s: %v", good, err)
				}
				if _, err := c.Decode(good); err != nil {
					t.Errorf("Decode refuses %s: %v", good, err)
				}
			}
			for _, bad := range tc.bad {
				in, err := c.Decode(bad)
				var e *codec.Error
				if !errors.As(err, &e) || e.Rule == "" || e.Message == "" {
					t.Errorf("Decode(%s) = %v, %v", bad, in, err)
				}
			}
		})
	}
}

func TestStoredFormDecodesToTheSameValueAndForm(t *testing.T) {
	for _, tc := range strictTypes {
		c := mustNew(t, tc.typ)
		for _, good := range tc.good {
			in, err := c.Decode(good)
			if err != nil {
				t.Fatalf("%s %s: %v", tc.typ, good, err)
			}
			again, err := c.Decode(string(in.JSON))
			if err != nil {
				t.Errorf("%s: its own form %s is refused: %v", tc.typ, in.JSON, err)
				continue
			}
			if diff := cmp.Diff(string(in.JSON), string(again.JSON)); diff != "" {
				t.Errorf("%s: the form is no fixed point: %s", tc.typ, diff)
			}
			if in.Key != again.Key || in.Fingerprint != again.Fingerprint || in.Resource != again.Resource {
				t.Errorf("%s: hashes of %s drift", tc.typ, good)
			}
			loaded, err := c.Load(in.JSON)
			if err != nil || !reflect.DeepEqual(loaded, in.Value) || !reflect.DeepEqual(again.Value, in.Value) {
				t.Errorf("%s: loaded %#v, again %#v, want %#v, %v", tc.typ, loaded, again.Value, in.Value, err)
			}
			if reflect.TypeOf(in.Value) != tc.typ {
				t.Errorf("value is a %T", in.Value)
			}
		}
	}
}

func TestSchemasOnTheWire(t *testing.T) {
	for _, tc := range []struct {
		name string
		typ  reflect.Type
		want string
	}{
		{"root is inline, constraints that strict mode refuses are told in words", reflect.TypeFor[addr](),
			`{"type":"object","properties":{"street":{"description":"Length at least 1. Length at most 40.","type":"string"},"zip":{"type":["string","null"],"pattern":"^[0-9]{5}$"}},"additionalProperties":false,"required":["street","zip"]}`},
		{"optional is nullable and required, in the order of the struct", reflect.TypeFor[contact](),
			`{"type":"object","properties":{"name":{"type":"string"},"email":{"type":["string","null"],"format":"email"},"home":{"anyOf":[{"$ref":"#/$defs/addr"},{"type":"null"}]}},"additionalProperties":false,"required":["name","email","home"],"$defs":{"addr":{"type":"object","properties":{"street":{"description":"Length at least 1. Length at most 40.","type":"string"},"zip":{"type":["string","null"],"pattern":"^[0-9]{5}$"}},"additionalProperties":false,"required":["street","zip"]}}}`},
		{"no parameters", reflect.TypeFor[empty](), `{"type":"object","properties":{},"additionalProperties":false,"required":[]}`},
		{"a recursive root keeps its definition", reflect.TypeFor[chain](),
			`{"type":"object","properties":{"v":{"type":"integer"},"next":{"description":"The next link, if any","anyOf":[{"$ref":"#/$defs/chain"},{"type":"null"}]}},"additionalProperties":false,"required":["v","next"],"$defs":{"chain":{"type":"object","properties":{"v":{"type":"integer"},"next":{"description":"The next link, if any","anyOf":[{"$ref":"#/$defs/chain"},{"type":"null"}]}},"additionalProperties":false,"required":["v","next"]}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := string(mustNew(t, tc.typ).Schema())
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhatStrictModeRefusesIsToldInTheDescription(t *testing.T) {
	got := string(mustNew(t, reflect.TypeFor[texts]()).Schema())
	for _, want := range []string{
		`"t":{"title":"Title","description":"One, two. Default: x. Examples: \"y\".","type":"string"}`,
		`"u":{"description":"Format: uri.","type":"string"}`,
		`"r":{"description":"Length at least 2.","type":["string","null"]}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
}

func TestTypesOfOneNameAreKeptApart(t *testing.T) {
	other := innerA().Field(0).Type
	typ := reflect.StructOf([]reflect.StructField{
		{Name: "P", Type: other, Tag: `json:"p"`},
		{Name: "Q", Type: reflect.TypeFor[inner](), Tag: `json:"q"`},
	})
	c := mustNew(t, typ)
	s := compile(t, c.Schema())
	if err := s.Validate(instance(t, `{"p":{"a":"x"},"q":{"b":1}}`)); err != nil {
		t.Errorf("%v in %s", err, c.Schema())
	}
	if s.Validate(instance(t, `{"p":{"b":1},"q":{"b":1}}`)) == nil {
		t.Errorf("one definition for two types: %s", c.Schema())
	}
}

type (
	withMap  struct{ Labels map[string]string }
	withAny  struct{ Extra any }
	withRaw  struct{ Extra json.RawMessage }
	deepMap  struct{ In []struct{ M map[string]int } }
	freeForm struct {
		Labels map[string]int  `json:"labels,omitempty"`
		Extra  any             `json:"extra"`
		Raw    json.RawMessage `json:"raw"`
		By     map[int]string  `json:"by,omitempty"`
		Homes  map[string]addr `json:"homes,omitempty"`
		N      int             `json:"n" jsonschema:"minimum=1"`
	}
)

func TestLooseTakesWhatStrictCannotExpress(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[withMap](), reflect.TypeFor[withAny](), reflect.TypeFor[withRaw](), reflect.TypeFor[deepMap](), reflect.TypeFor[freeForm]()} {
		if c, err := codec.New(typ, codec.Options{}); err == nil {
			t.Errorf("%s is strict: %s", typ, c.Schema())
		}
		c, err := codec.New(typ, codec.Options{Loose: true})
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		if c.Strict() {
			t.Errorf("%s is strict", typ)
		}
		compile(t, c.Schema())
	}
	c, err := codec.New(reflect.TypeFor[freeForm](), codec.Options{Loose: true})
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.Decode(`{"n":1.0,"raw":{"b":9007199254740993,"a":1e2},"extra":[1.50,null],"labels":{"y":2e0,"x":1},"by":{"2":"b"}}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"by":{"2":"b"},"extra":[1.5,null],"labels":{"x":1,"y":2},"n":1,"raw":{"a":100,"b":9007199254740993}}`, string(in.JSON)); diff != "" {
		t.Error(diff)
	}
	for args, rule := range map[string]string{
		`{"n":0,"raw":1,"extra":1}`:                             "minimum",
		`{"n":1,"raw":1,"extra":1,"homes":{"a":{"street":""}}}`: "minLength",
		`{"n":1,"raw":1,"extra":1e400}`:                         "number",
		`{"n":1,"raw":{"a":1,"A":1},"extra":1}`:                 "case",
		`{"n":1,"raw":1,"extra":1,"labels":{"a":"x"}}`:          "type",
		`{"n":1,"raw":1,"extra":1,"labels":{"a":1.5}}`:          "number",
		`{"n":1,"raw":1,"extra":1,"labels":{"a":1,"a":2}}`:      "duplicate",
		`{"n":1,"raw":{"x":"\ud800"},"extra":1}`:                "utf8",
		`{"n":1,"raw":{"x":{"y":1,"\u0079":1}},"extra":null}`:   "duplicate",
	} {
		wantRule(t, c, args, rule)
	}
	if c, err := codec.New(reflect.TypeFor[addr](), codec.Options{Loose: true}); err != nil || !c.Strict() {
		t.Errorf("a type that can be strict is not: %v", err)
	}
}

func wantRule(t *testing.T, c *codec.Codec, args, rule string) codec.Error {
	t.Helper()
	in, err := c.Decode(args)
	var e *codec.Error
	if !errors.As(err, &e) {
		t.Errorf("Decode(%.80s) = %+v, %v; want rule %q", args, in, err, rule)
		return codec.Error{}
	}
	if e.Rule != rule {
		t.Errorf("Decode(%.80s): rule %q, want %q: %v", args, e.Rule, rule, e)
	}
	return *e
}
