//go:build cgo

package sqlitestore_test

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/agent/journal/journaltest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

func verified(tb testing.TB, path string) sqlitestore.Report {
	tb.Helper()
	r, err := sqlitestore.Verify(tb.Context(), path, nil)
	check(tb, err)
	return r
}

// sound wants nothing to be found.
func sound(tb testing.TB, path string) {
	tb.Helper()
	if r := verified(tb, path); len(r.Findings) > 0 || r.Schema != sqlitestore.SchemaVersion() || len(r.Checks) < 10 {
		tb.Errorf("%+v", r)
	}
}

func TestVerifyFindsNothingInWhatTheContractsMake(t *testing.T) {
	inMemory(t)
	for _, c := range ledgertest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "once.db")
			_ = c.Check(t.Context(), ledgertest.System{
				Open: func() middleware.Ledger { return open(t, path, nil) },
				Kill: func(l middleware.Ledger) { l.(*sqlitestore.Store).Die() },
				Namespace: func(l middleware.Ledger, name string) middleware.Ledger {
					return l.(*sqlitestore.Store).Namespace(name)
				},
			})
			sound(t, path)
		})
	}
	for _, c := range journaltest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "once.db")
			_ = c.Check(t.Context(), journaltest.System{
				Open:      func() journal.Journal { return open(t, path, nil) },
				Kill:      func(j journal.Journal) { j.(*sqlitestore.Store).Die() },
				Namespace: func(j journal.Journal, name string) journal.Journal { return j.(*sqlitestore.Store).Namespace(name) },
			})
			sound(t, path)
		})
	}
}

// full is a closed file with some of everything.
func full(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "once.db")
	s := open(t, path, nil)
	done := func(l *sqlitestore.Store, c middleware.Claim) middleware.Row {
		row := claimed(t, l, c)
		row, err := l.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: c.Token, Result: "secret", HasResult: true})
		check(t, err)
		return row
	}
	row := done(s, aClaim("run", 1))
	undo := aClaim("run", 2)
	undo.Undoes = row.Operation
	done(s, undo)
	done(s.Namespace("acme"), aClaim("run", 1))
	doubt := claimed(t, s, aClaim("run", 3))
	_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Doubt, Operation: doubt.Operation, Token: doubt.Token, Attempt: 1})
	check(t, err)
	claimed(t, s, aClaim("run", 4))
	_, err = s.Ask(t.Context(), middleware.Approval{Call: middleware.Alias{Run: "run", Turn: 5, Tool: "pay"}, Identity: freshHash()}, time.Hour)
	check(t, err)
	r := begun(t, s, "run")
	for turn := range 4 {
		var outputs []journal.Output
		if turn > 0 {
			outputs = []journal.Output{{Content: "secret", Verdict: registry.Executed, Operation: row.Operation}}
		}
		appended(t, s, r, turn+1, outputs...)
	}
	check(t, s.Close())
	return path
}

// bend changes a file's bytes past SQLite.
func bend(t *testing.T, path string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	check(t, err)
	check(t, os.WriteFile(path, f(b), 0o600))
}

// root is where the pages of a table or an index begin, in bytes.
func root(t *testing.T, path, name string) int {
	t.Helper()
	s := open(t, path, nil)
	pages, err := s.Names(t.Context(), `SELECT rootpage FROM sqlite_schema WHERE name = '`+name+`'`)
	check(t, err)
	check(t, s.Close())
	n := 0
	for _, c := range pages[0] {
		n = 10*n + int(c-'0')
	}
	return (n - 1) * 4096
}

