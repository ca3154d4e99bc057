package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// What keeps a store from its work. Every error of the package that has one of these causes matches it with errors.Is;
// its text names the database and the schema. Nothing was written by the call that returned it, but for ErrUnknown.
var (
	// ErrDSN: the connection string cannot be read.
	ErrDSN = errors.New("the connection string is wrong: write postgres://user@host:port/database, or host=… dbname=…")
	// ErrDown: no server answers there, or it is starting or stopping.
	ErrDown = errors.New("the server cannot be reached: check host, port and network, and that PostgreSQL runs")
	// ErrLogin: the server does not let this user in.
	ErrLogin = errors.New("the server has refused the user or the password: check both, and pg_hba.conf")
	// ErrMissing: there is no such database, or no such schema in it.
	ErrMissing = errors.New("there is no such database or schema: check the names, or make it first")
	// ErrRights: the user may not do what the store needs.
	ErrRights = errors.New("the user lacks rights: have the schema made by CREATE SCHEMA … AUTHORIZATION this user")
	// ErrReadOnly: the server is a standby, or the user's transactions are read-only.
	ErrReadOnly = errors.New("the database is read-only: connect to the primary (target_session_attrs=read-write), and see default_transaction_read_only")
	// ErrFull: there is no room for what was to be written. The store works again once there is.
	ErrFull = errors.New("the server's disk is full: free some space and try again")
	// ErrBusy: somebody else held a lock for longer than Options.WriteTimeout, or all connections are taken.
	ErrBusy = errors.New("the server did not answer in time: look for long transactions, locks and too few connections (pool_max_conns)")
	// ErrUnknown: the connection broke before the answer to a write came, and it could not be found out whether that was
	// made. The same call again finds out.
	ErrUnknown = errors.New("the connection broke before the answer came: whether it was written is not known")
	// ErrVersion: the server is older than PostgreSQL 14.
	ErrVersion = errors.New("the server is too old: it takes PostgreSQL 14 or later")
	// ErrNewer: the schema was made by a newer program.
	ErrNewer = errors.New("update this program")
	// ErrForeign: a schema of that name is another program's.
	ErrForeign = errors.New("the schema belongs to another program: choose another name in Options.Schema")
	// ErrAsync: commits may be lost when the server breaks down.
	ErrAsync = errors.New("synchronous_commit is off, so commits may be lost: ALTER ROLE … SET synchronous_commit = on, or set Options.AllowAsyncCommit")
	// ErrSettings: a setting of the database or the user changes what statements mean.
	ErrSettings = errors.New("a setting is in the way")
	// ErrRunning: Close has waited for Options.Drain, and handlers still run or what they came to is not stored yet.
	ErrRunning = errors.New("handlers still run, or could not store yet what they came to: it stays open until they have; what is not stored when the process ends is unclear")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// wrap says what the package was doing with the schema, and gives the cause its class.
func (d *database) wrap(doing string, err error) error { return wrap(doing, d.where, err) }

func wrap(doing, where string, err error) error {
	if err == nil {
		return nil
	}
	kind := kindOf(err)
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = &lineError{err}
	}
	if kind == nil || errors.Is(err, kind) {
		return fmt.Errorf("pgstore: %s %s: %w", doing, where, err)
	}
	return fmt.Errorf("pgstore: %s %s: %w: %w", doing, where, kind, err)
}

// lineError tells in one line what pgx tells in one for each way to the server that it has tried, and what was the same on
// several of them once.
type lineError struct{ error }

func (e *lineError) Unwrap() error { return e.error }

func (e *lineError) Error() string {
	var told []string
	for line := range strings.Lines(e.error.Error()) {
		if line = strings.TrimSpace(line); !slices.Contains(told, line) {
			told = append(told, line)
		}
	}
	head, ways := told[0], strings.Join(told[1:], "; ")
	return strings.TrimSpace(head + " " + ways)
}

// kindOf is the class of an error from the server or on the way to it, nil for none.
func kindOf(err error) error {
	if errors.Is(err, ErrUnknown) {
		return ErrUnknown
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return codeKind(e.Code)
	}
	_, lost := errors.AsType[*lostError](err)
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok || lost {
		return ErrDown
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrBusy
	}
	return nil
}

// codeKind is the class of an SQLSTATE.
func codeKind(code string) error {
	switch code {
	case "25006": // read_only_sql_transaction
		return ErrReadOnly
	case "42501": // insufficient_privilege
		return ErrRights
	case "3D000", "3F000", "42P01": // a database, schema or table that is not there
		return ErrMissing
	case "53300", "55P03", "57014", codeSerialization, codeDeadlock: // too many connections, a lock, a time that is over
		return ErrBusy
	}
	switch {
	case strings.HasPrefix(code, "28"):
		return ErrLogin
	case strings.HasPrefix(code, "53"): // disk full, out of memory
		return ErrFull
	case strings.HasPrefix(code, "57P"), strings.HasPrefix(code, "08"):
		return ErrDown
	}
	return nil
}

const (
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeUnique        = "23505"
	codeNull          = "23502"
	codeDivision      = "22012"
	codeText          = "22P02" // it is none of the type wanted
)

// hasCode reports whether the server refused a statement for that reason.
func hasCode(err error, codes ...string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, e.Code)
}
