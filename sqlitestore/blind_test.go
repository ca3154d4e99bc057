package sqlitestore_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

func TestABlindStepIsMadeAndWhoLosesItGetsTheRow(t *testing.T) {
	s, err := sqlitestore.Open(filepath.Join(t.TempDir(), "once.db"), nil)
	check(t, err)
	row, won, err := s.Claim(t.Context(), aClaim("run", 1))
	check(t, err)
	if !won {
		t.Fatal("lost")
	}
	complete := middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "1", HasResult: true, Blind: true}
	_, err = s.Change(t.Context(), complete)
	check(t, err)
	found := func() middleware.Row {
		r, _, err := s.Find(t.Context(), middleware.Query{Operation: row.Operation})
		check(t, err)
		return r
	}
	if r := found(); r.State != middleware.Done || r.Result != "1" || !r.HasResult || r.DoneAt.IsZero() {
		t.Errorf("%+v", r)
	}
	complete.Result = "2"
	if r, err := s.Change(t.Context(), complete); !errors.Is(err, middleware.ErrLost) || r.Result != "1" || !r.Late {
		t.Errorf("%+v %v", r, err)
	}
	// A step that undoes another is made whole, blind or not.
	book := aClaim("run", 2)
	booked, _, err := s.Claim(t.Context(), book)
	check(t, err)
	_, err = s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: booked.Operation, Token: booked.Token, HasResult: true, Blind: true})
	check(t, err)
	cancel := aClaim("run", 3)
	cancel.Undoes = booked.Operation
	undo, won, err := s.Claim(t.Context(), cancel)
	check(t, err)
	if !won {
		t.Fatal("lost")
	}
	_, err = s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: undo.Operation, Token: undo.Token, HasResult: true, Blind: true})
	check(t, err)
	if r, _, err := s.Find(t.Context(), middleware.Query{Operation: booked.Operation}); err != nil || r.State != middleware.Released {
		t.Errorf("what was undone is %s, %v", r.State, err)
	}
	check(t, s.Close())
}
