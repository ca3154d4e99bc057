package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolonce/toolonce/pgstore"
)

// refused opens what must be refused, and gives the error's text.
func refused(t *testing.T, dsn string, o *pgstore.Options, want error) string {
	t.Helper()
	s, err := pgstore.Open(t.Context(), dsn, o)
	if err == nil {
		_ = s.Close()
		t.Fatalf("Open succeeds, want an error that is %q", want)
	}
	if !errors.Is(err, want) || !strings.HasPrefix(err.Error(), "pgstore: opening schema ") {
		t.Errorf("Open says %q, want an error that is %q", err, want)
	}
	return err.Error()
}

// with is the connection string with a server's setting for its sessions.
func with(dsn, setting, value string) string {
	return dsn + "&options=" + "-c%20" + setting + "%3D" + value
}

func TestConnectionStringThatIsNoneIsRefusedWithoutItsPassword(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://app:secret@host:port/db":                              "invalid port",
		"postgres://app:secret@host/db?pool_max_conns=none":               "cannot parse pool_max_conns",
		"postgres://app:secret@host/db?pool_max_conns=secret":             "cannot parse pool_max_conns",
		"postgres://app:secret@host/db?sslrootcert=/secret":               "unable to read CA file: there is no such file",
		"postgres://app:secret@host/db?target_session_attrs=secret":       "unknown target_session_attrs value",
		"postgres://app:secret@host/db?sslmode=verify-full&secret":        "missing key/value separator",
		"postgres://app:other@secret@127.0.0.1:5/app%zz":                  "%40",
		"postgres://app:other@secret@127.0.0.1:5/app":                     "%40",
		"postgres://app:12/secret@127.0.0.1:5/app":                        "%40",
		"postgres://app:x?y@secret@127.0.0.1:5/app":                       "%40",
		"postgres://app:secret@127.0.0.1:5/app%zz":                        "invalid percent-encoded",
		"postgres://app:secret word@127.0.0.1:5/app":                      "unexpected spaces",
		"password=secret nonsense":                                        "invalid keyword/value",
		"password=first secret port=5":                                    `missing "="`,
		"user=app password = secret port=x":                               "invalid port",
		"user=app PASSWORD=secret port=x":                                 "invalid port",
		"user=app password = 'very secret' port=x":                        "invalid port",
		"user=app password='very secret":                                  "unterminated quoted string",
		`user=app password=very\ secret port=x`:                           "invalid port",
		"user=app password=x port=5 min_protocol_version=secret":          "invalid min_protocol_version",
		"user=app password=x port=5 service=secret servicefile=/dev/null": "unable to find service",
		"user=app password=`:\\ secret port=x":                            "invalid port",
		"host=h password=x port=5 sslmode=verify-ca sslrootcert=/secret":  "unable to read CA file",
	} {
		said := refused(t, dsn, nil, pgstore.ErrDSN)
		_, err := pgstore.Verify(t.Context(), dsn, nil)
		for _, said := range []string{said, fmt.Sprint(err), fmt.Sprintf("%+v %#v", err, err)} {
			if strings.Contains(said, "secret") {
				t.Errorf("the error tells the password: %s", said)
			}
		}
		if !errors.Is(err, pgstore.ErrDSN) || !strings.Contains(said, want) || !strings.Contains(said, "write postgres://user@host") {
			t.Errorf("%q: %s, want %q", dsn, said, want)
		}
	}
	refused(t, "postgres://app:x%40y%2Fz@127.0.0.1:1/db?application_name=a@b", nil, pgstore.ErrDown) // as it should be written
}

func TestServerThatCannotBeReachedIsToldInOneLineAndOnce(t *testing.T) {
	for _, dsn := range []string{"postgres://app@127.0.0.1:1/db", "host=127.0.0.1,localhost port=1 user=app dbname=db"} {
		said := refused(t, dsn, nil, pgstore.ErrDown)
		if strings.ContainsAny(said, "\n\t") || strings.Count(said, "127.0.0.1:1 (127.0.0.1)") != 1 {
			t.Errorf("%q", said)
		}
	}
}

