package pgstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/agent/journal/journaltest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
)

func verified(tb testing.TB, p place) pgstore.Report {
	tb.Helper()
	r, err := pgstore.Verify(tb.Context(), p.dsn, p.options(pgstore.Options{}))
	check(tb, err)
	return r
}

// sound wants nothing to be found.
func sound(tb testing.TB, p place) {
	tb.Helper()
	if r := verified(tb, p); len(r.Findings) > 0 || r.Schema != pgstore.SchemaVersion() || len(r.Checks) < 10 {
		tb.Errorf("%+v", r)
	}
}

func TestStoreThatSealsKeepsTheContractsAndVerifyFindsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs both contracts")
	}
	p := sealing(t, fresh(t), 1)
	p.open(t)
	kept := func(t *testing.T, name string, err error) {
		t.Helper()
		if err != nil && !strings.HasPrefix(name, "namespaces/") { // whose names are other ones here
			t.Error(err)
		}
	}
	for _, c := range ledgertest.Cases() { // each as a tenant
		t.Run(c.Name, func(t *testing.T) {
			kept(t, c.Name, c.Check(t.Context(), ledgertest.System{
				Open: func() middleware.Ledger { return p.open(t).Namespace(c.Name) },
				Kill: func(l middleware.Ledger) { check(t, l.(*pgstore.Store).Die()) },
				Namespace: func(l middleware.Ledger, name string) middleware.Ledger {
					return l.(*pgstore.Store).Namespace(c.Name + ", " + name)
				},
			}))
		})
	}
	for _, c := range journaltest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			kept(t, c.Name, c.Check(t.Context(), journaltest.System{
				Open: func() journal.Journal { return p.open(t).Namespace(c.Name) },
				Kill: func(j journal.Journal) { check(t, j.(*pgstore.Store).Die()) },
				Namespace: func(j journal.Journal, name string) journal.Journal {
					return j.(*pgstore.Store).Namespace(c.Name + ", " + name)
				},
				Forget: func(j journal.Journal, run string) error {
					_, err := j.(*pgstore.Store).Forget(t.Context(), run, middleware.Act{By: "Ann"})
					return err
				},
			}))
		})
	}
	sound(t, p)
}

