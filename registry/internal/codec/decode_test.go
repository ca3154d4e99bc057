package codec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

type (
	refund struct {
		OrderID string  `json:"order_id" once:"key,resource"`
		Cents   int64   `json:"cents" jsonschema:"minimum=1"`
		Cc      *string `json:"cc"`
		Tag     string  `json:"tag,omitempty"`
		Reason  string  `json:"reason,omitempty" once:"-"`
		Lines   []line  `json:"lines,omitempty"`
		Meta    *meta   `json:"meta"`
	}
	line struct {
		SKU  string `json:"sku"`
		Note string `json:"note,omitempty" once:"-"`
	}
	meta struct {
		ClientTS string `json:"client_ts" once:"-"`
		Source   string `json:"source"`
	}
	pair struct {
		A int `json:"a"`
		B struct {
			X int `json:"x"`
			Y int `json:"y"`
		} `json:"b"`
	}
	account struct {
		Acct int64 `json:"acct"`
	}
	amount struct {
		Cents int64 `json:"cents"`
	}
	text struct {
		S string `json:"s"`
	}
	mail struct {
		To string  `json:"to"`
		Cc *string `json:"cc"`
	}
	numbered struct {
		N int `json:"n"`
	}
)

func decode(t *testing.T, c *codec.Codec, args string) *codec.Input {
	t.Helper()
	in, err := c.Decode(args)
	if err != nil {
		t.Fatalf("Decode(%s): %v", args, err)
	}
	return in
}

// equal checks that all arguments are one call for the handler and the hash.
func equal(t *testing.T, c *codec.Codec, args ...string) {
	t.Helper()
	first := decode(t, c, args[0])
	for _, a := range args[1:] {
		in := decode(t, c, a)
		if in.Fingerprint != first.Fingerprint || in.Key != first.Key || !bytes.Equal(in.JSON, first.JSON) {
			t.Errorf("%s and %s differ: %s, %s", args[0], a, first.JSON, in.JSON)
		}
		if !reflect.DeepEqual(in.Value, first.Value) {
			t.Errorf("%s and %s: values %#v, %#v", args[0], a, first.Value, in.Value)
		}
	}
}

func differ(t *testing.T, c *codec.Codec, args ...string) {
	t.Helper()
	seen := map[[32]byte]string{}
	for _, a := range args {
		in := decode(t, c, a)
		if other, ok := seen[in.Fingerprint]; ok {
			t.Errorf("%s and %s are one hash", other, a)
		}
		seen[in.Fingerprint] = a
	}
}

func TestKeyOrderBlanksAndEscapesAreOneHash(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[pair]())
	equal(t, c,
		`{"a":5,"b":{"x":1,"y":2}}`,
		`{"b":{"y":2,"x":1},"a":5}`,
		" {\n\t\"a\" : 5 , \"b\" : { \"x\" : 1 , \"y\" : 2 } }\r\n",
		`{"\u0061":5,"\u0062":{"x":1,"\u0079":2}}`)
	equal(t, mustNew(t, reflect.TypeFor[text]()), `{"s":"a/b<é😀"}`, `{"s":"a\/b\u003cé\ud83d\ude00"}`, `{"s":"\u0061/b<\u00e9😀"}`)
}

func TestOneLayerOfDoubleEncodingIsTakenOff(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[numbered]())
	equal(t, c, `{"n":2}`, `"{\"n\":2}"`, ` "{\"\\u006e\":2.0}" `)
	wantRule(t, c, `"\"{\\\"n\\\":2}\""`, "type")
	wantRule(t, c, `"{\"n\":2" `, "json")
	wantRule(t, c, `"{\"n\":2}" x`, "json")
	wantRule(t, c, `"{\"n\":2} x"`, "json")
	wantRule(t, c, `"[1]"`, "type")
	wantRule(t, c, `"x"`, "type")
	wantRule(t, c, `"{\"n\":1,\"n\":2}"`, "duplicate")
}

func TestEmptyArgumentsAreAnEmptyObjectWhereNothingIsRequired(t *testing.T) {
	forms := []string{`{}`, ``, ` `, "\n", `null`, ` null `, `"{}"`, `""`, `"null"`, `{ }`}
	equal(t, mustNew(t, reflect.TypeFor[empty]()), forms...)
	equal(t, mustNew(t, reflect.TypeFor[optional]()), append(forms, `{"a":null}`, `{"a":"","b":[]}`, `{"b":null}`)...)
	raw, err := codec.NewRaw(codec.RawSpec{})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, raw, forms...)
	c := mustNew(t, reflect.TypeFor[numbered]())
	for _, f := range forms {
		e := wantRule(t, c, f, "required")
		if e.Path != "/n" {
			t.Errorf("%q: path %q", f, e.Path)
		}
	}
}

