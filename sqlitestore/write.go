package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// busySlice is how long SQLite itself waits for another process's lock before it is asked again. It is short against
// Options.WriteTimeout, so that this bounds the wait as a whole.
const busySlice = time.Second

// errUndo rolls a transaction back that is not to be.
var errUndo = errors.New("undo")

// writer owns the one connection that writes.
type writer struct {
	db      *sql.DB
	timeout time.Duration
	turn    chan struct{} // holds one token: who has it has what follows
	conn    *sql.Conn     // nil: to be made
	stmts   *statements
	closed  bool
}

func newWriter(ctx context.Context, path string, timeout time.Duration) (*writer, error) {
	c, err := newConnector(path, min(timeout, busySlice), true)
	if err != nil {
		return nil, err
	}
	w := &writer{db: sql.OpenDB(c), timeout: timeout, turn: make(chan struct{}, 1)}
	w.db.SetMaxOpenConns(1)
	if err := w.connect(ctx, time.Now().Add(timeout)); err != nil {
		keep(&err, w.db.Close())
		return nil, err
	}
	w.turn <- struct{}{}
	return w, nil
}

// connect makes the connection. Another process that makes the file at this moment is waited for.
func (w *writer) connect(ctx context.Context, until time.Time) (err error) {
	err = insist(until, func() error {
		w.conn, err = w.db.Conn(context.WithoutCancel(ctx))
		return err
	})
	if err == nil {
		w.stmts = &statements{prepare: w.conn.PrepareContext}
	}
	return err
}

// drop gives up a connection whose state is not known.
func (w *writer) drop() {
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn }) // the pool closes it
	w.conn = nil
}

// insist asks again while the file is busy.
func insist(until time.Time, f func() error) error {
	for {
		if err := f(); !errors.Is(kindOf(err), ErrBusy) || time.Now().After(until) {
			return err
		}
	}
}

// hold gives f the connection, and takes it back. It waits for other writers of this process no longer than the timeout,
// whatever the caller's context. f may wait until the time it is given; what it has begun then is not cut short.
func (w *writer) hold(ctx context.Context, f func(x *tx, until time.Time) error) error {
	until := time.Now().Add(w.timeout)
	select {
	case <-w.turn:
	default:
		timer := time.NewTimer(w.timeout)
		defer timer.Stop()
		select {
		case <-w.turn:
		case <-timer.C:
			return fmt.Errorf("%w: this process's own writes have not ended in %s", ErrBusy, w.timeout)
		}
	}
	defer func() { w.turn <- struct{}{} }()
	if w.closed {
		return ErrClosed
	}
	if w.conn == nil {
		if err := w.connect(ctx, until); err != nil {
			return err
		}
	}
	x := &tx{w: w, ctx: context.WithoutCancel(ctx)}
	err := f(x, until)
	if err != nil && inTransaction(w.conn) { // SQLite ends some by itself
		_ = x.run("ROLLBACK") // the first error is the one to tell
		if inTransaction(w.conn) {
			w.drop()
		}
	}
	return err
}

// idle reads at most one row by the connection that writes, if nobody uses it: what it has just written it need not read
// again, as the others must. It reports whether it did.
func (w *writer) idle(ctx context.Context, query string, dest []any, args ...any) (ok, done bool, err error) {
	select {
	case <-w.turn:
	default:
		return false, false, nil
	}
	defer func() { w.turn <- struct{}{} }()
	if w.closed || w.conn == nil {
		return false, false, nil
	}
	x := &tx{w: w, ctx: ctx}
	ok, err = x.one(query, dest, args...)
	return ok, true, err
}

// do runs f in a transaction that has the write lock from its beginning. After an error nothing of it stays.
func (w *writer) do(ctx context.Context, f func(*tx) error) error {
	err := w.hold(ctx, func(x *tx, until time.Time) error {
		if err := insist(until, func() error { return x.run("BEGIN IMMEDIATE") }); err != nil {
			return err
		}
		if err := f(x); err != nil {
			return err
		}
		return x.run("COMMIT")
	})
	if errors.Is(err, errUndo) {
		return nil
	}
	return err
}

// single runs f, which is one statement: a transaction of its own, for a third of the price.
func (w *writer) single(ctx context.Context, f func(*tx) error) error {
	return w.hold(ctx, func(x *tx, until time.Time) error {
		return insist(until, func() error { return f(x) })
	})
}

// checkpoint moves what the write-ahead log holds into the file, if nobody is in the way.
func (w *writer) checkpoint(ctx context.Context) error {
	_, err := w.conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

func (w *writer) close() error {
	<-w.turn
	defer func() { w.turn <- struct{}{} }()
	w.closed = true
	if w.conn != nil {
		w.stmts.close()
		_ = w.conn.Close() // to the pool
		w.conn = nil
	}
	return w.db.Close()
}

// tx is a transaction of the writer. It ends with the function that it was given to.
type tx struct {
	w   *writer
	ctx context.Context // never ends
}

func (x *tx) run(query string, args ...any) error {
	_, err := x.exec(query, args...)
	return err
}

// exec returns how many rows have changed.
func (x *tx) exec(query string, args ...any) (int64, error) {
	s, err := x.w.stmts.get(x.ctx, query)
	if err != nil {
		return 0, err
	}
	r, err := s.ExecContext(x.ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// one reads at most one row.
func (x *tx) one(query string, dest []any, args ...any) (bool, error) {
	s, err := x.w.stmts.get(x.ctx, query)
	if err != nil {
		return false, err
	}
	return one(x.ctx, s, dest, args...)
}

// each calls f for every row.
func (x *tx) each(query string, f func(*sql.Rows) error, args ...any) error {
	s, err := x.w.stmts.get(x.ctx, query)
	if err != nil {
		return err
	}
	return each(x.ctx, s, f, args...)
}

// script runs several statements that are not asked for again.
func (x *tx) script(text string) error {
	_, err := x.w.conn.ExecContext(x.ctx, text)
	return err
}

// one reads at most one row, to the end, as a statement that changes rows must be.
func one(ctx context.Context, s *prepared, dest []any, args ...any) (ok bool, err error) {
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return false, err
	}
	defer func() { keep(&err, rows.Close()) }()
	for rows.Next() {
		if ok {
			return false, errors.New("a query for one row has found two")
		}
		if err := rows.Scan(dest...); err != nil {
			return false, err
		}
		ok = true
	}
	return ok, rows.Err()
}

// keep is for what must be closed: the first error is the cause, a later one only follows from it.
func keep(err *error, closing error) {
	if *err == nil {
		*err = closing
	}
}
