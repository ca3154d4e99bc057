package pgstore_test

import (
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/agent/journal/journaltest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
)

// runs are one schema as several processes would use it, emptied each time.
func runs(t *testing.T) func(t *testing.T) journaltest.System { return runsAt(t, fresh(t)) }

func runsAt(t *testing.T, p place) func(t *testing.T) journaltest.System {
	p.open(t)
	return func(t *testing.T) journaltest.System {
		p.empty(t)
		return journaltest.System{
			Open:      func() journal.Journal { return p.open(t) },
			Kill:      func(j journal.Journal) { check(t, j.(*pgstore.Store).Die()) },
			Namespace: func(j journal.Journal, name string) journal.Journal { return j.(*pgstore.Store).Namespace(name) },
			Forget: func(j journal.Journal, run string) error {
				_, err := j.(*pgstore.Store).Forget(t.Context(), run, middleware.Act{By: "Ann"})
				return err
			},
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

func TestAQuestionAboutACallThatIsAnsweredIsClosed(t *testing.T) {
	s := fresh(t).open(t)
	c := aClaim("run", 1)
	_, err := s.Ask(t.Context(), middleware.Approval{Call: c.Call, Identity: c.Identity, Input: c.Input}, time.Hour)
	check(t, err)
	r, err := s.Begin(t.Context(), journal.Start{Run: registry.Run{ID: "run"}, API: "chat", Input: []byte("digest")})
	check(t, err)
	_, err = s.Append(t.Context(), journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 1, Answer: []byte("{}")}})
	check(t, err)
	for _, want := range []int{1, 0} {
		if all, err := s.Approvals(t.Context(), middleware.Pending); err != nil || len(all) != want {
			t.Errorf("%d are pending, want %d, %v", len(all), want, err)
		}
		if want == 1 { // a limit was in the way, and what the model is told of that is stored
			check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token, Turn: 1, Outputs: []journal.Output{{Content: "limit", Verdict: registry.Refused}}}))
		}
	}
}
