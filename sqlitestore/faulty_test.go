//go:build cgo

package sqlitestore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mattn/go-sqlite3"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// faulty is a driver whose statements fail as a test wants it. nil functions change nothing.
type faulty struct {
	path   string
	before func(query string) error            // what a statement fails with and is not run
	after  func(query string, err error) error // what is told of one that was run
}

func (f *faulty) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }

func (f *faulty) Connect(context.Context) (driver.Conn, error) {
	c, err := new(sqlite3.SQLiteDriver).Open("file:" + f.path)
	if err != nil {
		return nil, err
	}
	return &faultyConn{c.(*sqlite3.SQLiteConn), f, false}, nil
}

// faultyConn hides what SQLiteConn tells beyond a driver.Conn.
type faultyConn struct {
	conn *sqlite3.SQLiteConn
	*faulty
	lost bool
}

// try is a statement; where it says driver.ErrBadConn, the connection is lost.
func (c *faultyConn) try(query string, run func() error) error {
	if c.lost {
		return driver.ErrBadConn
	}
	if c.before != nil {
		if err := c.before(query); err != nil {
			c.lost = errors.Is(err, driver.ErrBadConn)
			return err
		}
	}
	err := run()
	if c.after != nil {
		err = c.after(query, err)
	}
	return err
}

func (c *faultyConn) Prepare(query string) (driver.Stmt, error) {
	if c.lost {
		return nil, driver.ErrBadConn
	}
	s, err := c.conn.Prepare(query)
	if err != nil {
		return nil, err
	}
	return &faultyStmt{s.(*sqlite3.SQLiteStmt), c, query}, nil
}

func (c *faultyConn) Close() error {
	if c.lost { // what is lost holds no lock, whatever statements were left open
		_, _ = c.conn.ExecContext(context.Background(), "ROLLBACK", nil)
	}
	return c.conn.Close()
}

func (c *faultyConn) Begin() (driver.Tx, error) { return nil, errors.New("it is not used") }

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.try(query, func() error { r, err = c.conn.ExecContext(ctx, query, args); return err })
	return r, err
}

type faultyStmt struct {
	*sqlite3.SQLiteStmt
	conn  *faultyConn
	query string
}

