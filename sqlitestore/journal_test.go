//go:build cgo

package sqlitestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/agent/journal/journaltest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

// runs is one file as several processes would use it.
func runs(t *testing.T) journaltest.System {
	path := t.TempDir() + "/once.db"
	return journaltest.System{
		Open:      func() journal.Journal { return open(t, path, nil) },
		Kill:      func(j journal.Journal) { j.(*sqlitestore.Store).Die() },
		Namespace: func(j journal.Journal, name string) journal.Journal { return j.(*sqlitestore.Store).Namespace(name) },
		Forget: func(j journal.Journal, run string) error {
			_, err := j.(*sqlitestore.Store).Forget(t.Context(), run, middleware.Act{By: "Ann"})
			return err
		},
	}
}

func TestStoreKeepsTheContractOfAJournal(t *testing.T) { journaltest.Run(t, runs) }

func aStart(run string) journal.Start {
	return journal.Start{Run: registry.Run{ID: run}, API: "chat", Input: []byte("digest")}
}

func begun(tb testing.TB, s *sqlitestore.Store, run string) journal.Record {
	tb.Helper()
	r, err := s.Begin(tb.Context(), aStart(run))
	check(tb, err)
	return r
}

func appended(tb testing.TB, s *sqlitestore.Store, r journal.Record, turn int, outputs ...journal.Output) {
	tb.Helper()
	_, err := s.Append(tb.Context(), journal.Entry{Run: r.Run.ID, Token: r.Token, Turn: journal.Turn{Number: turn, Answer: []byte("{}")}, Outputs: outputs})
	check(tb, err)
}

func TestARunWhoseOwnerCannotBeSeenIsTakenOnceItIsDeclaredGone(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s, other := open(t, path, nil), open(t, path, nil)
	begun(t, s, "secret-run")
	check(t, s.LoseLock())
	s.Die()
	_, err := other.Begin(t.Context(), aStart("secret-run"))
	if !errors.Is(err, journal.ErrRunTaken) || !strings.Contains(err.Error(), s.Owner()) || !strings.Contains(err.Error(), "DeclareGone") {
		t.Errorf("the error says %v, want ErrRunTaken, the owner, and how to mend it", err)
	}
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the error tells the run's id: %v", err)
	}
	check(t, other.DeclareGone(t.Context(), s.Owner()))
	begun(t, other, "secret-run")
}

func TestAStoreThatHasBegunARunIsKnownToBeGoneAfterwards(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s, watcher := open(t, path, nil), open(t, path, nil)
	r := begun(t, s, "run")
	appended(t, s, r, 1)
	check(t, s.Close()) // though the run was not left
	if got := begun(t, watcher, "run"); len(got.Turns) != 1 {
		t.Errorf("the run of a closed store has %d turns, want 1", len(got.Turns))
	}
	check(t, watcher.Close())
	begun(t, open(t, path, nil), "run")
}

func TestAClosedStoreBeginsNoRun(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	r := begun(t, s, "run")
	held := s.Handlers().Open("op")
	held.Begin()
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for _, _, err := s.Claim(t.Context(), aClaim("run", 0)); !errors.Is(err, sqlitestore.ErrClosed); { // until Close has begun
		_, _, err = s.Claim(t.Context(), aClaim("run", 0))
	}
	if _, err := s.Begin(t.Context(), aStart("another")); !errors.Is(err, sqlitestore.ErrClosed) {
		t.Errorf("Begin during Close says %v, want ErrClosed", err)
	}
	appended(t, s, r, 1) // what goes on is stored while handlers run
	check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token}))
	held.Returned()
	held.End()
	check(t, <-closed)
	_, aerr := s.Append(t.Context(), journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 2}})
	for doing, err := range map[string]error{"Append": aerr, "Leave": s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token})} {
		if !errors.Is(err, sqlitestore.ErrClosed) {
			t.Errorf("%s after Close says %v, want ErrClosed", doing, err)
		}
	}
}

func TestAFileThatWasRemovedBeginsNoRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "once.db")
	s := open(t, path, nil)
	check(t, os.Rename(path, path+".gone"))
	if _, err := s.Begin(t.Context(), aStart("run")); !errors.Is(err, sqlitestore.ErrMoved) {
		t.Errorf("removed: %v", err)
	}
	check(t, os.Rename(path+".gone", path))
	begun(t, s, "run")
}

func TestARunIsLeftForItsProcessWhereAWriteFails(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s, other := open(t, path, nil), open(t, path, nil)
	for name, write := range map[string]func(journal.Record) error{
		"Append": func(r journal.Record) error {
			_, err := s.Append(t.Context(), journal.Entry{Run: r.Run.ID, Token: r.Token, Turn: journal.Turn{Number: 1, Answer: []byte("4111")}})
			return err
		},
		"Leave": func(r journal.Record) error {
			return s.Leave(t.Context(), journal.Leaving{Run: r.Run.ID, Token: r.Token})
		},
	} {
		r := begun(t, s, name)
		check(t, s.Write("PRAGMA query_only = on"))
		err := write(r)
		check(t, s.Write("PRAGMA query_only = off"))
		if err == nil || errors.Is(err, journal.ErrLost) || strings.Contains(err.Error(), "4111") || strings.Contains(err.Error(), r.Token) {
			t.Errorf("%s that cannot write says %v", name, err)
		}
		if _, err := other.Begin(t.Context(), aStart(name)); !errors.Is(err, journal.ErrRunTaken) {
			t.Errorf("another process begins the run: %v", err)
		}
		begun(t, s, name)
	}
}

