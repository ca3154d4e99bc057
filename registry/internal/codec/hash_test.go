package codec_test

import (
	"bytes"
	"crypto/sha256"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

func TestIgnoredFieldsAreNoPartOfTheHashAtAnyDepth(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[refund]())
	a := decode(t, c, `{"order_id":"A-1","cents":5,"reason":"one","lines":[{"sku":"s","note":"n"}],"meta":{"client_ts":"t1","source":"x"}}`)
	b := decode(t, c, `{"order_id":"A-1","cents":5,"lines":[{"sku":"s"}],"meta":{"client_ts":"t2","source":"x"}}`)
	if a.Fingerprint != b.Fingerprint || a.Key != b.Key {
		t.Errorf("hashes differ: %s, %s", a.JSON, b.JSON)
	}
	if bytes.Equal(a.JSON, b.JSON) || a.Value.(refund).Reason != "one" || a.Value.(refund).Lines[0].Note != "n" {
		t.Errorf("ignored fields are not stored: %s", a.JSON)
	}
	d := decode(t, c, `{"order_id":"A-1","cents":5,"lines":[{"sku":"t"}],"meta":{"client_ts":"t2","source":"x"}}`)
	if d.Fingerprint == a.Fingerprint {
		t.Error("a field beside an ignored one is ignored")
	}
	if want := sha256.Sum256([]byte(`{"cents":5,"lines":[{"sku":"s"}],"meta":{"source":"x"},"order_id":"A-1"}`)); a.Fingerprint != want {
		t.Errorf("fingerprint is not that of %s without the ignored fields", a.JSON)
	}
	if diff := cmp.Diff([]string{"lines"}, c.Diff(a.JSON, d.JSON)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"lines", "meta.client_ts", "reason"}, codec.Diff(a.JSON, d.JSON)); diff != "" {
		t.Error(diff)
	}
	if got := c.Diff(a.JSON, b.JSON); got != nil {
		t.Errorf("ignored fields in %q", got)
	}
}

func TestKeyIsMadeOfTheTaggedFieldsAlone(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[refund]())
	a := decode(t, c, `{"order_id":"T-9","cents":5,"tag":"Shipped today"}`)
	b := decode(t, c, `{"order_id":"T-9","cents":6,"tag":"It has shipped today!"}`)
	d := decode(t, c, `{"order_id":"T-8","cents":5,"tag":"Shipped today"}`)
	if a.Key != b.Key || a.Fingerprint == b.Fingerprint || a.Key == d.Key {
		t.Errorf("keys %x %x %x", a.Key, b.Key, d.Key)
	}
	if want := codec.Hash([]byte("/order_id"), []byte(`"T-9"`)); a.Key != want {
		t.Errorf("key %x, want %x", a.Key, want)
	}
	if a.Resource != "T-9" || !c.HasKey() || !c.HasResource() {
		t.Errorf("resource %q", a.Resource)
	}
	if diff := cmp.Diff([]string{"cents", "tag"}, c.Diff(a.JSON, b.JSON)); diff != "" {
		t.Error(diff)
	}
	plain := mustNew(t, reflect.TypeFor[mail]())
	if in := decode(t, plain, `{"to":"x"}`); in.Key != [32]byte{} || in.Resource != "" || plain.HasKey() || plain.HasResource() {
		t.Error("a key or resource from nowhere")
	}
}

type (
	two struct {
		A string `json:"a" once:"key"`
		B string `json:"b" once:"key"`
	}
	twoSwapped struct {
		B string `json:"b" once:"key"`
		A string `json:"a" once:"key"`
	}
	refs struct {
		From keyed `json:"from"`
		To   keyed `json:"to"`
	}
)

func TestKeyPartsDoNotRunTogether(t *testing.T) {
	c := mustNew(t, reflect.TypeFor[two]())
	seen := map[[32]byte]bool{}
	args := []string{`{"a":"ab","b":"c"}`, `{"a":"a","b":"bc"}`, `{"a":"","b":"abc"}`, `{"a":"a\u0000","b":"b"}`, `{"a":"a","b":"\u0000b"}`, `{"a":"b","b":"a"}`, `{"a":"a","b":"b"}`}
	for _, a := range args {
		seen[decode(t, c, a).Key] = true
	}
	if len(seen) != len(args) {
		t.Errorf("%d keys of %d", len(seen), len(args))
	}
	swapped := mustNew(t, reflect.TypeFor[twoSwapped]())
	if decode(t, c, args[0]).Key != decode(t, swapped, args[0]).Key {
		t.Error("the order of the struct's fields changes the key")
	}
	n := mustNew(t, reflect.TypeFor[refs]())
	if decode(t, n, `{"from":{"id":"1"},"to":{"id":"2"}}`).Key == decode(t, n, `{"from":{"id":"2"},"to":{"id":"1"}}`).Key {
		t.Error("nested keys of one type are mixed up")
	}
	if codec.Hash([]byte("ab"), []byte("c")) == codec.Hash([]byte("a"), []byte("bc")) || codec.Hash() == codec.Hash(nil) {
		t.Error("Hash runs its parts together")
	}
}

func TestResourceIsPlainText(t *testing.T) {
	type byNumber struct {
		ID *int64 `json:"id" once:"resource"`
	}
	type byText struct {
		In struct {
			ID string `json:"id" once:"resource"`
		} `json:"in"`
	}
	c := mustNew(t, reflect.TypeFor[byNumber]())
	for args, want := range map[string]string{`{"id":1e2}`: "100", `{"id":null}`: "", `{}`: ""} {
		if got := decode(t, c, args).Resource; got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
	d := mustNew(t, reflect.TypeFor[byText]())
	if got := decode(t, d, `{"in":{"id":"a\"\u0062"}}`).Resource; got != `a"b` {
		t.Errorf("%q", got)
	}
}

func TestDiffNamesFieldsOnly(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want []string
	}{
		{`{"a":1}`, `{"a":1}`, nil},
		{`{"a":1,"b":2}`, `{"b":3,"c":4}`, []string{"a", "b", "c"}},
		{`{"a":{"x":1,"y":[1]}}`, `{"a":{"x":1,"y":[2]}}`, []string{"a.y"}},
		{`{"a":{"x":1}}`, `{"a":null}`, []string{"a"}},
		{`{"a":"{\"x\":1}"}`, `{"a":"{\"x\":2}"}`, []string{"a"}},
		{`{"a":"x,y:z}","b":1}`, `{"a":"x,y:z}","b":2}`, []string{"b"}},
		{``, `{"a":1}`, []string{"a"}},
		{`{"a":`, `{"a":1}`, []string{"a"}},
		{`garbage`, `[]`, nil},
	} {
		if diff := cmp.Diff(tc.want, codec.Diff([]byte(tc.a), []byte(tc.b))); diff != "" {
			t.Errorf("%s %s: %s", tc.a, tc.b, diff)
		}
	}
}
