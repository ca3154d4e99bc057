package sqlitestore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// Querier is a transaction of the store as a Local tool may use it. It is of use until the tool returns, by one goroutine
// at a time, and gives no way to end the transaction.
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

type txKey struct{}

// Tx is the transaction in which the result of a Local tool is stored, for its Run: what is changed by it stays if the
// result does. Nothing else is written to the file meanwhile, by any process, so Run must be short. It is an error in any
// other context. The tables are the program's own: their names must not be those of the store.
func Tx(ctx context.Context) (Querier, error) {
	q, ok := ctx.Value(txKey{}).(*querier)
	if !ok || q.ctx.Err() != nil {
		return nil, errors.New("sqlitestore: there is no transaction here: call Tx in the Run of a tool that is Local, with the context that it gets, before it returns")
	}
	return q, nil
}

// querier is the connection that writes, as long as ctx lives.
type querier struct {
	conn *sql.Conn
	ctx  context.Context
}

// bound is the context for a statement, or why there is none. Nothing is cut short: a statement that is interrupted may
// take the transaction with it, and the next one would stay by itself.
func (q *querier) bound(ctx context.Context) (context.Context, error) {
	switch {
	case q.ctx.Err() != nil:
		return nil, errors.New("sqlitestore: the transaction of a Local tool is over when the tool returns")
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return context.WithoutCancel(ctx), nil
}

func (q *querier) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	ctx, err := q.bound(ctx)
	if err != nil {
		return nil, err
	}
	return q.conn.ExecContext(ctx, query, args...)
}

func (q *querier) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	ctx, err := q.bound(ctx)
	if err != nil {
		return nil, err
	}
	return q.conn.QueryContext(ctx, query, args...)
}

var errEnded = errors.New("the tool has ended its transaction: it must not, since what it has changed may stay without its result")

// Within runs f in a transaction, which f finds by [Tx], and then makes the step that f returns, in that too. All of it
// stays, or after an error that is marked by registry.NoEffect, or ErrLost, nothing does. It is for middleware.Once.
func (s *Store) Within(ctx context.Context, f func(context.Context) (middleware.Transition, error)) (row middleware.Row, err error) {
	var c changing
	err = s.f.writer.alone(ctx, func(x *tx) error {
		tctx, end := context.WithCancel(ctx)
		over := false
		defer func() {
			if end(); !over { // the tool has ended its goroutine
				s.f.writer.rollBack(x)
			}
		}()
		if err := x.run("BEGIN IMMEDIATE"); err != nil {
			over = true
			return err
		}
		t, err := f(context.WithValue(ctx, txKey{}, &querier{conn: s.f.writer.conn, ctx: tctx}))
		over = true
		if err != nil {
			return err
		}
		if !s.f.writer.inTransaction() {
			return errEnded
		}
		c = changing{s: s, t: t, settler: nobody, owner: s.f.owners.id}
		if err := c.seal(); err != nil {
			return err
		}
		if err := c.run(x); err != nil {
			return err
		}
		if c.refused != nil {
			return c.refused
		}
		return x.run("COMMIT")
	})
	if err != nil && (c.refused == nil || !errors.Is(err, c.refused)) {
		if err = s.f.wrap("running a Local tool in", err); !errors.Is(err, errEnded) {
			err = registry.NoEffect(err)
		}
		return middleware.Row{}, err
	}
	if row, err := s.row(ctx, c.r); err != nil {
		return row, s.f.wrap("reading a changed operation in", err)
	}
	return row, c.refused
}
