//go:build cgo

package sqlitestore_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"github.com/toolonce/toolonce/internal/inspected"
	"github.com/toolonce/toolonce/seal"
	"github.com/toolonce/toolonce/sqlitestore"
)

func TestOperatorsAreToldWhatIsThere(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "once.db"), nil)
	inspected.Check(t, func(namespace string) inspected.Store { return s.Namespace(namespace) })
	bytes, err := s.Sizes(t.Context())
	check(t, err)
	if bytes["database"] < 4096 || bytes["write-ahead log"] < 4096 || len(bytes) != 3 {
		t.Error(bytes)
	}
}

func TestARunWhoseContentIsSealedIsReadWithoutIt(t *testing.T) {
	codec, err := seal.AESGCM(seal.Keys{Current: "k", ByID: map[string][]byte{"k": bytes.Repeat([]byte{7}, 32)}})
	check(t, err)
	path := filepath.Join(t.TempDir(), "once.db")
	s := open(t, path, &sqlitestore.Options{Codec: codec})
	appended(t, s, begun(t, s, "run"), 1)
	r, ok, err := s.Read(t.Context(), "run")
	if err != nil || !ok || string(r.Turns[0].Answer) != "{}" {
		t.Error(r, ok, err)
	}
	r, ok, err = open(t, path, nil).Read(t.Context(), "run")
	if !ok || !errors.Is(err, seal.ErrSealed) || len(r.Turns) != 1 || len(r.Turns[0].Answer) != 0 {
		t.Error(r, ok, err)
	}
}
