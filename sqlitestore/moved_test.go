//go:build cgo

package sqlitestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

func TestAFileThatWasRemovedOrReplacedTakesNoClaims(t *testing.T) {
	path := filepath.Join(t.TempDir(), "once.db")
	s, err := sqlitestore.Open(path, nil)
	check(t, err)
	row, won, err := s.Claim(t.Context(), aClaim("run", 1))
	check(t, err)
	if !won {
		t.Fatal("lost")
	}
	check(t, os.Rename(path, path+".gone"))
	s.SetClock(func() time.Time { return time.Now().Add(time.Second) }) // it is not looked for every time
	if _, _, err := s.Claim(t.Context(), aClaim("run", 2)); !errors.Is(err, sqlitestore.ErrMoved) {
		t.Errorf("removed: %v", err)
	}
	check(t, os.WriteFile(path, nil, 0o600))
	if _, _, err := s.Claim(t.Context(), aClaim("run", 2)); !errors.Is(err, sqlitestore.ErrMoved) {
		t.Errorf("replaced: %v", err)
	}
	check(t, os.Rename(path+".gone", path))
	_, err = s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "1", HasResult: true})
	check(t, err)
	check(t, s.Close())
}

func TestAnOwnerIsDeclaredGoneOnlyIfNothingShowsThatItLives(t *testing.T) {
	path := filepath.Join(t.TempDir(), "once.db")
	s, err := sqlitestore.Open(path, nil)
	check(t, err)
	other, err := sqlitestore.Open(path, nil)
	check(t, err)
	row, _, err := other.Claim(t.Context(), aClaim("run", 1))
	check(t, err)
	if err := s.DeclareGone(t.Context(), row.Owner); err == nil {
		t.Error("a living owner was declared gone")
	}
	if err := s.DeclareGone(t.Context(), "nobody"); err == nil {
		t.Error("an owner that never was is gone")
	}
	check(t, os.Remove(filepath.Join(path+"-owners", row.Owner)))
	find := func() middleware.Row {
		r, ok, err := s.Find(t.Context(), middleware.Query{Operation: row.Operation})
		check(t, err)
		if !ok {
			t.Fatal("not found")
		}
		return r
	}
	if r := find(); !r.OwnerUnknown || r.OwnerGone {
		t.Errorf("without its lock file: unknown %v, gone %v", r.OwnerUnknown, r.OwnerGone)
	}
	check(t, s.DeclareGone(t.Context(), row.Owner))
	if r := find(); r.OwnerUnknown || !r.OwnerGone {
		t.Errorf("declared gone: unknown %v, gone %v", r.OwnerUnknown, r.OwnerGone)
	}
	check(t, other.Close())
	check(t, s.Close())
}

func TestNamespacesAreListed(t *testing.T) {
	s, err := sqlitestore.Open(filepath.Join(t.TempDir(), "once.db"), nil)
	check(t, err)
	for _, name := range []string{"globex", "acme", "acme", ""} {
		_, _, err := s.Namespace(name).Claim(t.Context(), aClaim("run", 1))
		check(t, err)
	}
	names, err := s.Namespaces(t.Context())
	check(t, err)
	if !slices.Equal(names, []string{"", "acme", "globex"}) {
		t.Errorf("%q", names)
	}
	check(t, s.Close())
}
