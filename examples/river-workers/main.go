// River-workers runs the loop as a job of River (github.com/riverqueue/river), on the PostgreSQL that has the store too.
// Three worker processes wait for a refund. The one that gets it is killed by SIGKILL, when the provider has moved the
// money and has not answered yet. River gives the job to another one, which goes on, and the money has moved once.
//
//	go run .
//	go run . -dsn postgres://postgres@localhost/postgres
//
// Without -dsn it makes a server of its own, of what is installed. worker.go is what a program of yours would have.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
	"github.com/toolonce/toolonce/internal/pgtest"
)

func main() {
	dsn := flag.String("dsn", "", "the `address` of a database; without it, that of a server of this program's own")
	flag.Parse()
	if err := run(*dsn); err != nil {
		fmt.Fprintln(os.Stderr, "river-workers:", err)
		os.Exit(1)
	}
}

// run is a worker's main function too.
func run(dsn string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if text := os.Getenv(workerEnv); text != "" {
		return work(ctx, text)
	}
	if dsn == "" {
		server, err := pgtest.New()
		if err != nil {
			return err
		}
		defer func() { _ = server.Close() }() // it ends with this process at the latest
		dsn = server.DSN()
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return tell(ctx, dsn)
}

func say(who, what string) { fmt.Printf("%-9s %s\n", who, what) }

// tell tells the story, in two schemas of its own, River's and the store's, and leaves nothing.
func tell(ctx context.Context, dsn string) (err error) {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	p := place{DSN: dsn, Schema: "river_workers_" + strings.ToLower(rand.Text())}
	if _, err := pool.Exec(ctx, "CREATE SCHEMA "+p.Schema); err != nil {
		return err
	}
	defer func() {
		_, dropped := pool.Exec(context.WithoutCancel(ctx), "DROP SCHEMA IF EXISTS "+p.Schema+", "+p.Schema+storeSuffix+" CASCADE")
		err = errors.Join(err, dropped)
	}()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: p.Schema, Logger: logger})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	client, err := river.NewClient(driver, &river.Config{Schema: p.Schema, Logger: logger})
	if err != nil {
		return err
	}
	return (&story{place: p, client: client, workers: map[string]*worker{}}).tell(ctx)
}

// story is what outlives the workers.
type story struct {
	place
	client  *river.Client[pgx.Tx]
	workers map[string]*worker

	mu     sync.Mutex
	job    int64  // that was inserted last
	killed string // the worker that was
}

func (s *story) tell(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "river-workers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	payments, err := provider.Open(ctx, filepath.Join(dir, "provider.db"), provider.Options{
		Kind: provider.Lookup, Say: func(what string) { say("provider", what) }, Committed: s.committed,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, payments.Close()) }()
	if err := payments.AddOrder(ctx, "1001", 12900); err != nil { // enough to refund the 5.00 more than once
		return err
	}
	server := httptest.NewServer(payments)
	defer server.Close()
	s.Payments = server.URL
	if err := s.act(ctx); err != nil {
		return err
	}
	count, err := payments.Count(ctx)
	if err != nil {
		return err
	}
	refunds := len(count.Refunds["1001"])
	fmt.Printf("refunds counted in the provider's own table: %d\n", refunds)
	if refunds != 1 || s.killed == "" {
		return fmt.Errorf("%d refunds, want 1; killed: %q", refunds, s.killed)
	}
	return nil
}

func (s *story) act(ctx context.Context) (err error) {
	defer func() {
		for name := range s.workers {
			err = errors.Join(err, s.end(name))
		}
	}()
	for _, name := range []string{"worker-1", "worker-2", "worker-3"} {
		if err := s.start(ctx, name); err != nil {
			return err
		}
	}
	for range 2 { // the second time as though a client had got no answer
		if err := s.do(ctx, ticket{Ticket: "ticket-42", Message: "Refund order 1001, it arrived broken."}); err != nil {
			return err
		}
	}
	return nil
}

// do inserts a job and waits for its end.
func (s *story) do(ctx context.Context, t ticket) error {
	s.mu.Lock() // the worker may be quicker than this
	inserted, err := s.client.Insert(ctx, t, nil)
	if err == nil {
		s.job = inserted.Job.ID
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	say("story", fmt.Sprintf("job %d is inserted: %s", s.job, t.Ticket))
	stuck := time.NewTicker(runTime + 2*time.Second)
	defer stuck.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stuck.C:
			// The leader of the workers looks for stuck jobs each 30 s, and a new leader at once.
			say("story", "asks River's leader to look for stuck jobs")
			if err := s.client.Notify().RequestResign(ctx); err != nil {
				return err
			}
		case <-time.After(100 * time.Millisecond):
		}
		job, err := s.client.JobGet(ctx, s.job)
		if err != nil {
			return err
		}
		if job.FinalizedAt != nil {
			say("story", fmt.Sprintf("job %d is %s", job.ID, job.State))
			return nil
		}
	}
}

// committed kills the worker whose refund the provider has made, before that is answered. It does so once.
func (s *story) committed(ctx context.Context, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.killed != "" {
		return
	}
	job, err := s.client.JobGet(context.WithoutCancel(ctx), s.job)
	if err != nil {
		say("story", err.Error())
		return
	}
	s.killed = job.AttemptedBy[len(job.AttemptedBy)-1]
	err = s.workers[s.killed].cmd.Process.Kill()
	<-s.workers[s.killed].ended
	say("story", fmt.Sprintf("kills %s before it has the provider's answer (%v)", s.killed, errors.Join(err, s.workers[s.killed].err)))
}
