package codec_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

func TestDuplicateAndCaseVariantNamesAreRefused(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[amount]())
	for args, rule := range map[string]string{
		`{"cents":1,"cents":999}`:      "duplicate",
		`{"cents":1,"\u0063ents":999}`: "duplicate",
		`{"cents":1,"Cents":999}`:      "case",
		`{"CENTS":7}`:                  "case",
		`{"cent\u017f":7}`:             "case", // long s folds to s
		`{"cents":1,"other":2}`:        "unknown",
		`{"cents":1,"":2}`:             "unknown",
	} {
		wantRule(t, c, args, rule)
	}
	raw, err := codec.NewRaw(codec.RawSpec{Schema: []byte(`{"type":"object","properties":{"cents":{"type":"integer"}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	wantRule(t, raw, `{"cents":1,"Cents":999}`, "case")
	wantRule(t, raw, `{"CENTS":7}`, "case")
	wantRule(t, raw, `{"cents":1,"cents":1}`, "duplicate")
	wantRule(t, raw, `{"a":{"K":1,"\u212a":1}}`, "case") // the Kelvin sign folds to k
}

func TestBrokenJSONIsRefused(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[mail]())
	for args, rule := range map[string]string{
		`{"to":"u1","body":"hel`:          "unknown",
		`{"to":"u1","cc":"hel`:            "json",
		`{"to":"u1"`:                      "json",
		`{"to":"u1",`:                     "json",
		`{"to":`:                          "json",
		`{"to"`:                           "json",
		`{`:                               "json",
		`{"to":"u1"}{"to":"u1"}`:          "json",
		`{"to":"u1"}{"to":"u2"}`:          "json",
		`{"to":"u1"} done`:                "json",
		`{"to":"u1"},`:                    "json",
		`{"to":"u1"}}`:                    "json",
		`{to:"u1"}`:                       "json",
		`{'to':'u1'}`:                     "json",
		`{"to":"u1",}`:                    "json",
		`{"to":"a` + "\n" + `b"}`:         "json",
		`{"to":"\x"}`:                     "json",
		"\ufeff" + `{"to":"u1"}`:          "json",
		`[]`:                              "type",
		`[{"to":"u1"}]`:                   "type",
		`1`:                               "type",
		`true`:                            "type",
		`nul`:                             "json",
		"{\"to\":\"\xff\"}":               "utf8",
		`{"to":"\ud800"}`:                 "utf8",
		`{"to":"\udc00\ud800"}`:           "utf8",
		"{\"to\":\"\xed\xa0\x80\"}":       "utf8",
		`{"to":1}`:                        "type",
		`{"to":["u1"]}`:                   "type",
		`{"to":{"x":1}}`:                  "type",
		`{"to":false}`:                    "type",
		strings.Repeat(" ", 1<<20) + `{}`: "size",
	} {
		wantRule(t, c, args, rule)
	}
	if e := wantRule(t, c, `{"to":"u1","cc":"hel`, "json"); !strings.Contains(e.Message, "byte 20") {
		t.Errorf("no position: %v", e)
	}
}

func TestDepthIsBounded(t *testing.T) {
	raw, err := codec.NewRaw(codec.RawSpec{})
	if err != nil {
		t.Fatal(err)
	}
	nest := func(n int) string {
		return strings.Repeat(`{"a":`, n-1) + `{}` + strings.Repeat(`}`, n-1)
	}
	decode(t, raw, nest(100))
	wantRule(t, raw, nest(101), "depth")
	wantRule(t, raw, nest(100_000), "depth")
	wantRule(t, raw, `{"a":`+strings.Repeat("[", 500_000), "depth")
	c := mustNew(t, reflect.TypeFor[chain]())
	wantRule(t, c, strings.Repeat(`{"v":1,"next":`, 200)+"null"+strings.Repeat("}", 200), "depth")
}

func TestErrorsNamePlacesAndNeverValues(t *testing.T) {
	const secret = "hunter2-4111111111111111"
	c := mustNew(t, reflect.TypeFor[refund]())
	all := []string{
		`{"order_id":"x","cents":"` + secret + `"}`,
		`{"order_id":"` + secret + `"`,
		`{"order_id":"` + secret + `\ud800","cents":1}`,
		`{"order_id":"` + secret + `","cents":0}`,
		`"` + secret + `"`, secret, `{` + secret + `}`, `["` + secret + `"]`,
		`{"order_id":"x","cents":1}` + secret,
	}
	for _, args := range all {
		_, err := c.Decode(args)
		if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "4111") {
			t.Errorf("%s: %v", args, err)
		}
	}
	for _, tc := range strictTypes {
		d := mustNew(t, tc.typ)
		for _, good := range tc.good {
			for _, bad := range []string{`"` + secret + `"`, "4111111111111111.5", `["` + secret + `"]`, `{"a":"` + secret + `"}`} {
				for _, old := range []string{`"s"`, `1`, `null`, `"red"`, `"12.34"`, `"low"`, `"aGk="`} {
					if _, err := d.Decode(strings.ReplaceAll(good, ":"+old, ":"+bad)); err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "4111")) {
						t.Errorf("%s: %v", tc.typ, err)
					}
				}
			}
		}
	}
	e := wantRule(t, c, `{"order_id":"x","lines":[{"sku":"a"},{"sku":1}]}`, "type")
	if e.Path != "/lines/1/sku" {
		t.Errorf("path %q", e.Path)
	}
	if e := wantRule(t, c, `{"order_id":"x","cents":1,"lines":[{"note":"a"}]}`, "required"); e.Path != "/lines/0/sku" {
		t.Errorf("path %q", e.Path)
	}
	e = wantRule(t, c, `{"a\u0000\n`+strings.Repeat("x", 500)+`":1}`, "unknown")
	if len(e.Path) > 65 || !strings.HasPrefix(e.Path, `/a\x00\nxxx`) {
		t.Errorf("name shown as %q", e.Path)
	}
}

