//go:build cgo

package sqlitestore_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

const day = 24 * time.Hour

// brief is a claim whose content is kept no longer than a moment.
func brief(run string, turn int) middleware.Claim {
	c := aClaim(run, turn)
	c.Retain = 1
	return c
}

func completed(tb testing.TB, s *sqlitestore.Store, c middleware.Claim) middleware.Row {
	tb.Helper()
	row := claimed(tb, s, c)
	row, err := s.Change(tb.Context(), middleware.Transition{
		Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "result", HasResult: true,
	})
	check(tb, err)
	return row
}

// prune forgets so much, and so many that are needed stay.
func prune(tb testing.TB, s *sqlitestore.Store, contents, identities, needed int) middleware.PruneReport {
	tb.Helper()
	r, err := s.Prune(tb.Context(), middleware.PruneOptions{})
	check(tb, err)
	if r.Contents != contents || r.Identities != identities || r.Needed != needed {
		tb.Errorf("%+v, want %d contents, %d identities, %d needed", r, contents, identities, needed)
	}
	return r
}

// at sets the store's clock.
func at(s *sqlitestore.Store, t time.Time) { s.SetClock(func() time.Time { return t }) }

func TestWhatARunHasNotStoredTheOutputOfStaysWhole(t *testing.T) {
	for name, keep := range map[string]time.Duration{"for ever": 0, "for a moment": 1} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir()+"/once.db", nil)
			r := begun(t, s, "run")
			appended(t, s, r, 1)
			c := brief("run", 1)
			c.Keep = keep
			row := completed(t, s, c)
			c = brief("own loop", 1)
			c.Keep = keep
			other := completed(t, s, c)
			_, err := s.Note(t.Context(), other.Operation, middleware.Alias{Run: "run", Turn: 1, Position: 1}) // a repeat counts too
			check(t, err)
			c = brief("another loop", 1) // which nobody needs
			c.Keep = keep
			completed(t, s, c)
			prune(t, s, btoi(keep == 0), btoi(keep > 0), 2)
			if diff := cmp.Diff(row, found(t, s, row.Operation), ignoring); diff != "" {
				t.Error(diff)
			}
			check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token, Turn: 1, Outputs: []journal.Output{{Content: "result", Verdict: registry.Executed}}}))
			prune(t, s, btoi(keep == 0), btoi(keep > 0), 1)
			r = begun(t, s, "run")
			_, err = s.Append(t.Context(), journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 2}, Final: true})
			check(t, err)
			prune(t, s, btoi(keep == 0), btoi(keep > 0), 0)
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

var ignoring = cmp.FilterPath(func(p cmp.Path) bool { return slices.Contains([]string{"Now"}, p.Last().String()[1:]) }, cmp.Ignore())

// What was seen to be over is seen again in the statement that forgets it: while that waits for its turn, others write.
func TestWhatHasChangedSinceItWasFoundStays(t *testing.T) {
	again := func(t *testing.T, s *sqlitestore.Store, row middleware.Row) {
		c := aClaim("another run", 1)
		c.Identity, c.Seen = row.Identity, row
		claimed(t, s, c)
	}
	for name, c := range map[string]struct {
		free bool
		does func(t *testing.T, s *sqlitestore.Store, row middleware.Row)
		gone bool // the old row, and not by pruning
	}{
		"claimed over":                      {does: again, gone: true},
		"a free one that was claimed again": {free: true, does: again},
		"a repeat of an unfinished run": {does: func(t *testing.T, s *sqlitestore.Store, row middleware.Row) {
			r := begun(t, s, "run")
			appended(t, s, r, 1)
			_, err := s.Note(t.Context(), row.Operation, middleware.Alias{Run: "run", Turn: 1})
			check(t, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/once.db"
			s, other := open(t, path, nil), open(t, path, nil)
			first := brief("own loop", 1)
			first.Keep, first.Deadline = 1, 1
			row := claimed(t, s, first)
			step := middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1, Result: "result", HasResult: true}
			if c.free {
				step.Step = middleware.GiveBack
			}
			_, err := s.Change(t.Context(), step)
			check(t, err)
			row = found(t, s, row.Operation)
			done := make(chan error, 1)
			var report middleware.PruneReport
			check(t, s.KeepWriter(func() {
				go func() {
					var err error
					report, err = s.Prune(context.WithoutCancel(t.Context()), middleware.PruneOptions{})
					done <- err
				}()
				for s.Waiting() == 0 && len(done) == 0 {
					runtime.Gosched()
				}
				c.does(t, other, row)
			}))
			check(t, <-done)
			if report.Identities != 0 || report.Contents != 0 {
				t.Errorf("%+v", report)
			}
			_, known, err := s.Find(t.Context(), middleware.Query{Operation: row.Operation})
			check(t, err)
			if known == c.gone {
				t.Errorf("the row is known: %v", known)
			}
			if now, ok, err := s.Find(t.Context(), middleware.Query{Identity: row.Identity}); !ok || err != nil || len(now.Input) == 0 {
				t.Errorf("the identity is known: %v, with %d bytes of input, %v", ok, len(now.Input), err)
			}
		})
	}
}

