package pgstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
)

// late makes the heartbeat of a store overdue, as a process that was stopped for a while has it.
func late(t *testing.T, p place, s *pgstore.Store) {
	t.Helper()
	statement(t, p.dsn, "UPDATE "+quoted(p.schema, "owners")+" SET beat = '-infinity', overdue = '0' WHERE name = $1", s.Owner())
}

// beats waits for the next beat of a store's heart.
func beats(t *testing.T, p place, s *pgstore.Store) {
	t.Helper()
	statement(t, p.dsn, "UPDATE "+quoted(p.schema, "owners")+" SET beat = '-infinity', overdue = '1 hour' WHERE name = $1", s.Owner())
	table := quoted(p.schema, "owners")
	statement(t, p.dsn, "DO $$ BEGIN WHILE (SELECT beat = '-infinity' FROM "+table+" WHERE name = '"+s.Owner()+"') LOOP PERFORM pg_sleep(0.01); END LOOP; END $$")
}

func TestProcessThatIsSlowComesBackAndDoesNoHarm(t *testing.T) {
	p := fresh(t)
	slow, err := pgstore.Open(t.Context(), p.dsn, p.options(pgstore.Options{Heartbeat: 50 * time.Millisecond, Overdue: time.Hour}))
	check(t, err)
	t.Cleanup(func() { _ = slow.Close() })
	other := p.open(t)
	beats(t, p, slow)
	c := aClaim("run", 1)
	row := claimed(t, slow, c)
	r := begun(t, slow, "run")
	appended(t, slow, r, 1)
	slow.StopHeart()
	late(t, p, slow)

	if got := found(t, other, row.Operation); !got.OwnerGone || got.OwnerUnknown {
		t.Fatalf("an overdue owner is seen as gone %v, unknown %v", got.OwnerGone, got.OwnerUnknown)
	}
	got, err := other.Change(t.Context(), middleware.Transition{
		Step: middleware.Take, Operation: row.Operation, Token: row.Token, Attempt: 1, State: middleware.Running, Owner: row.Owner, Mark: "mark",
	})
	check(t, err)
	early, err := other.Change(t.Context(), middleware.Transition{Step: middleware.Absent, Operation: row.Operation, Token: row.Token, Attempt: 1, Mark: "mark"})
	if e, ok := errors.AsType[*middleware.EarlyError](err); !ok || !e.Until.Equal(got.Deadline) || early.State != middleware.InDoubt {
		t.Errorf("that it did not happen is said before its deadline: %v", err)
	}
	taken := begun(t, other, "run")

	if _, err := slow.Append(t.Context(), journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 2}}); !errors.Is(err, journal.ErrLost) {
		t.Errorf("a turn of a run that was taken over: %v", err)
	}
	appended(t, other, taken, 2)
	done, err := slow.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1, Result: "it happened", HasResult: true})
	if err != nil || done.State != middleware.Done {
		t.Errorf("the result of a slow process is not taken: %v", err)
	}
	_, err = other.Change(t.Context(), middleware.Transition{Step: middleware.Absent, Operation: row.Operation, Token: row.Token, Attempt: 1, Mark: "mark"})
	if !errors.Is(err, middleware.ErrLost) {
		t.Errorf("who has settled meanwhile runs it again: %v", err)
	}
}

func TestAnOverdueHeartbeatIsSuspicionOnlyAndPasses(t *testing.T) {
	p := fresh(t)
	slow, err := pgstore.Open(t.Context(), p.dsn, p.options(pgstore.Options{Heartbeat: 50 * time.Millisecond, Overdue: time.Hour}))
	check(t, err)
	t.Cleanup(func() { _ = slow.Close() })
	other := p.open(t)
	row := claimed(t, slow, aClaim("run", 1))
	begun(t, slow, "run")
	beats(t, p, slow) // it has come back
	if got := found(t, other, row.Operation); got.OwnerGone || got.OwnerUnknown {
		t.Errorf("a process that shows that it lives is seen as gone %v, unknown %v", got.OwnerGone, got.OwnerUnknown)
	}
	if _, err := other.Begin(t.Context(), aStart("run")); !errors.Is(err, journal.ErrRunTaken) {
		t.Errorf("its run is taken: %v", err)
	}
	if err := other.DeclareGone(t.Context(), slow.Owner()); err == nil || !strings.Contains(err.Error(), "lives") {
		t.Errorf("it is declared gone: %v", err)
	}
}

