//go:build unix && cgo

package crash_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/toolonce/toolonce/internal/pgtest"
	"github.com/toolonce/toolonce/pgstore"
)

// postgres is a schema.
type postgres struct {
	dsn, schema string
	process     string // "" for the test

	pool   *pgxpool.Pool    // of the test
	living map[string]int64 // processes that have opened the store: their owners
}

// postgresHome makes schemas on a server of the test's own.
func postgresHome(t *testing.T) home {
	dsn := pgtest.Start(t)
	pool, err := pgxpool.New(t.Context(), dsn+"&pool_max_conns=20")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return func(string) database {
		return &postgres{dsn: dsn, schema: "s" + strings.ToLower(rand.Text()), pool: pool, living: map[string]int64{}}
	}
}

// oneTrip has a statement that is new sent at once; else the server is asked first what it takes.
const oneTrip = "&default_query_exec_mode=exec"

// String is what placeOf takes.
func (p *postgres) String() string { return p.dsn + "|" + p.schema }

// session is the name of a process's sessions.
func (p *postgres) session(process string) string { return p.schema + "." + process }

// open opens the store for a process that is not suspected while it lives, however slow the machine is.
func (p *postgres) open(ctx context.Context) (store, error) {
	dsn := p.dsn + "&pool_max_conns=4&application_name=" + p.session(p.process)
	return pgstore.Open(ctx, dsn, &pgstore.Options{Schema: p.schema, Overdue: time.Hour})
}

// table is the program's own.
func (p *postgres) table() string { return "public." + p.schema }

func (p *postgres) refund(ctx context.Context, order string) error {
	tx, err := pgstore.Tx(ctx)
	if err == nil {
		_, err = tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+p.table()+" (order_id text)")
	}
	if err == nil {
		_, err = tx.Exec(ctx, "INSERT INTO "+p.table()+" VALUES ($1)", order)
	}
	return err
}

func (p *postgres) look(ctx context.Context, _ bool) (f fact, err error) {
	if made, err := p.has(ctx, p.schema+".meta"); err != nil || !made {
		return f, err
	}
	err = p.pool.QueryRow(ctx, p.text(`SELECT coalesce(max(turns.number), 0), coalesce(bool_or(runs.finished), false)
		FROM @runs AS runs LEFT JOIN @turns AS turns ON turns.run = runs.id WHERE runs.run = $1`), first).Scan(&f.turns, &f.finished)
	if err == nil {
		err = p.pool.QueryRow(ctx, p.text(`SELECT count(*), coalesce(max(state), ''), coalesce(max(run), ''), coalesce(max(attempt), 0),
			coalesce((extract(epoch FROM max(deadline)) * 1000000000)::bigint, 0), coalesce(max(settled_by), '') FROM @operations`)).Scan(
			&f.operations, &f.state, &f.claimer, &f.attempt, &f.deadline, &f.settledBy)
	}
	if err != nil {
		return f, err
	}
	refunds, err := p.has(ctx, p.table())
	if err == nil && refunds {
		err = p.pool.QueryRow(ctx, "SELECT count(*) FROM "+p.table()).Scan(&f.refunds)
	}
	return f, err
}

// text is a query on the schema, which is @ in it.
func (p *postgres) text(query string) string { return strings.ReplaceAll(query, "@", p.schema+".") }

// connection is one whose transaction ends with it.
type connection struct{ c *pgx.Conn }

func (c connection) Close() error { return c.c.Close(context.Background()) }

// lock takes the lock on what is written, or that of who makes a schema.
func (p *postgres) lock(ctx context.Context, making bool) (io.Closer, error) {
	c, err := pgx.Connect(ctx, p.dsn)
	if err != nil {
		return nil, err
	}
	_, err = c.Exec(ctx, "BEGIN")
	switch {
	case err != nil:
	case making:
		_, err = c.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('toolonce ' || $1, 0))", p.schema)
	default:
		_, err = c.Exec(ctx, p.text("LOCK TABLE @operations, @aliases, @runs, @turns, @outputs IN EXCLUSIVE MODE"))
	}
	return connection{c}, err
}

func (p *postgres) opened(ctx context.Context, process string) error {
	var owner int64
	err := p.pool.QueryRow(ctx, p.text("SELECT max(id) FROM @owners")).Scan(&owner)
	p.living[process] = owner
	return err
}

// ended waits until the server has done what the process had sent, and makes its heartbeat overdue: that of all owners that
// are not known to live.
func (p *postgres) ended(ctx context.Context, process string) error {
	delete(p.living, process)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for sessions := 1; sessions > 0; {
		err := p.pool.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity, pg_sleep(0.002) WHERE application_name = $1", p.session(process)).Scan(&sessions)
		if err != nil {
			return fmt.Errorf("waiting for the end of the sessions of %s: %w", process, err)
		}
	}
	living := []int64{}
	for _, owner := range p.living {
		living = append(living, owner)
	}
	if made, err := p.has(ctx, p.schema+".owners"); err != nil || !made {
		return err
	}
	_, err := p.pool.Exec(ctx, p.text("UPDATE @owners SET beat = '-infinity', overdue = '0' WHERE id <> ALL ($1)"), living)
	return err
}

// has reports whether a table is there.
func (p *postgres) has(ctx context.Context, table string) (has bool, err error) {
	err = p.pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", table).Scan(&has)
	return has, err
}

func (p *postgres) stop(ctx context.Context, w *worker, _ string, _ func() error) error {
	return p.hereWhenItWaits(ctx, w)
}

// making opens the store where there is none, and stops when it waits for its turn to make it.
func (p *postgres) making(ctx context.Context, w *worker) error {
	err := p.hereWhenItWaits(ctx, w)
	if err == nil {
		_, err = p.open(ctx)
	}
	return fmt.Errorf("the store is open: %w", err)
}

// hereWhenItWaits stops the worker when one of its sessions waits for the lock.
func (p *postgres) hereWhenItWaits(ctx context.Context, w *worker) error {
	ctx = context.WithoutCancel(ctx)
	if err := w.post("lock", nil, nil); err != nil {
		return err
	}
	c, err := pgx.Connect(ctx, p.dsn)
	if err != nil {
		return err
	}
	go func() {
		for waiting := 0; waiting == 0; {
			err := c.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity, pg_sleep(0.002) WHERE application_name = $1 AND wait_event_type = 'Lock'",
				p.session(p.process)).Scan(&waiting)
			if err != nil {
				fail(err)
			}
		}
		w.here()
	}()
	return nil
}
