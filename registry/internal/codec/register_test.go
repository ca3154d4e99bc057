package codec_test

import (
	"encoding/json"
	"math/big"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

type (
	lower     struct{ A string }
	selfEmbed struct{ *selfEmbed }
	SelfEmbed struct{ *SelfEmbed }
	halfJSON  struct{ A string }
	ptrSchema struct {
		A string `json:"a"`
	}
	aliased struct {
		A string `json:"a"`
	}
	lying   string
	missing struct {
		A string `json:"a"`
		B string `json:"b"`
	}
	panics struct {
		A string `json:"a"`
	}
	oneForm  struct{ time.Time }
	deep1    struct{ X deep2 }
	deep2    struct{ X deep3 }
	deep3    struct{ X deep4 }
	deep4    struct{ X deep5 }
	deep5    struct{ X deep6 }
	deep6    struct{ X deep7 }
	deep7    struct{ X deep8 }
	deep8    struct{ X deep9 }
	deep9    struct{ X deep10 }
	deep10   struct{ X addr }
	namedByt byte
	keyed    struct {
		ID string `json:"id" once:"key"`
	}
	tagText struct {
		level
		A string `once:"key"`
	}
	keyedNode struct {
		ID   string       `json:"id" once:"key"`
		Kids []*keyedNode `json:"kids"`
	}
)

func (halfJSON) MarshalJSON() ([]byte, error)     { return nil, nil }
func (*ptrSchema) JSONSchema() *jsonschema.Schema { return nil }
func (aliased) JSONSchemaAlias() any              { return "" }
func (lying) JSONSchema() *jsonschema.Schema      { return &jsonschema.Schema{Type: "integer"} }
func (panics) JSONSchema() *jsonschema.Schema     { panic("no schema today") }
func (missing) JSONSchemaExtend(s *jsonschema.Schema) {
	s.Properties.Delete("b")
	s.Properties.Set("c", &jsonschema.Schema{Type: "string"})
}

// tagged is a struct of one field whose tag a linter would not let pass.
func tagged[T any](tag reflect.StructTag) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[T](), Tag: tag}})
}

type mistake struct {
	typ  reflect.Type
	says []string
}

func wrong[T any](says ...string) mistake { return mistake{reflect.TypeFor[T](), says} }

