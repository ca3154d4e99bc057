package pgstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/middleware"
)

// Finding is one thing that is wrong with a store. It tells ids, and nothing of what users wrote.
type Finding struct {
	// Check names the check that found it: one of Report.Checks.
	Check string
	// Where is a row or an object of the schema; "" for all of it.
	Where string
	// What is wrong with it.
	What string
}

// Report is what [Verify] has found.
type Report struct {
	// Checks are those that were made, in order. Where the schema is none that this program knows, the rest is missing.
	Checks []string
	// Findings are empty where all is well. Of each check no more than the first 20 are told, and that there are more.
	Findings []Finding
	// Schema is the version of the store's.
	Schema int
	// Acts are those of all namespaces, as they were found: who has noted the hash of one can look it up.
	Acts []middleware.Act
}

// SchemaVersion is the latest version of the schema that this program knows.
func SchemaVersion() int { return len(migrations) }

// Verify looks whether a store is sound: its schema, the settings of the database, and what its rows must be to each other,
// all as of one moment. It keeps nobody from writing and changes nothing: what it compares the schema with are temporary
// tables of its own transaction. It looks at a schema that Open refuses too. What is wrong is in the report; an error says why
// the store could not be looked at. Of the options, Schema counts. Whether the server's own files are sound is a matter of
// pg_amcheck and of checksums.
func Verify(ctx context.Context, dsn string, opts *Options) (Report, error) {
	d := &database{opts: opts.orDefaults(), ctx: context.WithoutCancel(ctx)}
	d.opts.MustExist = true
	d.schema = pgx.Identifier{d.opts.Schema}.Sanitize() + "."
	d.where = fmt.Sprintf("schema %q", d.opts.Schema)
	v := verifying{d: d}
	err := v.verify(ctx, dsn)
	return v.report, d.wrap("verifying", err)
}

// verifying is one Verify at work.
type verifying struct {
	d      *database
	conn   *pgx.Conn
	tx     pgx.Tx
	report Report
}

