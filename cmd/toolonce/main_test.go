package main

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

const secret = "order-1001"

// fixture is a store with one refund in doubt, in namespace "acme" and in "".
type fixture struct {
	t    *testing.T
	path string
	flag string // of the store, where it is no file
	keys string // of what is sealed
	op   string
}

func inDoubt(t *testing.T) *fixture {
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "once.db")}
	s, err := sqlitestore.Open(f.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	f.refund(func(name string) middleware.Ledger { return s.Namespace(name) })
	return f
}

// overdue has the deadlines of all operations pass.
func (f *fixture) overdue() {
	f.t.Helper()
	db, err := sql.Open("sqlite3", f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	_, err = db.ExecContext(f.t.Context(), "UPDATE operations SET deadline = 1")
	if err := errors.Join(err, db.Close()); err != nil {
		f.t.Fatal(err)
	}
}

// refund leaves one in doubt with each of two tenants.
func (f *fixture) refund(tenant func(name string) middleware.Ledger) {
	t := f.t
	t.Helper()
	r := registry.New()
	if err := r.AddRaw(registry.RawTool{
		Name: "issue_refund", Effect: registry.NonIdempotentWrite, Timeout: time.Minute, Key: []string{"order_id"},
		Run: func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("timed out") },
	}); err != nil {
		t.Fatal(err)
	}
	o := &middleware.OnceOptions{Margin: time.Minute, Logger: slog.New(slog.DiscardHandler)}
	for _, ns := range []string{"", "acme"} {
		h := r.Handler(middleware.Once(tenant(ns), o))
		res, err := h(t.Context(), &registry.Call{Run: registry.Run{ID: "ticket\x1b[31m-42"}, Turn: 1, Tool: "issue_refund", Arguments: `{"order_id":"` + secret + `"}`})
		if err != nil || res.Verdict != registry.OutcomeUnknown {
			t.Fatalf("%v %v", res, err)
		}
		if ns == "" {
			f.op = res.Operation
		}
	}
}

// call runs the command and gives what it printed.
func (f *fixture) call(args ...string) (code int, out, errs string) {
	f.t.Helper()
	var o, e bytes.Buffer
	code = run(&env{ctx: f.t.Context(), out: &o, getenv: f.getenv}, args, &e)
	return code, o.String(), e.String()
}

func (f *fixture) getenv(name string) string {
	switch name {
	case "TOOLONCE_STORE":
		return cmp.Or(f.flag, "sqlite:"+f.path)
	case keysEnv:
		return f.keys
	}
	return ""
}

func (f *fixture) want(code int, contains string, args ...string) string {
	f.t.Helper()
	got, out, errs := f.call(args...)
	if got != code || !strings.Contains(out+errs, contains) {
		f.t.Errorf("toolonce %s: exit %d, want %d with %q\n%s%s", strings.Join(args, " "), got, code, contains, out, errs)
	}
	if strings.Contains(out+errs, "\x1b") {
		f.t.Errorf("toolonce %s: a control character reaches the terminal", strings.Join(args, " "))
	}
	return out
}

func TestWhatIsInDoubtIsFoundAndSettled(t *testing.T) {
	f := inDoubt(t)
	out := f.want(0, f.op, "ops", "--in-doubt")
	if strings.Contains(out, secret) || strings.Count(out, "\n") != 3 {
		t.Errorf("one operation, a hint and no arguments wanted:\n%s", out)
	}
	out = f.want(0, "in_doubt", "show", f.op)
	if strings.Contains(out, secret) {
		t.Errorf("arguments are shown unasked:\n%s", out)
	}
	f.want(0, secret, "show", f.op, "--show-data")
	_, mark, _ := strings.Cut(out, "--shown ")
	mark, _, _ = strings.Cut(mark, " ")
	f.want(1, "has moved on since", "resolve", f.op, "--happened", "--by", "ann", "--why", "seen", "--shown", "00000000.1")
	f.want(0, "is done now, settled by ann", "resolve", f.op, "--happened", "--result", `{"id":"re_1"}`, "--by", "ann", "--why", "seen", "--shown", mark)
	f.want(0, "nothing is in doubt\n(in namespace \"\"; the store has 1 more namespace: -all-namespaces)", "ops", "-in-doubt")
	f.want(0, "acme\t", "ops", "-in-doubt", "-all-namespaces")
	f.want(1, "is done: there is nothing to settle", "resolve", "--did-not-happen", "--by", "bob", "--why", "?", f.op)
	var got operation
	if err := json.Unmarshal([]byte(f.want(0, "re_1", "show", f.op, "-json", "-show-data")), &got); err != nil || got.State != "done" || got.By != "ann" || got.Why != "seen" {
		t.Errorf("%+v %v", got, err)
	}
	f.want(0, "in_doubt", "ops", "-in-doubt", "-namespace", "acme") // untouched
}

