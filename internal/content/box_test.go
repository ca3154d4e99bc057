package content_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/internal/content"
	"github.com/toolonce/toolonce/seal"
)

func boxes(t *testing.T) map[string]content.Box {
	t.Helper()
	c, err := seal.AESGCM(seal.Keys{Current: "k", ByID: map[string][]byte{"k": bytes.Repeat([]byte{7}, 32)}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]content.Box{"open": {}, "sealing": {Codec: c}}
}

func put(t *testing.T, b content.Box, text string, place ...string) string {
	t.Helper()
	s, err := b.Put(text, place...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatWasPutIsTakenWhateverItBeginsWith(t *testing.T) {
	all := boxes(t)
	for name, b := range all {
		for _, text := range []string{"", "plain", "\x02", "\x02s", "\x02p", "\x02sAAAA", put(t, all["sealing"], "x", "a")} {
			s := put(t, b, text, "a", "b")
			if got, err := b.Take(s, "a", "b"); err != nil || got != text {
				t.Errorf("%s: %q was taken as %q, %v", name, text, got, err)
			}
			if got, err := all["sealing"].Take(s, "a", "b"); err != nil || got != text {
				t.Errorf("%s: %q, with a codec by now, was taken as %q, %v", name, text, got, err)
			}
		}
	}
}

func TestSealedContentIsAnErrorWithoutItsKeyAndInAnotherPlace(t *testing.T) {
	all := boxes(t)
	s := put(t, all["sealing"], "secret", "a", "b")
	if strings.Contains(s, "secret") {
		t.Error("it is readable")
	}
	if got, err := all["open"].Take(s, "a", "b"); !errors.Is(err, seal.ErrSealed) {
		t.Errorf("without a codec: %q, %v", got, err)
	}
	for _, place := range [][]string{{"a"}, {"ab"}, {"a", "b", ""}, {"b", "a"}} {
		if got, err := all["sealing"].Take(s, place...); !errors.Is(err, seal.ErrSealed) {
			t.Errorf("at %q it was taken as %q", place, got)
		}
	}
	for _, bad := range []string{"\x02", "\x02x", "\x02s!", s[:len(s)-2]} {
		if got, err := all["sealing"].Take(bad, "a", "b"); !errors.Is(err, seal.ErrSealed) {
			t.Errorf("%q was taken as %q", bad, got)
		}
	}
}
