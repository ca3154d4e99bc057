package codec_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/invopop/jsonschema"
)

type (
	addr struct {
		Street string `json:"street" jsonschema:"minLength=1,maxLength=40"`
		Zip    string `json:"zip,omitempty" jsonschema:"pattern=^[0-9]{5}$"`
	}
	contact struct {
		Name  string `json:"name"`
		Email string `json:"email,omitempty" jsonschema:"format=email"`
		Home  *addr  `json:"home,omitempty"`
	}
	node struct {
		V    string  `json:"v"`
		Kids []*node `json:"kids"`
	}
	chain struct {
		V    int    `json:"v"`
		Next *chain `json:"next" jsonschema_description:"The next link, if any"`
	}
	forest struct {
		Trees []node `json:"trees"`
		Best  node   `json:"best" jsonschema_description:"The best, the only one"`
	}
	color  string
	colors struct {
		One  color   `json:"one" jsonschema:"enum=red,enum=blue"`
		Some []color `json:"some" jsonschema:"enum=red,enum=blue,minItems=1,maxItems=3,uniqueItems=true"`
		May  color   `json:"may,omitempty" jsonschema:"enum=red,enum=blue"`
	}
	sized struct {
		I8  int8   `json:"i8"`
		U8  uint8  `json:"u8"`
		I16 int16  `json:"i16"`
		U32 uint32 `json:"u32"`
		U64 uint64 `json:"u64"`
		I64 int64  `json:"i64"`
	}
	floats struct {
		F64 float64 `json:"f64" jsonschema:"minimum=0,exclusiveMaximum=100,multipleOf=0.5"`
		F32 float32 `json:"f32"`
	}
	plainFloat struct {
		F float64 `json:"f"`
	}
	pointers struct {
		S *string  `json:"s"`
		I *int     `json:"i,omitempty"`
		B *bool    `json:"b"`
		F *float64 `json:"f"`
		A *addr    `json:"a"`
	}
	zeros struct {
		When time.Time `json:"when,omitzero"`
		Home addr      `json:"home,omitzero"`
		N    int       `json:"n,omitzero"`
	}
	times struct {
		At  time.Time     `json:"at"`
		For time.Duration `json:"for"`
	}
	blobs struct {
		Data []byte `json:"data"`
		Opt  []byte `json:"opt,omitempty"`
	}
	fixed struct {
		RGB [3]uint8 `json:"rgb"`
	}
	matrix struct {
		Rows [][]float64 `json:"rows"`
	}
	quoted struct {
		ID int64 `json:"id,string"`
	}
	untagged struct {
		Name  string
		Count int
	}
	base struct {
		ID string `json:"id" once:"key"`
	}
	embeds struct {
		base
		*ContactBase
		Note string `json:"note"`
	}
	ContactBase struct {
		Email string `json:"email,omitempty"`
	}
	page[T any] struct {
		Items []T `json:"items"`
		Next  *T  `json:"next"`
	}
	pages struct {
		A page[addr]            `json:"a"`
		B page[page[contact]]   `json:"b"`
		C page[map3[int, addr]] `json:"c"`
	}
	map3[K, V any] struct {
		Key K `json:"key"`
		Val V `json:"val"`
	}
	ids   []string
	named struct {
		IDs ids `json:"ids"`
	}
	hidden struct {
		Name   string `json:"name"`
		Secret string `json:"-"`
		_      string
	}
	withIP struct {
		IP  netip.Addr  `json:"ip"`
		Opt *netip.Addr `json:"opt"`
	}
	anonymous struct {
		In struct {
			A string `json:"a"`
		} `json:"in"`
		Opt *struct {
			B int `json:"b"`
		} `json:"opt"`
	}
	texts struct {
		T string `json:"t" jsonschema:"title=Title,description=One\\, two,default=x,example=y"`
		U string `json:"u" jsonschema:"format=uri,readOnly=true"`
		R string `json:"r,omitempty" jsonschema:"minLength=2"`
	}
	empty    struct{}
	optional struct {
		A string   `json:"a,omitempty"`
		B []string `json:"b,omitempty"`
	}
	sums struct {
		Either any `json:"either" jsonschema:"anyof_type=string;integer"`
	}
	bools struct {
		Yes bool  `json:"yes" jsonschema:"default=true"`
		May *bool `json:"may"`
	}
	dates struct {
		Day  string   `json:"day" jsonschema:"format=date"`
		IDs  []string `json:"ids" jsonschema:"format=uuid"`
		Mail *string  `json:"mail" jsonschema:"format=email"`
	}
	money struct {
		Total cents `json:"total"`
	}
	levels struct {
		L level  `json:"l"`
		O *level `json:"o"`
	}
	shapes struct {
		S shape   `json:"s"`
		L []shape `json:"l"`
	}
	extended struct {
		N extInt `json:"n"`
		S ext    `json:"s"`
	}
	described struct {
		A string `json:"a"`
		B *int   `json:"b"`
	}
	lenient struct {
		V negative `json:"v,omitzero"`
	}
	negative struct {
		N int `json:"n"`
	}
	describes struct {
		D described `json:"d"`
	}
)

