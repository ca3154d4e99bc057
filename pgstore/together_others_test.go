package pgstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
)

// releasedIdentity is one whose operation is done, and the row that an undo would release.
func releasedIdentity(t *testing.T, s *pgstore.Store, release func(row middleware.Row)) (c middleware.Claim, first middleware.Row) {
	t.Helper()
	c = aClaim("before", 1)
	first = claimed(t, s, c)
	_, err := s.Change(t.Context(), result(first, "booked"))
	check(t, err)
	release(first)
	again := aClaim("run", 100)
	again.Identity = c.Identity
	return again, first
}

func wantNext(t *testing.T, got outcome, first middleware.Row) {
	t.Helper()
	if got.err != nil || !got.won || got.row.Generation != 1 || got.row.Key == first.Key {
		t.Errorf("what was released is claimed as won %v, %v, generation %d, the same key %v", got.won, got.err, got.row.Generation, got.row.Key == first.Key)
	}
}

func TestAnIdentityThatWasReleasedGetsTheNextGenerationAndFailsNoNeighbour(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	again, first := releasedIdentity(t, s, func(row middleware.Row) {
		undo := aClaim("before", 2)
		undo.Undoes = row.Operation
		_, err := s.Change(t.Context(), result(claimed(t, s, undo), "cancelled"))
		check(t, err)
	})
	before := transactions(t, p, "operations")
	got := claimedTogether(s, append(manyClaims("run", 10), again)...)
	wantNext(t, got[10], first)
	if n := transactions(t, p, "operations") - before; n != 2 {
		t.Errorf("%d transactions, want one for the neighbours and one for it", n)
	}
}

func TestAnIdentityThatIsReleasedWhileManyAreClaimedGetsTheNextGeneration(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	c, err := pgx.Connect(t.Context(), p.dsn)
	check(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	tx, err := c.Begin(t.Context())
	check(t, err)
	again, first := releasedIdentity(t, s, func(middleware.Row) {
		_, err = tx.Exec(t.Context(), "UPDATE "+quoted(p.schema, "operations")+" SET state = 'released', released = id")
		check(t, err)
	})
	done := make(chan []outcome, 1)
	go func() { done <- claimedTogether(s, append(manyClaims("run", 10), again)...) }()
	blocked(t, p) // the first statement has seen it live, and waits for what becomes of it
	check(t, tx.Commit(t.Context()))
	got := <-done
	wantNext(t, got[10], first)
	for i, g := range got[:10] {
		if g.err != nil || !g.won {
			t.Errorf("claim %d: won %v, %v", i, g.won, g.err)
		}
	}
}

// lockedOut is a claim of an identity that another session keeps locked until unlock is called.
func lockedOut(t *testing.T, p place, s *pgstore.Store) (c middleware.Claim, unlock func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.dsn)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	check(t, err)
	c, _ = releasedIdentity(t, s, func(middleware.Row) {
		_, err = tx.Exec(t.Context(), "UPDATE "+quoted(p.schema, "operations")+" SET state = 'released', released = id")
		check(t, err)
	})
	return c, func() { check(t, tx.Rollback(t.Context())) }
}

func TestALockThatOneClaimWaitsForKeepsNoNeighbourWaiting(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	s.SetWriteTimeout(time.Hour)
	locked, unlock := lockedOut(t, p, s)
	const neighbours = 10
	free, waits := make(chan error, neighbours), make(chan bool)
	s.HoldClaims(neighbours+1, func() {
		go func() {
			_, won, err := s.Claim(context.Background(), locked)
			waits <- won || err != nil
		}()
		for _, c := range manyClaims("run", neighbours) {
			go func() {
				_, won, err := s.Claim(context.Background(), c)
				if !won {
					err = errors.Join(err, errors.New("it is not won"))
				}
				free <- err
			}()
		}
	})
	for range neighbours {
		check(t, <-free)
	}
	unlock()
	if <-waits {
		t.Error("what is done was claimed again, or the claim failed")
	}
}

func TestWhoLeadsAndWaitsForALockKeepsNobodyElseWaiting(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	locked, unlock := lockedOut(t, p, s)
	waits := make(chan bool)
	go func() {
		_, won, err := s.Claim(context.Background(), locked)
		waits <- won || err != nil
	}()
	blocked(t, p)
	for _, c := range manyClaims("run", 3) {
		claimed(t, s, c)
	}
	unlock()
	if <-waits {
		t.Error("what is done was claimed again, or the claim failed")
	}
}

