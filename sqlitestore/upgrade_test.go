//go:build cgo

package sqlitestore_test

import (
	"database/sql"
	"fmt"
	"os"
	"testing"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

// TestAFileOfEverySchemaOpensAndKeepsAllThatIsInIt has a file of each version, as the program of that time left it: one
// operation running, one in doubt, one free, one released and three done, two runs, an approval and two acts. A version
// that has been released is not changed any more: the next one gets a migration and a file here.
func TestAFileOfEverySchemaOpensAndKeepsAllThatIsInIt(t *testing.T) {
	for version := 1; version <= sqlitestore.SchemaVersion(); version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			path := t.TempDir() + "/once.db"
			restore(t, path, version)
			s := open(t, path, &sqlitestore.Options{MustExist: true}).Namespace("acme")
			report, err := sqlitestore.Verify(t.Context(), path, nil)
			check(t, err)
			for _, f := range report.Findings {
				t.Errorf("%+v", f)
			}
			rows, err := s.List(t.Context(), nil, 0)
			check(t, err)
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
			if err != nil || !ok || first.State != middleware.Done || first.Result != `{"id":"re_1"}` {
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
			check(t, err)
			if check(t, middleware.CheckActs(acts)); len(acts) != 2 {
				t.Errorf("%d acts, want 2", len(acts))
			}
			if row := claimed(t, s, aClaim("new", 1)); row.State != middleware.Running {
				t.Errorf("a new claim is %s", row.State)
			}
		})
	}
}

// restore makes the file of a version.
func restore(t *testing.T, path string, version int) {
	t.Helper()
	dump, err := os.ReadFile(fmt.Sprintf("testdata/v%d.sql", version))
	check(t, err)
	db, err := sql.Open("sqlite3", path)
	check(t, err)
	defer func() { check(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), string(dump)+fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", 0x6f6e6365, version))
	check(t, err)
}