func TestTimeInWhichTheServerWasDownDoesNotCount(t *testing.T) {
	p := fresh(t)
	s, other := p.open(t), p.open(t)
	row := claimed(t, s, aClaim("run", 1))
	s.StopHeart()
	set := "UPDATE " + quoted(p.schema, "owners") + " SET beat = '-infinity', overdue = $2 WHERE name = $1"
	statement(t, p.dsn, set, s.Owner(), time.Hour) // for which the server has not been up
	if got := found(t, other, row.Operation); got.OwnerGone {
		t.Error("an owner is overdue that has had no time to show that it lives")
	}
	statement(t, p.dsn, set, s.Owner(), time.Microsecond)
	if got := found(t, other, row.Operation); !got.OwnerGone {
		t.Error("an owner that has had its time is not overdue")
	}
}

func TestOwnerWhoseRowIsMissingIsUnknown(t *testing.T) {
	p := fresh(t)
	s, other := p.open(t), p.open(t)
	row := claimed(t, s, aClaim("run", 1))
	begun(t, s, "secret-run")
	statement(t, p.dsn, "DELETE FROM "+quoted(p.schema, "owners")+" WHERE name = $1", s.Owner())
	if got := found(t, other, row.Operation); got.OwnerGone || !got.OwnerUnknown {
		t.Errorf("an owner without a row is seen as gone %v, unknown %v", got.OwnerGone, got.OwnerUnknown)
	}
	_, err := other.Begin(t.Context(), aStart("secret-run"))
	if !errors.Is(err, journal.ErrRunTaken) || !strings.Contains(err.Error(), "owners") || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error says %v, want ErrRunTaken and the table", err)
	}
	owner := found(t, other, row.Operation).Owner
	if !strings.Contains(err.Error(), owner) {
		t.Errorf("the error %v does not name the owner %q", err, owner)
	}
	check(t, other.DeclareGone(t.Context(), owner))
	begun(t, other, "secret-run")
	_, err = other.Change(t.Context(), middleware.Transition{Step: middleware.Doubt, Operation: row.Operation, Token: row.Token, Attempt: 1, Owner: owner})
	check(t, err)
}

func TestDeclaringGoneIsForGood(t *testing.T) {
	p := fresh(t)
	s, other := p.open(t), p.open(t)
	row := claimed(t, s, aClaim("run", 1))
	late(t, p, s)
	check(t, other.DeclareGone(t.Context(), row.Owner))
	statement(t, p.dsn, "UPDATE "+quoted(p.schema, "owners")+" SET beat = now(), overdue = '1 hour' WHERE name = $1", s.Owner())
	if got := found(t, other, row.Operation); !got.OwnerGone {
		t.Error("an owner that was declared gone comes back")
	}
	if err := other.DeclareGone(t.Context(), "nobody"); err == nil || !strings.Contains(err.Error(), "no such owner") {
		t.Errorf("nobody is declared gone: %v", err)
	}
}

func TestAStoreThatOwnsNothingLeavesNoTraceAndAnotherIsGone(t *testing.T) {
	p := fresh(t)
	watcher := p.open(t)
	check(t, p.open(t).Close())
	s := p.open(t)
	row := claimed(t, s, aClaim("run", 1))
	begun(t, s, "run")
	check(t, s.Close()) // though the run was not left
	if n := count(t, p, "owners"); n != 2 {
		t.Errorf("there are %d owners, want the watcher and the one that has left something", n)
	}
	if got := found(t, watcher, row.Operation); !got.OwnerGone {
		t.Error("a store that was closed still owns what it claimed")
	}
	begun(t, watcher, "run")
}
