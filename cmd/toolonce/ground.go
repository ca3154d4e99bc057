package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/mattn/go-sqlite3" // for the floor

	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/sqlitestore"
)

// newGround makes a store beside the one that is named: in the same folder, or in the same database.
func newGround(ctx context.Context, named string) (*ground, error) {
	kind, where, _ := strings.Cut(named, ":")
	switch kind {
	case "sqlite":
		return sqliteGround(ctx, where)
	case "postgres", "postgresql":
		if strings.HasPrefix(where, "//") {
			where = named
		}
		return postgresGround(ctx, where)
	case "":
		return nil, errNoStore()
	default:
		return nil, errNoKind()
	}
}

// besides makes a folder beside a store.
func besides(path string) (dir string, err error) {
	beside, err := filepath.Abs(filepath.Dir(path))
	info, missing := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case path == "":
		return "", usagef("bench: -store sqlite: names no file: write sqlite:PATH")
	case missing == nil && info.IsDir():
		return "", fmt.Errorf("bench: %s is a folder: name a store in it, which need not be there", path)
	}
	if dir, err = os.MkdirTemp(beside, "toolonce-bench-"); err != nil {
		return "", fmt.Errorf("bench: making a folder beside the store to measure in: %w: make %s and let this user write there, or name another place", err, beside)
	}
	return dir, nil
}

