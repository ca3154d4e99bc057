package pgstore_test

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/internal/pgtest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/seal"
)

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// place is a schema of a test's own.
type place struct {
	dsn, schema string
	codec       seal.Codec // of its stores
}

// fresh is a schema that does not exist yet, on the server that all tests share.
func fresh(tb testing.TB) place {
	tb.Helper()
	return place{dsn: pgtest.Start(tb), schema: "test " + strings.ToLower(rand.Text())}
}

// options are those given with the place's schema.
func (p place) options(o pgstore.Options) *pgstore.Options {
	o.Schema, o.Codec = p.schema, p.codec
	return &o
}

// open is a store as a new process gets it, with few connections, so that many may be open.
func (p place) open(tb testing.TB) *pgstore.Store {
	tb.Helper()
	s, err := pgstore.Open(tb.Context(), p.dsn+"&pool_max_conns=4", p.options(pgstore.Options{}))
	check(tb, err)
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// empty takes out all but the owners.
func (p place) empty(tb testing.TB) {
	tb.Helper()
	var all strings.Builder
	for _, table := range []string{"operations", "aliases", "approvals", "runs", "turns", "outputs"} {
		all.WriteString("DELETE FROM " + quoted(p.schema, table) + ";")
	}
	statement(tb, p.dsn, all.String())
}

// statement runs a statement past the store.
func statement(tb testing.TB, dsn, query string, args ...any) {
	tb.Helper()
	c, err := pgx.Connect(tb.Context(), dsn)
	check(tb, err)
	_, err = c.Exec(tb.Context(), query, args...)
	check(tb, err)
	check(tb, c.Close(tb.Context()))
}

// quoted is a name in a statement.
func quoted(names ...string) string { return pgx.Identifier(names).Sanitize() }

func freshHash() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// aClaim is one of an identity of its own.
func aClaim(run string, turn int) middleware.Claim {
	return middleware.Claim{
		Identity:  freshHash(),
		Call:      middleware.Alias{Run: run, Turn: turn, CallID: "call", Tool: "refund", Arguments: freshHash(), Fingerprint: freshHash()},
		Input:     []byte(`{"a":1}`),
		Token:     rand.Text(),
		Deadline:  1 << 40,
		KeyWindow: 1 << 50,
	}
}

func claimed(tb testing.TB, s *pgstore.Store, c middleware.Claim) middleware.Row {
	tb.Helper()
	row, won, err := s.Claim(tb.Context(), c)
	check(tb, err)
	if !won {
		tb.Fatalf("the claim is lost to %s", row.Operation)
	}
	return row
}

func found(tb testing.TB, s *pgstore.Store, operation string) middleware.Row {
	tb.Helper()
	row, ok, err := s.Find(tb.Context(), middleware.Query{Operation: operation})
	check(tb, err)
	if !ok {
		tb.Fatalf("%s is not there", operation)
	}
	return row
}

func count(tb testing.TB, p place, table string) (n int) {
	tb.Helper()
	return number(tb, p, "SELECT count(*) FROM "+quoted(p.schema, table))
}

// number asks past the store for one.
func number(tb testing.TB, p place, query string) (n int) {
	tb.Helper()
	c, err := pgx.Connect(tb.Context(), p.dsn)
	check(tb, err)
	check(tb, c.QueryRow(tb.Context(), query).Scan(&n))
	check(tb, c.Close(tb.Context()))
	return n
}

// waiters are the sessions that wait for what the aliases of a test keep from them.
const waiters = `pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE '%aliases%' AND pid <> pg_backend_pid()`

// waiting returns when so many do.
func waiting(tb testing.TB, p place, wanted int) {
	tb.Helper()
	c, err := pgx.Connect(tb.Context(), p.dsn) // not one in a transaction, which would see the same for ever
	check(tb, err)
	for n := -1; n != wanted; {
		check(tb, c.QueryRow(tb.Context(), "SELECT count(*) FROM "+waiters).Scan(&n))
	}
	check(tb, c.Close(tb.Context()))
}

// blocked returns when a session waits for a lock.
func blocked(tb testing.TB, p place) {
	tb.Helper()
	for number(tb, p, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()") == 0 {
	}
}
