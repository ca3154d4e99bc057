package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/toolonce/toolonce/internal/closing"
	"github.com/toolonce/toolonce/middleware"
)

// database is what all views share.
type database struct {
	where    string       // for error texts
	schema   string       // quoted, with a dot
	newID    func() int64 // of an operation
	opts     Options
	ctx      context.Context // never ends: for what no caller's context may cut short
	pool     *pgxpool.Pool
	handlers middleware.Handlers
	held     sync.Map // holding: the runs that calls of this process are at
	queries  sync.Map // as they are written here: as they are sent

	owner     int64 // this process instance
	ownerName string
	used      atomic.Bool   // a row may name this owner
	stop      chan struct{} // closed to end the heartbeat
	stopped   chan struct{} // closed by its end
	stopOnce  sync.Once     // closes stop
	shut      atomic.Bool   // the pool is closed, or about to be

	commits atomic.Int64

	gate closing.Gate // entered by what makes this process run something

	looks   gatherer[*look]
	claims  gatherer[*claiming]
	results gatherer[*changing]
}

// text is a query as it is sent: @ is the schema.
func (d *database) text(query string) string {
	if q, ok := d.queries.Load(query); ok {
		return q.(string)
	}
	q := strings.ReplaceAll(query, "@", d.schema)
	d.queries.Store(query, q)
	return q
}

// batch is what goes to the server in one round trip. It is one transaction, each statement of which sees what others
// have committed before it.
type batch struct {
	d *database
	b pgx.Batch
}

// run queues a statement.
func (b *batch) run(query string, args ...any) { b.b.Queue(b.d.text(query), args...) }

// one queues a query for at most one row.
func (b *batch) one(ok *bool, query string, dest []any, args ...any) {
	*ok = false
	b.each(query, func(rows pgx.Rows) error {
		if *ok {
			return errors.New("a query for one row has found two")
		}
		*ok = true
		return rows.Scan(dest...)
	}, args...)
}

// each queues a query and calls f for every row.
func (b *batch) each(query string, f func(pgx.Rows) error, args ...any) {
	b.b.Queue(b.d.text(query), args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := f(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
)

// lostError is a connection that broke.
type lostError struct {
	err  error
	sent bool // what was queued may have been made
}

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// write sends what fill queues. It ends with the store's own time, not the caller's. It is sent again where the server has
// undone it for a reason that passes, where it was not sent, and where the answer was lost: so all that is queued must be
// such that the second time finds what the first has made. doubtful says that there may have been a first time.
func (d *database) write(ctx context.Context, fill func(*batch)) (doubtful bool, err error) {
	return d.writeUntil(ctx, time.Now().Add(d.opts.WriteTimeout), fill)
}

// writeUntil is write for what has had some of its time.
func (d *database) writeUntil(ctx context.Context, until time.Time, fill func(*batch)) (doubtful bool, err error) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	err = d.insist(ctx, func() error {
		err := d.send(ctx, fill)
		doubtful = doubtful || mayBeMade(err)
		return err
	})
	if err == nil {
		d.commits.Add(1)
	}
	return doubtful, unknown(err, doubtful)
}

// unknown is the error of a write whose answer may have been lost.
func unknown(err error, doubtful bool) error {
	if err == nil || !doubtful || errors.Is(err, ErrUnknown) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// read is write for queries: it ends with the caller's context too.
func (d *database) read(ctx context.Context, fill func(*batch)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.WriteTimeout)
	defer cancel()
	return d.insist(ctx, func() error { return d.send(ctx, fill) })
}

// insist calls f again while its error passes and there is time. When that is over the last error that says why counts.
func (d *database) insist(ctx context.Context, f func() error) error {
	var before error
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := f()
		if before != nil && errors.Is(err, context.DeadlineExceeded) {
			err = before
		}
		if err == nil || !passes(err) || ctx.Err() != nil {
			return err
		}
		before = err
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// send makes one try.
func (d *database) send(ctx context.Context, fill func(*batch)) error {
	conn, err := d.pool.Acquire(ctx)
	switch {
	case err != nil && d.shut.Load():
		return ErrClosed
	case err != nil:
		return fmt.Errorf("getting a connection: %w", err)
	}
	defer conn.Release()
	b := &batch{d: d}
	fill(b)
	err = conn.SendBatch(ctx, &b.b).Close()
	if err == nil || decided(err) || pgconn.SafeToRetry(err) || !conn.Conn().IsClosed() {
		return err
	}
	return &lostError{err: err, sent: true}
}

// decided reports whether the server has said that nothing was made.
func decided(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.SeverityUnlocalized == "ERROR"
}

// passes reports whether the same may succeed soon.
func passes(err error) bool {
	if _, ok := errors.AsType[*lostError](err); ok || hasCode(err, codeSerialization, codeDeadlock) {
		return true
	}
	if e, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		kind := kindOf(e)
		return errors.Is(kind, ErrDown) || errors.Is(kind, ErrBusy)
	}
	return pgconn.SafeToRetry(err)
}
