package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/internal/pgtest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/sqlitestore"
)

// prune runs the verb and gives what it printed.
func (f *fixture) prune(args ...string) (out string, err error) {
	f.t.Helper()
	var o bytes.Buffer
	e := &env{ctx: f.t.Context(), out: &o, getenv: f.getenv}
	err = verb{"prune", "", "", pruneVerb}.run(e, args)
	return o.String(), err
}

func (f *fixture) pruned(want string, args ...string) {
	f.t.Helper()
	if out, err := f.prune(args...); err != nil || out != want {
		f.t.Errorf("prune %v: %v, printed\n%swant\n%s", args, err, out, want)
	}
}

// outlived leaves operations whose content is kept no longer: one each of two tenants, and of the first one that is not
// known any longer either.
func outlived(t *testing.T, tenant func(name string) middleware.Ledger) {
	t.Helper()
	for i, c := range []struct {
		name string
		keep time.Duration
	}{{"", 0}, {"", 1}, {"acme", 0}} {
		call := middleware.Alias{Tool: "pay", Run: "run", Turn: i + 1}
		l := tenant(c.name)
		row, won, err := l.Claim(t.Context(), middleware.Claim{
			Identity: string(rune('a' + i)), Token: "t", Call: call, Input: []byte(secret), Retain: 1, Keep: c.keep, KeyWindow: time.Hour,
		})
		if err != nil || !won {
			t.Fatal(won, err)
		}
		if _, err := l.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: "t", Result: secret, HasResult: true}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPruneForgetsNothingUnlessToldTo(t *testing.T) {
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "once.db")}
	s, err := sqlitestore.Open(f.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	outlived(t, func(name string) middleware.Ledger { return s.Namespace(name) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f.checkPruned()
}

func TestPruneWorksOnPostgreSQL(t *testing.T) {
	f := &fixture{t: t, flag: pgtest.Start(t)}
	s, err := pgstore.Open(t.Context(), f.flag, nil)
	if err != nil {
		t.Fatal(err)
	}
	outlived(t, func(name string) middleware.Ledger { return s.Namespace(name) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f.checkPruned()
}

func (f *fixture) checkPruned() {
	f.t.Helper()
	const hint = "nothing was changed: say -yes to do it\n"
	const dry = "would be forgotten: input and result of 1 operations, 1 operations altogether, 0 approvals, the words of 0 runs\n"
	sure := []string{"-yes", "--by", "ann", "--why", "every night"}
	for range 2 {
		f.pruned(dry + hint)
	}
	if _, err := f.prune("-yes"); err == nil || !strings.Contains(err.Error(), "say who does it and why") {
		f.t.Error(err)
	}
	if out, err := f.prune("-older-than", "1h"); err != nil || !strings.Contains(out, "of 0 operations, 0 operations") || !strings.Contains(out, "kept: the oldest content is of 20") {
		f.t.Error(out, err)
	}
	f.pruned("forgotten: input and result of 1 operations, 1 operations altogether, 0 approvals, the words of 0 runs\n", sure...)
	f.pruned("forgotten: input and result of 0 operations, 0 operations altogether, 0 approvals, the words of 0 runs\n", sure...)
	out, err := f.prune(append(sure, "-all-namespaces", "-json")...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var got pruned
	if err != nil || len(lines) != 2 || json.Unmarshal([]byte(lines[1]), &got) != nil || got != (pruned{Namespace: "acme", Contents: 1}) {
		f.t.Errorf("%v %+v\n%s", err, got, out)
	}
	if out, err := f.prune("-all-namespaces"); err != nil || !strings.Contains(out, `namespace "acme": would be forgotten: input and result of 0 operations`) {
		f.t.Error(out, err)
	}
	if _, err := f.prune("-older-than", "-1h"); err == nil || !strings.Contains(err.Error(), "say how long") {
		f.t.Error(err)
	}
	out = f.want(0, "acme\t4\t", "acts", "-all-namespaces") // not of dry runs
	if strings.Count(out, "\tpruned\t\tann\tevery night\t") != 4 {
		f.t.Error(out)
	}
}
