package pgstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
)

var byAnn = middleware.Act{By: "Ann", Why: "the customer asked"}

func TestWhatWasForgottenIsInNoTable(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	for run, word := range map[string]string{"run": "4242", "another": "kept"} {
		r := begun(t, s, run)
		c := aClaim(run, 1)
		c.Input = []byte("input-" + word)
		row := claimed(t, s, c)
		_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "result-" + word, HasResult: true})
		check(t, err)
		q := aClaim(run, 2)
		_, err = s.Ask(t.Context(), middleware.Approval{Call: q.Call, Identity: q.Identity, Input: c.Input}, 1e12)
		check(t, err)
		_, err = s.Append(t.Context(), journal.Entry{Run: run, Token: r.Token, Turn: journal.Turn{Number: 1, Answer: json.RawMessage(`"answer-` + word + `"`)}})
		check(t, err)
		check(t, s.Leave(t.Context(), journal.Leaving{Run: run, Token: r.Token, Turn: 1, Outputs: []journal.Output{{Content: "output-" + word, Verdict: registry.Executed}}}))
	}
	conn, err := pgx.Connect(t.Context(), p.dsn)
	check(t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	in := func(word, hex string) (n int) {
		for _, table := range []string{"operations", "aliases", "approvals", "runs", "turns", "outputs", "acts"} {
			var m int
			check(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM `+quoted(p.schema, table)+` AS t WHERE t::text LIKE '%' || $1 || '%' OR t::text LIKE '%' || $2 || '%'`, word, hex).Scan(&m))
			n += m
		}
		return n
	}
	if n := in("4242", "34323432"); n != 4 {
		t.Fatalf("the test looks in the wrong place: %d rows", n)
	}
	want := middleware.ForgetReport{Turns: 1, Outputs: 1, Operations: 1, Approvals: 1, Ended: true}
	for _, forget := range []func() (middleware.ForgetReport, error){
		func() (middleware.ForgetReport, error) { return s.Forgettable(t.Context(), "run") },
		func() (middleware.ForgetReport, error) { return s.Forget(t.Context(), "run", byAnn) },
	} {
		got, err := forget()
		check(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if n, kept := in("4242", "34323432"), in("kept", "6b657074"); n != 0 || kept != 4 {
		t.Errorf("%d rows have what was erased, %d what was not", n, kept)
	}
	acts, err := s.AllActs(t.Context())
	check(t, err)
	check(t, middleware.CheckActs(acts))
	if len(acts) != 1 || acts[0].Kind != middleware.ActForgot || acts[0].Target != "run" || acts[0].By != "Ann" {
		t.Errorf("the acts are %+v", acts)
	}
	report, err := pgstore.Verify(t.Context(), p.dsn, p.options(pgstore.Options{}))
	check(t, err)
	if len(report.Findings) > 0 {
		t.Errorf("the store is not sound: %v", report.Findings)
	}
}

func TestARunThatSomebodyLivesAtIsNotForgotten(t *testing.T) {
	p := fresh(t)
	s, other := p.open(t), p.open(t)
	r := begun(t, s, "run")
	for name, store := range map[string]*pgstore.Store{"its process": s, "another": other} {
		if _, err := store.Forget(t.Context(), "run", byAnn); !errors.Is(err, journal.ErrRunTaken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	appended(t, s, r, 1)
	check(t, s.Die())
	got, err := other.Forget(t.Context(), "run", byAnn)
	check(t, err)
	if diff := cmp.Diff(middleware.ForgetReport{Turns: 1, Ended: true}, got); diff != "" {
		t.Error(diff)
	}
}

func TestForgettingIsWholeOrAbsent(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	r := begun(t, s, "run")
	appended(t, s, r, 1)
	check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token}))
	statement(t, p.dsn, `ALTER TABLE `+quoted(p.schema, "acts")+` ADD CHECK (kind <> 'forgot')`)
	if _, err := s.Forget(t.Context(), "run", byAnn); err == nil || strings.Contains(err.Error(), "customer") {
		t.Errorf("an act that cannot be recorded: %v", err)
	}
	if r := begun(t, s, "run"); len(r.Turns) != 1 {
		t.Errorf("after it the run is %+v", r)
	}
}