func (v *verifying) verify(ctx context.Context, dsn string) (err error) {
	config, err := parse(dsn)
	if err != nil {
		return err
	}
	c := config.ConnConfig
	c.DefaultQueryExecMode = pgx.QueryExecModeExec // the types of temporary tables are not worth remembering
	v.d.where += fmt.Sprintf(" of database %q at %s:%d", c.Database, c.Host, c.Port)
	if v.conn, err = pgx.ConnectConfig(ctx, c); err != nil {
		return err
	}
	defer func() { _ = v.conn.Close(v.d.ctx) }() // nothing was written
	if v.tx, err = v.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}); err != nil {
		return err
	}
	defer func() { _ = v.tx.Rollback(v.d.ctx) }()
	for _, look := range []func(context.Context) error{
		v.settings,
		v.whose,
		v.compare,
		v.invariants,
		v.acts,
	} {
		if err := look(ctx); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// errEnough ends the checks where the rest would tell nothing.
var errEnough = errors.New("there is no more to check")

func (v *verifying) checks(name string) { v.report.Checks = append(v.report.Checks, name) }

// found is said of the check that is made last.
func (v *verifying) found(where, what string) {
	check := v.report.Checks[len(v.report.Checks)-1]
	v.report.Findings = append(v.report.Findings, Finding{check, where, what})
}

// try undoes what f has done where the server refuses it, and tells that.
func (v *verifying) try(ctx context.Context, f func(pgx.Tx) error) error {
	inner, err := v.tx.Begin(ctx)
	if err != nil {
		return err
	}
	err = f(inner)
	if err != nil && decided(err) && !hasCode(err, "57014") { // query_canceled
		v.found("", strings.ReplaceAll(err.Error(), "\n", " "))
		err = nil
		if rolled := inner.Rollback(ctx); rolled != nil {
			return rolled
		}
		return nil
	}
	if err != nil {
		return err
	}
	return inner.Commit(ctx) // of the savepoint
}

// settings are those of this connection, which the store's have too.
func (v *verifying) settings(ctx context.Context) error {
	v.checks("settings")
	err := v.d.check(ctx, v.conn)
	for _, kind := range []error{ErrVersion, ErrReadOnly, ErrAsync, ErrSettings} {
		if errors.Is(err, kind) {
			v.found("", err.Error())
			return nil
		}
	}
	return err
}

func (v *verifying) whose(ctx context.Context) error {
	v.checks("version")
	s, err := v.d.stamp(ctx, v.tx)
	v.report.Schema = s.version
	switch {
	case errors.Is(err, ErrForeign), errors.Is(err, ErrNewer):
		v.found("", err.Error())
		return errEnough
	case err == nil && s.version < 1:
		v.found("", "it was never finished: open the store once with a program that may write")
		return errEnough
	}
	return err
}

// askObjects asks for what a schema has: a name of each thing, and how it is.
const askObjects = `SELECT 'table ' || relname, CASE relpersistence WHEN 'u' THEN 'unlogged' ELSE '' END FROM pg_class WHERE relnamespace = $1 AND relkind IN ('r', 'p')
	UNION ALL SELECT 'column ' || relname || '.' || attname, concat_ws(' ', format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN 'NOT NULL' END, attidentity, pg_get_expr(adbin, adrelid))
		FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
		WHERE relnamespace = $1 AND relkind IN ('r', 'p')
	UNION ALL SELECT 'constraint of ' || relname || ': ' || pg_get_constraintdef(pg_constraint.oid), CASE WHEN convalidated THEN '' ELSE 'not validated' END
		FROM pg_class JOIN pg_constraint ON conrelid = pg_class.oid AND contype IN ('c', 'p', 'u', 'f', 'x') WHERE relnamespace = $1
	UNION ALL SELECT 'index ' || pg_class.relname, concat_ws(' ', CASE WHEN indisunique THEN 'UNIQUE' END, CASE WHEN NOT indisvalid OR NOT indisready THEN 'not valid' END,
			(SELECT string_agg(pg_get_indexdef(indexrelid, k, true), ', ' ORDER BY k) FROM generate_series(1, indnatts) AS k), pg_get_expr(indpred, indrelid))
		FROM pg_class JOIN pg_index ON indexrelid = pg_class.oid WHERE relnamespace = $1
	UNION ALL SELECT 'trigger ' || tgname || ' of ' || relname, '' FROM pg_class JOIN pg_trigger ON tgrelid = pg_class.oid AND NOT tgisinternal WHERE relnamespace = $1`

// compare compares with what a new schema would have.
func (v *verifying) compare(ctx context.Context) error {
	v.checks("schema")
	return v.try(ctx, func(tx pgx.Tx) error {
		for _, m := range migrations[:v.report.Schema] {
			if _, err := tx.Conn().PgConn().Exec(ctx, strings.ReplaceAll(m, "@", "pg_temp.")).ReadAll(); err != nil {
				return fmt.Errorf("making temporary tables to compare with: %w", err)
			}
		}
		wanted, err := objects(ctx, tx, `SELECT pg_my_temp_schema()::oid`)
		if err != nil {
			return err
		}
		have, err := objects(ctx, tx, `SELECT oid FROM pg_namespace WHERE nspname = $1`, v.d.opts.Schema)
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			switch h, ok := have[name]; {
			case !ok:
				v.found(name, "it is missing")
			case h != wanted[name]:
				v.found(name, fmt.Sprintf("it is not that of version %d: it is %q, want %q", v.report.Schema, h, wanted[name]))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(have)) {
			if _, ok := wanted[name]; !ok {
				v.found(name, "it is none of toolonce's")
			}
		}
		return nil
	})
}

func objects(ctx context.Context, tx pgx.Tx, schema string, args ...any) (map[string]string, error) {
	var oid uint32
	if err := tx.QueryRow(ctx, schema, args...).Scan(&oid); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, askObjects, oid)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	var name, text string
	_, err = pgx.ForEachRow(rows, []any{&name, &text}, func() error {
		all[name] = text
		return nil
	})
	return all, err
}
