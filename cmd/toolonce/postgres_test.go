package main

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/internal/pgtest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
)

func TestOnPostgreSQLWhatIsInDoubtIsFoundAndSettled(t *testing.T) {
	dsn := pgtest.Start(t)
	const schema = "operator's"
	s, err := pgstore.Open(t.Context(), dsn, &pgstore.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	f := &fixture{t: t, flag: dsn}
	f.refund(func(name string) middleware.Ledger { return s.Namespace(name) })
	f.want(1, "toolonce", "ops") // there is no schema of that name
	f.want(0, f.op, "ops", "--in-doubt", "-schema", schema)
	out := f.want(0, "in_doubt", "show", f.op, "-schema", schema)
	if strings.Contains(out, dsn) || !strings.Contains(out, `-store "$TOOLONCE_STORE" -schema 'operator'\''s'`) {
		t.Error(out)
	}
	f.want(0, "is done now, settled by ann", "resolve", f.op, "--happened", "--by", "ann", "--why", "seen", "-schema", schema)
	f.want(0, "acme\t", "ops", "-in-doubt", "-all-namespaces", "-schema", schema)
	f.flag = "postgres:host=127.0.0.1 port=1 user=x password=hidden"
	if _, out, errs := f.call("ops"); strings.Contains(out+errs, "hidden") {
		t.Error(out, errs)
	}
	f.flag = "mysql://root:hidden@somewhere"
	f.want(2, "say sqlite:PATH or postgres:DSN", "ops")
	if _, out, errs := f.call("ops"); strings.Contains(out+errs, "hidden") {
		t.Error(out, errs)
	}
}

// schemas counts those that measuring has made.
func schemas(t *testing.T, dsn string) (n int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	err = c.QueryRow(t.Context(), `SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'toolonce\_bench\_%'`).Scan(&n)
	if err := errors.Join(err, c.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return n
}

// user makes one of the server's, who may make schemas, and gives the DSN with that in place of the first.
func user(t *testing.T, dsn, how string) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	name := "user_" + strings.ToLower(rand.Text())
	for _, query := range []string{"CREATE ROLE " + name + " LOGIN " + how, "GRANT CREATE ON DATABASE " + c.Config().Database + " TO " + name} {
		if _, err := c.Exec(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.Replace(dsn, c.Config().User+"@", name+"@", 1)
}
