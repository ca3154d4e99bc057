package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
)

// direct is the way to the writer's connection past database/sql, which does more about each argument of a statement than
// the driver does with it. It is for the driver that this package brings: others have never been called so.
type direct struct {
	known map[string]driver.Stmt
	args  []driver.NamedValue // of the statement that runs
}

// prepared prepares each statement once.
func (d *direct) prepared(ctx context.Context, conn any, query string) (driver.Stmt, error) {
	if s := d.known[query]; s != nil {
		return s, nil
	}
	s, err := conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if d.known == nil {
		d.known = map[string]driver.Stmt{}
	}
	d.known[query] = s
	return s, nil
}

// bind makes args what a driver takes.
func (d *direct) bind(args []any) error {
	d.args = d.args[:0]
	for i, a := range args {
		switch v := a.(type) {
		case nil, int64, string, []byte, bool:
		case int:
			a = int64(v)
		default:
			var err error
			if a, err = driver.DefaultParameterConverter.ConvertValue(a); err != nil {
				return err
			}
		}
		d.args = append(d.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return nil
}

// run has f run a statement.
func (d *direct) run(x *tx, query string, args []any, f func(driver.Stmt) error) error {
	defer func() { clear(d.args) }() // they hold what users wrote
	if err := d.bind(args); err != nil {
		return err
	}
	return x.w.conn.Raw(func(conn any) error {
		s, err := d.prepared(x.ctx, conn, query)
		if err != nil {
			return err
		}
		return f(s)
	})
}

// exec returns how many rows have changed.
func (d *direct) exec(x *tx, query string, args []any) (n int64, err error) {
	err = d.run(x, query, args, func(s driver.Stmt) error {
		r, err := s.(driver.StmtExecContext).ExecContext(x.ctx, d.args)
		if err != nil {
			return err
		}
		n, err = r.RowsAffected()
		return err
	})
	return n, err
}

// insert runs a statement that inserts a row or fails. The driver binds the arguments of a query all at once, and those of
// what it executes one by one.
func (d *direct) insert(x *tx, query string, args []any) error {
	return d.run(x, query, args, func(s driver.Stmt) error {
		rows, err := s.(driver.StmtQueryContext).QueryContext(x.ctx, d.args)
		if err != nil {
			return err
		}
		if err = rows.Next(nil); errors.Is(err, io.EOF) {
			err = nil
		}
		keep(&err, rows.Close())
		return err
	})
}

// close is for when the connection goes: SQLite keeps the file open for a statement.
func (d *direct) close(conn *sql.Conn) {
	known := d.known
	d.known = nil
	finalize := func(any) error {
		for _, s := range known {
			_ = s.Close() // it goes with its connection
		}
		known = nil
		return nil
	}
	_ = conn.Raw(finalize) // with nobody else on the connection, unless that is gone
	_ = finalize(nil)
}
