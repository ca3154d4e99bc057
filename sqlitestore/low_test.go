//go:build cgo

package sqlitestore_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// openOnes lists what runs or is in doubt, by id.
func openOnes(t *testing.T, s *sqlitestore.Store, states ...middleware.State) []string {
	t.Helper()
	rows, err := s.List(t.Context(), states, 0)
	check(t, err)
	var ids []string
	for _, r := range rows {
		if !slices.Contains(states, r.State) {
			t.Errorf("%s is listed in state %s", r.Operation, r.State)
		}
		ids = append(ids, r.Operation)
	}
	slices.Sort(ids)
	return ids
}

func TestListFindsOldAndNewOperationsThatAreOpen(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	change := func(row middleware.Row, step middleware.Step) middleware.Row {
		t.Helper()
		row, err := s.Change(t.Context(), middleware.Transition{
			Step: step, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, State: row.State, Mark: "m", HasResult: true,
		})
		check(t, err)
		return row
	}
	turn := 0
	again := func(row middleware.Row) middleware.Row {
		t.Helper()
		turn++
		c := aClaim("again", turn)
		c.Identity, c.Seen = row.Identity, row
		return claimed(t, s, c)
	}
	var want []string
	for round := range 3 {
		var rows []middleware.Row
		for i := range 8 {
			rows = append(rows, claimed(t, s, aClaim("run", 10*round+i+1)))
		}
		half := func(rows []middleware.Row) {
			change(rows[0], middleware.Complete)
			change(rows[1], middleware.GiveBack)
			change(change(rows[2], middleware.Doubt), middleware.Complete)
			rows[3] = again(change(rows[3], middleware.GiveBack))
		}
		half(rows[:4])
		if round < 2 {
			check(t, s.Raise()) // the other half has an id below the lowest that is new
		}
		half(rows[4:])
		want = append(want, rows[3].Operation, rows[7].Operation)
		taken := claimed(t, s, aClaim("taken", round+1))
		if round == 1 {
			check(t, s.Raise())
		}
		want = append(want, change(taken, middleware.Take).Operation)
		slices.Sort(want)
		if diff := cmp.Diff(want, openOnes(t, s, middleware.Running, middleware.InDoubt)); diff != "" {
			t.Fatalf("round %d: %s", round, diff)
		}
		both := slices.Concat(openOnes(t, s, middleware.Running), openOnes(t, s, middleware.InDoubt))
		slices.Sort(both)
		if diff := cmp.Diff(want, both); diff != "" {
			t.Fatalf("round %d, one state at a time: %s", round, diff)
		}
	}
	if free := openOnes(t, s, middleware.Free, middleware.Running); len(free) != 6+6 {
		t.Errorf("%d operations are free or run, want 12", len(free))
	}
}

func TestClockThatWasSetBackHidesNoOperation(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	claimed(t, s, aClaim("run", 1))
	check(t, s.Raise())
	s.SetClock(func() time.Time { return time.Now().Add(-time.Hour) })
	for i := range 3 {
		claimed(t, s, aClaim("run", i+2))
	}
	if n := len(openOnes(t, s, middleware.Running)); n != 4 {
		t.Errorf("%d operations are listed, want 4", n)
	}
}

func TestLowestIDRisesByItself(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, nil)
	check(t, s.Write("PRAGMA synchronous = OFF")) // of this connection alone: two thousand commits
	var kept []string
	for i := range 1100 {
		row := claimed(t, s, aClaim("run", i+1))
		if i%100 == 0 {
			kept = append(kept, row.Operation)
			continue
		}
		_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token})
		check(t, err)
	}
	if above, err := s.AboveLow(); err != nil || above > 200 {
		t.Errorf("%d rows would have to be looked at to list what runs: %v", above, err)
	}
	slices.Sort(kept)
	if diff := cmp.Diff(kept, openOnes(t, s, middleware.Running)); diff != "" {
		t.Error(diff)
	}
}
