//go:build cgo

package sqlitestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/mattn/go-sqlite3"
)

// driverMissing says why there is no SQLite in this program, "" where there is.
const driverMissing = ""

// connector makes connections to one file and looks at each before it is used.
type connector struct {
	dsn    string
	want   pragmas
	driver sqlite3.SQLiteDriver
}

// pragmas are what every connection must have, as read back from it.
type pragmas struct {
	busy  int64
	query int64 // 1: it cannot write
}

// newConnector is for the one connection that writes, or for those that only read.
func newConnector(path string, busy time.Duration, write bool) (driver.Connector, error) {
	c := &connector{want: pragmas{busy: busy.Milliseconds()}}
	v := url.Values{
		"_busy_timeout": {strconv.FormatInt(c.want.busy, 10)},
		"_synchronous":  {"FULL"},
		"_foreign_keys": {"on"},
		"_txlock":       {"immediate"},
		"_mutex":        {"no"}, // database/sql gives a connection to one goroutine at a time
		"mode":          {"rw"},
	}
	if write {
		v.Set("_journal_mode", "WAL")
		v.Set("_secure_delete", "on") // see Store.Forget
	} else {
		v.Set("mode", "ro")
		v.Set("_query_only", "on")
		c.want.query = 1
	}
	u := url.URL{Scheme: "file", Path: path}
	c.dsn = u.String() + "?" + v.Encode()
	return c, nil
}

// Driver implements driver.Connector.
func (c *connector) Driver() driver.Driver { return &c.driver }

// Connect implements driver.Connector. It refuses a connection whose commits might not last.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	if err := c.check(ctx, conn); err != nil {
		keep(&err, conn.Close())
		return nil, err
	}
	return conn, nil
}

// probe reads what the file itself says, without its write-ahead log: it locks and changes nothing, so that a file of
// another program is left as it is. Going through SQLite matters: to close a file of one's own would let go the locks
// that other connections of this process hold on it.
func probe(ctx context.Context, path string) (s stamp, err error) {
	u := url.URL{Scheme: "file", Path: path}
	conn, err := new(sqlite3.SQLiteDriver).Open(u.String() + "?mode=ro&immutable=1")
	if err != nil {
		return stamp{}, err
	}
	defer func() { keep(&err, conn.Close()) }()
	for _, p := range []struct {
		query string
		to    *int64
	}{{askApplication, &s.application}, {askVersion, &s.version}, {askTables, &s.tables}} {
		v, err := ask(ctx, conn, p.query)
		if err != nil {
			return stamp{}, err
		}
		*p.to, _ = v.(int64)
	}
	return s, nil
}

func (c *connector) check(ctx context.Context, conn driver.Conn) error {
	for _, p := range []struct {
		name string
		want driver.Value
	}{
		{"journal_mode", "wal"},
		{"synchronous", int64(2)},
		{"foreign_keys", int64(1)},
		{"busy_timeout", c.want.busy},
		{"query_only", c.want.query},
	} {
		got, err := ask(ctx, conn, "PRAGMA "+p.name)
		if err != nil {
			return err
		}
		if got != p.want {
			return fmt.Errorf("%s is %v on a new connection, want %v: commits might be lost", p.name, got, p.want)
		}
	}
	return nil
}

// ask gives the one value that a query answers with.
func ask(ctx context.Context, conn driver.Conn, query string) (v driver.Value, err error) {
	q, ok := conn.(driver.QueryerContext)
	if !ok {
		return nil, errors.New("the driver cannot be asked")
	}
	rows, err := q.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	defer func() { keep(&err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(row); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: no answer", query)
	} else if err != nil {
		return nil, err
	}
	return row[0], nil
}

// driverInTransaction reports whether a connection of this driver has a transaction open.
func driverInTransaction(conn any) (open, known bool) {
	s, ok := conn.(*sqlite3.SQLiteConn)
	return ok && !s.AutoCommit(), ok
}

func sqliteKind(err error) error {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return nil
	}
	switch e.Code {
	case sqlite3.ErrFull:
		return ErrFull
	case sqlite3.ErrReadonly, sqlite3.ErrPerm:
		return ErrReadOnly
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		return ErrDamaged
	case sqlite3.ErrBusy, sqlite3.ErrLocked:
		return ErrBusy
	}
	return systemKind(e.SystemErrno)
}

func driverUnkept(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && e.Code == sqlite3.ErrConstraint
}

func driverSameKey(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && e.ExtendedCode == sqlite3.ErrConstraintPrimaryKey
}
