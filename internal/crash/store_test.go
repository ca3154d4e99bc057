//go:build unix && cgo

package crash_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
)

// The stores.
const (
	onSQLite   = "sqlite"
	onPostgres = "postgres"
)

// store is one as a process has it.
type store interface {
	agent.Store
	middleware.Lister
	Handlers() *middleware.Handlers
	Within(ctx context.Context, f func(context.Context) (middleware.Transition, error)) (middleware.Row, error)
	Close() error
}

// place is where a store is, for a process.
type place interface {
	// open opens the store, and makes it where there is none.
	open(ctx context.Context) (store, error)
	// refund is the effect of a tool that is Local.
	refund(ctx context.Context, order string) error
	// stop stops the worker in a write, in one of the store's own ways.
	stop(ctx context.Context, w *worker, way string, write func() error) error
	// making stops the worker in the making of the store.
	making(ctx context.Context, w *worker) error
}

// database is a place as the test sees it.
type database interface {
	place
	// look reads what is stored, past the store. used says that a process may have it open.
	look(ctx context.Context, used bool) (fact, error)
	// lock keeps others from writing, or from making the store, until it is closed.
	lock(ctx context.Context, making bool) (io.Closer, error)
	// opened and ended are told that a process has opened the store, and that one has been killed: all that it has sent has
	// come to its end, and it is known to be gone, when ended returns.
	opened(ctx context.Context, process string) error
	ended(ctx context.Context, process string) error
}

// home makes databases.
type home func(dir string) database

func homeOf(t *testing.T, store string) home {
	if store == onSQLite {
		return func(dir string) database { return sqlite(dir + "/once.db") }
	}
	return postgresHome(t)
}

// placeOf is a database's place, for a process.
func placeOf(j job) place {
	if j.Store == onSQLite {
		return sqlite(j.DB)
	}
	dsn, schema, _ := strings.Cut(j.DB, "|")
	if j.Stream {
		dsn += oneTrip
	}
	return &postgres{dsn: dsn, schema: schema, process: j.Name}
}

// mortal is a store whose process may end before, in and after each of its writes.
type mortal struct {
	store
	w *worker
}

var stepNames = map[middleware.Step]string{
	middleware.Complete: "complete", middleware.GiveBack: "give back", middleware.Doubt: "doubt", middleware.Again: "again",
	middleware.Take: "take", middleware.Found: "found", middleware.Absent: "absent", middleware.Unsure: "unsure",
}

func (m *mortal) Begin(ctx context.Context, s journal.Start) (r journal.Record, err error) {
	err = m.w.write(ctx, "begin", func() error {
		r, err = m.store.Begin(ctx, s)
		return err
	})
	if err == nil && len(m.w.writes) == 1 {
		_ = m.w.post("begun", nil, nil)
	}
	return r, err
}

func (m *mortal) Append(ctx context.Context, e journal.Entry) (stored journal.Entry, err error) {
	err = m.w.write(ctx, fmt.Sprintf("turn %d", e.Turn.Number), func() error {
		stored, err = m.store.Append(ctx, e)
		return err
	})
	return stored, err
}

func (m *mortal) Leave(ctx context.Context, l journal.Leaving) error {
	return m.w.write(ctx, "leave", func() error { return m.store.Leave(ctx, l) })
}

func (m *mortal) Claim(ctx context.Context, c middleware.Claim) (row middleware.Row, won bool, err error) {
	err = m.w.write(ctx, "claim", func() error {
		row, won, err = m.store.Claim(ctx, c)
		return err
	})
	return row, won, err
}

func (m *mortal) Change(ctx context.Context, t middleware.Transition) (row middleware.Row, err error) {
	err = m.w.write(ctx, stepNames[t.Step], func() error {
		row, err = m.store.Change(ctx, t)
		return err
	})
	return row, err
}

func (m *mortal) Note(ctx context.Context, operation string, call middleware.Alias) (repeats int, err error) {
	err = m.w.write(ctx, "note", func() error {
		repeats, err = m.store.Note(ctx, operation, call)
		return err
	})
	return repeats, err
}

// Within is the write of a tool that is Local.
func (m *mortal) Within(ctx context.Context, f func(context.Context) (middleware.Transition, error)) (row middleware.Row, err error) {
	err = m.w.write(ctx, stepNames[middleware.Complete], func() error {
		row, err = m.store.Within(ctx, f)
		return err
	})
	return row, err
}

// Find tells the parent that a call waits for what another process does: only then is an operation looked at by its id.
func (m *mortal) Find(ctx context.Context, q middleware.Query) (middleware.Row, bool, error) {
	row, ok, err := m.store.Find(ctx, q)
	if q.Operation != "" {
		_ = m.w.post("waits", nil, nil)
	}
	return row, ok, err
}

// The ways in which a process ends at a write. A write that is called for a second time in a run has a number.
const (
	beforeIt   = "before "
	afterIt    = "after "
	checkpoint = "checkpoint before "
	busy       = "waiting for the lock of "
	refused    = "disk refuses "
)

// write is one write of a run, at which the process may end.
func (w *worker) write(ctx context.Context, name string, f func() error) error {
	for once, n := name, 2; slices.Contains(w.writes, name); n++ {
		name = fmt.Sprintf("%s (%d)", once, n)
	}
	w.writes = append(w.writes, name)
	w.at(beforeIt + name)
	for _, way := range []string{checkpoint, busy, refused} {
		if w.stop == way+name {
			if err := w.place.stop(ctx, w, way, f); err != nil {
				fail(err)
			}
		}
	}
	err := f()
	w.at(afterIt + name)
	return err
}