// mistakes are types that New refuses, and what its error must say.
var mistakes = []mistake{
	wrong[int]("must be a struct"),
	wrong[*addr]("must be a struct"),
	wrong[withMap]("withMap.Labels", "map[string]string", "list of structs"),
	wrong[deepMap]("deepMap.In[].M", "map"),
	wrong[withAny]("withAny.Extra", "any value", "concrete type"),
	wrong[withRaw]("withRaw.Extra", "RawMessage"),
	wrong[struct{ C chan int }]("struct.C", "chan int", `json:"-"`),
	wrong[struct{ F func() }]("struct.F", "func()"),
	wrong[struct{ C complex128 }]("struct.C", "complex128"),
	wrong[struct{ U uintptr }]("struct.U", "uintptr"),
	wrong[struct{ E error }]("struct.E", "error", "concrete type"),
	wrong[struct{ N json.Number }]("struct.N", "json.Number", "int64"),
	wrong[struct{ U url.URL }]("struct.U", "url.URL", "format=uri"),
	wrong[struct{ B *big.Int }]("struct.B", "JSONSchema"),
	wrong[struct{ P **int }]("struct.P", "pointer to a pointer"),
	wrong[struct{ B []namedByt }]("struct.B", "[]byte"),
	wrong[struct{ M map[float64]int }]("struct.M", "string keys"),
	wrong[struct {
		C chan int
		F func()
	}]("struct.C", "struct.F"),
	// embedding and names
	wrong[SelfEmbed]("SelfEmbed", "embeds itself"),
	wrong[selfEmbed]("embedded pointer to an unexported struct"),
	wrong[struct{ *lower }]("struct.lower", "embed the struct itself"),
	wrong[struct{ lying }]("struct.lying", "export it"),
	wrong[struct{ time.Time }]("JSON form"),
	wrong[struct{ O oneForm }]("struct.O", "JSON form", "JSONSchema"),
	{reflect.StructOf([]reflect.StructField{
		{Name: "A", Type: reflect.TypeFor[string](), Tag: `json:"x"`},
		{Name: "B", Type: reflect.TypeFor[string](), Tag: `json:"x"`},
	}), []string{"struct.B", `"x"`, "struct.A"}},
	wrong[struct {
		A string `json:"id"`
		B string `json:"ID"`
	}]("struct.B", "only in case", "struct.A"),
	wrong[struct {
		base
		ID string `json:"id"`
	}]("same json name", "struct.base.ID"),
	wrong[struct {
		A string `json:"a b"`
	}]("struct.A", "json name"),
	wrong[struct {
		A string `json:"a,inline"`
	}]("struct.A", "inline", "omitempty"),
	wrong[struct {
		A bool `json:"a,string"`
	}]("struct.A", "integers only"),
	{tagged[addr](`json:"a,omitempty"`), []string{"struct.A", "omitzero"}},
	{tagged[time.Time](`json:"a,omitempty"`), []string{"struct.A", "omitzero"}},
	// methods
	wrong[struct{ H halfJSON }]("struct.H", "only one of MarshalJSON"),
	wrong[ptrSchema]("pointer receiver", "value receiver"),
	wrong[aliased]("JSONSchemaAlias", "JSONSchema method"),
	wrong[struct{ L lying }]("struct.L", "integer", "string"),
	wrong[struct{ M missing }]("struct.M", `"c"`, `"b"`),
	wrong[panics]("no schema today"),
	// tags
	wrong[struct {
		A string `jsonschema:"description=one, two and three"`
	}]("struct.A", "two and three", "jsonschema_description"),
	wrong[struct {
		A string `jsonschema:"description=a, b=c"`
	}]("struct.A", `" b"`, "jsonschema_description"),
	wrong[struct {
		A string `jsonschema:"enum=a,b"`
	}]("struct.A", `"b"`, "enum="),
	wrong[struct {
		A string `jsonschema:"minLenght=1"`
	}]("struct.A", "minLenght", "minLength"),
	wrong[struct {
		A string `jsonschema:"minimum=1"`
	}]("struct.A", "minimum", "no effect", "string"),
	wrong[struct {
		A int `jsonschema:"minLength=1"`
	}]("struct.A", "minLength", "minimum"),
	wrong[struct {
		A int `jsonschema:"minimum=one"`
	}]("struct.A", "minimum=one", "number"),
	wrong[struct {
		A int `jsonschema:"enum=1.5"`
	}]("struct.A", "whole number"),
	wrong[struct {
		A string `jsonschema:"minLength=-1"`
	}]("struct.A", "minLength=-1"),
	wrong[struct {
		A string `jsonschema:"pattern=["`
	}]("struct.A", "regular expression"),
	wrong[struct {
		A string `jsonschema:"pattern=^a{1,3}$"`
	}]("struct.A", `3}$`),
	wrong[struct {
		A string `jsonschema:"pattern=(?=a)b"`
	}]("struct.A", "regular expression"),
	wrong[struct {
		A string `jsonschema:"format=emial"`
	}]("struct.A", "emial", "email"),
	wrong[struct {
		A time.Time `jsonschema:"format=date"`
	}]("struct.A", "date-time"),
	wrong[struct {
		A []string `jsonschema:"enum=a=b"`
	}]("struct.A", "'='", "JSONSchema"),
	wrong[struct {
		A []string `jsonschema:"uniqueItems=false"`
	}]("struct.A", "uniqueItems=true"),
	wrong[struct {
		A ids `jsonschema:"minItems=1"`
	}]("struct.A", "minItems", "no effect"),
	wrong[struct {
		A addr `jsonschema:"minimum=1"`
	}]("struct.A", "minimum"),
	wrong[struct {
		A bool `jsonschema:"default=yes"`
	}]("struct.A", "true or false"),
	wrong[struct {
		A int `jsonschema:"type=string"`
	}]("struct.A", `"type"`),
	wrong[struct {
		A string `jsonschema:"oneof_required=x"`
	}]("struct.A", "oneof_required"),
	wrong[struct {
		A string `jsonschema:"nullable"`
	}]("struct.A", "pointer or omitempty"),
	wrong[struct {
		A string `json:"a,omitempty" jsonschema:"required"`
	}]("struct.A", "required"),
	wrong[struct {
		A string `jsonschema:"-"`
	}]("struct.A", `json:"-"`),
	wrong[struct {
		A float64 `jsonschema:"multipleOf=0"`
	}]("struct.A", "above 0"),
	wrong[struct {
		A string `json:"a" Once:"key"`
	}]("struct.A", `"once"`),
	// once
	wrong[struct {
		A string `once:"kye"`
	}]("struct.A", "kye", `"key"`, `"resource"`, `"-"`),
	wrong[struct {
		A string `once:""`
	}]("struct.A", `"key"`),
	wrong[struct {
		A string `once:"key,-"`
	}]("struct.A", "left out"),
	wrong[struct {
		A string `once:"key,key"`
	}]("struct.A", "twice"),
	wrong[struct {
		a string `once:"key"`
		B string
	}]("struct.a", "export"),
	wrong[struct {
		A string `json:"-" once:"key"`
	}]("struct.A", "never decoded"),
	wrong[struct {
		A *string `once:"key"`
	}]("struct.A", "always be there"),
	wrong[struct {
		A string `json:"a,omitempty" once:"key"`
	}]("struct.A", "omitempty"),
	wrong[struct {
		A string `json:"a,omitzero" once:"key"`
	}]("struct.A", "omitzero"),
	wrong[struct{ K *keyed }]("struct.K.ID", "always be there"),
	wrong[struct{ K []keyed }]("struct.K[].ID", "list"),
	wrong[keyedNode]("keyedNode.ID", "list"),
	wrong[struct {
		K keyed `once:"-"`
	}]("struct.K.ID", `once:"-"`),
	wrong[struct {
		base `once:"-"`
	}]("struct.base", "tag its fields"),
	wrong[struct {
		A string `once:"resource"`
		B string `once:"resource"`
	}]("struct.B", "second"),
	wrong[struct {
		A []string `once:"resource"`
	}]("struct.A", "string, number or bool"),
	wrong[struct {
		A string `json:"a.b" once:"resource"`
	}]("struct.A", "'.'"),
	wrong[struct{ T tagText }]("struct.T.A", "no effect"),
	// limits
	wrong[deep1]("11 levels", "10"),
}