// full is a schema with some of everything.
func full(t *testing.T) place {
	t.Helper()
	p := fresh(t)
	s := p.open(t)
	done := func(l *pgstore.Store, c middleware.Claim) middleware.Row {
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
	return p
}

func TestVerifyNamesEachDamage(t *testing.T) {
	for _, d := range []struct {
		name, script string
		want         []string // CHECK|WHERE|WHAT, parts of findings
	}{
		{"an index is missing", `DROP INDEX @runs_open`, []string{"schema|index runs_open|missing"}},
		{"an index is another", `DROP INDEX @operations_identity; CREATE INDEX operations_identity ON @operations (namespace, identity, released)`, []string{"schema|index operations_identity|UNIQUE"}},
		{"a column is another", `ALTER TABLE @operations ALTER attempt TYPE bigint, ALTER late DROP NOT NULL`, []string{"schema|column operations.attempt|bigint", "schema|column operations.late|NOT NULL"}},
		{"a rule is missing", `ALTER TABLE @runs DROP CONSTRAINT runs_check`, []string{"schema|constraint of runs|missing"}},
		{"a table is missing", `DROP TABLE @outputs`, []string{"schema|table outputs|missing", "runs||does not exist"}},
		{"a table does not last", `ALTER TABLE @turns SET UNLOGGED`, []string{"schema|table turns|unlogged"}},
		{"a table too many", `CREATE TABLE @notes (x int)`, []string{"schema|table notes|none of toolonce's"}},
		{"a state by hand, done", `UPDATE @operations SET state = 'done' WHERE state = 'in_doubt'`, []string{"states|operation op_|no time when it was done"}},
		{"a state by hand, again", `UPDATE @operations SET state = 'running' WHERE namespace = 'acme'`, []string{`states|operation op_|of namespace "acme"|has a time when it was done`}},
		{"two live rows", `DROP INDEX @operations_identity; INSERT INTO @operations SELECT (jsonb_populate_record(o, jsonb_build_object('id', id + 1, 'turn', 9))).* FROM @operations AS o WHERE state = 'in_doubt'`,
			[]string{"one live row|identity |may happen twice", "schema|index operations_identity|missing"}},
		{"a call of nothing", `UPDATE @aliases SET operation = 4711 WHERE namespace = 'acme'`, []string{`calls|call run 1.0 of namespace "acme"|not there`}},
		{"a call of another tenant's", `UPDATE @aliases SET operation = (SELECT id FROM @operations WHERE namespace = 'acme') WHERE turn = 3`, []string{`calls|call run 3.0|not there`}},
		{"no call", `DELETE FROM @aliases WHERE turn = 4`, []string{`claims|operation op_|no call means it`}},
		{"what an open call needs is forgotten", `INSERT INTO @pruned VALUES ('', 5); DELETE FROM @operations WHERE turn = 4`, []string{`calls|call run 4.0|has no output`}},
		{"an undo of nothing", `UPDATE @operations SET undoes = 4711 WHERE undoes > 0`, []string{"undo|operation op_|not there"}},
		{"an undo that released nothing", `UPDATE @operations SET state = 'done', released = 0 WHERE state = 'released'`, []string{"undo|operation op_|not released"}},
		{"a turn is missing", `DELETE FROM @turns WHERE number = 2`, []string{"runs|run run|a turn is missing", "runs|output |not there"}},
		{"a run is missing", `DELETE FROM @runs`, []string{"runs|turn |not there"}},
		{"finished and taken", `ALTER TABLE @runs DROP CONSTRAINT runs_check; UPDATE @runs SET finished = true, owner = 1`, []string{"runs|run run|somebody has it"}},
		{"finished without an answer", `DELETE FROM @turns; DELETE FROM @outputs; UPDATE @runs SET finished = true, owner = 0`, []string{"runs|run run|has no turn"}},
		{"forgotten, and there", `UPDATE @runs SET finished = true, owner = 0, forgotten = true`, []string{"runs|run run|it was forgotten"}},
		{"no attempt", `UPDATE @operations SET attempt = 0 WHERE turn = 4`, []string{"claims|operation op_|no attempt"}},
		{"no deadline", `UPDATE @operations SET deadline = '-infinity' WHERE turn = 4`, []string{"claims|operation op_|without a deadline"}},
		{"no key", `UPDATE @operations SET key = NULL WHERE turn = 4`, []string{"claims|operation op_|without a downstream key"}},
		{"no token", `UPDATE @operations SET token = '' WHERE turn = 4`, []string{"claims|operation op_|no token"}},
		{"settled and in doubt", `UPDATE @operations SET settled_by = 'ann' WHERE state = 'in_doubt'`, []string{"settling|operation op_|a person has settled it"}},
		{"released by hand", `UPDATE @operations SET released = 7 WHERE state = 'released'`, []string{"states|operation op_|does not point to itself"}},
		{"an approval by nobody", `UPDATE @approvals SET state = 'approved'`, []string{"approvals|approval |nobody is named"}},
		{"of a newer program", `UPDATE @meta SET version = 7`, []string{"version||newer toolonce: version 7"}},
		{"of another program", `DELETE FROM @meta`, []string{"version||another program"}},
	} {
		t.Run(d.name, func(t *testing.T) {
			p := full(t)
			sound(t, p)
			statement(t, p.dsn, strings.ReplaceAll(d.script, "@", quoted(p.schema)+"."))
			var said []string
			for _, f := range verified(t, p).Findings {
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

func TestVerifySaysWhyASchemaCannotBeLookedAt(t *testing.T) {
	p := fresh(t)
	if _, err := pgstore.Verify(t.Context(), p.dsn, p.options(pgstore.Options{})); err == nil || !strings.Contains(err.Error(), "there is no such schema") {
		t.Error(err)
	}
	if _, err := pgstore.Verify(t.Context(), "postgres://nobody:hidden@127.0.0.1:1/x", nil); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
}

func TestVerifyTellsASettingThatLosesCommits(t *testing.T) {
	p := full(t)
	p.dsn += "&synchronous_commit=off"
	if r := verified(t, p); len(r.Findings) != 1 || r.Findings[0].Check != "settings" {
		t.Errorf("%+v", r)
	}
}
