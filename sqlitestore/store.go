package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/closing"
	"github.com/toolonce/toolonce/internal/content"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/seal"
)

// Options of [Open]. nil and the zero value work.
type Options struct {
	// Drain is how long Close waits for handlers that still run; 0: 30 s.
	Drain time.Duration
	// WriteTimeout is how long a write waits for others to end theirs; 0: 10 s. It does not depend on the caller's
	// context.
	WriteTimeout time.Duration
	// MustExist: a missing file is an error and is not made. It is for tools that look at a store.
	MustExist bool
	// AllowNetwork opens a file on a network file system too. Only one host may ever have it open.
	AllowNetwork bool
	// Codec seals what users and models wrote: inputs and results of operations and of approvals, answers and outputs of
	// runs. What was stored without one stays readable. Ids, names of tools, hashes and what people gave as reasons are
	// never sealed. nil: nothing is.
	Codec seal.Codec
}

func (o *Options) orDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Drain == 0 {
		d.Drain = 30 * time.Second
	}
	if d.WriteTimeout == 0 {
		d.WriteTimeout = 10 * time.Second
	}
	return d
}

// Store is a ledger and a journal in one file, seen by one tenant. It is safe for use by any number of goroutines, and
// other processes may have the file open.
type Store struct {
	f         *file
	namespace string
}

var (
	_ middleware.Ledger   = (*Store)(nil)
	_ middleware.Lister   = (*Store)(nil)
	_ middleware.Approver = (*Store)(nil)
	_ middleware.Recorder = (*Store)(nil)
	_ journal.Journal     = (*Store)(nil)
)

// file is what all views share.
type file struct {
	path     string
	opts     Options
	ctx      context.Context // never ends: for what no caller's context may cut short
	writer   *writer
	reader   *reader
	owners   *owners
	opened   os.FileInfo // the file as it was opened
	handlers middleware.Handlers
	held     sync.Map         // holding: the runs that calls of this process are at
	now      func() time.Time // the store's clock: the only one

	claims atomic.Int64
	spare  sync.Pool    // *claiming
	seen   atomic.Int64 // when the file was last in its place
	gate   closing.Gate // entered by what makes this process run something
}

// holding is a run in file.held. A token is worth nothing in another namespace, there too.
type holding struct{ namespace, token string }

func (s *Store) holding(token string) holding { return holding{s.namespace, token} }

// content is how this view keeps content.
func (s *Store) content() content.View {
	return content.View{Box: content.Box{Codec: s.f.opts.Codec}, Namespace: s.namespace}
}

// Namespace is the same file seen by one tenant: it costs nothing, and no query of it meets rows of another. The
// namespace of the store that Open returns is "".
func (s *Store) Namespace(name string) *Store { return &Store{f: s.f, namespace: name} }

// DeclareGone records, on a person's word, that a process instance has gone whose lock file is missing, as after the
// database was copied without the folder beside it. Row.Owner names it where a row says OwnerUnknown, and the error of
// Begin for a run. It is an error where the lock shows that the process lives. Who says so wrongly lets others take over
// what that process runs, now and later.
func (s *Store) DeclareGone(ctx context.Context, owner string) error {
	return s.f.wrap("declaring an owner gone in", s.f.owners.declare(ctx, s.f, owner))
}

// Namespaces lists the names of the tenants that have operations, approvals or runs, in order.
func (s *Store) Namespaces(ctx context.Context) ([]string, error) {
	var names []string
	err := s.f.reader.each(ctx, `SELECT namespace FROM operations UNION SELECT namespace FROM approvals UNION SELECT namespace FROM runs ORDER BY namespace`, func(rows *sql.Rows) error {
		names = append(names, "")
		return rows.Scan(&names[len(names)-1])
	})
	return names, s.f.wrap("listing namespaces of", err)
}

// Commits is how many commits this process has made in the file, for measuring: writes that wait share one.
func (s *Store) Commits() int64 { return s.f.writer.commits.Load() }

// Handlers is the record of what this process runs under claims of the store, whatever the namespace.
func (s *Store) Handlers() *middleware.Handlers { return &s.f.handlers }

// Close waits until the handlers that run under claims of the store have returned, at most Options.Drain, and closes
// the file for all namespaces. Nothing can be claimed and no run begun any more as soon as it is called. It does not wait
// for runs: those that are not left are free for others once the file is closed. Where handlers still run after the wait
// it returns ErrRunning: their results are still stored, and the lock that shows other processes that this one lives is
// held until they have returned. Closing twice is no error; it waits again.
func (s *Store) Close() error {
	f := s.f
	over, err := f.gate.Close(f.opts.Drain, func() error {
		if err := f.handlers.Wait(f.ctx); err != nil {
			return err
		}
		return f.leave()
	})
	if !over {
		err = fmt.Errorf("%w: waited for %s", ErrRunning, f.opts.Drain)
	}
	return f.wrap("closing", err)
}

// leave is for when nothing runs any more.
func (f *file) leave() error {
	gone := f.owners.leave(f.ctx, f)
	err := f.reader.close() // first: the last connection moves the write-ahead log into the file, if it can write
	keep(&err, f.writer.close())
	keep(&err, f.owners.release(gone))
	return err
}

// starting keeps Close away while something is claimed or begun that this process will run.
func (f *file) starting() (done func(), err error) {
	leave, ok := f.gate.Enter()
	if !ok {
		return nil, ErrClosed
	}
	if err := f.inPlace(); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// fresh is how long it counts that the file was in its place. A claim takes as long until it is committed.
const fresh = 5 * time.Millisecond

// inPlace is an error where the file was removed or replaced: a claim in it would keep nobody from making another in what
// has its place.
func (f *file) inPlace() error {
	now := f.now().UnixNano()
	if since := now - f.seen.Load(); 0 <= since && since < int64(fresh) {
		return nil
	}
	is, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(is, f.opened):
		return ErrMoved
	case err == nil:
		f.seen.Store(now)
	}
	return err
}
