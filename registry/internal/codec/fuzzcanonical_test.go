package codec_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

// respell writes a value in other bytes: the members of objects backwards, blanks between all, every character of a text
// escaped.
func respell(b *strings.Builder, v any) {
	blank := func(s string) { b.WriteString(" " + s + "\n\t") }
	switch v := v.(type) {
	case map[string]any:
		blank("{")
		for i, key := range slices.Backward(slices.Sorted(maps.Keys(v))) {
			respell(b, key)
			blank(":")
			if respell(b, v[key]); i > 0 {
				blank(",")
			}
		}
		blank("}")
	case []any:
		blank("[")
		for i, e := range v {
			if i > 0 {
				blank(",")
			}
			respell(b, e)
		}
		blank("]")
	case string:
		b.WriteByte('"')
		for _, unit := range utf16.Encode([]rune(v)) {
			_, _ = fmt.Fprintf(b, `\u%04X`, unit)
		}
		b.WriteByte('"')
	case nil:
		b.WriteString("null")
	case json.Number:
		b.WriteString(v.String())
	default:
		_, _ = fmt.Fprint(b, v)
	}
}

// FuzzCanonical checks on any arguments that the order of members, blanks and escapes make no difference, and that the
// canonical form is the same value.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":1,"b":[true,null,"x"],"c":{"z":0,"y":-0}}`, `{"é":"é","\ud83d\ude00":"\u0000\u001f\u007f\u2028"}`,
		`{"n":[9007199254740993,1e21,1E-7,0.1,-0.0,123456789012345678901234567890]}`, `{"\u20ac":1,"\r":2,"1":3,"\ud83d\ude02":4,"\u0080":5,"ö":6,"\ufb33":7}`,
	} {
		f.Add(s)
	}
	raw, err := codec.NewRaw(codec.RawSpec{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args string) {
		in, err := raw.Decode(args)
		if err != nil {
			return
		}
		value := func(b []byte) (v any) {
			d := json.NewDecoder(bytes.NewReader(b))
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				t.Fatalf("%q: %v", b, err)
			}
			return v
		}
		var b strings.Builder
		respell(&b, value(in.JSON))
		again, err := raw.Decode(b.String())
		if err != nil {
			t.Fatalf("%q in other bytes, %q, is refused: %v", args, b.String(), err)
		}
		if !bytes.Equal(again.JSON, in.JSON) || again.Fingerprint != in.Fingerprint {
			t.Fatalf("%q is %s, and in other bytes, %q, it is %s", args, in.JSON, b.String(), again.JSON)
		}
	})
}
