package pgstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
)

// brief is a claim whose content is kept no longer than a moment.
func brief(run string, turn int) middleware.Claim {
	c := aClaim(run, turn)
	c.Retain = 1
	return c
}

func completed(tb testing.TB, s *pgstore.Store, c middleware.Claim) middleware.Row {
	tb.Helper()
	row := claimed(tb, s, c)
	row, err := s.Change(tb.Context(), middleware.Transition{
		Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "result", HasResult: true,
	})
	check(tb, err)
	return row
}

// prune forgets so much, and so many that are needed stay.
func prune(tb testing.TB, s *pgstore.Store, contents, identities, needed int) {
	tb.Helper()
	r, err := s.Prune(tb.Context(), middleware.PruneOptions{})
	check(tb, err)
	if r.Contents != contents || r.Identities != identities || r.Needed != needed {
		tb.Errorf("%+v, want %d contents, %d identities, %d needed", r, contents, identities, needed)
	}
}

func TestWhatARunHasNotStoredTheOutputOfStaysWhole(t *testing.T) {
	for name, c := range map[string]struct {
		keep                 time.Duration
		contents, identities int // of one operation
	}{"for ever": {0, 1, 0}, "for a moment": {1, 0, 1}} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t).open(t)
			r := begun(t, s, "run")
			appended(t, s, r, 1)
			mine, theirs := brief("run", 1), brief("own loop", 1)
			mine.Keep, theirs.Keep = c.keep, c.keep
			row, other := completed(t, s, mine), completed(t, s, theirs)
			_, err := s.Note(t.Context(), other.Operation, middleware.Alias{Run: "run", Turn: 1, Position: 2}) // a repeat counts too
			check(t, err)
			theirs = brief("another loop", 1) // which nobody needs
			theirs.Keep = c.keep
			completed(t, s, theirs)
			prune(t, s, c.contents, c.identities, 2)
			if got := found(t, s, row.Operation); !got.HasResult || len(got.Input) == 0 {
				t.Error("content has gone that is needed")
			}
			check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token, Turn: 1, Outputs: []journal.Output{{Content: "result", Verdict: registry.Executed}}}))
			prune(t, s, c.contents, c.identities, 1)
			r = begun(t, s, "run")
			_, err = s.Append(t.Context(), journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 2, Answer: []byte("{}")}, Final: true})
			check(t, err)
			prune(t, s, c.contents, c.identities, 0)
		})
	}
}

// What was found is locked, and only then looked at again: who was first has changed it.
func TestWhatHasChangedSinceItWasFoundStays(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	r := begun(t, s, "run")
	appended(t, s, r, 1)
	c := brief("own loop", 1)
	c.Keep = 1
	row := completed(t, s, c)
	conn, err := pgx.Connect(t.Context(), p.dsn)
	check(t, err)
	defer func() { check(t, conn.Close(context.WithoutCancel(t.Context()))) }()
	tx, err := conn.Begin(t.Context())
	check(t, err)
	operations, aliases := quoted(p.schema, "operations"), quoted(p.schema, "aliases")
	_, err = tx.Exec(t.Context(), `SELECT 1 FROM `+operations+` FOR UPDATE`) // as one who notes a repeat
	check(t, err)
	_, err = tx.Exec(t.Context(), `INSERT INTO `+aliases+` (namespace, run, turn, position, operation, call_id, tool, arguments, fingerprint)
		SELECT namespace, 'run', 1, 0, id, '', tool, arguments, fingerprint FROM `+operations)
	check(t, err)
	done := make(chan error, 1)
	var report middleware.PruneReport
	go func() {
		var err error
		report, err = s.Prune(context.WithoutCancel(t.Context()), middleware.PruneOptions{})
		done <- err
	}()
	locked(t, p, done)
	check(t, tx.Commit(t.Context()))
	check(t, <-done)
	if got := found(t, s, row.Operation); report.Identities != 0 || report.Contents != 0 || !got.HasResult {
		t.Errorf("%+v, result kept: %v", report, got.HasResult)
	}
}

