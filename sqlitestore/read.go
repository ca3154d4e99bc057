package sqlitestore

import (
	"context"
	"database/sql"
	"runtime"
	"time"
)

// reader is a few connections that cannot write.
type reader struct {
	db    *sql.DB
	given bool // db is the caller's
	stmts statements
}

func newReader(ctx context.Context, path string, timeout time.Duration) (*reader, error) {
	c, err := newConnector(path, min(timeout, busySlice), false)
	if err != nil {
		return nil, err
	}
	r := &reader{db: sql.OpenDB(c)}
	r.stmts.prepare = r.db.PrepareContext
	n := max(4, runtime.GOMAXPROCS(0))
	r.db.SetMaxOpenConns(n)
	r.db.SetMaxIdleConns(n)
	if err := insist(time.Now().Add(timeout), func() error { return r.db.PingContext(context.WithoutCancel(ctx)) }); err != nil {
		keep(&err, r.db.Close())
		return nil, err
	}
	return r, nil
}

// one reads at most one row.
func (r *reader) one(ctx context.Context, query string, dest []any, args ...any) (bool, error) {
	s, err := r.stmts.get(ctx, query)
	if err != nil {
		return false, err
	}
	return one(ctx, s, dest, args...)
}

// one reads at most one row.
func (f *file) one(ctx context.Context, query string, dest []any, args ...any) (bool, error) {
	if ok, done, err := f.writer.idle(ctx, query, dest, args...); done {
		return ok, err
	}
	return f.reader.one(ctx, query, dest, args...)
}

// each calls f for every row.
func (r *reader) each(ctx context.Context, query string, f func(*sql.Rows) error, args ...any) error {
	s, err := r.stmts.get(ctx, query)
	if err != nil {
		return err
	}
	return each(ctx, s, f, args...)
}

func each(ctx context.Context, s *prepared, f func(*sql.Rows) error, args ...any) (err error) {
	rows, err := s.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { keep(&err, rows.Close()) }()
	for err == nil && rows.Next() {
		err = f(rows)
	}
	if err != nil {
		return err
	}
	return rows.Err()
}

func (r *reader) close() error {
	if r == nil {
		return nil
	}
	r.stmts.close()
	if r.given {
		return nil
	}
	return r.db.Close()
}
