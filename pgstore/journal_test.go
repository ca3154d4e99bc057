package pgstore_test

import (
	"testing"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/agent/journal/journaltest"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
)

// runs are one schema as several processes would use it, emptied each time.
func runs(t *testing.T) func(t *testing.T) journaltest.System {
	p := fresh(t)
	p.open(t)
	return func(t *testing.T) journaltest.System {
		p.empty(t)
		return journaltest.System{
			Open:      func() journal.Journal { return p.open(t) },
			Kill:      func(j journal.Journal) { check(t, j.(*pgstore.Store).Die()) },
			Namespace: func(j journal.Journal, name string) journal.Journal { return j.(*pgstore.Store).Namespace(name) },
		}
	}
}

func TestStoreKeepsTheContractOfAJournal(t *testing.T) { journaltest.Run(t, runs(t)) }

func aStart(run string) journal.Start {
	return journal.Start{Run: registry.Run{ID: run}, API: "chat", Input: []byte("digest")}
}

func begun(tb testing.TB, s *pgstore.Store, run string) journal.Record {
	tb.Helper()
	r, err := s.Begin(tb.Context(), aStart(run))
	check(tb, err)
	return r
}

func appended(tb testing.TB, s *pgstore.Store, r journal.Record, turn int, outputs ...journal.Output) {
	tb.Helper()
	_, err := s.Append(tb.Context(), journal.Entry{Run: r.Run.ID, Token: r.Token, Turn: journal.Turn{Number: turn, Answer: []byte("{}")}, Outputs: outputs})
	check(tb, err)
}