func TestTheSameErrorEachTime(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[floats]())
	_, first := c.Decode(`{"f64":-0.3,"f32":1}`)
	for range 50 {
		if _, err := c.Decode(`{"f64":-0.3,"f32":1}`); err == nil || err.Error() != first.Error() {
			t.Fatalf("%v, then %v", first, err)
		}
	}
}

func TestSchemaRulesAreToldByTheirKeyword(t *testing.T) {
	for _, tc := range []struct {
		typ              reflect.Type
		args, path, rule string
	}{
		{reflect.TypeFor[addr](), `{"street":""}`, "/street", "minLength"},
		{reflect.TypeFor[addr](), `{"street":"` + strings.Repeat("é", 41) + `"}`, "/street", "maxLength"},
		{reflect.TypeFor[addr](), `{"street":"s","zip":"x"}`, "/zip", "pattern"},
		{reflect.TypeFor[contact](), `{"name":"n","email":"x"}`, "/email", "format"},
		{reflect.TypeFor[contact](), `{"name":"n","home":{"street":""}}`, "/home/street", "minLength"},
		{reflect.TypeFor[colors](), `{"one":"x","some":["red"]}`, "/one", "enum"},
		{reflect.TypeFor[colors](), `{"one":"red","some":["red","x"]}`, "/some/1", "enum"},
		{reflect.TypeFor[colors](), `{"one":"red","some":["red","red"]}`, "/some", "uniqueItems"},
		{reflect.TypeFor[colors](), `{"one":"red","some":[]}`, "/some", "minItems"},
		{reflect.TypeFor[floats](), `{"f64":0.3,"f32":0}`, "/f64", "multipleOf"},
		{reflect.TypeFor[floats](), `{"f64":100,"f32":0}`, "/f64", "exclusiveMaximum"},
		{reflect.TypeFor[floats](), `{"f64":-1,"f32":0}`, "/f64", "minimum"},
		{reflect.TypeFor[times](), `{"at":"yesterday","for":0}`, "/at", "format"},
		{reflect.TypeFor[fixed](), `{"rgb":[1,2]}`, "/rgb", "type"},
		{reflect.TypeFor[sized](), `{"i8":300}`, "/i8", "number"},
		{reflect.TypeFor[sized](), `{"u8":-1}`, "/u8", "number"},
		{reflect.TypeFor[levels](), `{"l":"mid"}`, "/l", "value"},
		{reflect.TypeFor[blobs](), `{"data":"@@"}`, "/data", "value"},
		{reflect.TypeFor[shapes](), `{"s":{"label":"x"},"l":[]}`, "/s/kind", "required"},
		{reflect.TypeFor[shapes](), `{"s":{"kind":"k","q":"x"},"l":[]}`, "/s/q", "unknown"},
	} {
		e := wantRule(t, mustNew(t, tc.typ), tc.args, tc.rule)
		if e.Path != tc.path {
			t.Errorf("%s: path %q, want %q", tc.args, e.Path, tc.path)
		}
	}
}

func TestUnstableTypesAreRefusedNotMisread(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[struct {
		C counter `json:"c"`
	}]())
	wantRule(t, c, `{"c":"1"}`, "value")
	p := mustNew(t, reflect.TypeFor[struct {
		P panicky `json:"p"`
	}]())
	wantRule(t, p, `{"p":"x"}`, "value")
}

// counter is another value each time it is written.
type counter int

func (c counter) MarshalText() ([]byte, error) { return fmt.Append(nil, int(c)+1), nil }
func (c *counter) UnmarshalText(b []byte) error {
	_, err := fmt.Sscan(string(b), (*int)(c))
	return err
}

type panicky string

func (p panicky) MarshalText() ([]byte, error) { return []byte(p), nil }
func (p *panicky) UnmarshalText([]byte) error  { panic("hunter2") }

func TestLoadRefusesWhatDoesNotFit(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[amount]())
	raw, err := codec.NewRaw(codec.RawSpec{})
	if err != nil {
		t.Fatal(err)
	}
	for _, stored := range []string{``, `null x`, `{"cents":1,"gone":2}`, `{"cents":"hunter2"}`} {
		if v, err := c.Load([]byte(stored)); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Load(%s) = %v, %v", stored, v, err)
		}
	}
	for _, stored := range []string{``, `null`, `[]`, `{`} {
		if v, err := raw.Load([]byte(stored)); err == nil {
			t.Errorf("Load(%s) = %v", stored, v)
		}
	}
}

func TestErrorsAreTyped(t *testing.T) {
	_, err := mustNew(t, reflect.TypeFor[numbered]()).Decode(`{"n":"x"}`)
	var e *codec.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T", err)
	}
	want := &codec.Error{Path: "/n", Rule: "type", Message: "must be a whole number, not in quotes, is a string"}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Error(diff)
	}
	if err.Error() != "arguments: /n: must be a whole number, not in quotes, is a string" {
		t.Error(err)
	}
}
