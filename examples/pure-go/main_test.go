package main

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/agent/journal/journaltest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/sqlitestore"
)

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func store(tb testing.TB, path string) *sqlitestore.Store {
	tb.Helper()
	s, closeAll, err := open(path)
	check(tb, err)
	tb.Cleanup(func() { _ = closeAll() })
	return s
}

// processes are stores on one file, each of which stands for a process.
type processes struct {
	path  string
	locks map[any]string // the lock file of each store
}

func (p *processes) open(t *testing.T) *sqlitestore.Store {
	t.Helper()
	before := p.files(t)
	s := store(t, p.path)
	for _, f := range p.files(t) {
		if !slices.Contains(before, f) {
			p.locks[s] = f
		}
	}
	return s
}

func (p *processes) files(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(p.path + "-owners/*")
	check(t, err)
	return all
}

// kill has a store count as one whose process has gone: its lock file is missing, and a person says so.
func (p *processes) kill(t *testing.T, s *sqlitestore.Store) {
	t.Helper()
	check(t, os.Remove(p.locks[s]))
	check(t, store(t, p.path).DeclareGone(t.Context(), filepath.Base(p.locks[s])))
}

// inMemory puts a test's files where a sync costs nothing.
func inMemory(t *testing.T) {
	t.Helper()
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", "/dev/shm")
	}
}

func TestStoreOnADriverInGoKeepsTheContracts(t *testing.T) {
	inMemory(t)
	ledgertest.Run(t, func(t *testing.T) ledgertest.System {
		p := &processes{path: t.TempDir() + "/once.db", locks: map[any]string{}}
		return ledgertest.System{
			Open: func() middleware.Ledger { return p.open(t) },
			Kill: func(l middleware.Ledger) { p.kill(t, l.(*sqlitestore.Store)) },
			Namespace: func(l middleware.Ledger, name string) middleware.Ledger {
				return l.(*sqlitestore.Store).Namespace(name)
			},
		}
	})
	journaltest.Run(t, func(t *testing.T) journaltest.System {
		p := &processes{path: t.TempDir() + "/once.db", locks: map[any]string{}}
		return journaltest.System{
			Open:      func() journal.Journal { return p.open(t) },
			Kill:      func(j journal.Journal) { p.kill(t, j.(*sqlitestore.Store)) },
			Namespace: func(j journal.Journal, name string) journal.Journal { return j.(*sqlitestore.Store).Namespace(name) },
		}
	})
}

func TestRefundHappensOnce(t *testing.T) { check(t, run(t.TempDir()+"/once.db")) }

func TestDatabasesThatCannotBeUsedAreRefusedAndLeftAsTheyWere(t *testing.T) {
	give := func(dsn string, set func(*sql.DB)) error {
		db, err := sql.Open("sqlite", dsn)
		check(t, err)
		defer func() { check(t, db.Close()) }()
		set(db)
		_, err = sqlitestore.OpenDB(db, nil)
		return err
	}
	path := filepath.Join(t.TempDir(), "other.db")
	foreign := func(db *sql.DB) {
		_, err := db.ExecContext(t.Context(), "CREATE TABLE theirs (a)")
		check(t, err)
	}
	if err := give("file:"+path, foreign); !errors.Is(err, sqlitestore.ErrForeign) || !strings.Contains(err.Error(), path) {
		t.Errorf("of another program: %v", err)
	}
	if err := give("file:"+path, func(db *sql.DB) { db.SetMaxOpenConns(1) }); err == nil || !strings.Contains(err.Error(), "SetMaxOpenConns with 2") {
		t.Errorf("one connection: %v", err)
	}
	if err := give(":memory:", func(*sql.DB) {}); !errors.Is(err, sqlitestore.ErrPath) {
		t.Errorf("in memory: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || b[18] != 1 {
		t.Errorf("the file of another program was changed to WAL: %v", err)
	}
}