func TestEachToolsContentIsKeptForItsTimeToTheMoment(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	start := time.Now()
	at(s, start)
	for turn, retain := range []time.Duration{0, day, 400 * day} {
		c := aClaim("run", turn+1)
		c.Retain = retain
		completed(t, s, c)
	}
	for _, c := range []struct {
		at       time.Duration
		contents int
	}{{day - 1, 0}, {day, 1}, {90*day - 1, 0}, {90 * day, 1}, {400*day - 1, 0}, {400 * day, 1}, {1000 * day, 0}} {
		at(s, start.Add(c.at))
		prune(t, s, c.contents, 0, 0)
	}
	for turn := range 3 {
		if row, ok, err := s.Find(t.Context(), middleware.Query{Run: "run", Turn: turn + 1}); !ok || err != nil || row.State != middleware.Done || row.HasResult {
			t.Errorf("turn %d: %v %v, %s", turn+1, ok, err, row.State)
		}
	}
}

func TestTheNextPruneBeginsWhereSomethingIsLeft(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	start := time.Now()
	below := func(want int64) {
		t.Helper()
		if id, err := s.Below(); err != nil || id != want {
			t.Errorf("pruned below %d, want %d, %v", id, want, err)
		}
	}
	at(s, start)
	completed(t, s, brief("run", 1))
	at(s, start.Add(day))
	open := claimed(t, s, brief("run", 2))
	at(s, start.Add(2*day))
	completed(t, s, brief("run", 3))
	at(s, start.Add(10*day))
	prune(t, s, 2, 0, 0)
	below(sqlitestore.IDOf(open.Operation))
	_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: open.Operation, Token: open.Token, Result: "late", HasResult: true})
	check(t, err)
	at(s, start.Add(11*day))
	prune(t, s, 1, 0, 0)
	if id, err := s.Below(); err != nil || id <= sqlitestore.IDOf(open.Operation) {
		t.Errorf("pruned below %d, %v", id, err)
	}
	at(s, start) // should the clock be set back, what is claimed is found all the same
	late := completed(t, s, brief("run", 4))
	if id, err := s.Below(); err != nil || sqlitestore.IDOf(late.Operation) < id {
		t.Errorf("%s is below %d, %v", late.Operation, id, err)
	}
	at(s, start.Add(20*day))
	prune(t, s, 1, 0, 0)
	c := brief("run", 5)
	c.Keep = 30 * day
	completed(t, s, c)
	at(s, start.Add(40*day))
	prune(t, s, 1, 0, 0)
	at(s, start.Add(50*day))
	prune(t, s, 0, 1, 0)
	completed(t, s, brief("run", 6))
	at(s, start.Add(50*day+time.Hour))
	prune(t, s, 1, 0, 0)
	if id, err := s.Below(); err != nil || id > start.Add(49*day+time.Hour).UnixMilli()<<21 {
		t.Errorf("pruned below %d, which is less than a day ago, %v", id, err)
	}
}

