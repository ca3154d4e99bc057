package pgstore_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
)

// trip makes a little use of everything.
func trip(t *testing.T, s *pgstore.Store) {
	t.Helper()
	ctx := t.Context()
	c := aClaim("run", 1)
	c.Resource, c.Keep, c.Conversation = freshHash(), time.Hour, "chat \x00"
	row := claimed(t, s, c)
	row, err := s.Change(ctx, middleware.Transition{Step: middleware.GiveBack, Operation: row.Operation, Token: row.Token, Attempt: 1, NewKey: true})
	check(t, err)
	again := aClaim("run", 2)
	again.Identity, again.Seen, again.Resource = c.Identity, row, c.Resource
	question, err := s.Ask(ctx, middleware.Approval{Call: again.Call, Identity: again.Identity, Generation: 1, Input: again.Input}, time.Hour)
	check(t, err)
	_, err = s.Decide(ctx, middleware.Decision{Run: "run", Turn: 2, Approve: true, By: "Ann"})
	check(t, err)
	again.Approval = question.ID
	row = claimed(t, s, again)
	row, err = s.Change(ctx, middleware.Transition{
		Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1, Result: "\xff result", HasResult: true,
	})
	check(t, err)
	if got := found(t, s, row.Operation); got.Result != "\xff result" || got.Generation != 1 {
		t.Errorf("the result is %q, generation %d", got.Result, got.Generation)
	}
	undo := aClaim("run", 3)
	undo.Undoes = row.Operation
	undone := claimed(t, s, undo)
	if got, _, err := s.Find(ctx, middleware.Query{Tool: c.Call.Tool, Resource: c.Resource}); err != nil || got.UndoneBy != undone.Operation {
		t.Errorf("what is about to be undone is found with %q, %v", got.UndoneBy, err)
	}
	if n, err := s.Note(ctx, row.Operation, middleware.Alias{Run: "run", Turn: 9}); n != 1 || err != nil {
		t.Errorf("%d repeats, %v", n, err)
	}
	rows, err := s.List(ctx, nil, 0)
	check(t, err)
	all, err := s.Approvals(ctx)
	check(t, err)
	if len(rows) != 2 || len(all) != 1 || all[0].State != middleware.Spent {
		t.Errorf("%d operations and %d approvals, want 2 and 1", len(rows), len(all))
	}
	r := begun(t, s, "run")
	appended(t, s, r, 1)
	check(t, s.Leave(ctx, journal.Leaving{Run: "run", Token: r.Token, Turn: 1, Outputs: []journal.Output{{Content: "\x00", Verdict: registry.Executed}}}))
	if r := begun(t, s, "run"); len(r.Turns) != 1 || len(r.Turns[0].Outputs) != 1 || r.Turns[0].Outputs[0].Content != "\x00" {
		t.Errorf("the run comes back as %+v", r.Turns)
	}
}

func TestAThousandCallersClaimOneIdentityOnce(t *testing.T) {
	p := fresh(t)
	stores := []*pgstore.Store{p.open(t), p.open(t)}
	identity := freshHash()
	var won atomic.Int32
	var group sync.WaitGroup
	for i := range 1000 {
		group.Go(func() {
			c := aClaim("run", i+1)
			c.Identity = identity
			row, ok, err := stores[i%2].Claim(t.Context(), c)
			switch {
			case err != nil:
				t.Error(err)
			case ok:
				won.Add(1)
			case row.Identity != identity || row.State != middleware.Running:
				t.Errorf("who loses is shown %q in state %q", row.Identity, row.State)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Errorf("%d claims win, want 1", won.Load())
	}
}

func TestAThousandCallersAtOnceAllGetTheirOwn(t *testing.T) {
	s := fresh(t).open(t)
	var group sync.WaitGroup
	for i := range 1000 {
		group.Go(func() {
			row, won, err := s.Claim(t.Context(), aClaim("run", i+1))
			if err == nil && won {
				_, err = s.Change(t.Context(), middleware.Transition{
					Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1, Result: "done", HasResult: true,
				})
			}
			if err != nil || !won {
				t.Errorf("won %v, %v", won, err)
			}
		})
	}
	group.Wait()
	rows, err := s.List(t.Context(), []middleware.State{middleware.Done}, 0)
	check(t, err)
	if len(rows) != 1000 {
		t.Errorf("%d are done, want 1000", len(rows))
	}
}

func TestOfTwoWhoClaimAtAPlaceThatMeantAnotherOneWins(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	first := claimed(t, s, aClaim("run", 1))
	c, err := pgx.Connect(t.Context(), p.dsn)
	check(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	tx, err := c.Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), "SELECT 1 FROM "+quoted(p.schema, "aliases")+" FOR UPDATE") // so that both see what the place has meant
	check(t, err)
	var won atomic.Int32
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			c := aClaim("run", 1) // an identity of its own, at one place
			c.SeenAlias = first.Operation
			_, ok, err := s.Claim(t.Context(), c)
			if err != nil {
				t.Error(err)
			}
			if ok {
				won.Add(1)
			}
		})
	}
	waiting(t, p, 2)
	check(t, tx.Commit(t.Context()))
	group.Wait()
	if n := count(t, p, "operations"); won.Load() != 1 || n != 2 {
		t.Errorf("%d claims win and there are %d operations, want 1 and 2", won.Load(), n)
	}
}

