package codec_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

const transferSchema = `{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "properties": {
    "account": {"type": "string", "minLength": 1},
    "amount": {"type": "number", "exclusiveMinimum": 0},
    "at": {"type": "string", "format": "date-time"},
    "note": {"type": ["string", "null"]}
  },
  "required": ["account", "amount"],
  "additionalProperties": false
}`

func mustRaw(t *testing.T, s codec.RawSpec) *codec.Codec {
	t.Helper()
	c, err := codec.NewRaw(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRawToolWithoutSchemaTakesAnyObject(t *testing.T) {
	c := mustRaw(t, codec.RawSpec{})
	if c.Strict() || c.HasKey() || c.HasResource() {
		t.Error("strict, key or resource from nowhere")
	}
	compile(t, c.Schema())
	if got := string(c.Schema()); got != `{"type":"object","properties":{},"additionalProperties":true}` {
		t.Errorf("schema %s", got)
	}
	in := decode(t, c, `{"b":[1.0,null,"\u0041"],"a":{"z":9007199254740993,"y":-0.0}}`)
	if diff := cmp.Diff(`{"a":{"y":0,"z":9007199254740993},"b":[1,null,"A"]}`, string(in.JSON)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(json.RawMessage(in.JSON), in.Value); diff != "" {
		t.Error(diff)
	}
	if again := decode(t, c, string(in.JSON)); string(again.JSON) != string(in.JSON) {
		t.Errorf("no fixed point: %s", again.JSON)
	}
	if v, err := c.Load(in.JSON); err != nil || string(v.(json.RawMessage)) != string(in.JSON) {
		t.Errorf("Load: %s, %v", v, err)
	}
}

func TestRawNumbersKeepIntegersExact(t *testing.T) {
	c := mustRaw(t, codec.RawSpec{})
	differ(t, c, `{"n":9007199254740993}`, `{"n":9007199254740992}`, `{"n":"9007199254740992"}`, `{"n":123456789012345678901234567890}`, `{"n":123456789012345678901234567891}`)
	equal(t, c, `{"n":100}`, `{"n":100.0}`, `{"n":1e2}`)
	equal(t, c, `{"n":0}`, `{"n":-0}`, `{"n":-0.0}`)
	equal(t, c, `{"n":0.1}`, `{"n":0.10}`, `{"n":1e-1}`)
	differ(t, c, `{"n":null}`, `{}`)
	differ(t, c, `{"n":[1,2]}`, `{"n":[2,1]}`)
	wantRule(t, c, `{"n":1e400}`, "number")
	wantRule(t, c, `{"n":`+strings.Repeat("1", 2000)+`}`, "number")
}

func TestRawSchemaIsChecked(t *testing.T) {
	c := mustRaw(t, codec.RawSpec{Schema: json.RawMessage(transferSchema), Key: []string{"account"}, Ignore: []string{"note"}, Resource: "account"})
	if string(c.Schema()) != transferSchema {
		t.Error("the schema is not passed on as it is")
	}
	a := decode(t, c, `{"account":"x","amount":5,"note":"one"}`)
	b := decode(t, c, `{"amount":5.0,"note":null,"account":"x"}`)
	if a.Key != b.Key || a.Fingerprint != b.Fingerprint || a.Resource != "x" || a.Key != codec.Hash([]byte("/account"), []byte(`"x"`)) {
		t.Errorf("%s and %s", a.JSON, b.JSON)
	}
	if string(b.JSON) != `{"account":"x","amount":5,"note":null}` {
		t.Errorf("null does not stay null: %s", b.JSON)
	}
	if diff := cmp.Diff([]string{"note"}, codec.Diff(a.JSON, b.JSON)); diff != "" || c.Diff(a.JSON, b.JSON) != nil {
		t.Error(diff, c.Diff(a.JSON, b.JSON))
	}
	for args, rule := range map[string]string{
		`{"account":"x","amount":0}`:               "exclusiveMinimum",
		`{"account":"x","amount":"5"}`:             "type",
		`{"account":"","amount":5}`:                "minLength",
		`{"account":"x"}`:                          "required",
		``:                                         "required",
		`{"account":"x","amount":5,"other":1}`:     "unknown",
		`{"account":"x","amount":5,"Note":"n"}`:    "case",
		`{"account":"x","amount":5,"at":"monday"}`: "format",
		`{"account":"x","amount":1e999999999}`:     "number",
	} {
		wantRule(t, c, args, rule)
	}
}

func TestRawKeyMustBeGiven(t *testing.T) {
	c := mustRaw(t, codec.RawSpec{Key: []string{"b", "a"}, Resource: "r"})
	if decode(t, c, `{"a":"","b":0}`).Key == [32]byte{} {
		t.Error("falsy key values count as missing")
	}
	wantRule(t, c, `{"a":1}`, "required")
	wantRule(t, c, ``, "required")
	wantRule(t, c, `{"a":1,"b":null}`, "null")
	wantRule(t, c, `{"a":1,"b":2,"r":[1]}`, "type")
	if in := decode(t, c, `{"a":1,"b":2,"r":7.0}`); in.Resource != "7" || in.Key != codec.Hash([]byte("/a"), []byte("1"), []byte("/b"), []byte("2")) {
		t.Errorf("%+v", in)
	}
	if in := decode(t, c, `{"a":1,"b":2,"r":null}`); in.Resource != "" {
		t.Errorf("%+v", in)
	}
}

func TestBadRawDescriptionsAreRefused(t *testing.T) {
	schema := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, tc := range []struct {
		spec codec.RawSpec
		says string
	}{
		{codec.RawSpec{Schema: schema(`{`)}, "raw schema"},
		{codec.RawSpec{Schema: schema(`{} {}`)}, "text after"},
		{codec.RawSpec{Schema: schema(`[]`)}, "not a JSON object"},
		{codec.RawSpec{Schema: schema(`{"type":"strin"}`)}, "object"},
		{codec.RawSpec{Schema: schema(`{"type":"object","properties":{"a":{"type":"strin"}}}`)}, "strin"},
		{codec.RawSpec{Schema: schema(`{"type":"object","type":"object"}`)}, "duplicate"},
		{codec.RawSpec{Schema: schema(`{"type":"array"}`)}, "object"},
		{codec.RawSpec{Schema: schema(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`)}, "$defs"},
		{codec.RawSpec{Schema: schema(`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`)}, "not followed"},
		{codec.RawSpec{Schema: schema(`{"type":"object","properties":{"a":{"$ref":"https://example.com/x"}}}`)}, "not followed"},
		{codec.RawSpec{Schema: schema(`{"type":"object","properties":{"a":{"pattern":"["}}}`)}, "regex"},
		{codec.RawSpec{Schema: schema(`{"type":"object","properties":{"a":{"minimum":1e999999999}}}`)}, "out of range"},
		{codec.RawSpec{Schema: schema(transferSchema), Key: []string{"acount"}}, "acount"},
		{codec.RawSpec{Schema: schema(transferSchema), Ignore: []string{"nope"}}, "nope"},
		{codec.RawSpec{Schema: schema(transferSchema), Resource: "nope"}, "nope"},
		{codec.RawSpec{Key: []string{"a"}, Ignore: []string{"a"}}, `"a"`},
		{codec.RawSpec{Resource: "a", Ignore: []string{"a"}}, `"a"`},
		{codec.RawSpec{Key: []string{"a", "a"}}, "twice"},
		{codec.RawSpec{Key: []string{""}}, "empty"},
		{codec.RawSpec{Strict: true}, "needs a schema"},
		{codec.RawSpec{Schema: schema(transferSchema), Strict: true}, "minLength"},
		{codec.RawSpec{Schema: schema(`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`), Strict: true}, `"a" is not required`},
		{codec.RawSpec{Schema: schema(`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`), Strict: true}, "any value"},
		{codec.RawSpec{Schema: schema(`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`), Strict: true}, "free names"},
		{codec.RawSpec{Schema: schema(`{"type":"object","properties":{"a":{"type":"array"}},"required":["a"],"additionalProperties":false}`), Strict: true}, "items"},
		{codec.RawSpec{Schema: schema(`{"type":"object","properties":{}}`), Strict: true}, "free names"},
		{codec.RawSpec{Schema: schema(`{"anyOf":[{"type":"object"}]}`), Strict: true}, "root"},
		{codec.RawSpec{Schema: schema(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x","description":"d"}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"string"}}}`), Strict: true}, "beside $ref"},
	} {
		c, err := codec.NewRaw(tc.spec)
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s %+v: %v, %v", tc.spec.Schema, tc.spec, c, err)
		}
	}
}

func TestRawStrictSchemaIsTakenIfItObeys(t *testing.T) {
	for _, tc := range strictTypes {
		schema := mustNew(t, tc.typ).Schema()
		c, err := codec.NewRaw(codec.RawSpec{Schema: schema, Strict: true})
		if err != nil || !c.Strict() {
			t.Errorf("%s: %v", tc.typ, err)
			continue
		}
		for _, good := range tc.good {
			if _, err := c.Decode(good); err != nil {
				t.Errorf("%s: %s: %v", tc.typ, good, err)
			}
		}
	}
}

func TestSmallNumbersInARawSchemaCostNothing(t *testing.T) {
	c := mustRaw(t, codec.RawSpec{Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number","minimum":1e-999999999}}}`)})
	decode(t, c, `{"a":1}`)
}
