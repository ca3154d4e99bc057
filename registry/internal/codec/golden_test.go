package codec_test

import (
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

var update = flag.Bool("update", false, "write testdata/golden.json anew; stored hashes of older versions stop matching")

type golden struct {
	Type        string `json:"type"`
	Arguments   string `json:"arguments"`
	Canonical   string `json:"canonical"`
	Key         string `json:"key"`
	Fingerprint string `json:"fingerprint"`
}

type goldenFile struct {
	Version int      `json:"version"`
	Cases   []golden `json:"cases"`
}

// goldenCodecs are the codecs of testdata/golden.json by type name; repeat says whether they take repeat_of off.
func goldenCodecs(t *testing.T, repeat bool) map[string]*codec.Codec {
	t.Helper()
	codecs := map[string]*codec.Codec{
		"raw":      mustRaw(t, codec.RawSpec{Repeat: repeat}),
		"transfer": mustRaw(t, codec.RawSpec{Schema: json.RawMessage(transferSchema), Key: []string{"account"}, Ignore: []string{"note"}, Repeat: repeat}),
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[refund](), reflect.TypeFor[two](), reflect.TypeFor[refs](), reflect.TypeFor[empty](), reflect.TypeFor[sized](),
		reflect.TypeFor[floats](), reflect.TypeFor[times](), reflect.TypeFor[blobs](), reflect.TypeFor[text](), reflect.TypeFor[money](),
		reflect.TypeFor[zeros](), reflect.TypeFor[quoted](), reflect.TypeFor[pages](), reflect.TypeFor[plainFloat](), reflect.TypeFor[freeForm](),
	} {
		c, err := codec.New(typ, codec.Options{Loose: typ == reflect.TypeFor[freeForm](), Repeat: repeat})
		if err != nil {
			t.Fatal(err)
		}
		codecs[typ.Name()] = c
	}
	return codecs
}

func TestHashesAreThoseOfTheGoldenFile(t *testing.T) {
	b, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var file goldenFile
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	codecs := goldenCodecs(t, false)
	got := goldenFile{Version: codec.Version}
	for _, g := range file.Cases {
		in := decode(t, codecs[g.Type], g.Arguments)
		got.Cases = append(got.Cases, golden{g.Type, g.Arguments, string(in.JSON), hex.EncodeToString(in.Key[:]), hex.EncodeToString(in.Fingerprint[:])})
	}
	if diff := cmp.Diff(file, got); diff != "" && !*update {
		t.Errorf("stored hashes no longer match; if that is meant, raise Version: %s", diff)
	}
	if *update {
		out, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("testdata/golden.json", append(out, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
