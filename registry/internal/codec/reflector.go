package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/invopop/jsonschema"
)

// This is the only file that knows the reflector. It hands over JSON.

type (
	ownSchema   interface{ JSONSchema() *jsonschema.Schema }
	extends     interface{ JSONSchemaExtend(*jsonschema.Schema) }
	aliases     interface{ JSONSchemaAlias() any }
	aliasesProp interface{ JSONSchemaProperty(string) any }
)

// schemaMethods reports whether t describes itself with a JSONSchema method,
// and an error for methods that the reflector would overlook or recurse on.
func schemaMethods(t reflect.Type) (own bool, err error) {
	p := reflect.PointerTo(t)
	for name, m := range map[string]reflect.Type{
		"JSONSchema":       reflect.TypeFor[ownSchema](),
		"JSONSchemaExtend": reflect.TypeFor[extends](),
	} {
		if p.Implements(m) && !t.Implements(m) {
			err = errors.Join(err, fmt.Errorf("method %s of %s has a pointer receiver and would be ignored: give it a value receiver", name, t))
		}
	}
	if p.Implements(reflect.TypeFor[aliases]()) || p.Implements(reflect.TypeFor[aliasesProp]()) {
		err = errors.Join(err, fmt.Errorf("%s has a JSONSchemaAlias or JSONSchemaProperty method, which would describe something else than is decoded: give the type a JSONSchema method", t))
	}
	return t.Implements(reflect.TypeFor[ownSchema]()), err
}

// namer gives each named type a definition name of its own.
type namer struct {
	names map[reflect.Type]string
	types map[string]reflect.Type
}

var (
	packagePath = regexp.MustCompile(`[^\[\],*]*/`)
	unfit       = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)
)

func (n *namer) name(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	if name, ok := n.names[t]; ok {
		return name
	}
	base := packagePath.ReplaceAllString(t.Name(), "")
	base = strings.Trim(unfit.ReplaceAllString(base, "_"), "_")
	if base == "" {
		base = "Type"
	}
	name := base
	for i := 2; n.types[name] != nil; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	n.names[t], n.types[name] = name, t
	return name
}

// reflectSchema makes the raw schema of p's type. defs maps the names under
// $defs to the types they describe.
func reflectSchema(p *plan, plans map[reflect.Type]*plan) (doc []byte, defs map[string]reflect.Type, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("making the schema of %s: %v", p.typ, r)
		}
	}()
	n := &namer{map[reflect.Type]string{}, map[string]reflect.Type{}}
	r := &jsonschema.Reflector{
		Anonymous: true,
		Namer:     n.name,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			q := plans[t]
			if q == nil || q.own {
				return nil
			}
			s := basicSchema(q)
			if e, ok := reflect.TypeAssert[extends](reflect.New(t)); ok && s != nil {
				e.JSONSchemaExtend(s)
			}
			return s
		},
	}
	doc, err = json.Marshal(r.ReflectFromType(p.typ))
	return doc, n.types, err
}

// basicSchema describes the types where the reflector says too little.
func basicSchema(p *plan) *jsonschema.Schema {
	switch p.kind {
	case kText:
		return &jsonschema.Schema{Type: "string"}
	case kInt:
		s := &jsonschema.Schema{Type: "integer"}
		if p.bits < 64 {
			s.Minimum = json.Number(strconv.FormatInt(-1<<(p.bits-1), 10))
			s.Maximum = json.Number(strconv.FormatInt(1<<(p.bits-1)-1, 10))
		}
		return s
	case kUint:
		s := &jsonschema.Schema{Type: "integer", Minimum: "0"}
		if p.bits < 64 {
			s.Maximum = json.Number(strconv.FormatUint(math.MaxUint64>>(64-p.bits), 10))
		}
		return s
	default:
		return nil
	}
}
