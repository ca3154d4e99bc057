package main

import (
	"bytes"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/internal/pgtest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/sqlitestore"
)

// storeVerbs are all that look into a store, with arguments that they take.
var storeVerbs = [][]string{
	{"ops"}, {"show", "op_x"}, {"resolve", "op_x", "--happened", "--by", "a", "--why", "b"}, {"recover", "-yes", "--by", "a", "--why", "b"}, {"pending"},
	{"approve", "x", "--by", "a", "--why", "b"}, {"deny", "x", "--by", "a", "--why", "b"}, {"runs"}, {"run", "x"}, {"stats"}, {"verify"},
	{"export"}, {"prune"}, {"forget", "--run", "x"}, {"acts"}, {"serve", "--by", "a"},
}

func TestEveryVerbIsTriedOnWrongStores(t *testing.T) {
	tried := map[string]bool{"audit": true, "bench": true, "version": true} // they look into none
	for _, v := range storeVerbs {
		tried[v[0]] = true
	}
	for _, v := range verbs {
		if !tried[v.name] {
			t.Error(v.name)
		}
	}
}

// tree is what is in a folder, as it is there.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// script runs statements past the store.
func script(t *testing.T, path, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAWrongStoreIsToldInOneLineAndLeftAsItIs(t *testing.T) {
	for _, c := range []struct {
		name, want, verify string // verify says something else where it can look at what others cannot
		make               func(t *testing.T, path string)
	}{
		{"missing", "check the path", "", func(*testing.T, string) {}},
		{"a folder", "name a file in it", "", func(t *testing.T, path string) { fatal(t, os.Mkdir(path, 0o700)) }},
		{"empty", "it is empty", "findings", func(t *testing.T, path string) { fatal(t, os.WriteFile(path, nil, 0o600)) }},
		{"noise", "restore it from a backup", "findings", func(t *testing.T, path string) {
			fatal(t, os.WriteFile(path, bytes.Repeat([]byte("noise "), 2000), 0o600))
		}},
		{"cut off", "restore it from a backup", "findings", func(t *testing.T, path string) {
			s, err := sqlitestore.Open(path, nil)
			fatal(t, err)
			fatal(t, s.Close())
			fatal(t, os.Truncate(path, 8000))
			fatal(t, os.RemoveAll(path+"-owners"))
		}},
		{"another program's", "choose another path", "findings", func(t *testing.T, path string) { script(t, path, `CREATE TABLE mine (x)`) }},
		{"newer", "update this program", "findings", func(t *testing.T, path string) {
			s, err := sqlitestore.Open(path, nil)
			fatal(t, err)
			fatal(t, s.Close())
			script(t, path, `PRAGMA user_version = 99`)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fixture{t: t, path: filepath.Join(t.TempDir(), "once.db")}
			c.make(t, f.path)
			before := tree(t, filepath.Dir(f.path))
			for _, args := range storeVerbs {
				want := c.want
				if args[0] == "verify" && c.verify != "" {
					want = c.verify
				}
				f.refuses(1, want, args...)
			}
			if d := cmp.Diff(before, tree(t, filepath.Dir(f.path))); d != "" {
				t.Error("something is changed:", d)
			}
		})
	}
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refuses wants one line of error.
func (f *fixture) refuses(code int, want string, args ...string) {
	f.t.Helper()
	got, out, errs := f.call(args...)
	if got != code || strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, "toolonce: ") || !strings.Contains(errs, want) {
		f.t.Errorf("toolonce %s: exit %d, want %d and a line with %q\n%s%s", strings.Join(args, " "), got, code, want, out, errs)
	}
}

func TestAStoreThatIsLockedIsWaitedForAndThenTold(t *testing.T) {
	f := inDoubt(t)
	db, err := sql.Open("sqlite3", "file:"+f.path)
	fatal(t, err)
	c, err := db.Conn(t.Context())
	fatal(t, err)
	_, err = c.ExecContext(t.Context(), `BEGIN IMMEDIATE`)
	fatal(t, err)
	for _, args := range storeVerbs {
		args = append(args, "-wait", "30ms")
		if args[0] == "verify" { // it needs no lock
			f.want(0, "integrity", args...)
			continue
		}
		f.refuses(1, "look for a program that keeps a transaction open", args...)
	}
	_, err = c.ExecContext(t.Context(), `ROLLBACK`)
	fatal(t, err)
	fatal(t, c.Close())
	fatal(t, db.Close())
	f.want(0, "in_doubt", "show", f.op)
}

func TestAWrongDatabaseIsToldInOneLineWithoutItsPassword(t *testing.T) {
	dsn := pgtest.Start(t)
	f := &fixture{t: t}
	for _, c := range []struct {
		code        int
		store, want string
		args        []string
	}{
		{1, "postgres:host=127.0.0.1 port=1 user=x password=hidden", "cannot be reached", nil},
		{1, "postgres://x:hidden@127.0.0.1:1/x", "cannot be reached", nil},
		{1, "postgres:this is none", "the connection string is wrong", nil},
		{1, "postgres:user=app password = hidden port=x", "invalid port", nil},
		{1, `postgres:user=app PASSWORD='a hidden' port=x`, "invalid port", nil},
		{1, "postgres://app:a@hidden@127.0.0.1:5/app%zz", "write %40", nil},
		{2, "host=x password=hidden", "say sqlite:PATH or postgres:DSN", nil},
		{1, dsn, "there is no such schema", []string{"-schema", "none"}},
		{1, dsn, "", []string{"-schema", "pg_catalog"}},
		{2, "mysql://root:hidden@somewhere", "say sqlite:PATH or postgres:DSN", nil},
		{2, "once.db", "say sqlite:PATH or postgres:DSN", nil},
	} {
		f.flag = c.store
		for _, args := range storeVerbs {
			args = append(append([]string{}, args...), append(c.args, "-wait", "200ms")...)
			f.refuses(c.code, c.want, args...)
			if _, out, errs := f.call(args...); strings.Contains(out+errs, "hidden") {
				t.Error(out, errs)
			}
		}
	}
}

func TestASchemaThatIsNewerOrAnothersIsToldInOneLine(t *testing.T) {
	dsn := pgtest.Start(t)
	c, err := pgx.Connect(t.Context(), dsn)
	fatal(t, err)
	exec := func(statement string) {
		_, err := c.Exec(t.Context(), statement)
		fatal(t, err)
	}
	s, err := pgstore.Open(t.Context(), dsn, &pgstore.Options{Schema: "newer"})
	fatal(t, err)
	fatal(t, s.Close())
	exec(`UPDATE newer.meta SET version = 99`)
	exec(`CREATE SCHEMA anothers`)
	exec(`CREATE TABLE anothers.mine (x int)`)
	fatal(t, c.Close(t.Context()))
	f := &fixture{t: t, flag: dsn}
	for schema, want := range map[string]string{"newer": "update this program", "anothers": "choose another name"} {
		for _, args := range storeVerbs {
			said := want
			if args[0] == "verify" {
				said = "1 findings"
			}
			f.refuses(1, said, append(append([]string{}, args...), "-schema", schema)...)
		}
	}
}

func TestCallsThatAreWrongAreToldInOneLine(t *testing.T) {
	f := inDoubt(t)
	before := f.want(0, "", "export", "-all-namespaces")
	who := []string{"--by", "a", "--why", "b"}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{2, "there is no state", []string{"ops", "-state", "stuck"}},
		{2, "give one of them", []string{"ops", "-state", "done", "-in-doubt"}},
		{2, "say how long", []string{"ops", "-older", "-1h"}},
		{2, "invalid value", []string{"ops", "-older", "long ago"}},
		{2, "say how many", []string{"runs", "-limit", "-1"}},
		{2, "say what verify has printed then", []string{"verify", "--head", ""}},
		{2, "say how long", []string{"ops", "-wait", "0s"}},
		{2, "takes 0 argument(s) and got 1", []string{"verify", "x"}},
		{2, "takes 1 argument(s) and got 0", []string{"run"}},
		{2, "takes 0 argument(s) and got 1", []string{"export", "x"}},
		{2, "takes 0 argument(s) and got 2", []string{"stats", "x", "y"}},
		{2, "takes 0 argument(s) and got 1", []string{"version", "x"}},
		{2, "there is no command", []string{"help", "opps"}},
		{1, "toolonce runs lists them", []string{"run", "none"}},
		{1, "there is no run", []string{"run", "x\x1b[2J"}},
		{1, "toolonce ops lists them", []string{"show", "op_1\n2"}},
		{1, "toolonce ops lists them", append([]string{"resolve", "op_none", "--happened"}, who...)},
		{2, "--result is not JSON", append([]string{"resolve", f.op, "--happened", "--result", "{"}, who...)},
		{1, "nothing was asked about", append([]string{"approve", "none"}, who...)},
	} {
		f.refuses(c.code, c.want, c.args...)
	}
	if d := cmp.Diff(before, f.want(0, "", "export", "-all-namespaces")); d != "" {
		t.Error(d)
	}
	for _, name := range []string{"acme", ""} {
		for _, verb := range []string{"ops", "pending", "runs", "stats", "export", "prune", "acts"} {
			f.refuses(2, "give one of them", verb, "-namespace", name, "-all-namespaces")
		}
	}
	for _, args := range storeVerbs {
		e := &fixture{t: t}
		var o, errs bytes.Buffer
		if code := run(&env{ctx: t.Context(), out: &o, getenv: func(string) string { return "" }}, args, &errs); code != 2 || !strings.Contains(errs.String(), "set TOOLONCE_STORE") {
			e.t.Errorf("%v without a store: exit %d, %s", args, code, &errs)
		}
	}
}

