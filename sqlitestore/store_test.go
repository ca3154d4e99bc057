//go:build cgo

package sqlitestore_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

func TestEveryConnectionKeepsWhatItCommits(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	got, err := s.Pragmas(3, "journal_mode", "synchronous", "foreign_keys", "busy_timeout", "query_only")
	check(t, err)
	reads := []string{"wal", "2", "1", "1000", "1"}
	if diff := cmp.Diff([][]string{{"wal", "2", "1", "1000", "0"}, reads, reads, reads}, got); diff != "" {
		t.Error(diff)
	}
}

func TestConnectionWhoseCommitsMightBeLostIsRefused(t *testing.T) {
	path := t.TempDir() + "/once.db"
	open(t, path, nil)
	c, err := sqlitestore.Connector(path)
	check(t, err)
	if _, err := c.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "synchronous is 1") {
		t.Errorf("connecting says %v, want that synchronous is wrong", err)
	}
}

func TestFiftyCallersClaimOneIdentityOnce(t *testing.T) {
	path := t.TempDir() + "/once.db"
	stores := []*sqlitestore.Store{open(t, path, nil), open(t, path, nil)}
	identity := freshHash()
	var won atomic.Int32
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			c := aClaim("run", i+1)
			c.Identity = identity
			row, ok, err := stores[i%2].Claim(t.Context(), c)
			switch {
			case err != nil:
				t.Error(err)
			case ok:
				won.Add(1)
			case row.Identity != identity || row.State != middleware.Running:
				t.Errorf("who loses is shown %q in state %q", row.Identity, row.State)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Errorf("%d claims win, want 1", won.Load())
	}
}

func TestAnUndoIsNotDoneUnlessWhatItUndoesIsReleased(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	done := func(row middleware.Row) error {
		_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "1", HasResult: true})
		return err
	}
	booking := claimed(t, s, aClaim("run", 1))
	check(t, done(booking))
	c := aClaim("run", 2)
	c.Undoes = booking.Operation
	cancel := claimed(t, s, c)
	check(t, s.Write("CREATE TEMP TRIGGER fails BEFORE UPDATE ON operations WHEN new.state = 'released' BEGIN SELECT RAISE(ABORT, 'disk full'); END"))
	if err := done(cancel); err == nil {
		t.Error("want the error of what could not be released")
	}
	if got := found(t, s, cancel.Operation).State; got != middleware.Running {
		t.Errorf("the undo is %s, and what it undoes is %s", got, found(t, s, booking.Operation).State)
	}
	check(t, s.Write("DROP TRIGGER fails"))
	check(t, done(cancel))
	if got := found(t, s, booking.Operation).State; got != middleware.Released {
		t.Errorf("what was undone is %s", got)
	}
}

func TestAliasOfAnEarlierClaimKeepsItsCall(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	first := aClaim("run", 1)
	row := claimed(t, s, first)
	row, err := s.Change(t.Context(), middleware.Transition{Step: middleware.GiveBack, Operation: row.Operation, Token: row.Token, Attempt: 1})
	check(t, err)
	second := aClaim("run", 2)
	second.Identity, second.Seen = first.Identity, row
	claimed(t, s, second)
	for _, want := range []middleware.Alias{first.Call, second.Call} {
		got, ok, err := s.Find(t.Context(), middleware.Query{Run: "run", Turn: want.Turn})
		check(t, err)
		if !ok {
			t.Fatalf("turn %d means nothing", want.Turn)
		}
		if diff := cmp.Diff(&want, got.Found); diff != "" {
			t.Errorf("turn %d: %s", want.Turn, diff)
		}
		if diff := cmp.Diff(second.Call, got.Claimer); diff != "" {
			t.Errorf("claimer: %s", diff)
		}
	}
}

func TestHashesThatAreNoneAreKeptAsTheyAre(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	for i, identity := range []string{"", "i", "AB", "abc", "ab", "ab ", "op/1\x00"} {
		c := aClaim("run", i+1)
		c.Identity = identity
		row := claimed(t, s, c)
		if got := found(t, s, row.Operation).Identity; got != identity {
			t.Errorf("identity %q comes back as %q", identity, got)
		}
	}
}

func TestErrorsDoNotTellArgumentsOrResults(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	c := aClaim("run", 1)
	c.Input = []byte(`{"card":"4111"}`)
	row := claimed(t, s, c)
	check(t, s.Write("PRAGMA query_only = on"))
	_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "4111", HasResult: true})
	again := aClaim("run", 2)
	again.Input = c.Input
	_, _, cerr := s.Claim(t.Context(), again)
	for _, err := range []error{err, cerr} {
		if err == nil || strings.Contains(err.Error(), "4111") || strings.Contains(err.Error(), row.Operation) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error says %v", err)
		}
	}
}

func TestCloseWaitsForHandlers(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, nil)
	row := claimed(t, s, aClaim("run", 1))
	held := s.Handlers().Open(row.Operation)
	held.Begin()
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for { // until Close has begun
		if _, _, err := s.Claim(t.Context(), aClaim("run", 2)); errors.Is(err, sqlitestore.ErrClosed) {
			break
		}
	}
	_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "r", HasResult: true})
	check(t, err)
	held.Returned()
	held.End()
	check(t, <-closed)
	if got := found(t, open(t, path, nil), row.Operation); got.State != middleware.Done {
		t.Errorf("the result of a handler that Close waited for: %s", got.State)
	}
}

func TestOwnerLivesUntilItsLastHandlerHasReturned(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, &sqlitestore.Options{Drain: time.Nanosecond})
	row := claimed(t, s, aClaim("run", 1))
	held := s.Handlers().Open(row.Operation)
	held.Begin()
	err := s.Close()
	if !errors.Is(err, sqlitestore.ErrRunning) {
		t.Errorf("Close says %v, want ErrRunning", err)
	}
	other := open(t, path, nil)
	if found(t, other, row.Operation).OwnerGone {
		t.Fatal("the owner of a running handler is gone")
	}
	held.Returned()
	held.End()
	for err = s.Close(); errors.Is(err, sqlitestore.ErrRunning); {
		err = s.Close()
	}
	check(t, err)
	if got := found(t, other, row.Operation); !got.OwnerGone {
		t.Error("a closed store's owner is not gone")
	}
}

func TestStoreThatOwnedNothingLeavesNoTrace(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/once.db"
	check(t, open(t, path, nil).Close())
	before := files(t, dir)
	s := open(t, path, &sqlitestore.Options{MustExist: true})
	_, err := s.List(t.Context(), nil, 0)
	check(t, err)
	check(t, s.Close())
	after := files(t, dir)
	for name := range before {
		delete(after, name)
	}
	if len(after) > 0 {
		t.Errorf("looking has left files: %v", after)
	}
	if bytes.Contains([]byte(before[path]), []byte(s.Owner())) {
		t.Error("the owner is in the file")
	}
}

func TestWithoutCgoThePackageBuildsAndOpenSaysWhatIsMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the package again")
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-run=^TestWithoutCgoOpenSaysWhatIsMissing$", "-v", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestWithoutCgoOpenSaysWhatIsMissing") {
		t.Errorf("%v\n%s", err, out)
	}
}
