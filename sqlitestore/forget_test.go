//go:build cgo

package sqlitestore_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

var byAnn = middleware.Act{By: "Ann", Why: "the customer asked"}

// talked is a run whose every text has the word in it: two turns, a payment of an order, a question, and an answer. Its texts
// are of some length, as they are in life.
func talked(t *testing.T, s *sqlitestore.Store, run, order, word string) {
	t.Helper()
	long := strings.Repeat(word+" ", 500)
	tools := registry.New()
	registry.Add(tools, registry.Tool[card, string]{
		Name: "pay", Effect: registry.NonIdempotentWrite,
		Run: func(context.Context, card) (string, error) { return long, nil },
	})
	r := begun(t, s, run)
	answer := func(n int, final bool, outputs ...journal.Output) {
		b, err := json.Marshal(long)
		check(t, err)
		_, err = s.Append(t.Context(), journal.Entry{Run: run, Token: r.Token, Turn: journal.Turn{Number: n, Answer: b}, Outputs: outputs, Final: final})
		check(t, err)
	}
	answer(1, false)
	arguments, err := json.Marshal(card{Order: order, Note: word})
	check(t, err)
	_, err = tools.Handler(middleware.Once(s, nil))(t.Context(), &registry.Call{Run: registry.Run{ID: run}, Turn: 1, Tool: "pay", Arguments: string(arguments)})
	check(t, err)
	_, err = s.Ask(t.Context(), middleware.Approval{Call: middleware.Alias{Run: run, Turn: 1, Position: 1, Tool: "pay", Fingerprint: "f"}, Identity: "i" + order, Input: []byte(word)}, time.Hour)
	check(t, err)
	answer(2, true, journal.Output{Content: long, Verdict: registry.Executed})
}

func TestWhatWasForgottenIsInNoFileAndIsNotDoneAgain(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, nil)
	for i := range 20 {
		word := "kept"
		if i == 7 {
			word = "4242"
		}
		talked(t, s, fmt.Sprint("run-", i), fmt.Sprint(i), word)
	}
	in := func(word string) (n int) {
		for _, file := range []string{path, path + "-wal"} {
			b, err := os.ReadFile(file)
			if !errors.Is(err, os.ErrNotExist) {
				check(t, err)
			}
			n += bytes.Count(b, []byte(word))
		}
		return n
	}
	if in("4242") == 0 {
		t.Fatal("the test looks in the wrong place")
	}
	kept := in("kept kept")
	want := middleware.ForgetReport{Turns: 2, Outputs: 1, Operations: 1, Approvals: 1}
	for _, forget := range []func() (middleware.ForgetReport, error){
		func() (middleware.ForgetReport, error) { return s.Forgettable(t.Context(), "run-7") },
		func() (middleware.ForgetReport, error) { return s.Forget(t.Context(), "run-7", byAnn) },
	} {
		got, err := forget()
		check(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if n := in("4242"); n != 0 {
		t.Errorf("the files still have what was erased, %d times", n)
	}
	if kept == 0 || in("kept kept") == 0 {
		t.Error("what was not erased has gone")
	}

	handle, ran := paying(s)
	again := payCall("run-99")
	again.Arguments = `{"order":"7","note":"4242"}`
	for _, c := range []*registry.Call{again, {Run: registry.Run{ID: "run-7"}, Turn: 1, Tool: "pay", Arguments: again.Arguments}} {
		res, err := handle(t.Context(), c)
		check(t, err)
		if *ran != 0 || res.Verdict != registry.AlreadyDone || strings.Contains(res.Content, "4242") || !strings.Contains(res.Content, "not kept") {
			t.Errorf("%s was told %s %s, and the tool has run %d times", c.Run.ID, res.Verdict, res.Content, *ran)
		}
	}
	if _, err := s.Begin(t.Context(), aStart("run-7")); !errors.Is(err, journal.ErrForgotten) {
		t.Errorf("the run is begun again: %v", err)
	}
	acts, err := s.AllActs(t.Context())
	check(t, err)
	check(t, middleware.CheckActs(acts))
	if len(acts) != 1 || acts[0].Kind != middleware.ActForgot || acts[0].Target != "run-7" || acts[0].By != "Ann" || acts[0].Why != byAnn.Why {
		t.Errorf("the acts are %+v", acts)
	}
	report, err := sqlitestore.Verify(t.Context(), path, nil)
	check(t, err)
	if len(report.Findings) > 0 {
		t.Errorf("the store is not sound: %v", report.Findings)
	}
}

func TestARunThatSomebodyLivesAtIsNotForgotten(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s, other := open(t, path, nil), open(t, path, nil)
	r := begun(t, s, "run")
	appended(t, s, r, 1)
	for name, store := range map[string]*sqlitestore.Store{"its process": s, "another": other} {
		if _, err := store.Forget(t.Context(), "run", byAnn); !errors.Is(err, journal.ErrRunTaken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	appended(t, s, r, 2)
	check(t, s.LoseLock())
	if _, err := other.Forget(t.Context(), "run", byAnn); !errors.Is(err, journal.ErrRunTaken) || !strings.Contains(err.Error(), "DeclareGone") {
		t.Errorf("nothing shows whether its process lives: %v", err)
	}
	s.Die()
	check(t, other.DeclareGone(t.Context(), s.Owner()))
	got, err := other.Forget(t.Context(), "run", byAnn)
	check(t, err)
	if diff := cmp.Diff(middleware.ForgetReport{Turns: 2, Ended: true}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhereTheLogCannotBeEmptiedForgettingSaysSoAndCanBeRepeated(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, &sqlitestore.Options{WriteTimeout: 1})
	talked(t, s, "run", "1", "4242")
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	check(t, err)
	defer func() { check(t, db.Close()) }()
	tx, err := db.BeginTx(t.Context(), nil)
	check(t, err)
	var n int
	check(t, tx.QueryRowContext(t.Context(), `SELECT count(*) FROM turns`).Scan(&n))
	got, err := s.Forget(t.Context(), "run", byAnn)
	if !errors.Is(err, sqlitestore.ErrBusy) || got.Turns != 2 {
		t.Errorf("while somebody reads an older state: %+v, %v", got, err)
	}
	check(t, tx.Rollback())
	got, err = s.Forget(t.Context(), "run", byAnn)
	check(t, err)
	log, err := os.ReadFile(path + "-wal")
	check(t, err)
	if len(log) > 0 || got != (middleware.ForgetReport{}) {
		t.Errorf("afterwards: %+v, and the log has %d bytes", got, len(log))
	}
}

func TestForgettingIsWholeOrAbsent(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	talked(t, s, "run", "1", "4242")
	check(t, s.Write(`CREATE TRIGGER spoil BEFORE INSERT ON acts BEGIN SELECT RAISE(ABORT, 'spoilt'); END`))
	if got, err := s.Forget(t.Context(), "run", byAnn); err == nil {
		t.Fatalf("an act that was not recorded: %+v", got)
	}
	r := begun(t, s, "run")
	if rows, err := s.List(t.Context(), nil, 0); err != nil || !r.Finished || len(r.Turns) != 2 || !rows[0].HasResult {
		t.Errorf("after it: %v, %+v, %+v", err, r, rows)
	}
}