func sqliteGround(ctx context.Context, path string) (g *ground, err error) {
	dir, err := besides(path)
	if err != nil {
		return nil, err
	}
	clears := []func() error{func() error { return os.RemoveAll(dir) }}
	clear := func() (err error) {
		for i := range clears {
			err = errors.Join(err, clears[len(clears)-1-i]())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, clear())
		}
	}()
	s, err := sqlitestore.Open(filepath.Join(dir, "once.db"), &sqlitestore.Options{Drain: time.Second})
	if err != nil {
		return nil, err
	}
	clears = append(clears, s.Close)
	raw, err := os.Create(filepath.Join(dir, "raw"))
	if err != nil {
		return nil, err
	}
	clears = append(clears, raw.Close)
	block := make([]byte, 4096)
	u := url.URL{Scheme: "file", Path: filepath.Join(dir, "floor.db"), RawQuery: "_journal_mode=WAL&_synchronous=FULL&_txlock=immediate"}
	db, err := sql.Open("sqlite3", u.String())
	if err != nil {
		return nil, err
	}
	clears = append(clears, db.Close)
	db.SetMaxOpenConns(1)
	floor, done, err := sqliteFloor(ctx, db)
	if err != nil {
		return nil, err
	}
	clears = append(clears, done)
	return &ground{
		kind: "sqlite", store: s, floor: floor, clear: clear,
		fsync: func() error {
			_, err := raw.WriteAt(block, 0)
			return errors.Join(err, raw.Sync())
		},
		commits: func() (int64, error) { return s.Commits(), nil },
		bytes: func() (n int64, err error) { // as it will be when the log is moved into the file
			u.Path, u.RawQuery = filepath.Join(dir, "once.db"), "mode=ro"
			db, err := sql.Open("sqlite3", u.String())
			if err != nil {
				return 0, err
			}
			err = db.QueryRowContext(ctx, `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(&n)
			return n, errors.Join(err, db.Close())
		},
	}, nil
}

func sqliteFloor(ctx context.Context, db *sql.DB) (floor, done func() error, err error) {
	if _, err := db.ExecContext(ctx, `CREATE TABLE done (id INTEGER PRIMARY KEY, identity BLOB NOT NULL UNIQUE, state TEXT NOT NULL, input BLOB, result TEXT)`); err != nil {
		return nil, nil, err
	}
	insert, err := db.PrepareContext(ctx, `INSERT INTO done (identity, state, input) VALUES (?, 'running', ?)`)
	if err != nil {
		return nil, nil, err
	}
	update, err := db.PrepareContext(ctx, `UPDATE done SET state = 'done', result = ? WHERE id = ? AND state = 'running'`)
	if err != nil {
		return nil, nil, errors.Join(err, insert.Close())
	}
	input, result := make([]byte, 100), strings.Repeat("r", 200)
	return func() error {
		r, err := insert.ExecContext(ctx, identity(), input)
		if err != nil {
			return err
		}
		id, err := r.LastInsertId()
		if err == nil {
			_, err = update.ExecContext(ctx, result, id)
		}
		return err
	}, func() error { return errors.Join(insert.Close(), update.Close()) }, nil
}

func identity() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return b
}

func postgresGround(ctx context.Context, dsn string) (g *ground, err error) {
	lasting := context.WithoutCancel(ctx)
	schema := "toolonce_bench_" + strings.ToLower(rand.Text()[:8])
	s, err := pgstore.Open(ctx, dsn, &pgstore.Options{Schema: schema, Drain: time.Second}) // first: it says best what is wrong with a DSN
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	config, perr := pgxpool.ParseConfig(dsn) // which takes what is for a pool out of it
	switch {
	case perr != nil:
		return nil, errors.Join(err, perr)
	case err != nil: // interrupted, when the schema may have been there
		return nil, errors.Join(err, dropSchema(lasting, config.ConnConfig, schema))
	}
	c, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, errors.Join(err, s.Close(), dropSchema(lasting, config.ConnConfig, schema))
	}
	clear := func() error {
		return errors.Join(s.Close(), c.Close(lasting), dropSchema(lasting, config.ConnConfig, schema))
	}
	table := pgx.Identifier{schema, "floor"}.Sanitize()
	if _, err = c.Exec(ctx, fmt.Sprintf(`CREATE TABLE %s (id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, identity bytea NOT NULL UNIQUE, state text NOT NULL, input bytea, result text)`, table)); err != nil {
		return nil, errors.Join(err, clear())
	}
	return &ground{
		kind: "postgres", store: s, clear: clear,
		fsync: func() error {
			_, err := c.Exec(ctx, fmt.Sprintf(`INSERT INTO %s (identity, state) VALUES ($1, '')`, table), identity())
			return err
		},
		floor:   postgresFloor(ctx, c, table),
		floors:  func(callers int) (floor, error) { return postgresFloors(ctx, c, config.ConnConfig, table, callers) },
		commits: func() (int64, error) { return s.Commits(), nil },
		bytes: func() (n int64, err error) {
			err = c.QueryRow(ctx, `SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class WHERE relkind = 'r' AND relnamespace = $1::regnamespace`,
				pgx.Identifier{schema}.Sanitize()).Scan(&n)
			return n, err
		},
	}, nil
}

// dropSchema does so over a connection of its own: the one that was measured may be broken, or interrupted.
func dropSchema(ctx context.Context, config *pgx.ConnConfig, schema string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	drop := "DROP SCHEMA IF EXISTS " + pgx.Identifier{schema}.Sanitize() + " CASCADE"
	c, err := pgx.ConnectConfig(ctx, config)
	for tooMany(err) && ctx.Err() == nil { // those that were closed are not gone yet
		time.Sleep(50 * time.Millisecond)
		c, err = pgx.ConnectConfig(ctx, config)
	}
	if err == nil {
		_, err = c.Exec(ctx, drop)
		err = errors.Join(err, c.Close(ctx))
	}
	if err != nil {
		return fmt.Errorf("bench: a schema is left behind: run %s: %w", drop, err)
	}
	return nil
}

// postgresFloor is a guard written by hand: two statements, each committed, both prepared once, as pgx does by itself.
func postgresFloor(ctx context.Context, c *pgx.Conn, table string) func() error {
	input, result := make([]byte, 100), strings.Repeat("r", 200)
	insert := fmt.Sprintf(`INSERT INTO %s (identity, state, input) VALUES ($1, 'running', $2) RETURNING id`, table)
	update := fmt.Sprintf(`UPDATE %s SET state = 'done', result = $1 WHERE id = $2 AND state = 'running'`, table)
	return func() error {
		var id int64
		if err := c.QueryRow(ctx, insert, identity(), input).Scan(&id); err != nil {
			return err
		}
		_, err := c.Exec(ctx, update, result, id)
		return err
	}
}

// spare is how many connections are left to everybody else.
const spare = 10

// postgresFloors is that over as many connections as there are callers, or as can be had.
func postgresFloors(ctx context.Context, c *pgx.Conn, config *pgx.ConnConfig, table string, callers int) (f floor, err error) {
	var free int
	if err := c.QueryRow(ctx, `SELECT current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer -
		(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::integer`).Scan(&free); err != nil {
		return f, err
	}
	var all []*pgx.Conn
	f.done = func() {
		for _, c := range all {
			_ = c.Close(context.WithoutCancel(ctx)) // nothing is lost with it
		}
	}
	calls := make(chan func() error, callers)
	for len(all) < max(1, min(callers, free-spare)) {
		c, err := pgx.ConnectConfig(ctx, config)
		if tooMany(err) && len(all) > 0 { // the user may have no more
			break
		}
		if err != nil {
			f.done()
			return f, err
		}
		all = append(all, c)
		call := postgresFloor(ctx, c, table)
		if err := call(); err != nil {
			f.done()
			return f, err
		}
		calls <- call
	}
	f.connections = len(all)
	f.call = func() error {
		call := <-calls
		defer func() { calls <- call }()
		return call()
	}
	return f, nil
}

// tooMany reports that the server takes no more connections.
func tooMany(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == "53300"
}