func TestVerifyNamesEachDamage(t *testing.T) {
	const undoConstraint = "PRAGMA ignore_check_constraints = 1;"
	for _, d := range []struct {
		name, script string
		bend         func(t *testing.T, path string)
		want         []string // CHECK: WHERE: WHAT, parts of findings
	}{
		{name: "cut off", bend: func(t *testing.T, path string) { bend(t, path, func(b []byte) []byte { return b[:len(b)/2] }) }, want: []string{"integrity|"}},
		{name: "cut off in the first page", bend: func(t *testing.T, path string) { bend(t, path, func(b []byte) []byte { return b[:60] }) }, want: []string{"integrity||"}},
		{name: "a page of a table is zero", bend: func(t *testing.T, path string) {
			at := root(t, path, "operations")
			bend(t, path, func(b []byte) []byte { clear(b[at : at+4096]); return b })
		}, want: []string{"integrity|"}},
		{name: "a page of an index is zero", bend: func(t *testing.T, path string) {
			at := root(t, path, "operations_identity")
			bend(t, path, func(b []byte) []byte { clear(b[at : at+4096]); return b })
		}, want: []string{"integrity|"}},
		{name: "noise", bend: func(t *testing.T, path string) {
			bend(t, path, func(b []byte) []byte { return slices.Repeat([]byte("noise "), len(b)/6) })
		}, want: []string{"integrity||"}},
		{name: "an index is missing", script: `DROP INDEX runs_open`, want: []string{"schema|index runs_open|missing"}},
		{name: "the trigger is missing", script: `DROP TRIGGER operations_claimed`, want: []string{"schema|trigger operations_claimed|missing"}},
		{name: "a table is missing", script: `DROP TABLE outputs`, want: []string{"schema|table outputs|missing", "runs||no such table"}},
		{name: "an index is another", script: `DROP INDEX approvals_state; CREATE INDEX approvals_state ON approvals (state)`, want: []string{"schema|index approvals_state|not that of version 1"}},
		{name: "a table too many", script: `CREATE TABLE notes (x)`, want: []string{"schema|table notes|none of toolonce's"}},
		{name: "a state by hand, done", script: `UPDATE operations SET state = 'done' WHERE state = 'in_doubt'`, want: []string{"states|operation op_|no time when it was done", "states|operation op_|listed otherwise"}},
		{name: "a state by hand, again", script: `UPDATE operations SET state = 'running' WHERE namespace = 'acme'`, want: []string{`states|operation op_|of namespace "acme"|has a time when it was done`}},
		{name: "a state by hand, free", script: `UPDATE operations SET state = 'free' WHERE state = 'in_doubt'`, want: []string{"states|operation op_|listed otherwise"}},
		{name: "a state by hand, not seen", script: `UPDATE meta SET low = 1 << 62; UPDATE operations SET listed = 0 WHERE state = 'running'`, want: []string{"states|operation op_|does not find it"}},
		{name: "two live rows", script: `DROP INDEX operations_identity; INSERT INTO operations SELECT id + 1, namespace, identity, released, fingerprint, canonical, tool, state, 1, token, attempt,
			deadline, owner, settle, settler, generation, key, key_since, unclear, by_person, undoes, repeat_of, resource, resource_out, late, run, 9, position, call_id, arguments, conversation,
			created, since, done_at, keep, retain, expires, settled_by, settled_why, input, result FROM operations WHERE state = 'in_doubt'`,
			want: []string{"one live row|identity |may happen twice", "schema|index operations_identity|missing"}},
		{name: "a call of nothing", script: `INSERT INTO aliases (namespace, run, turn, position, operation) VALUES ('acme', 'run', 9, 0, 4711)`, want: []string{`calls|call run 9.0 of namespace "acme"|not there`}},
		{name: "a call of another tenant's", script: `UPDATE aliases SET operation = (SELECT id FROM operations WHERE namespace = 'acme') WHERE turn = 3`, want: []string{`calls|call run 3.0|not there`}},
		{name: "a call of another claim", script: `UPDATE aliases SET operation = (SELECT id FROM operations WHERE turn = 4) WHERE turn = 3`, want: []string{`calls|call run 3.0|says otherwise`}},
		{name: "no call", script: `DELETE FROM aliases WHERE turn = 4`, want: []string{`claims|operation op_|no call means it`}},
		{name: "what an open call needs is forgotten", script: `INSERT INTO pruned VALUES ('', 5); DELETE FROM operations WHERE turn = 4`, want: []string{`calls|call run 4.0|has no output`}},
		{name: "an undo of nothing", script: `UPDATE operations SET undoes = 4711 WHERE undoes > 0`, want: []string{"undo|operation op_|not there"}},
		{name: "an undo that released nothing", script: `UPDATE operations SET state = 'done', released = 0 WHERE state = 'released'`, want: []string{"undo|operation op_|not released"}},
		{name: "a turn is missing", script: `DELETE FROM turns WHERE number = 2`, want: []string{"runs|run run|a turn is missing", "runs|output 1.2.0|not there"}},
		{name: "the last turn is missing", script: `DELETE FROM turns`, want: []string{"runs|output 1.1.0|not there"}},
		{name: "a run is missing", script: `DELETE FROM runs`, want: []string{"runs|turn 1.1|not there"}},
		{name: "finished and taken", script: undoConstraint + `UPDATE runs SET finished = 1`, want: []string{"runs|run run|somebody has it"}},
		{name: "finished without an answer", script: `DELETE FROM turns; DELETE FROM outputs; UPDATE runs SET finished = 1, owner = 0`, want: []string{"runs|run run|has no turn"}},
		{name: "forgotten, and there", script: `UPDATE runs SET finished = 1, owner = 0, forgotten = 1`, want: []string{"runs|run run|it was forgotten"}},
		{name: "an owner is missing", script: `DELETE FROM owners`, want: []string{"runs|run run|owner is not known", "claims|operation op_|owner is not known"}},
		{name: "no attempt", script: `UPDATE operations SET attempt = 0 WHERE turn = 4`, want: []string{"claims|operation op_|no attempt"}},
		{name: "no deadline", script: `UPDATE operations SET deadline = 0 WHERE turn = 4`, want: []string{"claims|operation op_|without a deadline"}},
		{name: "no key", script: `UPDATE operations SET key = NULL WHERE turn = 4`, want: []string{"claims|operation op_|without a downstream key"}},
		{name: "no token", script: `UPDATE operations SET token = '' WHERE turn = 4`, want: []string{"claims|operation op_|no token"}},
		{name: "settled and in doubt", script: `UPDATE operations SET settled_by = 'ann' WHERE state = 'in_doubt'`, want: []string{"settling|operation op_|a person has settled it"}},
		{name: "released by hand", script: undoConstraint + `UPDATE operations SET released = 7 WHERE state = 'released'`, want: []string{"states|operation op_|does not point to itself"}},
		{name: "a state that is none", script: undoConstraint + `UPDATE operations SET state = 'stuck' WHERE turn = 4`, want: []string{"states|operation op_|no state that there is"}},
		{name: "an approval by nobody", script: `UPDATE approvals SET state = 'approved'`, want: []string{"approvals|approval |nobody is named"}},
		{name: "spent on nothing", script: `UPDATE approvals SET state = 'spent', decided = 1`, want: []string{"approvals|approval |spent on no operation"}},
		{name: "nothing can be claimed", script: `DELETE FROM meta`, want: []string{"meta|row meta|nothing can be claimed"}},
		{name: "of a newer program", script: `PRAGMA user_version = 7`, want: []string{"version||newer toolonce: schema 7"}},
		{name: "of another program", script: `PRAGMA application_id = 7`, want: []string{"version||another program"}},
		{name: "an approval of no state", script: undoConstraint + `UPDATE approvals SET state = 'maybe'`, want: []string{"approvals|approval |no state that there is"}},
		{name: "with another journal", bend: func(t *testing.T, path string) {
			sqlite(t, path, `PRAGMA journal_mode = DELETE`)
			check(t, os.WriteFile(path+"-journal", nil, 0o600)) // somebody has it open
		}, want: []string{"settings|journal_mode|want \"wal\""}},
	} {
		t.Run(d.name, func(t *testing.T) {
			path := full(t)
			sound(t, path)
			if d.script != "" {
				sqlite(t, path, d.script)
			} else {
				d.bend(t, path)
			}
			before := sum(t, path)
			r := verified(t, path)
			if sum(t, path) != before {
				t.Error("the file is changed")
			}
			var said []string
			for _, f := range r.Findings {
				said = append(said, f.Check+"|"+f.Where+"|"+f.What)
				if strings.Contains(f.Where+f.What, "secret") {
					t.Error("it tells content:", f)
				}
			}
			for _, want := range d.want {
				if !slices.ContainsFunc(said, func(s string) bool { return inOrder(s, strings.Split(want, "|")) }) {
					t.Errorf("nothing says %q:\n%s", want, strings.Join(said, "\n"))
				}
			}
		})
	}
}