func TestIntegersAreExactInAnyNotation(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[amount]())
	equal(t, c, `{"cents":100}`, `{"cents":100.0}`, `{"cents":1e2}`, `{"cents":1E+2}`, `{"cents":0.1e3}`, `{"cents":1000e-1}`)
	equal(t, c, `{"cents":0}`, `{"cents":-0}`, `{"cents":0e999999999}`, `{"cents":-0.0}`, `{"cents":0.0e-5}`)
	if v := decode(t, c, `{"cents":1e2}`).Value.(amount); v.Cents != 100 {
		t.Errorf("1e2 is %d", v.Cents)
	}
	for args, rule := range map[string]string{
		`{"cents":"100"}`:                                "type",
		`{"cents":10.5}`:                                 "number",
		`{"cents":1e-1}`:                                 "number",
		`{"cents":9223372036854775808}`:                  "number",
		`{"cents":1e999999999}`:                          "number",
		`{"cents":1e-999999999}`:                         "number",
		`{"cents":1e99999999999999999999999999}`:         "number",
		`{"cents":1e-9223372036854775808}`:               "number",
		`{"cents":` + strings.Repeat("9", 1<<19) + `}`:   "number",
		`{"cents":0.` + strings.Repeat("0", 1<<19) + `}`: "number",
		`{"cents":NaN}`:                                  "json",
		`{"cents":Infinity}`:                             "json",
		`{"cents":0100}`:                                 "json",
		`{"cents":+1}`:                                   "json",
		`{"cents":true}`:                                 "type",
	} {
		wantRule(t, c, args, rule)
	}
	acct := mustNew(t, reflect.TypeFor[account]())
	differ(t, acct, `{"acct":9007199254740993}`, `{"acct":9007199254740992}`)
	equal(t, acct, `{"acct":9007199254740993}`, `{"acct":9007199254740993.0}`, `{"acct":9007199254740.993e3}`)
	if v := decode(t, acct, `{"acct":9007199254740993}`).Value.(account); v.Acct != 9007199254740993 {
		t.Errorf("the handler gets %d", v.Acct)
	}
}

func TestFloatsAreEqualWhereTheHandlerCannotTellThemApart(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[plainFloat]())
	equal(t, c, `{"f":1}`, `{"f":1.0}`, `{"f":1e0}`)
	equal(t, c, `{"f":0}`, `{"f":-0}`, `{"f":-0.0}`, `{"f":1e-999999999}`, `{"f":-1e-400}`)
	equal(t, c, `{"f":0.1}`, `{"f":0.10}`, `{"f":1e-1}`)
	equal(t, c, `{"f":1e21}`, `{"f":1000000000000000000000}`)
	equal(t, c, `{"f":9007199254740992}`, `{"f":9007199254740993}`)
	wantRule(t, c, `{"f":1e400}`, "number")
	wantRule(t, c, `{"f":NaN}`, "json")
	wantRule(t, c, `{"f":1e999999999}`, "number")
}

func TestNullAndAbsentAreEqualInOptionalFieldsOnly(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[mail]())
	equal(t, c, `{"to":"u1"}`, `{"to":"u1","cc":null}`)
	differ(t, c, `{"to":"u1"}`, `{"to":"u1","cc":""}`) // a pointer tells them apart
	if e := wantRule(t, c, `{"to":null}`, "null"); e.Path != "/to" {
		t.Errorf("path %q", e.Path)
	}
	wantRule(t, c, `{"cc":"x"}`, "required")
	equal(t, mustNew(t, reflect.TypeFor[optional]()), `{}`, `{"a":""}`, `{"a":null}`, `{"b":[]}`, `{"b":null}`)
	equal(t, mustNew(t, reflect.TypeFor[zeros]()), `{}`, `{"n":0}`, `{"when":null,"home":null}`)
	if got := string(decode(t, c, `{"to":"u1","cc":null}`).JSON); got != `{"to":"u1"}` {
		t.Errorf("stored as %s", got)
	}
}

