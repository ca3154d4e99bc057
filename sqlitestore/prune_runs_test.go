//go:build cgo

package sqlitestore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

func TestWhatWasSaidInAFinishedRunGoesNinetyDaysAfterItsEnd(t *testing.T) {
	s, now := open(t, t.TempDir()+"/once.db", nil), time.Now()
	at(s, now.Add(-100*day))
	long := begun(t, s, "long")
	at(s, now)
	_, err := s.Append(t.Context(), journal.Entry{Run: "long", Token: long.Token, Turn: journal.Turn{Number: 1, Answer: []byte(`{}`)}, Final: true})
	check(t, err)
	other := s.Namespace("other")
	for run, final := range map[string]bool{"finished": true, "going on": false} {
		for _, s := range []*sqlitestore.Store{s, other} {
			r, err := s.Begin(t.Context(), aStart(run))
			check(t, err)
			_, err = s.Append(t.Context(), journal.Entry{Run: run, Token: r.Token, Turn: journal.Turn{Number: 1, Answer: []byte(`{}`)}, Final: final})
			check(t, err)
			if !final {
				check(t, s.Leave(t.Context(), journal.Leaving{Run: run, Token: r.Token}))
			}
		}
	}
	for _, c := range []struct{ days, gone int }{{89, 0}, {91, 2}, {92, 0}} {
		at(s, now.Add(time.Duration(c.days)*day))
		for _, dry := range []bool{true, false} {
			if r, err := s.Prune(t.Context(), middleware.PruneOptions{DryRun: dry}); err != nil || r.Runs != c.gone {
				t.Errorf("after %d days %d have gone (dry %v), want %d, %v", c.days, r.Runs, dry, c.gone, err)
			}
		}
	}
	if _, err := s.Begin(t.Context(), aStart("finished")); !errors.Is(err, journal.ErrForgotten) {
		t.Errorf("the run that was forgotten is begun with %v", err)
	}
	if r, err := other.Begin(t.Context(), aStart("finished")); err != nil || !r.Finished || len(r.Turns) != 1 {
		t.Errorf("another tenant's: %+v, %v", r, err)
	}
	if r, err := s.Begin(t.Context(), aStart("going on")); err != nil || len(r.Turns) != 1 {
		t.Errorf("the one that is not finished: %+v, %v", r, err)
	}
}
