package pgstore

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// Querier is a transaction of the store's database as a Local tool may use it. It is of use until the tool returns, by one
// goroutine at a time, and gives no way to end the transaction.
type Querier interface {
	Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, query string, args ...any) (pgx.Rows, error)
}

// sessionAsItWas is asked before the end of a Local tool's transaction, which may have changed what the store rests on.
const sessionAsItWas = `SELECT current_setting('default_transaction_isolation') = 'read committed' AND ($1::boolean OR current_setting('synchronous_commit') <> 'off')`

type txKey struct{}

// Tx is the transaction in which the result of a Local tool is stored, for its Run: what is changed by it stays if the
// result does. It keeps a connection of the store's, so Run must be short. It is an error in any other context. The tables
// are the program's own.
func Tx(ctx context.Context) (Querier, error) {
	q, ok := ctx.Value(txKey{}).(*handed)
	if !ok || q.over.Load() {
		return nil, errors.New("pgstore: there is no transaction here: call Tx in the Run of a tool that is Local, with the context that it gets, before it returns")
	}
	return q, nil
}

type handed struct {
	tx   pgx.Tx
	over atomic.Bool
}

var errOver = errors.New("pgstore: the transaction of a Local tool is over when the tool returns")

func (q *handed) Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error) {
	if q.over.Load() {
		return pgconn.CommandTag{}, errOver
	}
	return q.tx.Exec(ctx, query, args...)
}

func (q *handed) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	if q.over.Load() {
		return nil, errOver
	}
	return q.tx.Query(ctx, query, args...)
}

var errEnded = errors.New("the tool has ended its transaction: it must not, since what it has changed may stay without its result")

// Within runs f in a transaction, which f finds by [Tx], and then makes the step that f returns, in that too. All of it
// stays, or after an error that is marked by registry.NoEffect, or ErrLost, nothing does; where the answer to the commit was
// lost, the row tells, and whoever changes it waits until the server has decided. It is for middleware.Once.
func (s *Store) Within(ctx context.Context, f func(context.Context) (middleware.Transition, error)) (middleware.Row, error) {
	row, err := s.within(ctx, f)
	switch {
	case err == nil, errors.Is(err, middleware.ErrLost):
		return row, err
	case errors.Is(err, errEnded):
		return row, s.d.wrap("running a Local tool in", err)
	default:
		return row, registry.NoEffect(s.d.wrap("running a Local tool in", err))
	}
}

func (s *Store) within(ctx context.Context, f func(context.Context) (middleware.Transition, error)) (row middleware.Row, err error) {
	lasting := context.WithoutCancel(ctx)
	soon, cancel := context.WithTimeout(lasting, s.d.opts.WriteTimeout)
	defer cancel()
	conn, err := s.d.pool.Acquire(soon)
	if err != nil {
		return row, err
	}
	defer conn.Release()
	asItWas := true
	defer func() {
		if !asItWas { // others must not get such a session
			_ = conn.Conn().Close(lasting)
		}
	}()
	tx, err := conn.Begin(soon)
	if err != nil {
		return row, err
	}
	defer func() { _ = tx.Rollback(lasting) }() // of nothing, once it is committed
	q := &handed{tx: tx}
	defer q.over.Store(true)
	t, err := f(context.WithValue(ctx, txKey{}, q))
	q.over.Store(true)
	if err != nil {
		return row, err
	}
	if conn.Conn().PgConn().TxStatus() == 'I' {
		return row, errEnded
	}
	ending, cancel := context.WithTimeout(lasting, s.d.opts.WriteTimeout)
	defer cancel()
	c := changing{s: s, t: t, id: idOf(t.Operation)}
	if err := c.seal(); err != nil {
		return row, err
	}
	b := &batch{d: s.d}
	c.queue(b)
	b.one(new(bool), sessionAsItWas, []any{&asItWas}, s.d.opts.AllowAsyncCommit)
	if err := tx.SendBatch(ending, &b.b).Close(); err != nil {
		return row, err
	}
	row = s.row(&c.r)
	if !c.made {
		return row, middleware.ErrLost
	}
	if err := tx.Commit(ending); err != nil {
		return row, err
	}
	s.d.commits.Add(1)
	return row, nil
}
