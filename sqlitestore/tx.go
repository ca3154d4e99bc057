package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
)

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
	if !x.w.given {
		return x.w.direct.exec(x, query, args)
	}
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

// insert is for a statement that inserts a row or fails.
func (x *tx) insert(query string, args ...any) error {
	if x.w.given {
		return x.run(query, args...)
	}
	return x.w.direct.insert(x, query, args)
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