// IsZero says more than the zero value does.
func (n negative) IsZero() bool { return n.N <= 0 }

// level has a text form.
type level int

func (l level) MarshalText() ([]byte, error) { return []byte([]string{"low", "high"}[l]), nil }
func (l *level) UnmarshalText(b []byte) error {
	switch strings.ToLower(string(b)) {
	case "low":
		*l = 0
	case "high":
		*l = 1
	default:
		return fmt.Errorf("no level %q", b)
	}
	return nil
}

// cents has a JSON form of its own: "12.34" or 1234.
type cents int64

func (c cents) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `"%d.%02d"`, c/100, c%100), nil
}

func (c *cents) UnmarshalJSON(b []byte) error {
	var whole, part int64
	if _, err := fmt.Sscanf(string(b), `"%d.%d"`, &whole, &part); err == nil {
		*c = cents(whole*100 + part)
		return nil
	}
	return json.Unmarshal(b, (*int64)(c))
}

func (cents) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Type: "string", Pattern: `^[0-9]+\.[0-9]{2}$`}, {Type: "integer", Minimum: "1"},
	}}
}

// shape describes itself, with an optional property, and decodes itself.
type shape struct{ kind, label string }

func (s shape) MarshalJSON() ([]byte, error) {
	m := map[string]string{"kind": s.kind}
	if s.label != "" {
		m["label"] = s.label
	}
	return json.Marshal(m)
}

func (s *shape) UnmarshalJSON(b []byte) error {
	var m map[string]*string
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	if m["kind"] == nil {
		return errors.New("no kind")
	}
	s.kind = *m["kind"]
	if m["label"] != nil {
		s.label = *m["label"]
	}
	return nil
}

func (shape) JSONSchema() *jsonschema.Schema {
	p := jsonschema.NewProperties()
	p.Set("kind", &jsonschema.Schema{Type: "string", MinLength: new(uint64(1))})
	p.Set("label", &jsonschema.Schema{Type: "string"})
	return &jsonschema.Schema{Type: "object", Properties: p, Required: []string{"kind"}, AdditionalProperties: jsonschema.FalseSchema}
}

type extInt int32

func (extInt) JSONSchemaExtend(s *jsonschema.Schema) { s.Minimum = "5" }

type ext struct {
	X string `json:"x"`
}

func (ext) JSONSchemaExtend(s *jsonschema.Schema) {
	x, _ := s.Properties.Get("x")
	x.MaxLength = new(uint64(3))
}

func (described) JSONSchema() *jsonschema.Schema {
	p := jsonschema.NewProperties()
	p.Set("b", &jsonschema.Schema{Type: "integer", Maximum: "9"})
	p.Set("a", &jsonschema.Schema{Type: "string"})
	return &jsonschema.Schema{Type: "object", Properties: p, Required: []string{"a"}}
}

// Two types of one name.
func innerA() reflect.Type {
	type inner struct {
		A string `json:"a"`
	}
	type outer struct {
		X inner `json:"x"`
	}
	return reflect.TypeFor[outer]()
}

type inner struct {
	B int `json:"b"`
}

// good and bad are arguments as a strict model sends them.
type typeCase struct {
	typ       reflect.Type
	good, bad []string
}

