package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// busySlice is how long SQLite itself waits for another process's lock before it is asked again. It is short against
// Options.WriteTimeout, so that this bounds the wait as a whole.
const busySlice = time.Second

// maxBatch is how many writes share a commit. More would only make the first of them wait for the last.
const maxBatch = 256

// errUndo rolls a transaction back that is not to be.
var errUndo = errors.New("undo")

// writer owns the one connection that writes. Whoever finds it idle leads: it makes its own write together with all
// that wait for their turn, in one transaction, and hands the lead to the first of those that have come meanwhile. So
// writes share a commit where there are many, and where there is one it waits for nobody.
type writer struct {
	db      *sql.DB
	given   bool // db is the caller's
	timeout time.Duration
	ctx     context.Context // never ends

	commits atomic.Int64

	mu      sync.Mutex
	led     bool     // somebody has what follows
	waiting []*write // in the order they came

	conn   *sql.Conn // nil: to be made
	stmts  *statements
	direct direct
	closed bool
}

// write is what one caller wants written. f may be run again, where what it has written could not stay, or where the driver
// says so of a commit that was made. So it must not build on what it has left in variables the time before.
type write struct {
	f     func(*tx) error
	how   how
	x     tx
	until time.Time // how long others are waited for
	err   error
	turn  chan bool // of one that waits: true, it leads; false, it is over
}

// how says what a write needs.
type how uint8

const (
	// statement is one statement: a transaction of its own where it is alone, for a third of the price.
	statement how = iota
	// transaction is several statements, of which all stay or none.
	transaction
	// exclusive is anything, with nobody else.
	exclusive
	// ending is exclusive, and needs no connection.
	ending
)

func newWriter(ctx context.Context, path string, timeout time.Duration) (*writer, error) {
	c, err := newConnector(path, min(timeout, busySlice), true)
	if err != nil {
		return nil, err
	}
	w := &writer{db: sql.OpenDB(c), timeout: timeout, ctx: context.WithoutCancel(ctx)}
	w.db.SetMaxOpenConns(1)
	if err := w.connect(ctx, time.Now().Add(timeout)); err != nil {
		keep(&err, w.db.Close())
		return nil, err
	}
	return w, nil
}

// connect makes the connection, where there is none. Another process that makes the file at this moment is waited for.
func (w *writer) connect(ctx context.Context, until time.Time) error {
	if w.conn != nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return insist(until, func() (err error) {
		if w.given {
			w.conn, err = take(ctx, w.db, until)
		} else {
			w.conn, err = w.db.Conn(ctx)
		}
		if err != nil {
			return err
		}
		w.stmts = &statements{prepare: w.conn.PrepareContext}
		if w.given {
			if err = w.setUp(ctx); err != nil {
				w.drop()
			}
		}
		return err
	})
}

// drop gives up a connection whose state is not known.
func (w *writer) drop() {
	w.stmts.close() // else database/sql leaves them open, and with them the file locked
	w.direct.close(w.conn)
	_ = w.conn.Raw(func(any) error { return driver.ErrBadConn }) // the pool closes it
	w.conn = nil
}

// insist asks again while the file is busy.
func insist(until time.Time, f func() error) error {
	for {
		if err := f(); err == nil || !errors.Is(kindOf(err), ErrBusy) || time.Now().After(until) {
			return err
		}
	}
}

// do runs f in a transaction that has the write lock from its beginning. After an error nothing of it stays.
func (w *writer) do(ctx context.Context, f func(*tx) error) error {
	err := w.write(ctx, transaction, f)
	if errors.Is(err, errUndo) {
		return nil
	}
	return err
}

// single runs f, which is one statement.
func (w *writer) single(ctx context.Context, f func(*tx) error) error {
	return w.write(ctx, statement, f)
}

// alone gives f the connection, outside of any transaction.
func (w *writer) alone(ctx context.Context, f func(*tx) error) error {
	return w.write(ctx, exclusive, f)
}

// write waits for other writers of this process no longer than the timeout, whatever the caller's context. What has been
// begun then is not cut short.
func (w *writer) write(ctx context.Context, how how, f func(*tx) error) error {
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	r := &write{f: f, how: how, x: tx{w: w, ctx: ctx}, until: time.Now().Add(w.timeout)}
	w.mu.Lock()
	if w.led {
		r.turn = make(chan bool, 1)
		w.waiting = append(w.waiting, r)
	}
	w.led = true
	w.mu.Unlock()
	if r.turn != nil {
		if leads, err := w.wait(r); !leads {
			return err
		}
		runtime.Gosched() // those whose writes are made come with their next, and share the commit
	}
	w.lead(r)
	return r.err
}

// wait is for a write whose turn it is not: until it leads, or another has made it.
func (w *writer) wait(r *write) (leads bool, err error) {
	timer := time.NewTimer(time.Until(r.until))
	defer timer.Stop()
	select {
	case leads = <-r.turn:
	case <-timer.C:
		w.mu.Lock()
		i := slices.Index(w.waiting, r)
		if i >= 0 {
			w.waiting = slices.Delete(w.waiting, i, i+1)
		}
		w.mu.Unlock()
		if i >= 0 {
			return false, fmt.Errorf("%w: this process's own writes have not ended in %s", ErrBusy, w.timeout)
		}
		leads = <-r.turn // it is being made
	}
	return leads, r.err
}

