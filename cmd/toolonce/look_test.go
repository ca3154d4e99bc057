package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// orphaned is a store with an operation that was running when its process ended, and one that is done.
func orphaned(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "once.db")}
	s, err := sqlitestore.Open(f.path, nil)
	fatal(t, err)
	claim := func(identity, tool string, turn int) middleware.Row {
		row, won, err := s.Claim(t.Context(), middleware.Claim{
			Identity: identity, Token: "t", KeyWindow: time.Hour, Deadline: time.Nanosecond, Input: []byte(`{"order":"` + secret + `"}`),
			Call: middleware.Alias{Run: "ticket-1", Turn: turn, CallID: "call_1", Tool: tool},
		})
		if fatal(t, err); !won {
			t.Fatal("lost")
		}
		return row
	}
	done := claim("01", "note", 1)
	_, err = s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: done.Operation, Token: "t", Result: secret, HasResult: true})
	fatal(t, err)
	f.op = claim("02", "pay", 2).Operation
	_, err = s.Note(t.Context(), f.op, middleware.Alias{Run: "ticket-2", Turn: 5, Position: 1, CallID: "call_9", Tool: "pay"})
	fatal(t, err)
	fatal(t, s.Close())
	return f
}

func TestRecoverPutsOrphansInDoubtOnlyIfToldTo(t *testing.T) {
	f := orphaned(t)
	for range 2 {
		out := f.want(0, "say -yes to do it", "recover")
		if !strings.Contains(out, f.op+"\torphan\tpay\tticket-1\t2.0\t") || !strings.Contains(out, "it can ask Lookup") {
			t.Error(out)
		}
	}
	f.want(0, "orphan: its process has died", "ops", "-state", "running")
	f.want(2, "say who does it and why", "recover", "-yes", "--by", "ann")
	f.want(0, "orphan: its process has died", "ops", "-state", "running") // still
	who := []string{"--by", "ann", "--why", "its worker is gone"}
	f.want(0, "no operation is left", append([]string{"recover", "-yes", "-tool", "note"}, who...)...)
	f.want(0, f.op+"\tin_doubt\tpay", append([]string{"recover", "-yes"}, who...)...)
	f.want(0, "no operation is left", append([]string{"recover", "-yes"}, who...)...)
	if out := f.want(0, "recovered\t"+f.op+"\tann\tits worker is gone", "acts"); strings.Count(out, "\n") != 2 {
		t.Error("one act wanted:", out)
	}
	f.want(0, "is done now", "resolve", f.op, "--happened", "--by", "ann", "--why", "seen")
}

func TestOpsAreNarrowedDown(t *testing.T) {
	f := orphaned(t)
	lines := func(want int, args ...string) {
		t.Helper()
		if out := f.want(0, "", append([]string{"ops"}, args...)...); strings.Count(out, "\t")/6 != want {
			t.Errorf("%v: want %d lines of a table\n%s", args, want, out)
		}
	}
	lines(3)
	lines(2, "-state", "done")
	lines(3, "-state", "done,running")
	lines(0, "-state", "free")
	lines(2, "-tool", "pay")
	lines(0, "-tool", "p")
	lines(3, "-run", "ticket-1")
	lines(2, "-run", "ticket-2") // which has only repeated
	lines(2, "-limit", "1")
	lines(0, "-older", "1h")
	lines(3, "-older", "1ns")
	lines(2, "-in-doubt")
	lines(0, "-in-doubt", "-tool", "note")
	if out := f.want(0, f.op, "ops", "-limit", "1"); strings.Contains(out, "note") {
		t.Error("what needs somebody is not first:", out)
	}
}