func TestServerThatDoesNotAnswerIsSaidToBeDownAtOnce(t *testing.T) {
	began := time.Now()
	said := refused(t, "postgres://app:secret@127.0.0.1:1/db", nil, pgstore.ErrDown)
	if strings.Contains(said, "secret") || !strings.Contains(said, "127.0.0.1:1") {
		t.Errorf("the error should name the server and not the password: %s", said)
	}
	if time.Since(began) > 9*time.Second {
		t.Error("Open has waited for it")
	}
}

func TestDatabaseThatDoesNotExistIsMissing(t *testing.T) {
	p := fresh(t)
	refused(t, strings.Replace(p.dsn, "/postgres?", "/nowhere?", 1), nil, pgstore.ErrMissing)
	o := p.options(pgstore.Options{MustExist: true})
	refused(t, p.dsn, o, pgstore.ErrMissing)
	statement(t, p.dsn, "CREATE SCHEMA "+quoted(p.schema))
	refused(t, p.dsn, o, pgstore.ErrMissing)
	p.open(t)
	s, err := pgstore.Open(t.Context(), p.dsn, o)
	check(t, err)
	check(t, s.Close())
}

func TestUserWhoIsNotLetInIsToldSo(t *testing.T) {
	p := fresh(t)
	statement(t, p.dsn, "CREATE ROLE "+quoted(p.schema)+" NOLOGIN")
	refused(t, strings.Replace(p.dsn, "postgres@", url.PathEscape(p.schema)+"@", 1), nil, pgstore.ErrLogin)
}

func TestUserWithoutRightsIsToldWhatIsLacking(t *testing.T) {
	p := fresh(t)
	statement(t, p.dsn, "CREATE ROLE "+quoted(p.schema)+" LOGIN")
	dsn := strings.Replace(p.dsn, "postgres@", url.PathEscape(p.schema)+"@", 1)
	if said := refused(t, dsn, p.options(pgstore.Options{}), pgstore.ErrRights); !strings.Contains(said, "AUTHORIZATION") {
		t.Errorf("the error does not say how to mend it: %s", said)
	}
	statement(t, p.dsn, "CREATE SCHEMA "+quoted(p.schema)+" AUTHORIZATION "+quoted(p.schema))
	s, err := pgstore.Open(t.Context(), dsn, p.options(pgstore.Options{}))
	check(t, err)
	claimed(t, s, aClaim("run", 1))
	check(t, s.Close())
}

func TestReadOnlyDatabaseIsRefused(t *testing.T) {
	p := fresh(t)
	refused(t, with(p.dsn, "default_transaction_read_only", "on"), p.options(pgstore.Options{}), pgstore.ErrReadOnly)
}

func TestCommitsThatMayBeLostAreRefusedUnlessAllowed(t *testing.T) {
	p := fresh(t)
	dsn := with(p.dsn, "synchronous_commit", "off")
	refused(t, dsn, p.options(pgstore.Options{}), pgstore.ErrAsync)
	s, err := pgstore.Open(t.Context(), dsn, p.options(pgstore.Options{AllowAsyncCommit: true}))
	check(t, err)
	claimed(t, s, aClaim("run", 1))
	check(t, s.Close())
}

func TestSettingsThatChangeWhatStatementsMeanAreRefused(t *testing.T) {
	p := fresh(t)
	refused(t, with(p.dsn, "default_transaction_isolation", "serializable"), p.options(pgstore.Options{}), pgstore.ErrSettings)
	database := strings.ToLower(p.schema[5:])
	statement(t, p.dsn, "CREATE DATABASE "+quoted(database)+" TEMPLATE template0 ENCODING 'LATIN1'")
	refused(t, strings.Replace(p.dsn, "/postgres?", "/"+database+"?", 1), nil, pgstore.ErrSettings)
	for _, name := range []string{"pg_once", "a\x00b", strings.Repeat("long", 16)} {
		refused(t, p.dsn, &pgstore.Options{Schema: name}, pgstore.ErrSettings)
	}
}