func TestApprovalsGoNinetyDaysAfterTheirDate(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	start := time.Now()
	at(s, start)
	ask := func(run string) {
		c := aClaim(run, 1)
		a, err := s.Ask(t.Context(), middleware.Approval{Call: c.Call, Identity: c.Identity, Input: c.Input}, time.Hour)
		check(t, err)
		if run == "denied" || run == "going on" {
			_, err = s.Decide(t.Context(), middleware.Decision{Run: run, Turn: 1, ID: a.ID})
			check(t, err)
		}
	}
	begun(t, s, "going on")
	r := begun(t, s, "denied") // and finished
	_, err := s.Append(t.Context(), journal.Entry{Run: "denied", Token: r.Token, Turn: journal.Turn{Number: 1}, Final: true})
	check(t, err)
	for _, run := range []string{"denied", "pending", "going on"} {
		ask(run)
	}
	c := aClaim("another tenant's", 1)
	_, err = s.Namespace("other").Ask(t.Context(), middleware.Approval{Call: c.Call, Identity: c.Identity}, time.Hour)
	check(t, err)
	at(s, start.Add(day))
	ask("younger")
	left := func() (runs []string) {
		all, err := s.Approvals(t.Context())
		check(t, err)
		for _, a := range all {
			runs = append(runs, a.Call.Run)
		}
		return runs
	}
	for _, c := range []struct {
		at   time.Duration
		gone int
		left []string
	}{
		{90*day + time.Hour - 1, 0, []string{"denied", "pending", "going on", "younger"}},
		{90*day + time.Hour, 2, []string{"going on", "younger"}},
		{91*day + time.Hour, 1, []string{"going on"}},
	} {
		at(s, start.Add(c.at))
		for _, dry := range []bool{true, false} {
			if r, err := s.Prune(t.Context(), middleware.PruneOptions{DryRun: dry}); err != nil || r.Approvals != c.gone {
				t.Errorf("%d gone (dry %v), want %d, %v", r.Approvals, dry, c.gone, err)
			}
		}
		if diff := cmp.Diff(c.left, left()); diff != "" {
			t.Error(diff)
		}
	}
	if all, err := s.Namespace("other").Approvals(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("another tenant has %d approvals, %v", len(all), err)
	}
}

func TestNoAliasIsLeftOfWhatHasGone(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	kept := completed(t, s, aClaim("run", 1))
	c := brief("run", 2)
	c.Keep = 1
	row := completed(t, s, c)
	for n := range 3 {
		for _, operation := range []string{row.Operation, kept.Operation} {
			_, err := s.Note(t.Context(), operation, middleware.Alias{Run: "repeats of " + operation, Turn: n})
			check(t, err)
		}
	}
	prune(t, s, 0, 1, 0)
	runs, err := s.Names(t.Context(), `SELECT DISTINCT run FROM aliases ORDER BY run`)
	check(t, err)
	if diff := cmp.Diff([]string{"repeats of " + kept.Operation, "run"}, runs); diff != "" {
		t.Error(diff)
	}
}

func TestABatchIsNotOfMoreThanItsBytes(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	big := strings.Repeat("r", 5<<20)
	for turn := range 3 {
		row := claimed(t, s, brief("run", turn+1))
		_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: big, HasResult: true})
		check(t, err)
	}
	var told []int
	_, err := s.Prune(t.Context(), middleware.PruneOptions{Progress: func(r middleware.PruneReport) { told = append(told, r.Contents) }})
	check(t, err)
	if diff := cmp.Diff([]int{1, 2, 3}, told); diff != "" {
		t.Error(diff)
	}
}

func TestPruneFindsRowsByTheirIDs(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	plans, err := s.PrunePlans()
	check(t, err)
	for _, p := range plans {
		if strings.HasPrefix(p, "SCAN ") && !strings.HasPrefix(p, "SCAN json_each") || strings.Contains(p, "operations_identity") || strings.Contains(p, "approvals_state") {
			t.Error(p)
		}
	}
}

func TestCallersGoOnBetweenTheBatches(t *testing.T) {
	inMemory(t)
	s := open(t, t.TempDir()+"/once.db", nil)
	rows := bulkRows(t, 20_000)
	bulk(t, s, rows, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var calls atomic.Int64
	ended := make(chan error, 1)
	go func() {
		next := claims()
		for ctx.Err() == nil {
			c := next()
			row, won, err := s.Claim(ctx, c)
			if err == nil && won {
				_, err = s.Change(ctx, middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "1", HasResult: true})
			}
			if ctx.Err() == nil && (err != nil || !won) {
				ended <- errors.Join(errors.New("a call has failed"), err)
				return
			}
			calls.Add(1)
		}
		ended <- nil
	}()
	batches := 0
	r, err := s.Prune(t.Context(), middleware.PruneOptions{Progress: func(middleware.PruneReport) {
		batches++
		for seen := calls.Load(); calls.Load() == seen && len(ended) == 0; { // a whole call is made meanwhile
			runtime.Gosched()
		}
	}})
	check(t, err)
	stop()
	check(t, <-ended)
	if r.Contents != rows || batches < rows/500 || r.Identities != 0 {
		t.Errorf("%+v in %d batches, want %d contents", r, batches, rows)
	}
}