func TestManyWhoseAnswersAreLostLoseNothingAndDoNothingTwice(t *testing.T) {
	s, other, cut := losing(t)
	const callers = 20
	claimedTogether(s, manyClaims("so that it is described", 2)...)
	cut(1)
	claims := manyClaims("run", callers)
	var steps []middleware.Transition
	for i, got := range claimedTogether(s, claims...) {
		if got.err != nil || !got.won || got.row.Token != claims[i].Token {
			t.Fatalf("claim %d: won %v, %v", i, got.won, got.err)
		}
		steps = append(steps, result(got.row, fmt.Sprint("result ", i)))
	}
	first, second := steps[:2], steps[2:]
	completedTogether(s, first...)
	cut(1)
	_, errs := completedTogether(s, second...)
	for i, step := range steps {
		if got := found(t, other, step.Operation); got.State != middleware.Done || got.Result != step.Result || got.Late {
			t.Errorf("operation %d is %s with %q, late %v", i, got.State, got.Result, got.Late)
		}
	}
	check(t, errors.Join(errs...))
	rows, err := other.List(t.Context(), []middleware.State{middleware.Done}, 0)
	if check(t, err); len(rows) != callers {
		t.Errorf("%d claims have left %d operations", callers, len(rows))
	}
}

func TestTwoProcessesThatClaimTheSameInOppositeOrdersEachWinTheirs(t *testing.T) {
	p := fresh(t)
	claims := manyClaims("one", 200)
	wins := make([]int, len(claims))
	var mu sync.Mutex
	var group sync.WaitGroup
	for process, run := range []string{"one", "other"} {
		s := p.open(t)
		group.Go(func() {
			var mine []middleware.Claim
			for i := range claims {
				c := claims[i]
				if process == 1 {
					c = claims[len(claims)-1-i]
				}
				c.Call.Run, c.Token = run, rand.Text()
				mine = append(mine, c)
			}
			for i, got := range claimedTogether(s, mine...) {
				if got.err != nil || got.row.Identity != mine[i].Identity {
					t.Errorf("%s: %v, %+v", run, got.err, got.row)
				}
				if got.won {
					mu.Lock()
					wins[mine[i].Call.Turn-1]++
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	for i, n := range wins {
		if n != 1 {
			t.Errorf("identity %d was won %d times", i, n)
		}
	}
}

// A connection that a firewall has forgotten tells nobody that it is of no use.
func TestASilentConnectionFailsNobodyThatWentTogether(t *testing.T) {
	p := fresh(t)
	pool := newPooler(t, p.dsn)
	p.dsn = pool.dsn
	s := p.open(t)
	tripTogether(t, s.Namespace("so that all is described"))
	t.Cleanup(func() { close(pool.awake) })
	s.SetWriteTimeout(2 * time.Second)
	pool.silent.Store(1)
	var steps []middleware.Transition
	for _, got := range claimedTogether(s, manyClaims("run", 20)...) {
		if got.err != nil || !got.won {
			t.Fatalf("won %v, %v", got.won, got.err)
		}
		steps = append(steps, result(got.row, "result"))
	}
	pool.silent.Store(1)
	_, errs := completedTogether(s, steps...)
	check(t, errors.Join(errs...))
	pool.silent.Store(1)
	var group sync.WaitGroup
	found := make([]bool, 20)
	s.HoldLooks(len(found), func() {
		for i := range found {
			group.Go(func() {
				row, _, err := s.Find(context.Background(), middleware.Query{Run: "run", Turn: i + 1, Identity: freshHash()})
				found[i] = err == nil && row.State == middleware.Done
			})
		}
	})
	group.Wait()
	if slices.Contains(found, false) {
		t.Errorf("found: %v", found)
	}
}

func TestAnAliasWithoutAPlaceIsMadeOnceThoughTheAnswerIsLost(t *testing.T) {
	p := fresh(t)
	pool := newPooler(t, p.dsn)
	direct := p
	p.dsn = pool.dsn
	s := p.open(t)
	claimedTogether(s, manyClaims("so that it is described", 2)...)
	described := count(t, direct, "aliases")
	claims := manyClaims("run", 5)
	for i := range claims {
		claims[i].Call.Turn = 0
	}
	pool.cut.Store(1)
	for i, got := range claimedTogether(s, claims...) {
		if got.err != nil || !got.won || got.row.Token != claims[i].Token {
			t.Fatalf("claim %d: won %v, %v", i, got.won, got.err)
		}
	}
	if n := count(t, direct, "aliases") - described; n != len(claims) {
		t.Errorf("%d claims have made %d aliases", len(claims), n)
	}
}

func TestASessionOfAnotherIsolationLevelClaimsNothing(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	var conns []*pgxpool.Conn
	for range 4 {
		c, err := s.Pool().Acquire(t.Context())
		check(t, err)
		_, err = c.Exec(t.Context(), "SET default_transaction_isolation = 'repeatable read'")
		check(t, err)
		conns = append(conns, c)
	}
	for _, c := range conns {
		c.Release()
	}
	if _, won, err := s.Claim(t.Context(), aClaim("run", 9)); won || !errors.Is(err, pgstore.ErrSettings) {
		t.Errorf("alone: won %v, %v, want %v", won, err, pgstore.ErrSettings)
	}
	for i, got := range claimedTogether(s, manyClaims("run", 3)...) {
		if got.won || !errors.Is(got.err, pgstore.ErrSettings) {
			t.Errorf("claim %d: won %v, %v, want %v", i, got.won, got.err, pgstore.ErrSettings)
		}
	}
	if rows, err := s.List(t.Context(), nil, 0); err != nil || len(rows) != 0 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