func TestOfTwoOperatorsAtOnceOneDecides(t *testing.T) {
	f := inDoubt(t)
	f.overdue()
	p := waitingCalls(t)
	asked := p.pending()[0].Approval
	for _, c := range []struct {
		f    *fixture
		a, b []string
	}{
		{f, []string{"resolve", f.op, "--happened", "--by", "ann", "--why", "x"}, []string{"resolve", f.op, "--did-not-happen", "--by", "bob", "--why", "y"}},
		{p.fixture, []string{"approve", asked, "--by", "ann", "--why", "x"}, []string{"deny", asked, "--by", "bob", "--why", "y"}},
	} {
		codes, lines := [2]int{}, [2]string{}
		var wg sync.WaitGroup
		for i, args := range [][]string{c.a, c.b} {
			wg.Go(func() { codes[i], _, lines[i] = c.f.call(args...) })
		}
		wg.Wait()
		if codes[0]+codes[1] != 1 || strings.Count(lines[0]+lines[1], "\n") != 1 {
			t.Error(codes, lines)
		}
	}
}

func TestTwoWhoRecoverAtOnceBothSucceed(t *testing.T) {
	f := orphaned(t)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { f.want(0, "", "recover", "-yes", "--by", "a", "--why", "b") })
	}
	wg.Wait()
	f.want(0, string(middleware.InDoubt), "show", f.op)
}

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	f := inDoubt(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		if os.Getenv("TOOLONCE_NO_SKIP") != "" {
			t.Fatal(err)
		}
		t.Skip("it takes a /dev/full: ", err)
	}
	defer func() { fatal(t, full.Close()) }()
	for _, args := range [][]string{
		{"help"}, {"help", "ops"}, {"ops"}, {"ops", "-json"}, {"show", f.op}, {"recover"}, {"pending"}, {"runs"}, {"stats"}, {"verify"}, {"export"}, {"prune"},
		{"acts"}, {"version"}, {"audit", "-h"}, {"serve", "--by", "a"}, {"serve", "--by", "a", "-json"},
	} {
		var errs bytes.Buffer
		code := run(&env{ctx: t.Context(), out: full, getenv: f.getenv}, args, &errs)
		if code != 1 || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), "the output could not be written: ") {
			t.Errorf("%v: exit %d, %s", args, code, &errs)
		}
	}
}
