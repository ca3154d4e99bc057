package codec_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

type (
	// spelled is a type whose form is written by reading, with all that the encoder would change in what is sent.
	spelled struct {
		Z     string         `json:"z"`
		Inner spelledInner   `json:"inner"`
		Many  []spelledInner `json:"many"`
		May   *spelledInner  `json:"may"`
		List  *[]string      `json:"list"`
		Pair  [2]string      `json:"pair"`
		F     float64        `json:"f,omitempty"`
		F32   []float32      `json:"f32"`
		U     uint8          `json:"u,omitzero"`
		High  string         `json:"𐐷"` // before the next in UTF-16, after it in UTF-8
		Low   string         `json:"ﬃ"`
	}
	spelledInner struct {
		spelledFlag
		S string  `json:"s,omitempty" jsonschema:"maxLength=3"`
		F float32 `json:"f,omitzero"`
		Q int64   `json:"q,string,omitempty"`
		P *int    `json:"p,omitempty" jsonschema:"minimum=0"`
	}
	spelledFlag struct {
		B bool `json:"b,omitempty"`
	}
	// bounded has numbers for which the schema is not asked while they are within, and some for which it is.
	bounded struct {
		Both int64  `json:"both" jsonschema:"minimum=-5,maximum=5"`
		Max  *int64 `json:"max,omitempty" jsonschema:"maximum=9223372036854775806"`
		Odd  int    `json:"odd,omitempty" jsonschema:"minimum=2,multipleOf=3"`
		One  int    `json:"one,omitempty" jsonschema:"enum=1,enum=3,maximum=3"`
		Over int    `json:"over,omitempty" jsonschema:"exclusiveMinimum=1,maximum=3"`
		Big  uint64 `json:"big,omitempty" jsonschema:"minimum=3"`
		Text int64  `json:"text,string,omitempty"`
	}
	// ruled has a rule of the whole object.
	ruled struct {
		A string `json:"a,omitempty"`
		B string `json:"b,omitempty" jsonschema:"minLength=2"`
	}
)

// nested holds itself, and says nothing of that.
type nested struct {
	N    int      `json:"n" jsonschema:"minimum=1"`
	S    string   `json:"s,omitempty" jsonschema:"maxLength=2"`
	Kids []nested `json:"kids,omitempty"`
}

func (nested) JSONSchemaExtend(s *jsonschema.Schema) {
	s.Properties.Set("kids", &jsonschema.Schema{Type: "array"})
}

func (ruled) JSONSchemaExtend(s *jsonschema.Schema) {
	s.AnyOf = []*jsonschema.Schema{{Required: []string{"a"}}, {Required: []string{"b"}}}
}

var spelledCase = typ[spelled](list(
	`{"z":"\u0041<\u003c&\u2028\/","many":[{"s":"","f":0,"q":"0","p":0,"b":false},{"q":"12","f":1e-7,"s":"abc"},{"f":-0.0}],"inner":{"b":true},"may":{},"list":[],"f":1E2,"f32":[0.1,3.4e38,1e20,16777217,1e-6,1.00000002e21],"pair":["b","a"],"u":0,"ﬃ":"\ud83d\ude00","𐐷":"1"}`,
	`{"𐐷":"\u001f","ﬃ":"\u007f","u":1.0,"pair":["",""],"f32":[],"f":-0,"list":null,"may":null,"inner":{"p":null},"many":[],"z":""}`,
), list(
	`{"z":"","many":[{"s":"abcd","p":-1},{"p":-1}],"inner":{"s":"abcd"},"f32":[],"pair":["",""],"𐐷":"","ﬃ":""}`,
))

var boundedCase = typ[bounded](list(
	`{"both":-5}`, `{"both":5,"max":9223372036854775806,"odd":3,"one":3,"over":2,"big":18446744073709551615,"text":"7"}`, `{"both":5e0,"max":-9223372036854775808}`,
), list(
	`{"both":-6}`, `{"both":6}`, `{"both":60e-1}`, `{"both":0,"max":9223372036854775807}`, `{"both":0,"odd":1}`, `{"both":0,"odd":4}`, `{"both":0,"one":2}`,
	`{"both":0,"over":1}`, `{"both":0,"over":4}`, `{"both":0,"big":2}`, `{"both":9,"odd":4,"big":1}`, `{"both":9223372036854775808}`,
))

