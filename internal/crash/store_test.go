//go:build unix && cgo

package crash_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// mortal is a store whose process may end before, in and after each of its writes.
type mortal struct {
	*sqlitestore.Store
	w *worker
}

var stepNames = map[middleware.Step]string{
	middleware.Complete: "complete", middleware.GiveBack: "give back", middleware.Doubt: "doubt", middleware.Again: "again",
	middleware.Take: "take", middleware.Found: "found", middleware.Absent: "absent", middleware.Unsure: "unsure",
}

func (m *mortal) Begin(ctx context.Context, s journal.Start) (r journal.Record, err error) {
	err = m.w.write(ctx, "begin", func() error {
		r, err = m.Store.Begin(ctx, s)
		return err
	})
	if err == nil && len(m.w.writes) == 1 {
		_ = m.w.post("begun", nil, nil)
	}
	return r, err
}

func (m *mortal) Append(ctx context.Context, e journal.Entry) (stored journal.Entry, err error) {
	err = m.w.write(ctx, fmt.Sprintf("turn %d", e.Turn.Number), func() error {
		stored, err = m.Store.Append(ctx, e)
		return err
	})
	return stored, err
}

func (m *mortal) Leave(ctx context.Context, l journal.Leaving) error {
	return m.w.write(ctx, "leave", func() error { return m.Store.Leave(ctx, l) })
}

func (m *mortal) Claim(ctx context.Context, c middleware.Claim) (row middleware.Row, won bool, err error) {
	err = m.w.write(ctx, "claim", func() error {
		row, won, err = m.Store.Claim(ctx, c)
		return err
	})
	return row, won, err
}

func (m *mortal) Change(ctx context.Context, t middleware.Transition) (row middleware.Row, err error) {
	err = m.w.write(ctx, stepNames[t.Step], func() error {
		row, err = m.Store.Change(ctx, t)
		return err
	})
	return row, err
}

func (m *mortal) Note(ctx context.Context, operation string, call middleware.Alias) (repeats int, err error) {
	err = m.w.write(ctx, "note", func() error {
		repeats, err = m.Store.Note(ctx, operation, call)
		return err
	})
	return repeats, err
}

// Find tells the parent that a call waits for what another process does: only then is an operation looked at by its id.
func (m *mortal) Find(ctx context.Context, q middleware.Query) (middleware.Row, bool, error) {
	row, ok, err := m.Store.Find(ctx, q)
	if q.Operation != "" {
		_ = m.w.post("waits", nil, nil)
	}
	return row, ok, err
}

// The ways in which a process ends at a write. A write that is called for a second time in a run has a number.
const (
	beforeIt   = "before "
	afterIt    = "after "
	checkpoint = "checkpoint before "
	busy       = "waiting for the lock of "
	refused    = "disk refuses "
)

// write is one write of a run, at which the process may end.
func (w *worker) write(ctx context.Context, name string, f func() error) error {
	for once, n := name, 2; slices.Contains(w.writes, name); n++ {
		name = fmt.Sprintf("%s (%d)", once, n)
	}
	w.writes = append(w.writes, name)
	w.at(beforeIt + name)
	var err error
	switch w.stop {
	case checkpoint + name:
		err = w.checkpoint(ctx)
	case refused + name:
		err = w.refused(f)
	case busy + name:
		if err = w.post("lock", nil, nil); err == nil {
			time.AfterFunc(2*time.Millisecond, w.here) // the lock stays: that the write waits by then is only likely
		}
	}
	if err != nil {
		fail(err)
	}
	err = f()
	w.at(afterIt + name)
	return err
}

// refused has the disk take a part of a write and refuse the rest. The file size limit is that of this process alone.
func (w *worker) refused(write func() error) error {
	info, err := os.Stat(w.DB + "-wal")
	if err != nil {
		return err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	set(&limit.Cur, info.Size()+1000) // a page is longer
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := write(); err == nil {
		return errors.New("the disk has taken what it was to refuse")
	}
	w.here()
	return nil
}

// set is for a number whose type depends on the system.
func set[T ~int64 | ~uint64](to *T, v int64) { *to = T(v) }

// checkpoint stops inside a checkpoint: a reader keeps it from its end, and the write lock tells that it has begun.
func (w *worker) checkpoint(ctx context.Context) error {
	reader, err := connect(w.DB, 0)
	if err != nil {
		return err
	}
	var n int
	if _, err = reader.ExecContext(ctx, "BEGIN"); err == nil {
		err = reader.QueryRowContext(ctx, "SELECT count(*) FROM owners").Scan(&n)
	}
	if err != nil {
		return err
	}
	writer, err := connect(w.DB, time.Minute)
	if err != nil {
		return err
	}
	other, err := connect(w.DB, 0)
	if err != nil {
		return err
	}
	go func() {
		_, err := writer.ExecContext(ctx, "PRAGMA wal_checkpoint(RESTART)")
		fail(fmt.Errorf("the checkpoint has ended: %w", err))
	}()
	for {
		if _, err := other.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
			w.here()
		}
		if _, err := other.ExecContext(ctx, "ROLLBACK"); err != nil {
			return err
		}
	}
}

// making opens the store where there is none, and stops between the commit that makes its tables and the checkpoint behind
// that, which a reader keeps from going on.
func (w *worker) making(ctx context.Context) error {
	reader, err := connect(w.DB, patience)
	if err != nil {
		return err
	}
	var n int
	if _, err = reader.ExecContext(ctx, "PRAGMA journal_mode = WAL; BEGIN"); err == nil {
		err = reader.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&n)
	}
	if err != nil {
		return err
	}
	go func() {
		_, err := sqlitestore.Open(w.DB, nil)
		fail(fmt.Errorf("the store is open: %w", err))
	}()
	other, err := connect(w.DB, patience)
	for version := 0; err == nil && version == 0; {
		err = other.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	}
	if err == nil {
		w.here()
	}
	return err
}

// connect makes the one connection of a handle on a database, past the store.
func connect(path string, wait time.Duration) (*sql.DB, error) {
	db, err := sql.Open("sqlite3", fmt.Sprintf("file:%s?_busy_timeout=%d", path, wait.Milliseconds()))
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}
