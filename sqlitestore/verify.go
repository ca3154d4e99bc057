package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/toolonce/toolonce/middleware"
)

// Finding is one thing that is wrong with a store. It tells ids, and nothing of what users wrote.
type Finding struct {
	// Check names the check that found it: one of Report.Checks.
	Check string
	// Where is a row or an object of the schema; "" for the file.
	Where string
	// What is wrong with it.
	What string
}

// Report is what [Verify] has found.
type Report struct {
	// Checks are those that were made, in order. Where the file is too damaged for the rest, those are missing.
	Checks []string
	// Findings are empty where all is well. Of each check no more than the first 20 are told, and that there are more.
	Findings []Finding
	// Schema is the version of the file's.
	Schema int
	// Acts are those of all namespaces, as they were found: who has noted the hash of one can look it up.
	Acts []middleware.Act
}

// VerifyOptions of [Verify]. nil and the zero value work.
type VerifyOptions struct {
	// Quick leaves out whether each index has what its table has, which takes longest.
	Quick bool
}

// SchemaVersion is the latest version of the schema that this program knows.
func SchemaVersion() int { return len(migrations) }

// Verify looks whether the file at path is sound: its pages and indexes, its schema, its settings, and what its rows must be
// to each other. It opens the file for reading alone, so it works on one that Open refuses, and on one that others are
// writing to. What is wrong with the file is in the report; an error says why the file could not be looked at.
func Verify(ctx context.Context, path string, opts *VerifyOptions) (Report, error) {
	v := verifying{quick: opts != nil && opts.Quick}
	err := v.verify(ctx, path)
	return v.report, wrap("verifying", path, err)
}

// verifying is one Verify at work.
type verifying struct {
	quick  bool
	alone  bool // nobody writes to the file
	conn   *sql.Conn
	report Report
	ours   stamp
}

func (v *verifying) verify(ctx context.Context, path string) (err error) {
	if driverMissing != "" {
		return fmt.Errorf("%w: %s", ErrUnsupported, driverMissing)
	}
	path, exists, err := realPath(path)
	switch {
	case errors.Is(err, ErrDamaged):
		v.checks("integrity")
		v.found("", "it has one byte")
		return nil
	case err != nil:
		return err
	case !exists:
		return ErrMissing
	}
	// A reader of a write-ahead log leaves files beside it. Where there is no log nobody writes: the file is taken as it is,
	// and looked at again if somebody has come meanwhile.
	if untouched(path, nil) {
		before, err := os.Stat(path)
		if err != nil {
			return err
		}
		v.alone = true
		err = v.look(ctx, path)
		if untouched(path, before) {
			return err
		}
		v.report, v.alone = Report{}, false
	}
	return v.look(ctx, path)
}

