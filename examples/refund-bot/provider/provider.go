// Package provider is a payment provider to try things on: a real HTTP server with its own SQLite file of the money that
// it has moved.
//
//	POST /refunds {"order_id":"1001","cents":500}       {"id":"re_1001_1","cents":500}
//	GET  /refunds?order_id=1001                         [{"id":"re_1001_1","cents":500}], where the kind is Lookup
//	GET  /orders/1001                                   {"order_id":"1001","cents":12900}
//	POST /notes {"order_id":"1001","text":"called"}     {"id":"note_1"}
//
// Refusals are 4xx with {"error":"…"}; nothing has happened then.
package provider

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"
)

// Kind is what a provider offers against paying twice.
type Kind string

const (
	// Keyed honours an Idempotency-Key header: the same key again gets the first answer and moves nothing.
	Keyed Kind = "keyed"
	// Lookup can be asked which refunds an order has had.
	Lookup Kind = "lookup"
	// Plain offers neither.
	Plain Kind = "plain"
)

// ParseKind reads a kind's name.
func ParseKind(s string) (Kind, error) {
	switch k := Kind(s); k {
	case Keyed, Lookup, Plain:
		return k, nil
	}
	return "", fmt.Errorf("no such provider %q: use keyed, lookup or plain", s)
}

// Options of Open. The zero value works.
type Options struct {
	// Kind is Plain where it is "".
	Kind Kind
	// Say is told what the provider does, in one line each. nil: nobody is told.
	Say func(string)
	// Committed is called when a refund has been committed, before it is answered: the moment for a failure. Its context
	// ends when the client has gone.
	Committed func(ctx context.Context, orderID string)
}

// Provider is the server. It is safe for concurrent use.
type Provider struct {
	db   *sql.DB
	opts Options
	mux  *http.ServeMux
}

// application marks our files, "refd", so that no other program's file is written to.
const application = 0x72656664

const schema = `
CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, cents INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS refunds (
	id TEXT PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders, cents INTEGER NOT NULL CHECK (cents > 0), key TEXT UNIQUE
) STRICT;
CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, order_id TEXT NOT NULL REFERENCES orders, text TEXT NOT NULL) STRICT;
`

// Open opens the file at path and makes it where there is none.
func Open(ctx context.Context, path string, opts Options) (*Provider, error) {
	db, err := open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("provider: opening %q: %w", path, err)
	}
	p := &Provider{db: db, opts: opts, mux: http.NewServeMux()}
	if p.opts.Say == nil {
		p.opts.Say = func(string) {}
	}
	if p.opts.Committed == nil {
		p.opts.Committed = func(context.Context, string) {}
	}
	p.mux.HandleFunc("POST /refunds", p.postRefund)
	p.mux.HandleFunc("GET /orders/{id}", p.getOrder)
	p.mux.HandleFunc("POST /notes", p.postNote)
	if opts.Kind == Lookup {
		p.mux.HandleFunc("GET /refunds", p.getRefunds)
	}
	return p, nil
}

func open(ctx context.Context, path string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// Without a sync at each commit: nobody pulls the plug in an example, and the file outlives every process.
	u := url.URL{Scheme: "file", Path: abs, RawQuery: "_journal_mode=WAL&_synchronous=NORMAL&_busy_timeout=5000&_txlock=immediate&_foreign_keys=on"}
	db, err := sql.Open("sqlite3", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := prepare(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func prepare(ctx context.Context, db *sql.DB) error {
	var id, tables int
	if err := db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if id != application && (id != 0 || tables > 0) {
		return errors.New("the file is a database of another program: choose another path")
	}
	_, err := db.ExecContext(ctx, fmt.Sprintf("BEGIN IMMEDIATE; %s PRAGMA application_id = %d; COMMIT", schema, application))
	return err
}

// Close closes the file.
func (p *Provider) Close() error { return p.db.Close() }

// AddOrder makes an order known that was paid with so many cents. One that is known stays as it is.
func (p *Provider) AddOrder(ctx context.Context, id string, cents int64) error {
	if _, err := p.db.ExecContext(ctx, "INSERT INTO orders (id, cents) VALUES (?, ?) ON CONFLICT DO NOTHING", id, cents); err != nil {
		return fmt.Errorf("provider: adding order %q: %w", id, err)
	}
	return nil
}

// Tally is what the file says at the end.
type Tally struct {
	Refunds map[string][]string // by order: the ids of its refunds
	Notes   map[string]int      // by order
	Cents   int64               // moved in all
}

// Count counts the rows of the file.
func (p *Provider) Count(ctx context.Context) (Tally, error) {
	t := Tally{Refunds: map[string][]string{}, Notes: map[string]int{}}
	err := each(ctx, p.db, "SELECT order_id, id, cents FROM refunds ORDER BY rowid", func(scan func(...any) error) error {
		var order, id string
		var cents int64
		if err := scan(&order, &id, &cents); err != nil {
			return err
		}
		t.Refunds[order] = append(t.Refunds[order], id)
		t.Cents += cents
		return nil
	})
	if err == nil {
		err = each(ctx, p.db, "SELECT order_id, count(*) FROM notes GROUP BY order_id", func(scan func(...any) error) error {
			var order string
			var n int
			if err := scan(&order, &n); err != nil {
				return err
			}
			t.Notes[order] = n
			return nil
		})
	}
	if err != nil {
		return Tally{}, fmt.Errorf("provider: counting: %w", err)
	}
	return t, nil
}

// each calls f for every row of a query.
func each(ctx context.Context, db *sql.DB, query string, f func(scan func(...any) error) error, args ...any) (err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
