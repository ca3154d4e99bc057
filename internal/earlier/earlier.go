// Package earlier looks at a store that a program of an earlier version has left: tests of the stores have one of each
// version of their schema, all with the same in it.
package earlier

import (
	"testing"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// Store is the namespace "acme" of one.
type Store interface {
	middleware.Ledger
	middleware.Lister
	middleware.Approver
	middleware.Recorder
	journal.Journal
}

// Check fails where anything has not been kept: one operation running, one in doubt, one free, one released and three done,
// two runs, an approval and two acts.
func Check(t *testing.T, s Store) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	rows, err := s.List(t.Context(), nil, 0)
	check(err)
	states := map[middleware.State]int{}
	for _, r := range rows {
		states[r.State]++
		if r.State == middleware.Done && (string(r.Input) != `{"order":"1001"}` || r.Result != `{"id":"re_1"}`) {
			t.Errorf("%s has input %q and result %q", r.Operation, r.Input, r.Result)
		}
	}
	if len(rows) != 7 || states[middleware.Done] != 3 || states[middleware.Running] != 1 || states[middleware.InDoubt] != 1 ||
		states[middleware.Free] != 1 || states[middleware.Released] != 1 {
		t.Errorf("%v", states)
	}
	first, ok, err := s.Find(t.Context(), middleware.Query{Run: "run-1", Turn: 1})
	if err != nil || !ok || first.State != middleware.Done || first.Found == nil {
		t.Errorf("the first call: %+v, %v", first, err)
	}
	for run, turns := range map[string]int{"run-1": 1, "run-2": 2} {
		r, err := s.Begin(t.Context(), journal.Start{Run: registry.Run{ID: run, Conversation: "chat-7"}, API: "chat", Input: []byte("digest of " + run)})
		if err != nil || len(r.Turns) != turns || r.Finished != (run == "run-2") || len(r.Turns[0].Outputs) != 1 {
			t.Errorf("%s: %+v, %v", run, r, err)
		}
	}
	asked, err := s.Approvals(t.Context())
	if err != nil || len(asked) != 1 || asked[0].State != middleware.Approved || string(asked[0].Input) != `{"order":"1009"}` {
		t.Errorf("approvals: %+v, %v", asked, err)
	}
	acts, err := s.AllActs(t.Context())
	check(err)
	if check(middleware.CheckActs(acts)); len(acts) != 2 {
		t.Errorf("%d acts, want 2", len(acts))
	}
}
