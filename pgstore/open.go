package pgstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	oldest     = 140000 // PostgreSQL 14
	longestKey = 63     // of a name, in bytes
)

//go:embed schema.sql
var schema1 string

// migrations lead from each version of the schema to the next; the first fills an empty one.
var migrations = []string{schema1}

const (
	askSettings = `SELECT current_setting('server_version_num')::bigint, current_setting('server_version'), current_setting('server_encoding'),
		current_setting('synchronous_commit'), current_setting('default_transaction_isolation'),
		pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean`
	// askSchema asks whether the schema is there, how many tables it has, and whether the one that would make it ours.
	askSchema = `SELECT nspname IS NOT NULL, (SELECT count(*) FROM pg_class WHERE relnamespace = pg_namespace.oid),
		EXISTS (SELECT 1 FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attname = 'application'
			WHERE relnamespace = pg_namespace.oid AND relname = 'meta' AND relkind = 'r')
		FROM pg_namespace WHERE nspname = $1`
	askMeta    = `SELECT application, version FROM @meta WHERE id = 1`
	lockSchema = `SELECT pg_advisory_xact_lock(hashtextextended('toolonce ' || $1, 0))`
	setVersion = `UPDATE @meta SET version = $1 WHERE id = 1`
)

// Open connects to the database that a connection string names, a URL or key=value pairs, and makes or brings up to date
// the store's schema in it. Whatever keeps it from being used is an error that matches one of the Err variables, and the
// database is left as it was. ctx counts for Open alone. The store keeps connections and one goroutine, the heartbeat, until
// Close.
func Open(ctx context.Context, dsn string, opts *Options) (*Store, error) {
	d := &database{
		opts: opts.orDefaults(), newID: newID, ctx: context.WithoutCancel(ctx),
		stop: make(chan struct{}), stopped: make(chan struct{}),
		looks: gatherer[*look]{patience: patience}, claims: gatherer[*claiming]{least: 2, patience: patience}, results: gatherer[*changing]{least: 2, patience: patience},
	}
	d.schema = pgx.Identifier{d.opts.Schema}.Sanitize() + "."
	d.where = fmt.Sprintf("schema %q", d.opts.Schema)
	if err := d.open(ctx, dsn); err != nil {
		return nil, d.wrap("opening", err)
	}
	return &Store{d: d}, nil
}

func (d *database) open(ctx context.Context, dsn string) (err error) {
	if n := d.opts.Schema; len(n) > longestKey || strings.ContainsRune(n, 0) || strings.HasPrefix(n, "pg_") {
		return fmt.Errorf("Options.Schema is no name of a schema: at most %d bytes, not beginning with pg_: %w", longestKey, ErrSettings)
	}
	config, err := parse(dsn)
	if err != nil {
		return err
	}
	c := config.ConnConfig
	d.where += fmt.Sprintf(" of database %q at %s:%d", c.Database, c.Host, c.Port)
	config.AfterConnect = d.check
	// A connection that has broken is found out by its use, which is safe here and saves a round trip.
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	if d.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			d.pool.Close()
		}
	}()
	if err := d.migrate(ctx); err != nil {
		return err
	}
	return d.arrive(ctx)
}

// parse reads a connection string. Unless that says otherwise, nothing is prepared on the server.
func parse(dsn string) (*pgxpool.Config, error) {
	if torn(dsn) {
		return nil, fmt.Errorf("%w: there is an @ too many: in a URL write %%40 for one in the user or the password, and %%2F for a slash", ErrDSN)
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrDSN, fault(err))
	}
	plain, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrDSN, fault(err))
	}
	if _, said := plain.RuntimeParams["default_query_exec_mode"]; !said {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		if config.ConnConfig.DescriptionCacheCapacity == 0 {
			config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
	}
	return config, nil
}

// check refuses a connection on which the store could not keep its word.
func (d *database) check(ctx context.Context, conn *pgx.Conn) error {
	var number int64
	var version, encoding, synchronous, isolation string
	var readOnly bool
	mode := pgx.QueryExecModeExec // one round trip
	err := conn.QueryRow(ctx, askSettings, mode).Scan(&number, &version, &encoding, &synchronous, &isolation, &readOnly)
	switch {
	case err != nil && conn.IsClosed():
		return &lostError{err: err}
	case err != nil:
		return err
	case number < oldest:
		return fmt.Errorf("it is PostgreSQL %s: %w", version, ErrVersion)
	case readOnly:
		return ErrReadOnly
	case synchronous == "off" && !d.opts.AllowAsyncCommit:
		return ErrAsync
	case encoding != "UTF8":
		return fmt.Errorf("%w: the database's encoding is %s: make one with ENCODING 'UTF8'", ErrSettings, encoding)
	case isolation != "read committed":
		return fmt.Errorf("%w: default_transaction_isolation is %q: ALTER ROLE … SET default_transaction_isolation = 'read committed'", ErrSettings, isolation)
	}
	return nil
}

// stamp is what a schema says of whose it is.
type stamp struct {
	exists, marked bool
	tables         int64
	application    string
	version        int
}

// migrate makes an empty schema ours and brings an older one up to date, in one transaction.
func (d *database) migrate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.opts.WriteTimeout)
	defer cancel()
	conn, err := d.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if s, err := d.stamp(ctx, conn); err != nil || s.version == len(migrations) {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(d.ctx) }() // does nothing after a commit
	if err := d.bring(ctx, tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// bring makes the steps that are missing. Another process may have made them meanwhile.
func (d *database) bring(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, lockSchema, d.opts.Schema); err != nil {
		return err
	}
	s, err := d.stamp(ctx, tx)
	if err != nil {
		return err
	}
	if !s.exists {
		if _, err := tx.Exec(ctx, `CREATE SCHEMA `+strings.TrimSuffix(d.schema, ".")); err != nil {
			return err
		}
	}
	for ; s.version < len(migrations); s.version++ {
		if _, err := tx.Conn().PgConn().Exec(ctx, d.text(migrations[s.version])).ReadAll(); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, d.text(setVersion), s.version+1); err != nil {
			return err
		}
	}
	return nil
}

// querier is a connection or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// stamp reads whose the schema is, and refuses what is not ours or not yet known.
func (d *database) stamp(ctx context.Context, q querier) (s stamp, err error) {
	err = q.QueryRow(ctx, askSchema, d.opts.Schema).Scan(&s.exists, &s.tables, &s.marked)
	switch {
	case errors.Is(err, pgx.ErrNoRows) && d.opts.MustExist:
		return s, fmt.Errorf("there is no such schema: %w", ErrMissing)
	case errors.Is(err, pgx.ErrNoRows):
		return s, nil
	case err != nil:
		return s, err
	case s.tables == 0 && d.opts.MustExist:
		return s, fmt.Errorf("the schema is empty: %w", ErrMissing)
	case s.tables == 0:
		return s, nil
	case !s.marked:
		return s, ErrForeign
	}
	err = q.QueryRow(ctx, d.text(askMeta)).Scan(&s.application, &s.version)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && s.application != "toolonce":
		return s, ErrForeign
	case hasCode(err, "42703"): // undefined_column
		return s, ErrForeign
	case err == nil && s.version > len(migrations):
		err = fmt.Errorf("the schema was made by a newer toolonce: version %d, this program knows %d: %w", s.version, len(migrations), ErrNewer)
	}
	return s, err
}
