package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/content"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/seal"
)

// Options of [Open]. nil and the zero value work.
type Options struct {
	// Schema is the name of the schema; "": toolonce. Open makes it where there is none.
	Schema string
	// Drain is how long Close waits for handlers that still run; 0: 30 s.
	Drain time.Duration
	// WriteTimeout is how long a call of the store may take (a guarded call of a tool makes three or so), with waiting for a connection, for locks, and for a server that is down
	// for the moment; 0: 10 s. A write does not depend on the caller's context.
	WriteTimeout time.Duration
	// Heartbeat is how often the process shows that it lives; 0: 5 s.
	Heartbeat time.Duration
	// Overdue is after what silence others take this process for gone; 0: four times Heartbeat. It does not pass while the
	// server is down. It is at least twice Heartbeat.
	Overdue time.Duration
	// MustExist: a missing schema is an error and is not made. It is for tools that look at a store.
	MustExist bool
	// Codec seals what users and models wrote: inputs and results of operations and of approvals, answers and outputs of
	// runs. What was stored without one stays readable. Ids, names of tools, hashes and what people gave as reasons are
	// never sealed. nil: nothing is.
	Codec seal.Codec
	// AllowAsyncCommit takes a database with synchronous_commit off. When the server breaks down it may forget its last
	// commits: claims whose tools have run, and results.
	AllowAsyncCommit bool
}

func (o *Options) orDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Schema == "" {
		d.Schema = "toolonce"
	}
	if d.Drain == 0 {
		d.Drain = 30 * time.Second
	}
	if d.WriteTimeout == 0 {
		d.WriteTimeout = 10 * time.Second
	}
	if d.Heartbeat == 0 {
		d.Heartbeat = 5 * time.Second
	}
	if d.Overdue == 0 {
		d.Overdue = 4 * d.Heartbeat
	}
	d.Overdue = max(d.Overdue, 2*d.Heartbeat)
	return d
}

// Store is a ledger and a journal in one schema, seen by one tenant. It is safe for use by any number of goroutines and
// processes.
type Store struct {
	d         *database
	namespace string
}

var (
	_ middleware.Ledger   = (*Store)(nil)
	_ middleware.Lister   = (*Store)(nil)
	_ middleware.Approver = (*Store)(nil)
	_ middleware.Recorder = (*Store)(nil)
	_ journal.Journal     = (*Store)(nil)
)

// holding is a run in database.held. A token is worth nothing in another namespace, there too.
type holding struct{ namespace, token string }

func (s *Store) holding(token string) holding { return holding{s.namespace, token} }

// content is how this view keeps content.
func (s *Store) content() content.View {
	return content.View{Box: content.Box{Codec: s.d.opts.Codec}, Namespace: s.namespace}
}

// Namespace is the same schema seen by one tenant: it costs nothing, and no query of it meets rows of another. The
// namespace of the store that Open returns is "".
func (s *Store) Namespace(name string) *Store { return &Store{d: s.d, namespace: name} }

// DeclareGone records for good, on a person's word, that a process instance has gone: one whose heartbeat is overdue, or
// is missing, as after a restore. Row.Owner names it. It is an error where the heartbeat shows that the process lives.
func (s *Store) DeclareGone(ctx context.Context, owner string) error {
	return s.d.wrap("declaring an owner gone in", s.d.declare(ctx, owner))
}

// Namespaces lists the names of the tenants that have operations, approvals or runs, in order.
func (s *Store) Namespaces(ctx context.Context) ([]string, error) {
	var names []string
	err := s.d.read(ctx, func(b *batch) {
		names = nil
		b.each(`SELECT namespace FROM (SELECT namespace FROM @operations UNION SELECT namespace FROM @approvals UNION SELECT namespace FROM @runs) AS all_names
			ORDER BY namespace COLLATE "C"`, func(rows pgx.Rows) error {
			var name word
			err := rows.Scan(&name)
			names = append(names, string(name))
			return err
		})
	})
	return names, s.d.wrap("listing namespaces of", err)
}

// Commits is how many transactions that write this process has committed, for measuring: writes of many callers share one.
func (s *Store) Commits() int64 { return s.d.commits.Load() }

// Handlers is the record of what this process runs under claims of the store, whatever the namespace.
func (s *Store) Handlers() *middleware.Handlers { return &s.d.handlers }

// Close waits until the handlers that run under claims of the store have returned, at most Options.Drain, and closes the
// connections of all namespaces. Nothing can be claimed and no run begun any more as soon as it is called. It does not
// wait for runs: those that are not left are free for others afterwards. Where handlers still run after the wait it
// returns ErrRunning: their results are still stored, and the heartbeat goes on until they have returned. Closing twice
// is no error; it waits again.
func (s *Store) Close() error {
	d := s.d
	over, err := d.gate.Close(d.opts.Drain, func() error {
		if err := d.handlers.Wait(d.ctx); err != nil {
			return err
		}
		return d.leave()
	})
	if !over {
		err = fmt.Errorf("%w: waited for %s", ErrRunning, d.opts.Drain)
	}
	return d.wrap("closing", err)
}

// leave is for when nothing runs any more.
func (d *database) leave() error {
	d.quiet()
	err := d.depart()
	d.shut.Store(true)
	d.pool.Close()
	return err
}

// starting keeps Close away while something is claimed or begun that this process will run.
func (d *database) starting() (done func(), err error) {
	leave, ok := d.gate.Enter()
	if !ok {
		return nil, ErrClosed
	}
	return leave, nil
}