func TestDidNotHappenIsRefusedBeforeTheDeadlinesAndSaysUntilWhen(t *testing.T) {
	f := inDoubt(t)
	f.want(1, "too early to say that it did not happen: a request may still land until 20", "resolve", f.op, "--did-not-happen", "--by", "ann", "--why", "nothing there")
	f.want(0, "in_doubt", "show", f.op)
	f.overdue()
	f.want(0, "is free now", "resolve", f.op, "--did-not-happen", "--by", "ann", "--why", "nothing there")
}

func TestARunningOperationIsSettledOnlyIfItsOwnerIsGone(t *testing.T) {
	f := inDoubt(t)
	s, err := sqlitestore.Open(f.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	row, won, err := s.Claim(t.Context(), middleware.Claim{Identity: "00", Token: "t", Call: middleware.Alias{Tool: "pay", Run: "r", Turn: 1}})
	if err != nil || !won {
		t.Fatal(won, err)
	}
	settle := []string{"resolve", row.Operation, "--happened", "--by", "ann", "--why", "seen"}
	f.want(1, "is running and its process lives", settle...)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f.want(0, "orphan", "ops", "-in-doubt")
	f.want(0, "orphan", "show", row.Operation)
	f.want(0, "is done now", settle...)
}

func TestAnOperationOfACopiedFileIsSeenAndSettled(t *testing.T) {
	f := inDoubt(t)
	s, err := sqlitestore.Open(f.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	row, won, err := s.Claim(t.Context(), middleware.Claim{Identity: "00", Token: "t", Deadline: time.Minute, Call: middleware.Alias{Tool: "pay", Run: "r", Turn: 1}})
	if err != nil || !won {
		t.Fatal(won, err)
	}
	copied := filepath.Join(t.TempDir(), "once.db") // without the folder of lock files beside it
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(f.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f.path = copied
	f.want(0, "owner unknown: its lock file is missing", "ops", "-in-doubt")
	f.want(0, "--owner-is-gone", "show", row.Operation)
	early := []string{"resolve", row.Operation, "--did-not-happen", "--owner-is-gone", "--by", "ann", "--why", "nothing there"}
	f.want(1, "too early", early...)
	f.want(0, "owner unknown", "show", row.Operation) // what was refused has changed nothing
	settle := []string{"resolve", row.Operation, "--happened", "--by", "ann", "--why", "seen"}
	f.want(1, "say --owner-is-gone", settle...)
	f.want(0, "is done now", append(settle, "--owner-is-gone")...)
}

func TestCallsThatAreWrongChangeNothingAndSayTheMend(t *testing.T) {
	f := inDoubt(t)
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{2, `there is no command "opps"`, []string{"opps"}},
		{2, "flag provided but not defined", []string{"ops", "-x"}},
		{2, "takes 1 argument(s) and got 0", []string{"show"}},
		{2, "say sqlite:PATH", []string{"ops", "-store", "mysql:x"}},
		{2, "say one of", []string{"resolve", f.op, "--by", "a", "--why", "b"}},
		{2, "say one of", []string{"resolve", f.op, "--happened", "--did-not-happen", "--by", "a", "--why", "b"}},
		{2, "say who settles it", []string{"resolve", f.op, "--happened"}},
		{2, "--result is not JSON", []string{"resolve", f.op, "--happened", "--by", "a", "--why", "b", "--result", "re_1"}},
		{2, "--result goes with --happened", []string{"resolve", f.op, "--did-not-happen", "--by", "a", "--why", "b", "--result", "1"}},
		{2, "--new-key goes with", []string{"resolve", f.op, "--happened", "--by", "a", "--why", "b", "--new-key"}},
		{1, `there is no operation "op_x"`, []string{"show", "op_x"}},
		{1, "there is no operation", []string{"resolve", "op_x", "--happened", "--by", "a", "--why", "b"}},
		{1, "there is no operation", []string{"show", f.op, "-namespace", "acme"}},
		{1, "there is no such file", []string{"ops", "-store", "sqlite:" + filepath.Join(dir, "none.db")}},
		{1, "it is empty", []string{"ops", "-store", "sqlite:" + empty}},
		{2, "say how many", []string{"ops", "-limit", "-3"}},
		{1, "damaged", []string{"ops", "-store", "sqlite:" + garbage}},
	} {
		f.want(c.code, c.want, c.args...)
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); !os.IsNotExist(err) {
		t.Error("looking at a store that is not there has made it")
	}
	f.want(0, "in_doubt", "show", f.op)
	f.want(0, "toolonce resolve", "help")
	f.want(0, "-did-not-happen", "resolve", "-h")
}