func TestServerThatIsTooOldIsRefused(t *testing.T) {
	p := fresh(t)
	old := quoted(p.schema)
	statement(t, p.dsn, "CREATE SCHEMA "+old)
	statement(t, p.dsn, "CREATE FUNCTION "+old+`.current_setting(text) RETURNS text LANGUAGE sql AS
		$$ SELECT CASE $1 WHEN 'server_version_num' THEN '130014' WHEN 'server_version' THEN '13.14' ELSE pg_catalog.current_setting($1) END $$`)
	dsn := with(p.dsn, "search_path", url.PathEscape(strings.ReplaceAll(old, " ", `\ `)+",pg_catalog"))
	if said := refused(t, dsn, nil, pgstore.ErrVersion); !strings.Contains(said, "it is PostgreSQL 13.14") {
		t.Errorf("the error does not say which version it is: %s", said)
	}
}

func TestSchemaOfAnotherProgramIsRefusedAndLeftAlone(t *testing.T) {
	for _, table := range []string{"orders (id integer)", "meta (id integer, version integer)", "meta (id integer, application text)"} {
		p := fresh(t)
		statement(t, p.dsn, fmt.Sprintf("CREATE SCHEMA %s; CREATE TABLE %s.%s", quoted(p.schema), quoted(p.schema), table))
		refused(t, p.dsn, p.options(pgstore.Options{}), pgstore.ErrForeign)
		statement(t, p.dsn, "DROP TABLE "+quoted(p.schema, strings.Fields(table)[0])+"; DROP SCHEMA "+quoted(p.schema)) // there is nothing else in it
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	p := fresh(t)
	check(t, p.open(t).Close())
	statement(t, p.dsn, "UPDATE "+quoted(p.schema, "meta")+" SET version = version + 1")
	if said := refused(t, p.dsn, p.options(pgstore.Options{}), pgstore.ErrNewer); !strings.Contains(said, "version 2, this program knows 1") {
		t.Errorf("the error does not name the versions: %s", said)
	}
}

func TestManyProcessesThatMakeTheSchemaAtOnceAllOpenIt(t *testing.T) {
	p := fresh(t)
	var group sync.WaitGroup
	for range 12 {
		group.Go(func() {
			s, err := pgstore.Open(context.Background(), p.dsn, p.options(pgstore.Options{}))
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestAnyNameOfASchemaWorks(t *testing.T) {
	p := fresh(t)
	for _, name := range []string{`a"b; DROP SCHEMA x; --`, "Ünïcode", "with@at", "select"} {
		s, err := pgstore.Open(t.Context(), p.dsn, &pgstore.Options{Schema: name + p.schema[5:9]})
		check(t, err)
		claimed(t, s, aClaim("run", 1))
		check(t, s.Close())
	}
}

// Poolers lose what is prepared, and give each transaction another session.
func TestNothingIsLeftInASession(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	row := claimed(t, s, aClaim("run", 1))
	found(t, s, row.Operation)
	appended(t, s, begun(t, s, "run"), 1)
	tripTogether(t, s)
	for range 4 {
		conn, err := s.Pool().Acquire(t.Context())
		check(t, err)
		defer conn.Release()
		var left int
		check(t, conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_prepared_statements) +
			(SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()) +
			(SELECT count(*) FROM pg_settings WHERE source = 'session' AND name NOT IN ('application_name'))`).Scan(&left))
		if left != 0 {
			t.Errorf("%d things are left in a session", left)
		}
	}
}

func TestEveryWayToSendStatementsWorks(t *testing.T) {
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			p := fresh(t)
			p.dsn += "&default_query_exec_mode=" + mode
			s := p.open(t)
			trip(t, s)
			tripTogether(t, s)
		})
	}
}
