package pgstore_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/toolonce/toolonce/internal/inspected"
	"github.com/toolonce/toolonce/seal"
)

func TestOperatorsAreToldWhatIsThere(t *testing.T) {
	s := fresh(t).open(t)
	inspected.Check(t, func(namespace string) inspected.Store { return s.Namespace(namespace) })
	bytes, err := s.Sizes(t.Context())
	check(t, err)
	if bytes["table operations"] < 8192 || len(bytes) < 8 {
		t.Error(bytes)
	}
}

func TestARunWhoseContentIsSealedIsReadWithoutIt(t *testing.T) {
	codec, err := seal.AESGCM(seal.Keys{Current: "k", ByID: map[string][]byte{"k": bytes.Repeat([]byte{7}, 32)}})
	check(t, err)
	p := fresh(t)
	sealed := p
	sealed.codec = codec
	s := sealed.open(t)
	appended(t, s, begun(t, s, "run"), 1)
	r, ok, err := s.Read(t.Context(), "run")
	if err != nil || !ok || string(r.Turns[0].Answer) != "{}" {
		t.Error(r, ok, err)
	}
	r, ok, err = p.open(t).Read(t.Context(), "run")
	if !ok || !errors.Is(err, seal.ErrSealed) || len(r.Turns) != 1 || len(r.Turns[0].Answer) != 0 {
		t.Error(r, ok, err)
	}
}