func TestMistakesNameTheFieldAndTheMend(t *testing.T) {
	for _, m := range mistakes {
		c, err := codec.New(m.typ, codec.Options{})
		if err == nil {
			t.Errorf("%s is accepted: %s", m.typ, c.Schema())
			continue
		}
		for _, s := range m.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: error lacks %q: %v", m.typ, s, err)
			}
		}
	}
	if _, err := codec.New(nil, codec.Options{}); err == nil {
		t.Error("a nil type is accepted")
	}
}

func TestMalformedTagsAreFound(t *testing.T) {
	for _, tag := range []reflect.StructTag{`json:"a" once: "key"`, `json:"a",once:"key"`, `once:key`, "json:\"a\"\nonce:\"key\""} {
		typ := reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeFor[string](), Tag: tag}})
		if _, err := codec.New(typ, codec.Options{}); err == nil || !strings.Contains(err.Error(), "malformed") {
			t.Errorf("tag %s: %v", tag, err)
		}
	}
}

func TestStrictLimitsAreChecked(t *testing.T) {
	fields := make([]reflect.StructField, 5001)
	for i := range fields {
		fields[i] = reflect.StructField{Name: "F" + strings.Repeat("x", i%20) + string(rune('A'+i%26)) + itoa(i), Type: reflect.TypeFor[int]()}
	}
	_, err := codec.New(reflect.StructOf(fields), codec.Options{})
	if err == nil || !strings.Contains(err.Error(), "5001 properties") {
		t.Errorf("5001 properties: %v", err)
	}
	var tag strings.Builder
	for i := range 1001 {
		tag.WriteString(",enum=v" + itoa(i))
	}
	one := reflect.StructField{Name: "A", Type: reflect.TypeFor[string](), Tag: reflect.StructTag(`jsonschema:"` + tag.String()[1:] + `"`)}
	if _, err = codec.New(reflect.StructOf([]reflect.StructField{one}), codec.Options{}); err == nil || !strings.Contains(err.Error(), "1001 enum values") {
		t.Errorf("1001 enum values: %.200v", err)
	}
	one.Tag = reflect.StructTag(`jsonschema:"enum=` + strings.Repeat("x", 120_001) + `"`)
	if _, err = codec.New(reflect.StructOf([]reflect.StructField{one}), codec.Options{}); err == nil || !strings.Contains(err.Error(), "characters") {
		t.Errorf("120001 characters: %.200v", err)
	}
}