func TestShowTellsWhoMeantAnOperationAndWhatItsKeyIs(t *testing.T) {
	f := orphaned(t)
	out := f.want(0, "meant by        run ticket-2, turn 5, position 1: pay", "show", f.op)
	for _, said := range []string{"call            run ticket-1, turn 2, position 0", "owner ", "deadline ", "downstream key ", "generation      0", "(22 bytes: --show-data prints them)"} {
		if !strings.Contains(out, said) {
			t.Errorf("it lacks %q:\n%s", said, out)
		}
	}
	if strings.Contains(out, secret) {
		t.Error(out)
	}
	f.want(0, secret, "show", f.op, "--show-data")
	var o operation
	fatal(t, json.Unmarshal([]byte(f.want(0, "", "show", f.op, "-json")), &o))
	want := []call{{Run: "ticket-1", Turn: 2, ID: "call_1", Tool: "pay", Claimed: true}, {Run: "ticket-2", Turn: 5, Position: 1, ID: "call_9", Tool: "pay"}}
	if d := cmp.Diff(want, o.Calls); d != "" || o.Key == "" || o.Owner == "" || o.Arguments != "" {
		t.Error(d, o)
	}
}

func TestExportPrintsEverythingByTheLineAndContentOnlyIfAskedFor(t *testing.T) {
	kinds := func(out string) map[string]int {
		t.Helper()
		n := map[string]int{}
		for line := range strings.Lines(out) {
			var l struct {
				Kind string
				Run  string
			}
			fatal(t, json.Unmarshal([]byte(line), &l))
			n[l.Kind]++
			if l.Run == "" {
				t.Error(line)
			}
		}
		return n
	}
	for _, c := range []struct {
		f    *fixture
		want map[string]int
	}{
		{ran(t), map[string]int{"run": 3}},
		{orphaned(t), map[string]int{"operation": 2}},
		{waitingCalls(t).fixture, map[string]int{"approval": 3}},
	} {
		out := c.f.want(0, "", "export", "-all-namespaces")
		if d := cmp.Diff(c.want, kinds(out)); d != "" || strings.Contains(out, secret) || strings.Contains(out, "downstream_key") {
			t.Error(d, out)
		}
		out = c.f.want(0, secret, "export", "-all-namespaces", "--show-data")
		if d := cmp.Diff(c.want, kinds(out)); d != "" {
			t.Error(d, out)
		}
	}
}

func TestStatsCount(t *testing.T) {
	f := orphaned(t)
	f.want(0, "in_doubt", "recover", "-yes", "--by", "ann", "--why", "gone")
	var s stats
	line, rest, _ := strings.Cut(f.want(0, "", "stats", "-json"), "\n")
	fatal(t, json.Unmarshal([]byte(line), &s))
	want := map[string]map[middleware.State]int{"note": {middleware.Done: 1}, "pay": {middleware.InDoubt: 1}}
	if d := cmp.Diff(want, s.Tools); d != "" || s.Oldest == "" || s.States[middleware.Done] != 1 {
		t.Error(d, line)
	}
	var room sized
	fatal(t, json.Unmarshal([]byte(rest), &room))
	if room.Bytes["database"] < 4096 {
		t.Error(rest)
	}
	out := f.want(0, "the oldest operation in doubt is so since 20", "stats")
	for _, said := range []string{"pay\t1\t0\t0\t0\t0", "all\t1\t0\t1\t0\t0", "write-ahead log\t"} {
		if !strings.Contains(out, said) {
			t.Errorf("it lacks %q:\n%s", said, out)
		}
	}
	out = ran(t).want(0, "executed\t1", "stats", "-all-namespaces")
	for _, said := range []string{"2 runs, 1 of them not finished", `namespace "acme": 1 runs, 1 of them`, "refused\t1"} {
		if !strings.Contains(out, said) {
			t.Errorf("it lacks %q:\n%s", said, out)
		}
	}
	waitingCalls(t).want(0, "2 calls wait for a person", "stats")
}

func TestVerifyTellsWhatIsWrongAndExitsWithOne(t *testing.T) {
	f := orphaned(t)
	f.want(0, "one live row\t\tok", "verify")
	f.want(0, `"findings":0}`, "verify", "-json", "-quick")
	script(t, f.path, `DROP INDEX runs_open; UPDATE operations SET attempt = 0`)
	out := f.want(1, "schema\tindex runs_open\tit is missing", "verify")
	if strings.Count(out, "it has no attempt") != 2 {
		t.Error(out)
	}
	f.refuses(1, "3 findings", "verify")
	f.want(1, `{"check":"schema","where":"index runs_open","what":"it is missing"}`, "verify", "-json")
}