// lead makes a write and those that can share its commit, and hands the lead on.
func (w *writer) lead(first *write) {
	batch := []*write{first}
	defer func() {
		w.handOn()
		for _, r := range batch[1:] {
			r.turn <- false
		}
	}()
	if w.closed {
		first.err = ErrClosed
		return
	}
	batch = w.join(batch)
	if len(batch) == 1 {
		w.one(first)
		return
	}
	if first.err = w.begin(first); first.err != nil { // the others have more time
		w.rollBack(&first.x)
		w.mu.Lock()
		w.waiting = append(slices.Clone(batch[1:]), w.waiting...)
		w.mu.Unlock()
		batch = batch[:1]
		return
	}
	if !w.together(batch) {
		for _, r := range batch {
			w.one(r)
		}
	}
}

// join takes those that wait and can share a commit.
func (w *writer) join(batch []*write) []*write {
	if batch[0].how >= exclusive {
		return batch
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for n < len(w.waiting) && n+1 < maxBatch && w.waiting[n].how < exclusive {
		n++
	}
	batch = append(batch, w.waiting[:n]...)
	w.waiting = slices.Delete(w.waiting, 0, n)
	return batch
}

// handOn gives the lead to the first that waits.
func (w *writer) handOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.led = len(w.waiting) > 0; w.led {
		w.waiting[0].turn <- true
		w.waiting = slices.Delete(w.waiting, 0, 1)
	}
}

func (w *writer) begin(r *write) error {
	if err := w.connect(r.x.ctx, r.until); err != nil {
		return err
	}
	return insist(r.until, func() error { return r.x.run("BEGIN IMMEDIATE") })
}

// one makes a write by itself.
func (w *writer) one(r *write) {
	if r.how != ending {
		if r.err = w.connect(r.x.ctx, r.until); r.err != nil {
			return
		}
	}
	x := &r.x
	switch r.how {
	case statement:
		r.err = insist(r.until, func() error { return r.f(x) })
	case transaction:
		if r.err = w.begin(r); r.err == nil {
			r.err = r.f(x)
		}
		if r.err == nil {
			r.err = x.run("COMMIT")
		}
	default:
		r.err = r.f(x)
	}
	if r.err != nil {
		w.rollBack(x)
		return
	}
	w.commits.Add(1)
}

// together makes several writes in the transaction that is open. It is false where nothing of them stays, because the
// transaction as a whole could not.
func (w *writer) together(batch []*write) bool {
	for _, r := range batch {
		if r.err = w.part(&r.x, r); r.err != nil && !w.inTransaction() { // SQLite ends some by itself
			return false
		}
	}
	x := &batch[0].x
	if err := x.run("COMMIT"); err != nil {
		w.rollBack(x)
		return false
	}
	w.commits.Add(1)
	return true
}

// part makes one write of a transaction. After an error nothing of it stays, and the others do.
func (w *writer) part(x *tx, r *write) error {
	if r.how == statement { // SQLite undoes one that fails
		return r.f(x)
	}
	if err := x.run("SAVEPOINT part"); err != nil {
		return err
	}
	err := r.f(x)
	if err != nil && w.inTransaction() {
		if undo := x.run("ROLLBACK TO part"); undo != nil {
			w.rollBack(x)
			return undo
		}
	}
	if err == nil || w.inTransaction() {
		keep(&err, x.run("RELEASE part"))
	}
	return err
}

// rollBack ends a transaction that failed. A connection that stays in one is given up.
func (w *writer) rollBack(x *tx) {
	if w.inTransaction() {
		_ = x.run("ROLLBACK") // the first error is the one to tell
		if w.inTransaction() {
			w.drop()
		}
	}
}

// idle reads at most one row by the connection that writes, if nobody uses it: what it has just written it need not read
// again, as the others must. It reports whether it did.
func (w *writer) idle(ctx context.Context, query string, dest []any, args ...any) (ok, done bool, err error) {
	w.mu.Lock()
	if w.led || w.closed || w.conn == nil {
		w.mu.Unlock()
		return false, false, nil
	}
	w.led = true
	w.mu.Unlock()
	defer w.handOn()
	x := &tx{w: w, ctx: ctx}
	ok, err = x.one(query, dest, args...)
	if err != nil && w.inTransaction() { // it is of no more use
		w.drop()
		return false, false, nil
	}
	return ok, true, err
}

// checkpoint moves what the write-ahead log holds into the file, if nobody is in the way.
func (w *writer) checkpoint(ctx context.Context) error {
	return w.alone(ctx, func(x *tx) error { return x.script("PRAGMA wal_checkpoint(TRUNCATE)") })
}

// close waits for the writes that were asked for before, however long they take.
func (w *writer) close() error {
	for !w.closed {
		_ = w.write(w.ctx, ending, func(*tx) error { // ErrBusy, or none
			w.closed = true
			if w.conn != nil {
				w.stmts.close()
				w.direct.close(w.conn)
				_ = w.conn.Close() // to the pool
				w.conn = nil
			}
			return nil
		})
	}
	if w.given {
		return nil
	}
	return w.db.Close()
}