func itoa(i int) string { b, _ := json.Marshal(i); return string(b) }

func TestOutputResourceFindsOneScalarField(t *testing.T) {
	type booking struct {
		ID   int64  `json:"id" once:"resource"`
		Note string `json:"note"`
	}
	type wrapped struct {
		booking
		Booking booking `json:"-"`
	}
	type nested struct {
		Ok   bool    `json:"ok"`
		Book booking `json:"book"`
	}
	type tree struct {
		Kids []tree
		Map  map[string]*tree
	}
	for _, tc := range []struct {
		typ        reflect.Type
		want, says string
	}{
		{reflect.TypeFor[booking](), "id", ""},
		{reflect.TypeFor[*booking](), "id", ""},
		{reflect.TypeFor[nested](), "book.id", ""},
		{reflect.TypeFor[wrapped](), "id", ""},
		{reflect.TypeFor[string](), "", ""},
		{reflect.TypeFor[tree](), "", ""},
		{reflect.TypeFor[any](), "", ""},
		{reflect.TypeFor[time.Time](), "", ""},
		{nil, "", ""},
		{reflect.TypeFor[struct{ B *booking }](), "", "struct.B.ID"},
		{reflect.TypeFor[struct{ B []booking }](), "", "list"},
		{reflect.TypeFor[struct {
			A *string `once:"resource"`
		}](), "", "pointer"},
		{reflect.TypeFor[struct {
			A []string `once:"resource"`
		}](), "", "string, number or bool"},
		{reflect.TypeFor[struct {
			A string `once:"key"`
		}](), "", "only once:\"resource\""},
		{reflect.TypeFor[struct {
			a string `once:"resource"`
		}](), "", "not encoded"},
		{reflect.TypeFor[struct {
			A string `json:"-" once:"resource"`
		}](), "", "not encoded"},
	} {
		got, err := codec.OutputResource(tc.typ)
		if got != tc.want || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%v: %q, %v; want %q %q", tc.typ, got, err, tc.want, tc.says)
		}
	}
}

func TestResourceOfAnOutput(t *testing.T) {
	for _, tc := range []struct{ out, name, want string }{
		{`{"id": "a\u0062"}`, "id", "ab"},
		{`{"id":42}`, "id", "42"},
		{`{"id":9007199254740993}`, "id", "9007199254740993"},
		{`{"a":{"id":true}}`, "a.id", "true"},
		{`{"a":{"id":"x"}}`, "id", ""},
		{`{"id":null}`, "id", ""},
		{`{"id":[1]}`, "id", ""},
		{`{"id":"x"}`, "", ""},
		{`[1]`, "id", ""},
		{`not json`, "id", ""},
		{``, "id", ""},
	} {
		if got := codec.ResourceOf([]byte(tc.out), tc.name); got != tc.want {
			t.Errorf("ResourceOf(%s, %s) = %q, want %q", tc.out, tc.name, got, tc.want)
		}
	}
}
