package pgstore_test

import (
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
)

// lapsed is an operation that is done and has expired.
func lapsed(t *testing.T, p place, s *pgstore.Store, c middleware.Claim) middleware.Row {
	t.Helper()
	c.Keep = time.Hour
	row := claimed(t, s, c)
	_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1, Result: "1", HasResult: true})
	check(t, err)
	statement(t, p.dsn, "UPDATE "+quoted(p.schema, "operations")+" SET expires = statement_timestamp() - interval '1 second' WHERE identity = decode($1, 'hex')", c.Identity)
	return found(t, s, row.Operation)
}

func TestAnExpiredOperationStaysWhileARunHasNotStoredWhatItsCallWasTold(t *testing.T) {
	told := journal.Output{Position: 0, Content: "1", Verdict: registry.Executed}
	for _, c := range []struct {
		name string
		does func(s *pgstore.Store, r journal.Record)
		won  bool
	}{
		{"stored with the next turn", func(s *pgstore.Store, r journal.Record) { appended(t, s, r, 2, told) }, true},
		{"stored when the run was left", func(s *pgstore.Store, r journal.Record) {
			check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token, Turn: 1, Outputs: []journal.Output{told}}))
		}, true},
		{"of a run that is finished", func(s *pgstore.Store, r journal.Record) {
			_, err := s.Append(t.Context(), journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 2}, Final: true})
			check(t, err)
		}, true},
		{"of a run that goes on", func(*pgstore.Store, journal.Record) {}, false},
		{"of a run that was left", func(s *pgstore.Store, r journal.Record) {
			check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token}))
		}, false},
		{"with only another call's output stored", func(s *pgstore.Store, r journal.Record) {
			other := told
			other.Position = 1
			appended(t, s, r, 2, other)
		}, false},
		{"with only another turn's output stored", func(s *pgstore.Store, r journal.Record) {
			appended(t, s, r, 2)
			appended(t, s, r, 3, told)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := fresh(t)
			s := p.open(t)
			r := begun(t, s, "run")
			appended(t, s, r, 1)
			begun(t, s, "another run")
			claimed(t, s, aClaim("another run", 1)) // whose call means another operation
			first := aClaim("run", 1)
			row := lapsed(t, p, s, first)
			begun(t, s.Namespace("other"), "own loop") // and another tenant's run is not that of a loop without a journal
			_, err := s.Note(t.Context(), row.Operation, middleware.Alias{Run: "own loop", Turn: 2})
			check(t, err)
			c.does(s, r)
			again := aClaim("own loop", 1)
			again.Identity, again.Seen = first.Identity, row
			got, won, err := s.Claim(t.Context(), again)
			check(t, err)
			if won != c.won || !won && got.Operation != row.Operation {
				t.Errorf("won %v, want %v; the row is %s", won, c.won, got.Operation)
			}
		})
	}
}