func (s *faultyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (r driver.Result, err error) {
	err = s.conn.try(s.query, func() error { r, err = s.SQLiteStmt.ExecContext(ctx, args); return err })
	return r, err
}

func (s *faultyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (r driver.Rows, err error) {
	err = s.conn.try(s.query, func() error { r, err = s.SQLiteStmt.QueryContext(ctx, args); return err })
	return r, err
}

// failsOnce gives an error the first time that a query begins so, after it was armed.
func failsOnce(armed *bool, prefix string, err error) func(string) error {
	return func(query string) error {
		if !*armed || !strings.HasPrefix(query, prefix) {
			return nil
		}
		*armed = false
		return err
	}
}

func openFaulty(t *testing.T, f *faulty) *sqlitestore.Store {
	t.Helper()
	f.path = t.TempDir() + "/once.db"
	db := sql.OpenDB(f)
	s, err := sqlitestore.OpenDB(db, nil)
	check(t, err)
	t.Cleanup(func() { check(t, errors.Join(s.Close(), db.Close())) })
	return s
}

// wins are writes that claim and want to win, each by its own row.
func wins(t *testing.T, s *sqlitestore.Store, claims ...middleware.Claim) (writes []func() error) {
	for _, c := range claims {
		writes = append(writes, func() error {
			row, won, err := s.Claim(t.Context(), c)
			if err == nil && (!won || row.Token != c.Token || row.State != middleware.Running) {
				err = fmt.Errorf("won %v, row is of %s and %s", won, row.Claimer.Run, row.State)
			}
			return err
		})
	}
	return writes
}

func TestConnectionLostInABatchIsMadeAnewAndTheWritesWithIt(t *testing.T) {
	for _, at := range []string{"BEGIN", "INSERT INTO operations", "INSERT INTO owners", "SAVEPOINT", "RELEASE", "COMMIT"} {
		t.Run(at, func(t *testing.T) {
			var armed bool
			s := openFaulty(t, &faulty{before: failsOnce(&armed, at, driver.ErrBadConn)})
			writes := append(wins(t, s, aClaim("a", 1), aClaim("b", 1)), inserts(s, "w-1"), inserts(s, "w-2"))
			armed = true
			failed := 0
			for _, err := range queued(t, s, writes...) {
				if err != nil {
					failed++
				}
			}
			want := 0
			if at == "BEGIN" { // nothing was begun that could be begun anew: the first one is told
				want = 1
			}
			rows, err := s.List(t.Context(), []middleware.State{middleware.Running}, 0)
			check(t, err)
			if kept := len(rows) + len(owners(t, s, "w-%")); armed || failed != want || kept != len(writes)-want {
				t.Errorf("%d have failed, want %d; %d of %d are kept", failed, want, kept, len(writes))
			}
			claimed(t, s, aClaim("c", 1))
		})
	}
}

func TestConnectionThatIsGivenUpInATransactionLocksNobodyOut(t *testing.T) {
	var committing, undoing bool
	broken := errors.New("disk I/O error")
	commit, undo := failsOnce(&committing, "COMMIT", broken), failsOnce(&undoing, "ROLLBACK", broken)
	s := openFaulty(t, &faulty{before: func(query string) error { return errors.Join(commit(query), undo(query)) }})
	committing, undoing = true, true
	for _, err := range queued(t, s, wins(t, s, aClaim("a", 1), aClaim("b", 1))...) {
		check(t, err)
	}
	if committing || undoing {
		t.Error("nothing has failed")
	}
}

func TestConnectionLostWhileNobodyWritesHindersNoReading(t *testing.T) {
	var armed bool
	s := openFaulty(t, &faulty{before: failsOnce(&armed, "SELECT", driver.ErrBadConn)})
	row := claimed(t, s, aClaim("a", 1))
	armed = true
	for range 2 {
		found(t, s, row.Operation)
	}
	claimed(t, s, aClaim("b", 1))
}

func TestConnectionThatCannotBeSetUpIsMadeAnewTheNextTime(t *testing.T) {
	broken := errors.New("disk I/O error")
	for name, c := range map[string]struct{ err, want error }{
		"an error is told":      {broken, broken},
		"a busy file is waited": {sqlite3.Error{Code: sqlite3.ErrBusy}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var lose, fail bool
			losing, failing := failsOnce(&lose, "INSERT INTO operations", driver.ErrBadConn), failsOnce(&fail, "PRAGMA synchronous", c.err)
			s := openFaulty(t, &faulty{before: func(query string) error { return errors.Join(losing(query), failing(query)) }})
			lose, fail = true, true
			if _, _, err := s.Claim(t.Context(), aClaim("a", 1)); !errors.Is(err, sql.ErrConnDone) {
				t.Errorf("the connection is lost, claiming says %v", err)
			}
			if _, won, err := s.Claim(t.Context(), aClaim("b", 1)); !errors.Is(err, c.want) || won != (c.want == nil) || fail {
				t.Errorf("claiming says %v %v, want %v", won, err, c.want)
			}
			claimed(t, s, aClaim("c", 1))
			got, err := s.Pragmas(0, "synchronous", "secure_delete")
			check(t, err)
			if diff := cmp.Diff([][]string{{"2", "1"}}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCommitThatWasMadeAlthoughAnErrorWasToldIsWon has claims run again that find their own rows.
func TestCommitThatWasMadeAlthoughAnErrorWasToldIsWon(t *testing.T) {
	var armed bool
	told := failsOnce(&armed, "COMMIT", errors.New("the answer is lost"))
	s := openFaulty(t, &faulty{after: func(query string, err error) error { return errors.Join(err, told(query)) }})
	early, taken := aClaim("a", 1), aClaim("c", 1)
	early.Call.Turn = 0 // in a transaction of its own
	taken.Identity = claimed(t, s, aClaim("other", 1)).Identity
	loses := func() error {
		row, won, err := s.Claim(t.Context(), taken)
		if err == nil && (won || row.Identity != taken.Identity || row.Token == taken.Token) {
			err = fmt.Errorf("won %v what another has", won)
		}
		return err
	}
	armed = true
	for i, err := range queued(t, s, append(wins(t, s, early, aClaim("b", 1)), loses)...) {
		if err != nil {
			t.Errorf("claim %d: %v", i, err)
		}
	}
	if armed {
		t.Error("nothing was told")
	}
	armed = true
	check(t, wins(t, s, func() middleware.Claim { c := aClaim("d", 1); c.Call.Turn = 0; return c }())[0]())
	rows, err := s.List(t.Context(), []middleware.State{middleware.Running}, 0)
	if err != nil || len(rows) != 4 || armed {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// TestClaimThatIsRunAgainMayLose has another process claim before a claim is made that was to share a commit.
func TestClaimThatIsRunAgainMayLose(t *testing.T) {
	for name, spoil := range map[string]func(mine, other *middleware.Claim){
		"to who has the identity": func(mine, other *middleware.Claim) { mine.Call.Turn, other.Identity = 0, mine.Identity },
		"to who has the place":    func(mine, other *middleware.Claim) { other.Call = mine.Call },
	} {
		t.Run(name, func(t *testing.T) {
			var failing, claiming bool
			var claim func()
			f := &faulty{before: failsOnce(&failing, "COMMIT", errors.New("it is not made")), after: func(query string, err error) error {
				if claiming && query == "ROLLBACK" {
					claiming = false
					claim()
				}
				return err
			}}
			s := openFaulty(t, f)
			mine, other := aClaim("a", 1), aClaim("b", 1)
			spoil(&mine, &other)
			second := open(t, f.path, nil)
			claim = func() { claimed(t, second, other) }
			loses := func() error {
				row, won, err := s.Claim(t.Context(), mine)
				if err == nil && (won || row.Token != other.Token) {
					err = fmt.Errorf("won %v what another has", won)
				}
				return err
			}
			failing, claiming = true, true
			for i, err := range queued(t, s, append(wins(t, s, aClaim("c", 1)), loses)...) {
				if err != nil {
					t.Errorf("claim %d: %v", i, err)
				}
			}
			if failing || claiming {
				t.Error("no claim was run again")
			}
		})
	}
}

func TestFirstActIsTheFirstAlsoWhereItIsWrittenAgain(t *testing.T) {
	var armed bool
	s := openFaulty(t, &faulty{before: failsOnce(&armed, "COMMIT", errors.New("it is not made"))})
	recorded := make([]middleware.Act, 2)
	var writes []func() error
	for i := range recorded {
		writes = append(writes, func() (err error) {
			recorded[i], err = s.Record(t.Context(), middleware.Act{Number: 7, Kind: middleware.ActForgot, Target: "a", By: "Ann", Why: "she asked"})
			return err
		})
	}
	armed = true
	for _, err := range queued(t, s, writes...) {
		check(t, err)
	}
	all, err := s.AllActs(t.Context())
	check(t, err)
	check(t, middleware.CheckActs(all))
	if diff := cmp.Diff(recorded, all); diff != "" || armed || all[0].Number != 1 {
		t.Errorf("armed %v: %s", armed, diff)
	}
}

// Errors of drivers that have types of their own for result codes: without what is more than the last byte, and with it.
type (
	shortCode  uint8
	shortError struct{ cause sqlite3.Error }
	longCode   int32
	longError  struct{ shortError }
)

func (e shortError) Error() string   { return "it does not work" }
func (e shortError) Code() shortCode { return shortCode(e.cause.Code) }
func (e longError) Code() longCode   { return longCode(e.cause.ExtendedCode) }

// telling is a driver whose errors are of another type.
func telling(to func(sqlite3.Error) error) *faulty {
	return &faulty{after: func(_ string, err error) error {
		if e, ok := errors.AsType[sqlite3.Error](err); ok {
			return to(e)
		}
		return err
	}}
}

func TestResultCodesOfAnyIntegerTypeAreUnderstood(t *testing.T) {
	for name, to := range map[string]func(sqlite3.Error) error{
		"short":    func(e sqlite3.Error) error { return shortError{e} },
		"extended": func(e sqlite3.Error) error { return errors.Join(errors.New("driver"), longError{shortError{e}}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := openFaulty(t, telling(to))
			c := aClaim("run", 1)
			row := claimed(t, s, c)
			c.Token, c.Identity = "another", freshHash() // at the same place
			if got, won, err := s.Claim(t.Context(), c); err != nil || won || got.Operation != row.Operation {
				t.Errorf("who comes second is told %v %v %q, want %q", won, err, got.Operation, row.Operation)
			}
			check(t, s.Write("PRAGMA query_only = ON"))
			if _, _, err := s.Claim(t.Context(), aClaim("run", 2)); !errors.Is(err, sqlitestore.ErrReadOnly) {
				t.Errorf("a file that cannot be written says %v, want ErrReadOnly", err)
			}
			check(t, s.Write("PRAGMA query_only = OFF"))
		})
	}
}

func TestDriverThatTellsNoResultCodesIsRefused(t *testing.T) {
	f := telling(func(sqlite3.Error) error { return errors.New("it does not work") })
	f.path = t.TempDir() + "/once.db"
	db := sql.OpenDB(f)
	defer func() { check(t, db.Close()) }()
	_, err := sqlitestore.OpenDB(db, nil)
	if !errors.Is(err, sqlitestore.ErrUnsupported) || !strings.Contains(err.Error(), "tell no result codes") {
		t.Errorf("opening says %v, want ErrUnsupported and why", err)
	}
}

func TestTooFewConnectionsForTwoStoresAreAnErrorAndNoHang(t *testing.T) {
	path := t.TempDir() + "/once.db"
	synctest.Test(t, func(t *testing.T) {
		db := sql.OpenDB(&faulty{path: path})
		db.SetMaxOpenConns(2)
		a, err := sqlitestore.OpenDB(db, nil)
		check(t, err)
		began := time.Now()
		_, err = sqlitestore.OpenDB(db, &sqlitestore.Options{WriteTimeout: 5 * time.Second})
		if err == nil || !strings.Contains(err.Error(), "call SetMaxOpenConns") || time.Since(began) != 5*time.Second {
			t.Errorf("after %v the second store says %v", time.Since(began), err)
		}
		claimed(t, a, aClaim("run", 1)) // the first is as it was
		db.SetMaxOpenConns(3)
		b, err := sqlitestore.OpenDB(db, nil)
		check(t, err)
		claimed(t, b, aClaim("run", 2))
		check(t, errors.Join(b.Close(), a.Close(), db.Close()))
	})
}
