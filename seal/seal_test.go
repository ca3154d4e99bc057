package seal_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/seal"
)

func key(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func codec(t *testing.T, k seal.Keys) seal.Codec {
	t.Helper()
	c, err := seal.AESGCM(k)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sealed(t *testing.T, c seal.Codec, plain, data string) []byte {
	t.Helper()
	b, err := c.Seal([]byte(plain), []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWhatIsSealedOpensInItsPlaceAlone(t *testing.T) {
	c := codec(t, seal.Keys{Current: "k1", ByID: map[string][]byte{"k1": key(1)}})
	for _, plain := range []string{"", "x", "the card ends in 4242"} {
		b := sealed(t, c, plain, "row 1")
		if plain != "" && bytes.Contains(b, []byte(plain)) {
			t.Errorf("%q is readable", plain)
		}
		if got, err := c.Open(b, []byte("row 1")); err != nil || string(got) != plain {
			t.Errorf("%q opens as %q, %v", plain, got, err)
		}
		if got, err := c.Open(b, []byte("row 2")); err == nil {
			t.Errorf("in another place it opens as %q", got)
		}
		if bytes.Equal(b, sealed(t, c, plain, "row 1")) {
			t.Error("the same is sealed twice alike")
		}
	}
}

func TestDamagedContentIsAnErrorWhicheverByteItIs(t *testing.T) {
	c := codec(t, seal.Keys{Current: "k1", ByID: map[string][]byte{"k1": key(1), "k2": key(1)}})
	b := sealed(t, c, "secret", "")
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 3 // k1 becomes k2 on the way, which has the same bytes
		if got, err := c.Open(bad, nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("byte %d: %q, %v", i, got, err)
		}
		if got, err := c.Open(b[:i], nil); err == nil {
			t.Errorf("cut at %d: %q", i, got)
		}
	}
}

func TestKeysAreRotated(t *testing.T) {
	old := codec(t, seal.Keys{Current: "2025", ByID: map[string][]byte{"2025": key(1)}})
	both := codec(t, seal.Keys{Current: "2026", ByID: map[string][]byte{"2025": key(1), "2026": key(2)}})
	last := codec(t, seal.Keys{Current: "2026", ByID: map[string][]byte{"2026": key(2)}})
	before, after := sealed(t, old, "a", "row"), sealed(t, both, "b", "row")
	for _, b := range [][]byte{before, after} {
		if _, err := both.Open(b, []byte("row")); err != nil {
			t.Error(err)
		}
	}
	if _, err := last.Open(after, []byte("row")); err != nil {
		t.Error(err)
	}
	if _, err := last.Open(before, []byte("row")); err == nil || !strings.Contains(err.Error(), `"2025"`) {
		t.Errorf("a key that is gone: %v", err)
	}
}

func TestBadKeysAreRefusedByName(t *testing.T) {
	for want, k := range map[string]seal.Keys{
		`no key "k2"`:         {Current: "k2", ByID: map[string][]byte{"k1": key(1)}},
		`no key ""`:           {},
		`key "k1": crypto`:    {Current: "k1", ByID: map[string][]byte{"k1": []byte("short")}},
		"has 0 bytes":         {Current: "", ByID: map[string][]byte{"": key(1)}},
		"has 300 bytes: give": {Current: "k1", ByID: map[string][]byte{strings.Repeat("k", 300): key(1), "k1": key(1)}},
	} {
		if _, err := seal.AESGCM(k); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
