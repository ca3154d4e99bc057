//go:build cgo

package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/toolonce/toolonce/middleware"
)

// Die lets the lock of the store's owner go, as the end of its process would.
func (s *Store) Die() { _ = s.f.owners.lock.Close() }

// LoseLock removes the lock file of the store's owner.
func (s *Store) LoseLock() error { return os.Remove(s.f.owners.file(s.f.owners.name)) }

// SetClock makes the store's clock one of the test's.
func (s *Store) SetClock(now func() time.Time) { s.f.now = now }

// Write runs a statement on the connection that writes.
func (s *Store) Write(query string) error {
	return s.f.writer.alone(context.Background(), func(x *tx) error { return x.script(query) })
}

// Definition is the statement that makes an index or a trigger.
func (s *Store) Definition(name string) (text string, err error) {
	_, err = s.f.reader.one(context.Background(), "SELECT sql FROM sqlite_schema WHERE name = ?1", []any{&text}, name)
	return text, err
}

// Pragmas reads pragmas on several connections at a time: the one that writes, then those that read.
func (s *Store) Pragmas(n int, names ...string) ([][]string, error) {
	ctx := context.Background()
	var all [][]string
	read := func(c *sql.Conn) error {
		var values []string
		for _, name := range names {
			var v string
			if err := c.QueryRowContext(ctx, "PRAGMA "+name).Scan(&v); err != nil {
				return err
			}
			values = append(values, v)
		}
		all = append(all, values)
		return nil
	}
	if err := s.f.writer.alone(ctx, func(x *tx) error { return read(x.w.conn) }); err != nil {
		return nil, err
	}
	for range n {
		c, err := s.f.reader.db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = c.Close() }()
		if err := read(c); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Connector is one that sets synchronous to something else than it wants.
func Connector(path string) (driver.Connector, error) {
	c, err := newConnector(path, time.Second, true)
	if err != nil {
		return nil, err
	}
	c.(*connector).dsn += "&_sync=NORMAL"
	return c, nil
}

// Owner is the name of the store's owner.
func (s *Store) Owner() string { return s.f.owners.name }

// Raise raises the lowest id that a new operation may have.
func (s *Store) Raise() error { return s.f.raise(context.Background()) }

// AboveLow counts the rows from there on.
func (s *Store) AboveLow() (n int, err error) {
	_, err = s.f.reader.one(context.Background(), manyAbove, []any{&n}, 1_000_000)
	return n, err
}

// Held counts the runs that calls of this process are at.
func (s *Store) Held() (n int) {
	s.f.held.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}

// ApprovalPlans are how the queries of approvals find their rows.
func (s *Store) ApprovalPlans(states ...middleware.ApprovalState) (plans []string, err error) {
	for _, q := range []string{listingApprovals(states), countingApproval, spendApproval, decideApproval, lastApproval} {
		err := s.f.reader.each(context.Background(), "EXPLAIN QUERY PLAN "+q, func(rows *sql.Rows) error {
			plans = append(plans, "")
			var unused int
			return rows.Scan(&unused, &unused, &unused, &plans[len(plans)-1])
		}, make([]any, parameters(q))...)
		if err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// parameters counts those of a query.
func parameters(query string) int {
	for n := 1; ; n++ {
		if !strings.Contains(query, "?"+strconv.Itoa(n)) {
			return n - 1
		}
	}
}

// KeepWriter keeps this process's writes waiting while f runs.
func (s *Store) KeepWriter(f func()) error {
	return s.f.writer.alone(context.Background(), func(*tx) error { f(); return nil })
}

// RealPath is realPath, for tests of what may change while it looks.
func RealPath(path string) (string, error) {
	real, _, err := realPath(path)
	return real, err
}

// Waiting is how many writes wait for their turn.
func (s *Store) Waiting() int {
	s.f.writer.mu.Lock()
	defer s.f.writer.mu.Unlock()
	return len(s.f.writer.waiting)
}

// OnCommit has f called before each commit, which it refuses by anything but 0.
func (s *Store) OnCommit(f func() int) error {
	return s.f.writer.alone(context.Background(), func(x *tx) error {
		return x.w.conn.Raw(func(c any) error {
			c.(*sqlite3.SQLiteConn).RegisterCommitHook(f)
			return nil
		})
	})
}

// Transaction has f run statements in one.
func (s *Store) Transaction(f func(run func(string) error) error) error {
	return s.f.wrap("testing", s.f.writer.do(context.Background(), func(x *tx) error {
		return f(func(query string) error { return x.run(query) })
	}))
}

// Names reads texts.
func (s *Store) Names(ctx context.Context, query string) (names []string, err error) {
	err = s.f.reader.each(ctx, query, func(rows *sql.Rows) error {
		names = append(names, "")
		return rows.Scan(&names[len(names)-1])
	})
	return names, err
}

// Unmoved makes a file as one is left by a process that has died in the making of it: all of it is in the write-ahead log.
func Unmoved(ctx context.Context, path string) (err error) {
	if err := create(path + "-made"); err != nil {
		return err
	}
	w, err := newWriter(ctx, path+"-made", time.Second)
	if err != nil {
		return err
	}
	defer func() { keep(&err, w.close()) }()
	if err := w.do(ctx, func(x *tx) error {
		return x.script(fmt.Sprintf("%s;\nPRAGMA application_id = %d;\nPRAGMA user_version = 1", schema1, application))
	}); err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(path + "-made" + suffix)
		if err == nil {
			err = os.WriteFile(path+suffix, b, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
