package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
)

// newFloor is what a hand-written guard without any conditions does with the same data: a row is inserted and committed,
// then updated and committed, with prepared statements on one connection and the store's pragmas.
func newFloor(b *testing.B) func() { return newFloorBy(b, func(f func()) { f() }) }

// newFloorBy has the second commit made by, as a guard must whose caller may leave before the tool has returned.
func newFloorBy(b *testing.B, by func(func())) func() {
	db, err := sql.Open("sqlite3", "file:"+b.TempDir()+"/floor.db?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=1000&_foreign_keys=on&_txlock=immediate&_mutex=no&_secure_delete=on")
	check(b, err)
	b.Cleanup(func() { check(b, db.Close()) })
	db.SetMaxOpenConns(1)
	ctx := context.Background()
	_, err = db.ExecContext(ctx, `CREATE TABLE done (id INTEGER PRIMARY KEY, identity BLOB NOT NULL UNIQUE, state TEXT NOT NULL, token TEXT NOT NULL,
		fingerprint BLOB NOT NULL, arguments BLOB NOT NULL, tool TEXT NOT NULL, run TEXT NOT NULL, turn INTEGER NOT NULL, call_id TEXT NOT NULL,
		created INTEGER NOT NULL, input BLOB, result TEXT) STRICT`)
	check(b, err)
	insert, err := db.PrepareContext(ctx, `INSERT INTO done (identity, state, token, fingerprint, arguments, tool, run, turn, call_id, created, input)
		VALUES (?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	check(b, err)
	update, err := db.PrepareContext(ctx, `UPDATE done SET state = 'done', result = ? WHERE id = ? AND state = 'running'`)
	check(b, err)
	b.Cleanup(func() { check(b, errors.Join(insert.Close(), update.Close())) })
	next := claims()
	key, result := make([]byte, 32), strings.Repeat("r", 200)
	return func() {
		c := next()
		fresh(key)
		r, err := insert.ExecContext(ctx, key, c.Token, key, key, c.Call.Tool, c.Call.Run, c.Call.Turn, c.Call.CallID, time.Now().UnixNano(), c.Input)
		check(b, err)
		id, err := r.LastInsertId()
		check(b, err)
		by(func() { _, err = update.ExecContext(ctx, result, id) })
		check(b, err)
	}
}

// detached runs f in a goroutine of its own and waits for it.
func detached(f func()) {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	<-done
}

func BenchmarkFloor(b *testing.B) { measure(b, newFloor(b)) }
