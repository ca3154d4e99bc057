//go:build cgo

package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// queued has writes wait for the writer, in the order given, and then lets it go. It gives their errors.
func queued(t *testing.T, s *sqlitestore.Store, writes ...func() error) []error {
	t.Helper()
	errs := make([]error, len(writes))
	var group sync.WaitGroup
	check(t, s.KeepWriter(func() {
		for i, f := range writes {
			group.Go(func() { errs[i] = f() })
			for s.Waiting() <= i {
				runtime.Gosched()
			}
		}
	}))
	group.Wait()
	return errs
}

// inserts is a write of one row of the meta table's kind, by its key.
func inserts(s *sqlitestore.Store, key string) func() error {
	return func() error {
		return s.Transaction(func(run func(string) error) error {
			return run(fmt.Sprintf("INSERT INTO owners (name, since) VALUES ('%s', 0)", key))
		})
	}
}

func owners(t *testing.T, s *sqlitestore.Store, like string) (names []string) {
	t.Helper()
	names, err := s.Names(t.Context(), "SELECT name FROM owners WHERE name LIKE '"+like+"' ORDER BY id")
	check(t, err)
	return names
}

func TestWritesThatWaitShareACommit(t *testing.T) {
	s, err := sqlitestore.Open(t.TempDir()+"/once.db", nil)
	check(t, err)
	defer func() { check(t, s.Close()) }()
	var commits int
	check(t, s.OnCommit(func() int { commits++; return 0 }))
	var writes []func() error
	for i := range 500 {
		writes = append(writes, func() error {
			c := aClaim("run", i+1)
			_, won, err := s.Claim(context.Background(), c)
			if err == nil && !won {
				err = errors.New("lost")
			}
			return err
		})
	}
	for i, err := range queued(t, s, writes...) {
		if err != nil {
			t.Errorf("claim %d: %v", i, err)
		}
	}
	if commits != 2 { // at most 256 share one
		t.Errorf("%d commits for %d claims", commits, len(writes))
	}
	rows, err := s.List(t.Context(), []middleware.State{middleware.Running}, 0)
	if err != nil || len(rows) != len(writes) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func TestABadWriteDoesNotFailItsNeighbours(t *testing.T) {
	bad := errors.New("bad")
	for name, f := range map[string]func(run func(string) error) error{
		"an error behind a change": func(run func(string) error) error {
			return errors.Join(run("INSERT INTO owners (name, since) VALUES ('w-bad', 0)"), bad)
		},
		"a statement that fails": func(run func(string) error) error {
			return errors.Join(bad, run("INSERT INTO owners (name, since) VALUES ('w-bad', 0), ('w-1', 0)"))
		},
		"a transaction that SQLite ends": func(run func(string) error) error {
			return errors.Join(run("INSERT INTO owners (name, since) VALUES ('w-bad', 0)"), bad, run("ROLLBACK"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := sqlitestore.Open(t.TempDir()+"/once.db", nil)
			check(t, err)
			defer func() { check(t, s.Close()) }()
			fails := func() error { return s.Transaction(f) }
			errs := queued(t, s, inserts(s, "w-1"), fails, inserts(s, "w-2"), fails, inserts(s, "w-3"))
			for i, err := range errs {
				if errors.Is(err, bad) != (i%2 == 1) || i%2 == 0 && err != nil {
					t.Errorf("write %d: %v", i, err)
				}
			}
			if diff := cmp.Diff([]string{"w-1", "w-2", "w-3"}, owners(t, s, "w-%")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWritesWhoseCommonCommitFailsAreMadeOneByOne(t *testing.T) {
	s, err := sqlitestore.Open(t.TempDir()+"/once.db", nil)
	check(t, err)
	defer func() { check(t, s.Close()) }()
	refusals := []int{1, 0, 1, 0} // of the commit of all, and of those one by one
	check(t, s.OnCommit(func() (refuse int) {
		if len(refusals) > 0 {
			refuse, refusals = refusals[0], refusals[1:]
		}
		return refuse
	}))
	errs := queued(t, s, inserts(s, "w-1"), inserts(s, "w-2"), inserts(s, "w-3"))
	if errs[0] != nil || errs[1] == nil || errs[2] != nil {
		t.Errorf("%v", errs)
	}
	if diff := cmp.Diff([]string{"w-1", "w-3"}, owners(t, s, "w-%")); diff != "" {
		t.Error(diff)
	}
}

func TestAWriteThatWaitedTooLongIsAbsentAndItsNeighboursAreThere(t *testing.T) {
	s, err := sqlitestore.Open(t.TempDir()+"/once.db", &sqlitestore.Options{WriteTimeout: time.Second})
	check(t, err)
	defer func() { check(t, s.Close()) }()
	var late error
	check(t, s.KeepWriter(func() { late = inserts(s, "w-late")() }))
	if !errors.Is(late, sqlitestore.ErrBusy) {
		t.Errorf("the late one: %v", late)
	}
	for _, err := range queued(t, s, inserts(s, "w-1"), inserts(s, "w-2")) {
		check(t, err)
	}
	if diff := cmp.Diff([]string{"w-1", "w-2"}, owners(t, s, "w-%")); diff != "" {
		t.Error(diff)
	}
}

func TestWhoCameLaterDoesNotFailWithOneThatAnotherProcessKeptWaiting(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s, err := sqlitestore.Open(path, &sqlitestore.Options{WriteTimeout: time.Second})
	check(t, err)
	other, err := sqlitestore.Open(path, nil)
	check(t, err)
	defer func() { check(t, errors.Join(other.Close(), s.Close())) }()
	locked, unlock, unlocked := make(chan bool), make(chan bool), make(chan error, 1)
	go func() {
		unlocked <- other.Transaction(func(func(string) error) error {
			close(locked)
			<-unlock
			return nil
		})
	}()
	<-locked
	first := func() error {
		err := inserts(s, "w-1")()
		close(unlock)
		return errors.Join(err, <-unlocked)
	}
	errs := queued(t, s, first, inserts(s, "w-2"))
	if !errors.Is(errs[0], sqlitestore.ErrBusy) || errs[1] != nil {
		t.Errorf("%v", errs)
	}
	if diff := cmp.Diff([]string{"w-2"}, owners(t, s, "w-%")); diff != "" {
		t.Error(diff)
	}
}

func TestCloseMakesTheWritesThatWait(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s, err := sqlitestore.Open(path, nil)
	check(t, err)
	var writes []func() error
	for i := range 20 {
		writes = append(writes, inserts(s, fmt.Sprintf("w-%02d", i)))
	}
	closed := make(chan error, 1)
	errs := queued(t, s, append(writes, func() error { closed <- s.Close(); return nil })...)
	for i, err := range errs {
		if err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	check(t, <-closed)
	if err := inserts(s, "w-after")(); !errors.Is(err, sqlitestore.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	s, err = sqlitestore.Open(path, nil)
	check(t, err)
	defer func() { check(t, s.Close()) }()
	if got := owners(t, s, "w-%"); len(got) != 20 {
		t.Errorf("%q", got)
	}
}

func TestTenThousandCallersAtOnce(t *testing.T) {
	s, err := sqlitestore.Open(t.TempDir()+"/once.db", nil)
	check(t, err)
	defer func() { check(t, s.Close()) }()
	const callers = 10_000
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			c := aClaim(fmt.Sprint("run-", i%500), i/500+1)
			if i%10 == 0 { // of ten operations that all want
				c.Identity = fmt.Sprintf("%064d", i%100)
			}
			row, won, err := s.Claim(context.Background(), c)
			if err != nil {
				t.Error(err)
			}
			if won {
				_, err = s.Change(context.Background(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, HasResult: true})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	rows, err := s.List(t.Context(), nil, 0)
	if want := callers*9/10 + 10; err != nil || len(rows) != want {
		t.Errorf("%d rows, want %d, %v", len(rows), want, err)
	}
	for _, r := range rows {
		if r.State != middleware.Done {
			t.Fatalf("%+v", r)
		}
	}
}