func TestVersionNeedsNoStore(t *testing.T) {
	f := &fixture{t: t, flag: "nothing"}
	f.want(0, "SQLite schema      1", "version")
	f.want(2, "not defined: -store", "version", "-store", "sqlite:x")
	var v versions
	fatal(t, json.Unmarshal([]byte(f.want(0, "", "version", "-json")), &v))
	if !strings.HasPrefix(v.Go, "go1.") || !strings.HasPrefix(v.SQLite, "3.") || v.PostgresSchema < 1 {
		t.Errorf("%+v", v)
	}
}

func TestEveryVerbHasHelpWithAnExample(t *testing.T) {
	f := &fixture{t: t}
	all := f.want(0, "Exit codes: 0", "help")
	for _, args := range [][]string{{"help"}, {"help", "run"}, {"help", "show"}, {"help", "resolve"}, {"help", "serve"}, {"help", "export"}, {"help", "pending"}} {
		f.want(0, "TOOLONCE_KEYS", args...)
	}
	for _, v := range verbs {
		if !strings.Contains(all, "toolonce "+v.name) {
			t.Error(v.name, "is not listed")
		}
		out := f.want(0, "usage: toolonce "+v.name, "help", v.name)
		if !strings.Contains(strings.ReplaceAll(out, "\n  ", "\n"), "\ntoolonce "+v.name+" ") {
			t.Errorf("%s has no example:\n%s", v.name, out)
		}
	}
}

func TestHelpDoesNotTellThePasswordOfAStore(t *testing.T) {
	f := &fixture{t: t, flag: "postgres://ann:hidden@db/x"}
	for _, v := range verbs {
		if out := f.want(0, "", "help", v.name); strings.Contains(out, "hidden") {
			t.Error(out)
		}
	}
}

func TestATerminalGetsTablesAndColoursAndOthersTabs(t *testing.T) {
	f := orphaned(t)
	show := func(e *env, args ...string) string {
		t.Helper()
		var o, errs bytes.Buffer
		e.ctx, e.out, e.getenv = t.Context(), &o, func(string) string { return "" }
		if code := run(e, append(args, "-store", "sqlite:"+f.path), &errs); code != 0 {
			t.Fatal(code, errs.String())
		}
		return o.String()
	}
	plain := show(&env{tty: true}, "ops", "-state", "done")
	if strings.Contains(plain, "\t") || strings.Contains(plain, "\x1b") {
		t.Error(plain)
	}
	lines := strings.Split(plain, "\n")
	if at := strings.Index(lines[0], "TOOL"); at < 0 || lines[1][at:at+4] != "note" {
		t.Error(plain)
	}
	colours := show(&env{tty: true, color: true}, "ops", "-state", "done")
	if !strings.Contains(colours, "\x1b[32mdone\x1b[0m") {
		t.Errorf("%q", colours)
	}
	stripped := strings.NewReplacer("\x1b[32m", "", "\x1b[1m", "", "\x1b[0m", "").Replace(colours)
	if stripped != plain {
		t.Errorf("%q, want %q", stripped, plain)
	}
	if out := show(&env{}, "ops"); !strings.Contains(out, "\tdone\tnote\t") {
		t.Error(out)
	}
}

func TestAnOrphanIsListedBeforeWhatRunsHoweverFewAreAskedFor(t *testing.T) {
	f := orphaned(t)
	s, err := sqlitestore.Open(f.path, nil)
	fatal(t, err)
	for i, identity := range []string{"03", "04"} {
		_, won, err := s.Claim(t.Context(), middleware.Claim{Identity: identity, Token: "t", Call: middleware.Alias{Run: "r", Turn: i + 1, Tool: "pay"}})
		if fatal(t, err); !won {
			t.Fatal("lost")
		}
	}
	f.want(0, f.op+"\trunning", "ops", "-limit", "1")
	f.want(0, f.op+"\trunning", "ops", "-limit", "1", "-in-doubt")
	if out := f.want(0, f.op, "recover"); strings.Count(out, "\torphan\t") != 1 {
		t.Error("what runs is taken for an orphan:", out)
	}
	fatal(t, s.Close())
}

