package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"time"
)

// OpenDB is [Open] on a database of the caller's, for a driver other than mattn/go-sqlite3, such as one in Go alone:
// SQLite 3.38 or later, whose errors have a method Code with the result code, an integer of any type. The store keeps one of
// db's connections for its writes until Close, and sets that up for itself; others it borrows to read. So db must allow two
// connections or more, one more for each other store, and stays open until the store is closed, which does not close it.
// It is an error where none comes free in opts.WriteTimeout. opts.MustExist and opts.AllowNetwork are as for Open.
func OpenDB(db *sql.DB, opts *Options) (*Store, error) {
	f := &file{opts: opts.orDefaults(), ctx: context.Background(), now: time.Now}
	if err := f.openDB(db); err != nil {
		where := f.path
		if where == "" {
			where = "a database that was given"
		}
		return nil, wrap("opening", where, err)
	}
	return &Store{f: f}, nil
}

func (f *file) openDB(db *sql.DB) (err error) {
	ctx := f.ctx
	if lockMissing != "" {
		return fmt.Errorf("%w: %s", ErrUnsupported, lockMissing)
	}
	if n := db.Stats().MaxOpenConnections; n == 1 {
		return errors.New("it allows one connection, which the store keeps: call SetMaxOpenConns with 2 or more")
	}
	f.writer = &writer{db: db, given: true, timeout: f.opts.WriteTimeout, ctx: ctx}
	blank, err := f.prepare(ctx, db, time.Now().Add(f.opts.WriteTimeout))
	if err != nil {
		keep(&err, f.writer.close())
		return err
	}
	return f.start(ctx, blank, func(context.Context) (*reader, error) {
		r := &reader{db: db, given: true}
		r.stmts.prepare = db.PrepareContext
		return r, nil
	})
}

// prepare looks at the file by one connection, and has the writer make another while it keeps that: so there is one to read
// with, too.
func (f *file) prepare(ctx context.Context, db *sql.DB, until time.Time) (blank bool, err error) {
	conn, err := take(ctx, db, until)
	if err != nil {
		return false, err
	}
	defer func() { keep(&err, conn.Close()) }()
	if blank, err = f.look(ctx, conn); err != nil {
		return false, err
	}
	if err := f.writer.connect(ctx, until); err != nil {
		return false, err
	}
	return blank, f.writer.alone(ctx, tellsCodes)
}

// take waits for a connection of the caller's pool.
func take(ctx context.Context, db *sql.DB, until time.Time) (*sql.Conn, error) {
	wait := max(time.Until(until), busySlice) // who has waited for something else has a try still
	ctx, end := context.WithTimeout(ctx, wait)
	defer end()
	conn, err := db.Conn(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("no connection of the database has come free in %s: call SetMaxOpenConns with one for each store, one for all to read, and what the program keeps itself", wait.Round(time.Millisecond))
	}
	return conn, err
}

// tellsCodes refuses a driver by whose errors a claim that has lost could not be told from one that has failed.
func tellsCodes(x *tx) error {
	if err := x.script("CREATE TEMP TABLE IF NOT EXISTS toolonce_codes (id INTEGER PRIMARY KEY)"); err != nil {
		return err
	}
	told := x.script("INSERT INTO temp.toolonce_codes VALUES (1), (1)")
	if err := x.script("DROP TABLE temp.toolonce_codes"); err != nil {
		return err
	}
	if !sameKey(told) {
		return fmt.Errorf("%w: its driver's errors tell no result codes of SQLite: take one whose errors have a method Code that gives an integer, or wrap it so: of a key that is in use it says: %w", ErrUnsupported, told)
	}
	return nil
}