func TestFalsyValuesArePresent(t *testing.T) {
	type falsy struct {
		N int    `json:"n" once:"key"`
		B bool   `json:"b" once:"key"`
		S string `json:"s" once:"key"`
	}
	c := mustNew(t, reflect.TypeFor[falsy]())
	in := decode(t, c, `{"n":0,"b":false,"s":""}`)
	if string(in.JSON) != `{"b":false,"n":0,"s":""}` || in.Key == [32]byte{} {
		t.Errorf("%s %x", in.JSON, in.Key)
	}
	for _, args := range []string{`{"b":false,"s":""}`, `{"n":0,"s":""}`, `{"n":0,"b":false}`} {
		wantRule(t, c, args, "required")
	}
}

func TestArrayOrderAndNormalFormsMatter(t *testing.T) {
	differ(t, mustNew(t, reflect.TypeFor[named]()), `{"ids":["a","b"]}`, `{"ids":["b","a"]}`)
	c := mustNew(t, reflect.TypeFor[text]())
	differ(t, c, `{"s":"\u00e9"}`, `{"s":"e\u0301"}`)
	differ(t, c, `{"s":"a"}`, `{"s":"a "}`, `{"s":"a\u0000"}`, `{"s":"A"}`)
}

func TestNamesAreOrderedByUTF16(t *testing.T) {
	raw, err := codec.NewRaw(codec.RawSpec{})
	if err != nil {
		t.Fatal(err)
	}
	// U+10000 sorts before U+FFFD in UTF-16, after it in UTF-8.
	in := decode(t, raw, "{\"\ufffd\":1,\"\U00010000\":2}")
	if want := "{\"\U00010000\":2,\"\ufffd\":1}"; string(in.JSON) != want {
		t.Errorf("%s, want %s", in.JSON, want)
	}
}

func TestTimesOfOneSpellingAreOneHash(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[times]())
	equal(t, c, `{"at":"2026-01-02T03:04:05Z","for":1}`, `{"at":"2026-01-02T03:04:05+00:00","for":1}`, `{"at":"2026-01-02T03:04:05.000Z","for":1e0}`)
	differ(t, c, `{"at":"2026-01-02T03:04:05Z","for":1}`, `{"at":"2026-01-02T04:04:05+01:00","for":1}`)
	v := decode(t, c, `{"at":"2026-01-02T03:04:05Z","for":5}`).Value.(times)
	if !v.At.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) || v.For != 5 {
		t.Errorf("%+v", v)
	}
}

func TestDecodedValueOwnsItsMemory(t *testing.T) {
	c, err := codec.New(reflect.TypeFor[freeForm](), codec.Options{Loose: true})
	if err != nil {
		t.Fatal(err)
	}
	in := decode(t, c, `{"n":1,"raw":{"a":"b"},"extra":"x"}`)
	stored := bytes.Clone(in.JSON)
	loaded, err := c.Load(in.JSON)
	if err != nil {
		t.Fatal(err)
	}
	clear(in.JSON)
	if got := string(loaded.(freeForm).Raw) + string(in.Value.(freeForm).Raw); got != `{"a":"b"}{"a":"b"}` {
		t.Errorf("the value shares memory: %s", got)
	}
	raw, err := codec.NewRaw(codec.RawSpec{})
	if err != nil {
		t.Fatal(err)
	}
	r := decode(t, raw, string(stored))
	clear(r.JSON)
	if !bytes.Equal(r.Value.(json.RawMessage), stored) {
		t.Errorf("the raw value shares memory: %s", r.Value)
	}
	m := decode(t, mustNew(t, reflect.TypeFor[refund]()), `{"order_id":"x","cents":1,"lines":[{"sku":"a"}]}`)
	stored = bytes.Clone(m.JSON)
	m.Value.(refund).Lines[0].SKU = "b"
	if !bytes.Equal(m.JSON, stored) {
		t.Errorf("a change of the value reaches the stored form: %s", m.JSON)
	}
	s := c.Schema()
	clear(s)
	if bytes.Equal(s, c.Schema()) {
		t.Error("the schema is shared")
	}
}

func TestDecodeIsSafeForConcurrentUse(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[refund]())
	want := decode(t, c, `{"order_id":"A-1","cents":5,"reason":"r","lines":[{"sku":"s"}]}`)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				in, err := c.Decode(`{"lines":[{"sku":"s"}],"reason":"r","cents":5.0,"order_id":"A-1"}`)
				if err != nil || !bytes.Equal(in.JSON, want.JSON) {
					t.Errorf("%v", err)
				}
				if _, err := c.Decode(fmt.Sprintf(`{"order_id":"%d","cents":-1}`, i)); err == nil {
					t.Error("accepted")
				}
			}
		})
	}
	wg.Wait()
}