// locked returns when a session waits for a lock that Prune asks for, or Prune has ended.
func locked(tb testing.TB, p place, done chan error) {
	tb.Helper()
	c, err := pgx.Connect(tb.Context(), p.dsn)
	check(tb, err)
	for n := 0; n == 0 && len(done) == 0; {
		check(tb, c.QueryRow(tb.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%ORDER BY id FOR UPDATE%'
			AND query LIKE $1 AND pid <> pg_backend_pid()`, "%"+p.schema+"%").Scan(&n))
	}
	check(tb, c.Close(tb.Context()))
}

// ago makes everything of a store older.
func (p place) ago(tb testing.TB, days int) {
	tb.Helper()
	for _, query := range []string{
		`UPDATE @operations SET id = id - ($1::bigint * 86400000) * 2097152, created = created - $1 * interval '1 day', since = since - $1 * interval '1 day',
			done_at = done_at - $1 * interval '1 day', expires = expires - $1 * interval '1 day', deadline = deadline - $1 * interval '1 day'`,
		`UPDATE @aliases SET operation = operation - ($1::bigint * 86400000) * 2097152`,
		`UPDATE @approvals SET expires = expires - $1::bigint * interval '1 day'`,
		`UPDATE @runs SET created = created - $1::bigint * interval '1 day', ended = ended - $1 * interval '1 day'`,
		`UPDATE @pruned SET below = below - ($1::bigint * 86400000) * 2097152`,
	} {
		statement(tb, p.dsn, strings.ReplaceAll(query, "@", quoted(p.schema)+"."), days)
	}
}

func TestEachToolsContentIsKeptForItsTimeAndTheNextPruneGoesOn(t *testing.T) {
	const day = 24 * time.Hour
	p := fresh(t)
	s := p.open(t)
	for turn, c := range []struct{ retain, keep time.Duration }{{2 * day, 0}, {2 * day, 5 * day}, {0, 0}, {400 * day, 0}} {
		claim := aClaim("run", turn+1)
		claim.Retain, claim.Keep = c.retain, c.keep
		completed(t, s, claim)
	}
	for _, c := range []struct{ days, contents, identities int }{{1, 0, 0}, {2, 2, 0}, {3, 0, 1}, {83, 0, 0}, {2, 1, 0}, {308, 0, 0}, {2, 1, 0}, {1000, 0, 0}} {
		p.ago(t, c.days)
		prune(t, s, c.contents, c.identities, 0)
	}
	old := claimed(t, s, brief("run", 10))
	p.ago(t, 10)
	row, ok, err := s.Find(t.Context(), middleware.Query{Identity: old.Identity})
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	completed(t, s, brief("run", 11))
	prune(t, s, 1, 0, 0)
	_, err = s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "late", HasResult: true})
	check(t, err)
	prune(t, s, 1, 0, 0) // it has held back the mark
	if n := count(t, p, "operations"); n != 5 {
		t.Errorf("%d operations are known, want 5", n)
	}
}

func TestApprovalsGoNinetyDaysAfterTheirDate(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	begun(t, s, "going on")
	for _, run := range []string{"denied", "pending", "going on"} {
		c := aClaim(run, 1)
		a, err := s.Ask(t.Context(), middleware.Approval{Call: c.Call, Identity: c.Identity, Input: c.Input}, time.Hour)
		check(t, err)
		if run != "pending" {
			_, err = s.Decide(t.Context(), middleware.Decision{Run: run, Turn: 1, ID: a.ID})
			check(t, err)
		}
	}
	for _, c := range []struct{ days, gone int }{{90, 0}, {1, 2}} {
		p.ago(t, c.days)
		for _, dry := range []bool{true, false} {
			if r, err := s.Prune(t.Context(), middleware.PruneOptions{DryRun: dry}); err != nil || r.Approvals != c.gone {
				t.Errorf("%d gone (dry %v), want %d, %v", r.Approvals, dry, c.gone, err)
			}
		}
	}
	all, err := s.Approvals(t.Context())
	check(t, err)
	var runs []string
	for _, a := range all {
		runs = append(runs, a.Call.Run)
	}
	if diff := cmp.Diff([]string{"going on"}, runs); diff != "" {
		t.Error(diff)
	}
}

func TestNoAliasIsLeftOfWhatHasGone(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
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
	if n := count(t, p, "aliases"); n != 4 {
		t.Errorf("%d aliases are left, want 4", n)
	}
}

func TestWhatWasSaidInAFinishedRunGoesNinetyDaysAfterItsEnd(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	other := s.Namespace("other")
	for run, final := range map[string]bool{"finished": true, "going on": false} {
		for _, s := range []*pgstore.Store{s, other} {
			r := begun(t, s, run)
			_, err := s.Append(t.Context(), journal.Entry{Run: run, Token: r.Token, Turn: journal.Turn{Number: 1, Answer: []byte(`{}`)}, Final: final})
			check(t, err)
			if !final {
				check(t, s.Leave(t.Context(), journal.Leaving{Run: run, Token: r.Token}))
			}
		}
	}
	for _, c := range []struct{ days, gone int }{{89, 0}, {2, 1}, {1, 0}} {
		p.ago(t, c.days)
		for _, dry := range []bool{true, false} {
			if r, err := s.Prune(t.Context(), middleware.PruneOptions{DryRun: dry}); err != nil || r.Runs != c.gone {
				t.Errorf("%d more days: %d have gone (dry %v), want %d, %v", c.days, r.Runs, dry, c.gone, err)
			}
		}
	}
	if _, err := s.Begin(t.Context(), aStart("finished")); !errors.Is(err, journal.ErrForgotten) {
		t.Errorf("the run that was forgotten is begun with %v", err)
	}
	if r := begun(t, other, "finished"); !r.Finished || len(r.Turns) != 1 {
		t.Errorf("another tenant's: %+v", r)
	}
	if r := begun(t, s, "going on"); len(r.Turns) != 1 {
		t.Errorf("the one that is not finished: %+v", r)
	}
}