// look finds out which file it is and whose, and changes nothing.
func (f *file) look(ctx context.Context, db *sql.Conn) (blank bool, err error) {
	var seq int
	var name string
	if err := db.QueryRowContext(ctx, "SELECT seq, name, file FROM pragma_database_list WHERE name = 'main'").Scan(&seq, &name, &f.path); err != nil {
		return false, err
	}
	if f.path == "" {
		return false, fmt.Errorf("%w: a ledger in memory forgets: name a file, or use middleware.Memory for a trial", ErrPath)
	}
	if f.path, _, err = realPath(f.path); err != nil {
		return false, err
	}
	where, err := network(filepath.Dir(f.path))
	switch {
	case err != nil:
		return false, err
	case where != "" && !f.opts.AllowNetwork:
		return false, fmt.Errorf("it is on a network file system (%s), where SQLite's locks cannot be relied on: %w", where, ErrNetwork)
	}
	var s stamp
	for q, to := range map[string]*int64{askApplication: &s.application, askVersion: &s.version, askTables: &s.tables} {
		if err := db.QueryRowContext(ctx, q).Scan(to); err != nil {
			return false, err
		}
	}
	if f.opts.MustExist && s == (stamp{}) {
		return false, errEmpty
	}
	return s == stamp{}, s.check()
}

// setUp makes a connection of the caller's one whose commits last, and reads back whether it is.
func (w *writer) setUp(ctx context.Context) error {
	for _, p := range []struct{ name, value, want string }{
		{"busy_timeout", fmt.Sprint(min(w.timeout, busySlice).Milliseconds()), ""},
		{"journal_mode", "WAL", "wal"},
		{"synchronous", "FULL", "2"},
		{"query_only", "OFF", "0"},
		{"secure_delete", "ON", ""}, // see Store.Forget
	} {
		if _, err := w.conn.ExecContext(ctx, "PRAGMA "+p.name+" = "+p.value); err != nil {
			return err
		}
		var got string
		if err := w.conn.QueryRowContext(ctx, "PRAGMA "+p.name).Scan(&got); err != nil {
			return err
		}
		if p.want != "" && got != p.want {
			return fmt.Errorf("%s is %s although it was set to %s: commits might be lost", p.name, got, p.value)
		}
	}
	return nil
}

// inTransaction reports that a transaction is open, or that nobody can tell. A driver that does not say is asked by trying
// to begin one.
func (w *writer) inTransaction() bool {
	if w.conn == nil {
		return false
	}
	var open, known bool
	err := w.conn.Raw(func(c any) error {
		open, known = driverInTransaction(c)
		return nil
	})
	if err != nil || known {
		return open || err != nil
	}
	if _, err := w.conn.ExecContext(w.ctx, "BEGIN"); err != nil {
		return true
	}
	_, err = w.conn.ExecContext(w.ctx, "ROLLBACK")
	return err != nil
}

// Result codes of SQLite, the last byte of the extended ones.
const (
	codePerm     = 3
	codeBusy     = 5
	codeLocked   = 6
	codeReadOnly = 8
	codeCorrupt  = 11
	codeFull     = 13
	codeUnkept   = 19 // a constraint
	codeNotADB   = 26

	codePrimaryKey = 1555 // extended
)

// code is the result code in an error of a driver that tells it, 0 for none. Drivers have types of their own for it.
func code(err error) int {
	if err == nil {
		return 0
	}
	if m := reflect.ValueOf(err).MethodByName("Code"); m.IsValid() && m.Type().NumIn() == 0 && m.Type().NumOut() == 1 {
		switch c := m.Call(nil)[0]; {
		case c.CanInt():
			return int(c.Int())
		case c.CanUint():
			return int(c.Uint())
		}
	}
	if joined, ok := any(err).(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			if c := code(err); c != 0 {
				return c
			}
		}
	}
	return code(errors.Unwrap(err))
}

func codedKind(err error) error {
	switch code(err) & 0xff {
	case codeFull:
		return ErrFull
	case codeReadOnly, codePerm:
		return ErrReadOnly
	case codeCorrupt, codeNotADB:
		return ErrDamaged
	case codeBusy, codeLocked:
		return ErrBusy
	}
	return nil
}

// unkept reports that a constraint was in the way.
func unkept(err error) bool {
	return code(err)&0xff == codeUnkept || err != nil && driverUnkept(err)
}

// sameKey reports that a new row's primary key is in use, or some constraint in the way where the driver does not say which.
func sameKey(err error) bool {
	c := code(err)
	return c == codePrimaryKey || c == codeUnkept || err != nil && driverSameKey(err)
}