func typ[T any](good, bad []string) typeCase { return typeCase{reflect.TypeFor[T](), good, bad} }

func list(s ...string) []string { return s }

// strictTypes are types that have a strict schema.
var strictTypes = []typeCase{
	typ[addr](list(`{"street":"s","zip":null}`, `{"street":"s","zip":"12345"}`), list(`{"street":"","zip":null}`, `{"street":"s","zip":"1"}`, `{"street":null,"zip":null}`)),
	typ[contact](list(`{"name":"n","email":null,"home":null}`, `{"name":"n","email":"a@b.example","home":{"street":"s","zip":null}}`), list(`{"name":"n","email":"x","home":null}`, `{"name":"n","email":null,"home":{"zip":null}}`, `{"name":"n","email":null,"home":{"street":"s","zip":null,"x":1}}`)),
	typ[node](list(`{"v":"a","kids":[]}`, `{"v":"a","kids":[{"v":"b","kids":[]}]}`), list(`{"v":"a","kids":[null]}`, `{"v":"a","kids":[{"v":"b"}]}`, `{"v":"a","kids":null}`)),
	typ[chain](list(`{"v":1,"next":null}`, `{"v":1,"next":{"v":2,"next":null}}`), list(`{"v":1,"next":{"v":"2","next":null}}`)),
	typ[forest](list(`{"trees":[],"best":{"v":"","kids":[]}}`), list(`{"trees":[],"best":null}`)),
	typ[colors](list(`{"one":"red","some":["blue"],"may":null}`, `{"one":"red","some":["blue","red"],"may":"red"}`), list(`{"one":"green","some":["blue"],"may":null}`, `{"one":"red","some":[],"may":null}`, `{"one":"red","some":["blue","blue"],"may":null}`, `{"one":"red","some":["x"],"may":null}`, `{"one":"red","some":["blue"],"may":"x"}`)),
	typ[sized](list(`{"i8":-128,"u8":255,"i16":1,"u32":4294967295,"u64":18446744073709551615,"i64":-9223372036854775808}`), list(`{"i8":128,"u8":1,"i16":1,"u32":1,"u64":1,"i64":1}`, `{"i8":1,"u8":-1,"i16":1,"u32":1,"u64":1,"i64":1}`, `{"i8":1,"u8":1,"i16":1,"u32":1,"u64":1,"i64":9223372036854775808}`)),
	typ[floats](list(`{"f64":0.5,"f32":0.1}`), list(`{"f64":100,"f32":0}`, `{"f64":0.3,"f32":0}`, `{"f64":-1,"f32":0}`, `{"f64":1,"f32":1e39}`)),
	typ[plainFloat](list(`{"f":1e300}`, `{"f":-0}`), list(`{"f":1e400}`, `{"f":"1"}`)),
	typ[pointers](list(`{"s":null,"i":null,"b":null,"f":null,"a":null}`, `{"s":"","i":0,"b":false,"f":0,"a":{"street":"s","zip":null}}`), list(`{"s":1,"i":null,"b":null,"f":null,"a":null}`)),
	typ[zeros](list(`{"when":null,"home":null,"n":null}`, `{"when":"2026-01-02T03:04:05Z","home":{"street":"s","zip":null},"n":1}`), list(`{"when":"x","home":null,"n":null}`)),
	typ[times](list(`{"at":"2026-01-02T03:04:05.5+02:00","for":5}`), list(`{"at":"2026-01-02 03:04:05Z","for":5}`, `{"at":"2026-13-02T03:04:05Z","for":5}`, `{"at":"2026-01-02T03:04:05Z","for":"5s"}`)),
	typ[blobs](list(`{"data":"aGk=","opt":null}`, `{"data":"","opt":"aGk="}`), list(`{"data":"@@","opt":null}`, `{"data":[1],"opt":null}`)),
	typ[fixed](list(`{"rgb":[1,2,3]}`), list(`{"rgb":[1,2]}`, `{"rgb":[1,2,256]}`, `{"rgb":"AQID"}`)),
	typ[matrix](list(`{"rows":[[1,2.5],[]]}`), list(`{"rows":[null]}`, `{"rows":[1]}`)),
	typ[quoted](list(`{"id":"9007199254740993"}`), list(`{"id":9}`, `{"id":"x"}`, `{"id":"9223372036854775808"}`, `{"id":"007"}`, `{"id":"null"}`)),
	typ[untagged](list(`{"Name":"n","Count":1}`), list(`{"name":"n","count":1}`)),
	typ[embeds](list(`{"id":"1","email":null,"note":""}`, `{"id":"1","email":"","note":""}`, `{"id":"1","email":"e","note":""}`), list(`{"email":"e","note":""}`)),
	typ[pages](list(`{"a":{"items":[],"next":null},"b":{"items":[{"items":[],"next":null}],"next":null},"c":{"items":[{"key":1,"val":{"street":"s","zip":null}}],"next":null}}`), list(`{"a":{"items":[{}],"next":null}}`)),
	typ[named](list(`{"ids":["a"]}`), list(`{"ids":[1]}`)),
	typ[hidden](list(`{"name":"n"}`), list(`{"name":"n","Secret":"s"}`, `{"name":"n","local":"s"}`)),
	typ[withIP](list(`{"ip":"::1","opt":null}`, `{"ip":"10.0.0.1","opt":"10.0.0.2"}`), list(`{"ip":"x","opt":null}`, `{"ip":1,"opt":null}`)),
	typ[anonymous](list(`{"in":{"a":"x"},"opt":null}`, `{"in":{"a":"x"},"opt":{"b":1}}`), list(`{"in":{},"opt":null}`)),
	typ[texts](list(`{"t":"","u":"https://example.com/a","r":null}`), list(`{"t":"","u":"::","r":null}`, `{"t":"","u":"https://example.com","r":"x"}`)),
	typ[empty](list(`{}`), list(`{"a":1}`)),
	typ[optional](list(`{"a":null,"b":null}`, `{"a":"","b":[]}`), list(`{"a":1,"b":null}`)),
	typ[sums](list(`{"either":"x"}`, `{"either":7}`), list(`{"either":true}`, `{"either":1.5}`)),
	typ[bools](list(`{"yes":true,"may":null}`), list(`{"yes":"true","may":null}`, `{"yes":1,"may":null}`)),
	typ[dates](list(`{"day":"2026-02-28","ids":["123e4567-e89b-12d3-a456-426614174000"],"mail":null}`), list(`{"day":"2026-02-30","ids":[],"mail":null}`, `{"day":"2026-02-28","ids":["x"],"mail":null}`)),
	typ[money](list(`{"total":"12.34"}`, `{"total":1234}`), list(`{"total":"x"}`, `{"total":0}`, `{"total":null}`, `{"total":1e999999999}`)),
	typ[levels](list(`{"l":"low","o":null}`, `{"l":"high","o":"low"}`), list(`{"l":"mid","o":null}`, `{"l":0,"o":null}`)),
	typ[shapes](list(`{"s":{"kind":"k","label":null},"l":[]}`, `{"s":{"kind":"k","label":"x"},"l":[{"kind":"k","label":null}]}`), list(`{"s":{"kind":"","label":null},"l":[]}`, `{"s":{"label":null},"l":[]}`, `{"s":{"kind":"k","label":null,"z":1},"l":[]}`)),
	typ[extended](list(`{"n":5,"s":{"x":"abc"}}`), list(`{"n":4,"s":{"x":"abc"}}`, `{"n":5,"s":{"x":"abcd"}}`)),
	typ[describes](list(`{"d":{"a":"x","b":null}}`, `{"d":{"a":"x","b":9}}`), list(`{"d":{"a":"x","b":10}}`, `{"d":{"b":1}}`)),
	typ[lenient](list(`{"v":null}`, `{"v":{"n":-1}}`, `{"v":{"n":1}}`), list(`{"v":{}}`)),
	typ[described](list(`{"a":"x","b":null}`), list(`{"b":1}`)),
	typ[sixFields](list(sixArguments), list(`{"order_id":"","cents":0,"currency":"EUR","partial":true,"reason":null,"ratio":1}`)),
	typ[struct{ X inner }](list(`{"X":{"b":1}}`), list(`{"X":{"a":"x"}}`)),
	{innerA(), list(`{"x":{"a":"x"}}`), list(`{"x":{"b":1}}`)},
}