func TestNothingIsKeptInMemoryOfRunsThatHaveEnded(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	left, finished, failed := begun(t, s, "left"), begun(t, s, "finished"), begun(t, s, "failed")
	if _, err := s.Begin(t.Context(), aStart("left")); !errors.Is(err, journal.ErrRunTaken) {
		t.Error(err)
	}
	check(t, s.Leave(t.Context(), journal.Leaving{Run: "left", Token: left.Token}))
	_, err := s.Append(t.Context(), journal.Entry{Run: "finished", Token: finished.Token, Turn: journal.Turn{Number: 1}, Final: true})
	check(t, err)
	begun(t, s, "finished")
	if _, err := s.Append(t.Context(), journal.Entry{Run: "failed", Token: failed.Token, Turn: journal.Turn{Number: 2}}); err == nil {
		t.Error("a turn that does not follow is stored")
	}
	if n := s.Held(); n != 0 {
		t.Errorf("%d runs are held", n)
	}
	begun(t, s, "left")
	if n := s.Held(); n != 1 {
		t.Errorf("%d runs are held, want 1", n)
	}
}

// lapsed is a done operation of a call at turn 1 of a run that is past its date.
func lapsed(t *testing.T, s *sqlitestore.Store, c middleware.Claim) middleware.Row {
	t.Helper()
	c.Keep = time.Hour
	row := claimed(t, s, c)
	_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "1", HasResult: true})
	check(t, err)
	later := time.Now().Add(2 * time.Hour)
	s.SetClock(func() time.Time { return later })
	t.Cleanup(func() { s.SetClock(time.Now) })
	return found(t, s, row.Operation)
}

func TestAnExpiredOperationStaysWhileARunHasNotStoredWhatItsCallWasTold(t *testing.T) {
	told := journal.Output{Position: 0, Content: "1", Verdict: registry.Executed}
	for _, c := range []struct {
		name string
		does func(s *sqlitestore.Store, r journal.Record)
		won  bool
	}{
		{"stored with the next turn", func(s *sqlitestore.Store, r journal.Record) { appended(t, s, r, 2, told) }, true},
		{"stored when the run was left", func(s *sqlitestore.Store, r journal.Record) {
			check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token, Turn: 1, Outputs: []journal.Output{told}}))
		}, true},
		{"of a run that is finished", func(s *sqlitestore.Store, r journal.Record) {
			_, err := s.Append(t.Context(), journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 2}, Final: true})
			check(t, err)
		}, true},
		{"of a run that goes on", func(*sqlitestore.Store, journal.Record) {}, false},
		{"of a run that was left", func(s *sqlitestore.Store, r journal.Record) {
			check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token}))
		}, false},
		{"with only another call's output stored", func(s *sqlitestore.Store, r journal.Record) {
			other := told
			other.Position = 1
			appended(t, s, r, 2, other)
		}, false},
		{"with only another turn's output stored", func(s *sqlitestore.Store, r journal.Record) {
			appended(t, s, r, 2)
			appended(t, s, r, 3, told)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, t.TempDir()+"/once.db", nil)
			r := begun(t, s, "run")
			appended(t, s, r, 1)
			begun(t, s, "another run")
			claimed(t, s, aClaim("another run", 1)) // whose call means another operation
			first := aClaim("run", 1)
			row := lapsed(t, s, first)
			begun(t, s.Namespace("other"), "own loop") // and another tenant's run is not that of a loop without a journal
			_, err := s.Note(t.Context(), row.Operation, middleware.Alias{Run: "own loop", Turn: 2})
			check(t, err)
			c.does(s, r)
			again := aClaim("own loop", 1)
			again.Identity, again.Seen = first.Identity, row
			got, won, err := s.Claim(t.Context(), again)
			check(t, err)
			if won != c.won || !won && got.Operation != row.Operation {
				t.Fatalf("won %v, want %v; the row is %s", won, c.won, got.Operation)
			}
			_, known, err := s.Find(t.Context(), middleware.Query{Operation: row.Operation})
			check(t, err)
			if known == c.won {
				t.Errorf("the expired row is known: %v", known)
			}
		})
	}
}

func TestAnExpiredOperationStaysForTheRunOfARepeatToo(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	first := aClaim("own loop", 1)
	row := lapsed(t, s, first)
	r := begun(t, s, "run")
	appended(t, s, r, 1)
	_, err := s.Note(t.Context(), row.Operation, middleware.Alias{Run: "run", Turn: 1, Position: 0})
	check(t, err)
	row = found(t, s, row.Operation)
	claims := map[string]middleware.Claim{"own loop": aClaim("own loop", 2), "run": aClaim("run", 1)}
	for run, c := range claims {
		c.Identity, c.Seen = first.Identity, row
		if run == "run" {
			c.SeenAlias = row.Operation
		}
		if _, won, err := s.Claim(t.Context(), c); won || err != nil {
			t.Errorf("a call of %s has the operation: %v %v", run, won, err)
		}
	}
	if diff := cmp.Diff(row, found(t, s, row.Operation)); diff != "" {
		t.Error(diff)
	}
	got, ok, err := s.Find(t.Context(), middleware.Query{Run: "run", Turn: 1})
	check(t, err)
	if !ok || got.Operation != row.Operation {
		t.Errorf("the place of the repeat means %q", got.Operation)
	}
}