func TestRepeatAfterAnUndoGetsTheNextKey(t *testing.T) {
	s := fresh(t).open(t)
	complete := func(row middleware.Row) {
		t.Helper()
		_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1, HasResult: true})
		check(t, err)
	}
	c := aClaim("run", 1)
	first := claimed(t, s, c)
	complete(first)
	undo := aClaim("run", 2)
	undo.Undoes = first.Operation
	complete(claimed(t, s, undo))
	again := aClaim("run", 3)
	again.Identity, again.Repeat = c.Identity, true
	row := claimed(t, s, again)
	if row.Generation != 1 || row.Key == first.Key || row.Repeats != 1 {
		t.Errorf("after an undo the generation is %d, the key the same %v, with %d repeats", row.Generation, row.Key == first.Key, row.Repeats)
	}
	got := found(t, s, row.Operation)
	got.Now, row.Now, row.Repeats = time.Time{}, time.Time{}, 0
	if diff := cmp.Diff(row, got); diff != "" {
		t.Errorf("what was claimed is read back otherwise: %s", diff)
	}
}

func TestResultOfTenMebibytesIsKept(t *testing.T) {
	s := fresh(t).open(t)
	row := claimed(t, s, aClaim("run", 1))
	big := strings.Repeat("0123456789abcdef", 10<<20/16)
	tr := middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1, Result: big, HasResult: true}
	_, err := s.Change(t.Context(), tr)
	check(t, err)
	if got := found(t, s, row.Operation); got.Result != big {
		t.Errorf("of %d bytes %d came back", len(big), len(got.Result))
	}
	r := begun(t, s, "run")
	appended(t, s, r, 1)
	appended(t, s, r, 2, journal.Output{Content: big})
	check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token}))
	if r = begun(t, s, "run"); r.Turns[0].Outputs[0].Content != big {
		t.Error("an output of that size is not what it was")
	}
}

func TestCloseWaitsForHandlersAndThenNothingIsClaimed(t *testing.T) {
	p := fresh(t)
	s, err := pgstore.Open(t.Context(), p.dsn, p.options(pgstore.Options{Drain: time.Millisecond}))
	check(t, err)
	watcher := p.open(t)
	row := claimed(t, s, aClaim("run", 1))
	held := s.Handlers().Open(row.Operation)
	held.Begin()
	if err := s.Close(); !errors.Is(err, pgstore.ErrRunning) {
		t.Fatalf("Close while a handler runs says %v", err)
	}
	if _, _, err := s.Claim(t.Context(), aClaim("run", 2)); !errors.Is(err, pgstore.ErrClosed) {
		t.Errorf("a claim after Close says %v", err)
	}
	if _, err := s.Begin(t.Context(), aStart("run")); !errors.Is(err, pgstore.ErrClosed) {
		t.Errorf("a run after Close says %v", err)
	}
	if got := found(t, watcher, row.Operation); got.OwnerGone {
		t.Error("it counts as gone while its handler runs")
	}
	_, err = s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1, HasResult: true})
	check(t, err)
	second := claimed(t, watcher, aClaim("run", 3))
	held.End()
	for errors.Is(err, pgstore.ErrRunning) || err == nil {
		if err = s.Close(); err == nil {
			break
		}
	}
	check(t, err)
	if _, _, err := s.Find(t.Context(), middleware.Query{Operation: row.Operation}); !errors.Is(err, pgstore.ErrClosed) {
		t.Errorf("Find after Close says %v", err)
	}
	if got := found(t, watcher, second.Operation); !got.OwnerMine || got.OwnerGone {
		t.Errorf("the watcher's own row: %+v", got)
	}
}

// The server plans before it has counted the rows, and takes those of a namespace for few.
func TestWhatAClaimReadsDoesNotGrowWithTheTenant(t *testing.T) {
	for _, mode := range []string{"cache_statement", "cache_describe", "cache_statement together", "cache_describe together"} {
		mode, together := strings.CutSuffix(mode, " together")
		p := fresh(t)
		c, err := pgx.Connect(t.Context(), p.dsn)
		check(t, err)
		defer func() { _ = c.Close(t.Context()) }()
		p.dsn += "&default_query_exec_mode=" + mode
		all := p.open(t)
		if together {
			all.Together()
		}
		s := all.Namespace("acme")
		const calls = 300
		for i := range calls {
			c := aClaim("run", i+1)
			row := claimed(t, s, c)
			_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1, HasResult: true, Blind: together})
			check(t, err)
			found(t, s, row.Operation)
			if same, _, err := s.Find(t.Context(), asks(c)); err != nil || same.Operation != row.Operation {
				t.Errorf("the same call again finds %q, %v", same.Operation, err)
			}
		}
		check(t, s.Close())
		var made, read int
		for made < calls { // until the sessions of the store have said what they did
			check(t, c.QueryRow(t.Context(), `SELECT n_tup_ins, seq_tup_read + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes AS i WHERE i.relid = r.relid)
				FROM pg_stat_user_tables AS r WHERE schemaname = $1 AND relname = 'operations'`, p.schema).Scan(&made, &read))
		}
		if read > 20*calls {
			t.Errorf("%s, together %v: %d calls have read %d rows", mode, together, calls, read)
		}
	}
}

func TestAClaimWhoseIDIsInUseGetsAnother(t *testing.T) {
	s := fresh(t).open(t)
	ids := []int64{1 << 40, 1 << 40, 1 << 41}
	s.SetNewID(func() (id int64) {
		id, ids = ids[0], ids[1:]
		return id
	})
	first, second := claimed(t, s, aClaim("run", 1)), claimed(t, s, aClaim("run", 2))
	if first.Operation == second.Operation || len(ids) > 0 {
		t.Errorf("%s and %s", first.Operation, second.Operation)
	}
}