// inOrder reports whether a text has all the parts, one after the other.
func inOrder(s string, parts []string) bool {
	for _, p := range parts {
		_, after, ok := strings.Cut(s, p)
		if !ok {
			return false
		}
		s = after
	}
	return true
}

func sum(t *testing.T, path string) [32]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	check(t, err)
	return sha256.Sum256(b)
}

func TestVerifyWorksBesideWhoWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "once.db")
	s := open(t, path, nil)
	claimed(t, s, aClaim("run", 1)) // still in the log
	check(t, s.Transaction(func(run func(string) error) error {
		check(t, run(`UPDATE operations SET attempt = 0`)) // nobody else sees it
		sound(t, path)
		check(t, run(`UPDATE operations SET attempt = 1`))
		return nil
	}))
	sound(t, path)
	if _, won, err := s.Claim(t.Context(), aClaim("run", 2)); !won {
		t.Error("it does not write any more", err)
	}
}

func TestVerifyLeavesNothingBehindAndNeedsNoRightToWrite(t *testing.T) {
	path := full(t)
	dir := filepath.Dir(path)
	before := files(t, dir)
	sound(t, path)
	check(t, os.Chmod(path, 0o400))
	check(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { check(t, os.Chmod(dir, 0o700)) })
	sound(t, path)
	check(t, os.Chmod(dir, 0o700))
	after := files(t, dir)
	for name := range after {
		if _, ok := before[name]; !ok {
			t.Errorf("%s is left behind", name)
		}
	}
}

func TestVerifySaysWhyAFileCannotBeLookedAt(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{filepath.Join(dir, "none.db"): "no such file", dir: "directory", "": "name a file", ":memory:": "memory"} {
		if _, err := sqlitestore.Verify(t.Context(), path, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
	empty := filepath.Join(dir, "empty.db")
	for _, content := range []string{"", "x"} {
		check(t, os.WriteFile(empty, []byte(content), 0o600))
		if r := verified(t, empty); len(r.Findings) != 1 {
			t.Errorf("%q: %+v", content, r)
		}
	}
}