func TestAnOrphanThatSomebodyElseSettlesMeanwhileIsNoError(t *testing.T) {
	f := orphaned(t)
	e := &env{ctx: t.Context(), storeFlag: "sqlite:" + f.path, wait: time.Second, getenv: func(string) string { return "" }}
	fatal(t, e.open())
	defer func() { fatal(t, e.store.Close()) }()
	row, err := e.find(t.Context(), f.op)
	fatal(t, err)
	for _, want := range []string{"in_doubt", "changed"} {
		if outcome, err := e.doubt(t.Context(), &row, middleware.Act{By: "ann"}); err != nil || outcome != want {
			t.Errorf("%q, %v, want %q", outcome, err, want)
		}
	}
}

func TestExportReadsOnAfterItsFirstPage(t *testing.T) {
	f := orphaned(t)
	script(t, f.path, `CREATE TEMP TABLE more AS SELECT * FROM operations WHERE tool = 'note'; UPDATE more SET turn = 0;
		CREATE TEMP TABLE n AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500) SELECT i FROM n;
		CREATE TEMP TRIGGER many AFTER INSERT ON n BEGIN
			UPDATE more SET id = id + 1, identity = randomblob(32);
			INSERT INTO operations SELECT * FROM more;
		END;
		CREATE TEMP TABLE all_n AS SELECT i FROM n;
		INSERT INTO n SELECT i FROM all_n`)
	out := f.want(0, "", "export")
	seen := map[string]bool{}
	for line := range strings.Lines(out) {
		seen[line] = true
	}
	if len(seen) != 1502 || strings.Count(out, "\n") != 1502 {
		t.Error(len(seen), strings.Count(out, "\n"))
	}
}

func TestWhatIsNotListedIsCounted(t *testing.T) {
	f := orphaned(t)
	f.want(0, "\n(1 more: -limit 0)\n", "ops", "-limit", "1")
	if out := f.want(0, f.op, "ops", "-limit", "2"); strings.Contains(out, "more") {
		t.Error(out)
	}
	code, out, errs := f.call("ops", "-limit", "1", "-json")
	if code != 0 || errs != "toolonce: 1 more: -limit 0\n" || strings.Count(out, "\n") != 1 {
		t.Error(code, out, errs)
	}
	s, err := sqlitestore.Open(f.path, nil)
	fatal(t, err)
	for i, identity := range []string{"03", "04", "05"} {
		row, won, err := s.Claim(t.Context(), middleware.Claim{Identity: identity, Token: "t", Call: middleware.Alias{Run: "r", Turn: i + 1, Tool: "note"}})
		if fatal(t, err); !won {
			t.Fatal("lost")
		}
		step := middleware.Doubt
		if i == 2 {
			step = middleware.Complete
		}
		_, err = s.Change(t.Context(), middleware.Transition{Step: step, Operation: row.Operation, Token: "t", Attempt: 1})
		fatal(t, err)
	}
	fatal(t, s.Close())
	f.want(0, "\n(2 more: -limit 0)\n", "ops", "-in-doubt", "-limit", "1")
	if out := f.want(0, "\tr\t1.0\t", "ops", "-in-doubt", "-limit", "1"); strings.Contains(out, "\t2.0\t") {
		t.Error("who waits for longest is not first:", out)
	}
	f.want(0, "\n(at least 4 more: -limit 0)\n", "ops", "-limit", "1")
	f.want(0, "\n(at least 1 more: -limit 0)\n", "ops", "-limit", "1", "-state", "done")
	f = ran(t)
	if out := f.want(0, "\n(at least 1 more: -limit 0)\n", "runs", "-limit", "1"); strings.Contains(out, "first") {
		t.Error(out)
	}
	if out := f.want(0, "second", "runs", "-limit", "2"); strings.Contains(out, "-limit 0") {
		t.Error(out)
	}
}
