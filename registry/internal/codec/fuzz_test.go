package codec_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

// FuzzDecode checks on any text that what is accepted is a fixed point, loads
// to the same value, and that what is refused is refused with a typed error.
func FuzzDecode(f *testing.F) {
	var codecs []*codec.Codec
	for _, tc := range strictTypes {
		c, err := codec.New(tc.typ, codec.Options{})
		if err != nil {
			f.Fatal(err)
		}
		codecs = append(codecs, c)
		for _, s := range append(tc.good, tc.bad...) {
			f.Add(s)
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[freeForm](), reflect.TypeFor[refund]()} {
		c, err := codec.New(typ, codec.Options{Loose: true})
		if err != nil {
			f.Fatal(err)
		}
		codecs = append(codecs, c)
	}
	raw, err := codec.NewRaw(codec.RawSpec{})
	if err != nil {
		f.Fatal(err)
	}
	codecs = append(codecs, raw)
	f.Add(`{"repeat_of":"op_1"}`)
	f.Add(`{"to":"x","repeat_of":null,"repeat_of":"op_1"}`)
	repeats, err := codec.New(reflect.TypeFor[mail](), codec.Options{Repeat: true})
	if err != nil {
		f.Fatal(err)
	}
	rawRepeats, err := codec.NewRaw(codec.RawSpec{Repeat: true})
	if err != nil {
		f.Fatal(err)
	}
	codecs = append(codecs, repeats, rawRepeats)
	f.Fuzz(func(t *testing.T, args string) {
		for _, c := range codecs {
			in, err := c.Decode(args)
			if err != nil {
				var e *codec.Error
				if !errors.As(err, &e) || e.Rule == "" || !utf8.ValidString(e.Error()) || strings.ContainsAny(e.Error(), "\x00\n") {
					t.Fatalf("%q: %#v", args, err)
				}
				continue
			}
			if in.RepeatOf != "" && c != repeats && c != rawRepeats || len(in.RepeatOf) > 64 {
				t.Fatalf("%q: repeats %q", args, in.RepeatOf)
			}
			again, err := c.Decode(string(in.JSON))
			if err != nil || again.RepeatOf != "" || !bytes.Equal(again.JSON, in.JSON) || again.Fingerprint != in.Fingerprint || again.Key != in.Key {
				t.Fatalf("%q: %s is no fixed point: %v", args, in.JSON, err)
			}
			if c == repeats || c == rawRepeats {
				named := `{"repeat_of":"op_1"}`
				if len(in.JSON) > len("{}") {
					named = named[:len(named)-1] + "," + string(in.JSON[1:])
				}
				if again, err = c.Decode(named); err != nil || again.RepeatOf != "op_1" || again.Fingerprint != in.Fingerprint {
					t.Fatalf("%q: %s means another call: %v", args, named, err)
				}
			}
			loaded, err := c.Load(in.JSON)
			if err != nil || !reflect.DeepEqual(loaded, in.Value) || !reflect.DeepEqual(again.Value, in.Value) {
				t.Fatalf("%q: loaded %#v, want %#v: %v", args, loaded, in.Value, err)
			}
			if d := codec.Diff(in.JSON, again.JSON); d != nil {
				t.Fatalf("%q: differs from itself in %q", args, d)
			}
		}
	})
}