// untouched reports that nobody has the file open for writing, and, where it was looked at before, that nobody had.
func untouched(path string, before os.FileInfo) bool {
	for _, log := range []string{"-wal", "-journal"} {
		if _, err := os.Lstat(path + log); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	now, err := os.Stat(path)
	return err == nil && (before == nil || now.Size() == before.Size() && now.ModTime().Equal(before.ModTime()))
}

func (v *verifying) look(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite3", readOnly(path, v.alone))
	if err != nil {
		return err
	}
	defer func() { keep(&err, db.Close()) }()
	if v.conn, err = db.Conn(ctx); errors.Is(kindOf(err), ErrDamaged) {
		v.checks("integrity")
		v.found("", err.Error())
		return nil
	} else if err != nil {
		return err
	}
	defer func() { keep(&err, v.conn.Close()) }()
	// Each goes on where the one before has found much, unless nothing can be read at all.
	for _, look := range []func(context.Context) error{
		v.integrity,
		v.whose,
		v.schema,
		v.settings,
		v.invariants,
		v.acts,
	} {
		err := look(ctx)
		switch kind := kindOf(err); {
		case errors.Is(err, errEnough):
			return nil
		case errors.Is(kind, ErrDamaged) || err != nil && kind == nil && ctx.Err() == nil: // such as a table that is not there
			v.found("", err.Error())
		case err != nil:
			return err
		}
	}
	return nil
}

// errEnough ends the checks where the rest would tell nothing.
var errEnough = errors.New("there is no more to check")

// readOnly opens the file for reading alone. alone: nobody writes to it.
func readOnly(path string, alone bool) string {
	q := url.Values{"mode": {"ro"}, "_query_only": {"on"}, "_busy_timeout": {"1000"}}
	if alone {
		q.Set("immutable", "1")
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	return u.String()
}

func (v *verifying) checks(name string) { v.report.Checks = append(v.report.Checks, name) }

// found is said of the check that is made last.
func (v *verifying) found(where, what string) {
	check := v.report.Checks[len(v.report.Checks)-1]
	v.report.Findings = append(v.report.Findings, Finding{check, where, what})
}

// most is how many findings of one check are told.
const most = 20

// integrity asks SQLite, which on a connection that cannot write does not look at CHECK constraints: the invariants have
// them. From here on the connection sees one moment.
func (v *verifying) integrity(ctx context.Context) error {
	v.checks("integrity")
	if _, err := v.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	check := "integrity_check"
	if v.quick {
		check = "quick_check"
	}
	lines, err := texts(ctx, v.conn, fmt.Sprintf("PRAGMA %s(%d)", check, most))
	for _, line := range lines {
		for l := range strings.SplitSeq(strings.TrimSpace(line), "\n") {
			if l != "ok" && !strings.HasPrefix(l, "*** in database") {
				v.found("", l)
			}
		}
	}
	return err
}

// whose looks for what says that the file is one of ours.
func (v *verifying) whose(ctx context.Context) error {
	v.checks("version")
	for q, to := range map[string]*int64{askApplication: &v.ours.application, askVersion: &v.ours.version, askTables: &v.ours.tables} {
		if err := v.conn.QueryRowContext(ctx, q).Scan(to); err != nil {
			v.found("", err.Error())
			return errEnough
		}
	}
	v.report.Schema = int(v.ours.version)
	err := v.ours.check()
	if err == nil && v.ours.version < 1 {
		err = errEmpty
	}
	if err != nil {
		v.found("", err.Error())
		return errEnough
	}
	return nil
}

// object is a table, an index or a trigger.
type object struct{ kind, name, text string }

const askObjects = `SELECT type, name, coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_stat%' ESCAPE '\' ORDER BY name`

// schema compares with what a new file would have.
func (v *verifying) schema(ctx context.Context) (err error) {
	v.checks("schema")
	db, err := sql.Open("sqlite3", ":memory:")
	if err != nil {
		return err
	}
	defer func() { keep(&err, db.Close()) }()
	fresh, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { keep(&err, fresh.Close()) }()
	for _, m := range migrations[:v.ours.version] {
		if _, err := fresh.ExecContext(ctx, m); err != nil {
			return err
		}
	}
	wanted, err := objects(ctx, fresh)
	if err != nil {
		return err
	}
	have, err := objects(ctx, v.conn)
	if err != nil {
		return err
	}
	for name, w := range wanted {
		switch h, ok := have[name]; {
		case !ok:
			v.found(w.kind+" "+name, "it is missing")
		case h != w:
			v.found(w.kind+" "+name, fmt.Sprintf("it is not that of version %d", v.ours.version))
		}
	}
	for name, h := range have {
		if _, ok := wanted[name]; !ok {
			v.found(h.kind+" "+name, "it is none of toolonce's")
		}
	}
	return nil
}

// How a state is checked, and how it was in the first files of version 1: they say the same.
const (
	stateCheck       = "CHECK (state IN ('running', 'in_doubt') OR state IN ('done', 'free') OR state = 'released')"
	stateCheckBefore = "CHECK (state IN ('running', 'in_doubt', 'done', 'free', 'released'))"
)

func objects(ctx context.Context, c *sql.Conn) (map[string]object, error) {
	all := map[string]object{}
	err := rowsOf(ctx, c, askObjects, func(rows *sql.Rows) error {
		var o object
		err := rows.Scan(&o.kind, &o.name, &o.text)
		o.text = strings.Replace(o.text, stateCheckBefore, stateCheck, 1)
		all[o.name] = o
		return err
	})
	return all, err
}

// settings are those that lie in the file.
func (v *verifying) settings(ctx context.Context) error {
	v.checks("settings")
	for name, want := range map[string]string{"journal_mode": "wal", "encoding": "UTF-8"} {
		got, err := texts(ctx, v.conn, "PRAGMA "+name)
		if err != nil {
			return err
		}
		if alone := name == "journal_mode" && v.alone; !alone && !slices.Equal(got, []string{want}) { // Open sets it
			v.found(name, fmt.Sprintf("it is %q, want %q: another program has changed it, and commits might be lost", got, want))
		}
	}
	return nil
}

func texts(ctx context.Context, c *sql.Conn, query string) (all []string, err error) {
	err = rowsOf(ctx, c, query, func(rows *sql.Rows) error {
		all = append(all, "")
		return rows.Scan(&all[len(all)-1])
	})
	return all, err
}

// rowsOf calls f for every row.
func rowsOf(ctx context.Context, c *sql.Conn, query string, f func(*sql.Rows) error) (err error) {
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { keep(&err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