// within is a struct that holds typ, and a time, for which the form has to be asked of the encoder.
func within(typ reflect.Type) reflect.Type {
	return reflect.StructOf([]reflect.StructField{
		{Name: "In", Type: typ, Tag: `json:"in"`},
		{Name: "At", Type: reflect.TypeFor[time.Time](), Tag: `json:"at,omitzero"`},
	})
}

func TestFormAndRefusalDoNotDependOnWhatStandsAround(t *testing.T) {
	base64 := typ[struct{ Data []byte }](list(`{"Data":"YQ=="}`, `{"Data":"Y\r\nQ=="}`, `{"Data":"YR=="}`), nil)
	for _, tc := range append([]typeCase{spelledCase, boundedCase, base64}, strictTypes...) {
		alone, around := mustNew(t, tc.typ), mustNew(t, within(tc.typ))
		for _, good := range tc.good {
			got, err := alone.Decode(good)
			want, werr := around.Decode(fmt.Sprintf(`{"in":%s}`, good))
			if err != nil || werr != nil {
				t.Errorf("%s %s: %v, %v", tc.typ, good, err, werr)
				continue
			}
			if wrapped := fmt.Sprintf(`{"in":%s}`, got.JSON); wrapped != string(want.JSON) {
				t.Errorf("%s: %s is read as\n%s, and encoded\n%s", tc.typ, good, wrapped, want.JSON)
			}
			if v := reflect.ValueOf(want.Value).Field(0).Interface(); !reflect.DeepEqual(got.Value, v) {
				t.Errorf("%s: the handler gets %#v, not %#v", tc.typ, got.Value, v)
			}
		}
		for _, bad := range tc.bad {
			_, err := alone.Decode(bad)
			_, werr := around.Decode(fmt.Sprintf(`{"in":%s}`, bad))
			var got, want *codec.Error
			if !errors.As(err, &got) || !errors.As(werr, &want) {
				t.Errorf("%s %s: %v, %v", tc.typ, bad, err, werr)
				continue
			}
			if got.Rule != want.Rule || got.Message != want.Message || "/in"+got.Path != want.Path {
				t.Errorf("%s: %s is refused by %v, and below another by %v", tc.typ, bad, got, want)
			}
		}
	}
}

func TestZeroAndAbsentAreEqualWhereTheEncoderLeavesZeroOut(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[spelledInner]())
	equal(t, c, `{}`, `{"s":""}`, `{"f":-0.0}`, `{"q":"-0"}`, `{"b":false}`, `{"b":false,"f":0,"q":null,"p":null}`)
	differ(t, c, `{}`, `{"p":0}`) // a pointer tells them apart
}

func TestAllProblemsOfAllMembersAreCounted(t *testing.T) {
	c := mustNew(t, spelledCase.typ)
	e := wantRule(t, c, spelledCase.bad[0], "maxLength")
	if e.Path != "/inner/s" || e.Message != "must have at most 3 characters, has 4 (1 of 4 problems)" {
		t.Error(e)
	}
}

func TestRulesOfTheWholeObjectAreChecked(t *testing.T) {
	c, err := codec.New(reflect.TypeFor[ruled](), codec.Options{Loose: true})
	if err != nil {
		t.Fatal(err)
	}
	wantRule(t, c, `{}`, "anyOf")
	wantRule(t, c, `{"b":"x"}`, "minLength")
	for _, good := range []string{`{"a":"x"}`, `{"b":"xx"}`} {
		if _, err := c.Decode(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
}

func TestRulesOfAMemberAreNotThoseOfItsNamesakeBelow(t *testing.T) {
	c, err := codec.New(reflect.TypeFor[nested](), codec.Options{Loose: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Decode(`{"n":1,"kids":[{"n":0,"s":"long","kids":[{"n":-1}]}]}`); err != nil {
		t.Error(err)
	}
	if e := wantRule(t, c, `{"n":0,"kids":[{"n":0,"s":"long"}]}`, "minimum"); e.Message != "must be at least 1" {
		t.Error(e)
	}
}
