//go:build unix && cgo

package crash_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"github.com/toolonce/toolonce/sqlitestore"
)

// sqlite is a file.
type sqlite string

func (s sqlite) open(context.Context) (store, error) { return sqlitestore.Open(string(s), nil) }

func (s sqlite) refund(ctx context.Context, order string) error {
	tx, err := sqlitestore.Tx(ctx)
	if err == nil {
		_, err = tx.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS refunds (order_id TEXT)")
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, "INSERT INTO refunds VALUES (?)", order)
	}
	return err
}

func (s sqlite) opened(context.Context, string) error { return nil }

func (s sqlite) ended(context.Context, string) error { return nil } // its lock has gone with it

// lock takes the write lock.
func (s sqlite) lock(ctx context.Context, _ bool) (io.Closer, error) {
	db, err := connect(string(s), patience)
	if err == nil {
		_, err = db.ExecContext(ctx, "BEGIN IMMEDIATE")
	}
	return db, err
}

// look reads what is stored. While somebody has the file open it is as that process sees it; a commit that a kill has cut
// off may be there or not. Where nobody has, a copy is read: whoever opens the file next must find it as the kill has left it.
func (s sqlite) look(ctx context.Context, used bool) (f fact, err error) {
	path := string(s)
	if !used {
		dir, err := os.MkdirTemp(filepath.Dir(path), "copy")
		if err != nil {
			return f, err
		}
		defer func() { _ = os.RemoveAll(dir) }() // it goes with the story
		path = filepath.Join(dir, "once.db")
		for _, end := range []string{"", "-wal"} {
			b, err := os.ReadFile(string(s) + end)
			if err == nil {
				err = os.WriteFile(path+end, b, 0o600)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return f, err
			}
		}
	}
	db, err := connect(path, patience)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return read(ctx, db)
}

func read(ctx context.Context, db *sql.DB) (f fact, err error) {
	var sound string
	var tables int
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&sound); err != nil {
		return f, err
	}
	if sound != "ok" {
		return f, fmt.Errorf("the store is damaged: %s", sound)
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil || tables == 0 {
		return f, err
	}
	err = db.QueryRowContext(ctx, `SELECT coalesce(max(turns.number), 0), coalesce(max(runs.finished), 0)
		FROM runs LEFT JOIN turns ON turns.run = runs.id WHERE runs.run = ?`, first).Scan(&f.turns, &f.finished)
	if err == nil {
		err = db.QueryRowContext(ctx, `SELECT count(*), coalesce(max(state), ''), coalesce(max(run), ''), coalesce(max(attempt), 0),
			coalesce(max(deadline), 0), coalesce(max(settled_by), '') FROM operations`).Scan(
			&f.operations, &f.state, &f.claimer, &f.attempt, &f.deadline, &f.settledBy)
	}
	if err == nil {
		err = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'refunds'").Scan(&f.refunds)
	}
	if err == nil && f.refunds > 0 {
		err = db.QueryRowContext(ctx, "SELECT count(*) FROM refunds").Scan(&f.refunds)
	}
	return f, err
}

func (s sqlite) stop(ctx context.Context, w *worker, way string, write func() error) error {
	switch way {
	case checkpoint:
		return s.checkpoint(ctx, w)
	case refused:
		return s.refused(w, write)
	}
	err := w.post("lock", nil, nil)
	if err == nil {
		time.AfterFunc(2*time.Millisecond, w.here) // the lock stays: that the write waits by then is only likely
	}
	return err
}

// refused has the disk take a part of a write and refuse the rest. The file size limit is that of this process alone.
func (s sqlite) refused(w *worker, write func() error) error {
	info, err := os.Stat(string(s) + "-wal")
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
func (s sqlite) checkpoint(ctx context.Context, w *worker) error {
	reader, err := connect(string(s), 0)
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
	writer, err := connect(string(s), time.Minute)
	if err != nil {
		return err
	}
	other, err := connect(string(s), 0)
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
func (s sqlite) making(ctx context.Context, w *worker) error {
	reader, err := connect(string(s), patience)
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
		_, err := s.open(ctx)
		fail(fmt.Errorf("the store is open: %w", err))
	}()
	other, err := connect(string(s), patience)
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
