package codec_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

func mustRepeat(t *testing.T, typ reflect.Type) *codec.Codec {
	t.Helper()
	c, err := codec.New(typ, codec.Options{Loose: true, Repeat: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRepeatOfChangesNoHashOfTheGoldenFile(t *testing.T) {
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var file goldenFile
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	codecs := goldenCodecs(t, true)
	for _, want := range file.Cases {
		named := `{"repeat_of":"op_1",` + want.Canonical[1:]
		if want.Canonical == "{}" {
			named = `{"repeat_of":"op_1"}`
		}
		for args, repeats := range map[string]string{want.Arguments: "", named: "op_1"} {
			in := decode(t, codecs[want.Type], args)
			got := golden{want.Type, want.Arguments, string(in.JSON), hex.EncodeToString(in.Key[:]), hex.EncodeToString(in.Fingerprint[:])}
			if diff := cmp.Diff(want, got); diff != "" || in.RepeatOf != repeats {
				t.Errorf("%s: repeats %q, want %q; %s", args, in.RepeatOf, repeats, diff)
			}
		}
	}
}

func TestRepeatOfIsTakenOffAtTheTopAlone(t *testing.T) {
	loose := mustRaw(t, codec.RawSpec{Repeat: true})
	checked := mustRaw(t, codec.RawSpec{Schema: json.RawMessage(transferSchema), Repeat: true})
	typed := mustRepeat(t, reflect.TypeFor[mail]())
	recursive := mustRepeat(t, reflect.TypeFor[chain]())
	long := strings.Repeat("x", 64)
	for _, tc := range []struct {
		c             *codec.Codec
		args          string
		repeats, json string
	}{
		{typed, `{"to":"u1"}`, "", `{"to":"u1"}`},
		{typed, `{"to":"u1","repeat_of":null}`, "", `{"to":"u1"}`},
		{typed, `{"repeat_of":"","to":"u1"}`, "", `{"to":"u1"}`},
		{typed, `{"to":"u1","repeat_of":"op_1","cc":"x"}`, "op_1", `{"cc":"x","to":"u1"}`},
		{typed, `{"to":"u1","re\u0070eat_of":"op\u005f1"}`, "op_1", `{"to":"u1"}`},
		{typed, `"{\"to\":\"u1\",\"repeat_of\":\"op_1\"}"`, "op_1", `{"to":"u1"}`},
		{typed, `{"to":"u1","repeat_of":"` + long + `"}`, long, `{"to":"u1"}`},
		{loose, `{"repeat_of":"op_1"}`, "op_1", `{}`},
		{loose, ``, "", `{}`},
		{loose, `{"a":{"repeat_of":"x"},"repeat_of":"op_1","b":[{"repeat_of":7}]}`, "op_1", `{"a":{"repeat_of":"x"},"b":[{"repeat_of":7}]}`},
		{checked, `{"account":"x","repeat_of":"op_1","amount":5}`, "op_1", `{"account":"x","amount":5}`},
		{recursive, `{"repeat_of":"op_1","v":1,"next":{"v":2}}`, "op_1", `{"next":{"v":2},"v":1}`},
		{mustRaw(t, codec.RawSpec{}), `{"repeat_of":"x"}`, "", `{"repeat_of":"x"}`},
	} {
		in := decode(t, tc.c, tc.args)
		if in.RepeatOf != tc.repeats || string(in.JSON) != tc.json {
			t.Errorf("%s: repeats %q with %s, want %q with %s", tc.args, in.RepeatOf, in.JSON, tc.repeats, tc.json)
		}
	}
	wantRule(t, recursive, `{"v":1,"next":{"v":2,"repeat_of":"op_1"}}`, "unknown")
	wantRule(t, mustNew(t, reflect.TypeFor[mail]()), `{"to":"u1","repeat_of":null}`, "unknown")
}

func TestRepeatOfIsRefusedAsAnyFieldWouldBe(t *testing.T) {
	for name, c := range map[string]*codec.Codec{
		"typed":       mustRepeat(t, reflect.TypeFor[empty]()),
		"with schema": mustRaw(t, codec.RawSpec{Schema: json.RawMessage(`{"type":"object","additionalProperties":false}`), Repeat: true}),
		"any object":  mustRaw(t, codec.RawSpec{Repeat: true}),
	} {
		for args, rule := range map[string]string{
			`{"repeat_of":7}`:                                 "type",
			`{"repeat_of":true}`:                              "type",
			`{"repeat_of":["hunter2"]}`:                       "type",
			`{"repeat_of":{"id":"hunter2"}}`:                  "type",
			`{"Repeat_Of":"hunter2"}`:                         "case",
			`{"repeat_of":"hunter2","REPEAT_OF":"hunter2"}`:   "case",
			`{"repeat_of":"hunter2","repeat_of":"hunter2"}`:   "duplicate",
			`{"repeat_of":null,"repeat_of":"hunter2"}`:        "duplicate",
			`{"repeat_of":null,"re\u0070eat_of":null}`:        "duplicate",
			`{"repeat_of":"` + strings.Repeat("x", 65) + `"}`: "maxLength",
			`{"repeat_of":"\ud800"}`:                          "utf8",
			`{"repeat_of":"hunter2`:                           "json",
			`{"Repeat_of"`:                                    "json",
			`{"repeat_of":`:                                   "json",
		} {
			e := wantRule(t, c, args, rule)
			if strings.Contains(e.Error(), "hunter2") || rule == "type" && e.Path != "/repeat_of" {
				t.Errorf("%s: %s: %v", name, args, e)
			}
		}
		// A refused call leaves nothing behind for the next one.
		if in := decode(t, c, `{}`); in.RepeatOf != "" {
			t.Errorf("%s: repeats %q", name, in.RepeatOf)
		}
	}
}

func TestTheModelIsToldOfRepeatOf(t *testing.T) {
	const told = `"repeat_of":{"type":["string","null"],"description":"Only if the user asked to do it again: the operation id from already_done. Otherwise null."}`
	const strict = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	for name, tc := range map[string]struct {
		c      *codec.Codec
		strict bool
		want   string
	}{
		"typed": {mustRepeat(t, reflect.TypeFor[numbered]()), true,
			`{"type":"object","properties":{"n":{"type":"integer"},` + told + `},"additionalProperties":false,"required":["n","repeat_of"]}`},
		"without parameters": {mustRepeat(t, reflect.TypeFor[empty]()), true,
			`{"type":"object","properties":{` + told + `},"additionalProperties":false,"required":["repeat_of"]}`},
		"loose": {mustRepeat(t, reflect.TypeFor[struct {
			M map[string]int `json:"m"`
		}]()), false,
			`{"properties":{"m":{"additionalProperties":{"type":"integer"},"type":"object"},` + told + `},"additionalProperties":false,"type":"object","required":["m"]}`},
		"raw": {mustRaw(t, codec.RawSpec{Schema: json.RawMessage(`{"type":"object"}`), Repeat: true}), false,
			`{"type":"object","properties":{` + told + `}}`},
		"raw and strict": {mustRaw(t, codec.RawSpec{Schema: json.RawMessage(strict), Strict: true, Repeat: true}), true,
			`{"type":"object","properties":{"a":{"type":"string"},` + told + `},"required":["a","repeat_of"],"additionalProperties":false}`},
		"any object": {mustRaw(t, codec.RawSpec{Repeat: true}), false, `{"type":"object","properties":{},"additionalProperties":true}`},
	} {
		if diff := cmp.Diff(tc.want, string(tc.c.Schema())); diff != "" || tc.c.Strict() != tc.strict {
			t.Errorf("%s: strict %t %s", name, tc.c.Strict(), diff)
		}
	}
	for _, tc := range strictTypes {
		c := mustRepeat(t, tc.typ)
		if faults := strictFaults(c.Schema()); !c.Strict() || faults != nil {
			t.Errorf("%s: %q", tc.typ, faults)
		}
		for _, good := range tc.good {
			decode(t, c, good)
		}
	}
}

func TestANameOfTheToolsOwnThatIsRepeatOfIsAMistake(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"Repeat_of":{}}}`)
	for name, s := range map[string]codec.RawSpec{
		"property": {Schema: schema},
		"required": {Schema: json.RawMessage(`{"type":"object","required":["repeat_of"]}`)},
		"key":      {Key: []string{"repeat_of"}},
		"ignore":   {Ignore: []string{"repeat_of"}},
		"resource": {Resource: "repeat_of"},
	} {
		if _, err := codec.NewRaw(s); err != nil {
			t.Errorf("%s: refused without Repeat: %v", name, err)
		}
		s.Repeat = true
		if _, err := codec.NewRaw(s); err == nil || !strings.Contains(err.Error(), "drop Repeat") {
			t.Errorf("%s: %v", name, err)
		}
	}
	type inner struct {
		Of string `json:"repeat_of"`
	}
	type outer struct {
		In inner `json:"in"`
	}
	mustRepeat(t, reflect.TypeFor[outer]())
	mustNew(t, reflect.TypeFor[inner]())
	if _, err := codec.New(reflect.TypeFor[inner](), codec.Options{Repeat: true}); err == nil || !strings.Contains(err.Error(), "inner.Of: the name \"repeat_of\"") {
		t.Error(err)
	}
}
