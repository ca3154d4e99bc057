package pgstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
)

// outcome is what a claim got.
type outcome struct {
	row middleware.Row
	won bool
	err error
}

// claimedTogether has a store send claims together.
func claimedTogether(s *pgstore.Store, claims ...middleware.Claim) []outcome {
	all := make([]outcome, len(claims))
	var group sync.WaitGroup
	s.HoldClaims(len(claims), func() {
		for i, c := range claims {
			group.Go(func() { all[i].row, all[i].won, all[i].err = s.Claim(context.Background(), c) })
		}
	})
	group.Wait()
	return all
}

func manyClaims(run string, n int) (all []middleware.Claim) {
	for i := range n {
		all = append(all, aClaim(run, i+1))
	}
	return all
}

// result is the step that stores one, as the guard does it.
func result(row middleware.Row, text string) middleware.Transition {
	return middleware.Transition{
		Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, Result: text, HasResult: true, Blind: true,
	}
}

// completedTogether has a store send results together.
func completedTogether(s *pgstore.Store, steps ...middleware.Transition) (rows []middleware.Row, errs []error) {
	rows, errs = make([]middleware.Row, len(steps)), make([]error, len(steps))
	var group sync.WaitGroup
	s.HoldResults(len(steps), func() {
		for i, t := range steps {
			group.Go(func() { rows[i], errs[i] = s.Change(context.Background(), t) })
		}
	})
	group.Wait()
	return rows, errs
}

// tripTogether makes a little use of what goes together.
func tripTogether(t *testing.T, s *pgstore.Store) {
	t.Helper()
	claims := manyClaims("together", 3)
	claims[0].Resource, claims[1].Input, claims[2].Retain = freshHash(), []byte("\x00\xff"), time.Hour
	var steps []middleware.Transition
	for i, got := range claimedTogether(s, claims...) {
		if got.err != nil || !got.won {
			t.Fatalf("won %v, %v", got.won, got.err)
		}
		steps = append(steps, result(got.row, "\xff result"))
		if i == 2 {
			steps[i].HasResult, steps[i].Resource = false, freshHash()
		}
	}
	_, errs := completedTogether(s, steps...)
	check(t, errors.Join(errs...))
	for i, c := range claims {
		row, ok, err := s.Find(t.Context(), asks(c))
		check(t, err)
		if !ok || row.State != middleware.Done || row.HasResult != (i < 2) || i < 2 && row.Result != "\xff result" || string(row.Input) != string(c.Input) {
			t.Errorf("it is read back as %+v", row)
		}
	}
}

// transactions is how many have written what stands in a table.
func transactions(t *testing.T, p place, table string) (n int) {
	t.Helper()
	return number(t, p, "SELECT count(DISTINCT xmin::text) FROM "+quoted(p.schema, table))
}

func TestManyClaimsShareATransactionAndEachGetsItsOwn(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	var claims []middleware.Claim
	for i := range 100 {
		c := aClaim(fmt.Sprint("run ", i%7), i%3)
		c.Call.Position, c.Call.CallID, c.Input = i, fmt.Sprint("call ", i), []byte(fmt.Sprint("input ", i))
		if i%2 == 0 {
			c.Resource, c.ResourceOut, c.Conversation, c.Keep, c.Retain = freshHash(), "id", fmt.Sprint("chat ", i), time.Duration(i+1), time.Hour
		}
		claims = append(claims, c)
	}
	for i, got := range claimedTogether(s, claims...) {
		c := claims[i]
		if got.err != nil || !got.won || got.row.Token != c.Token {
			t.Fatalf("claim %d: won %v, %v", i, got.won, got.err)
		}
		q := middleware.Query{Run: c.Call.Run, Turn: c.Call.Turn, Position: c.Call.Position}
		if c.Call.Turn == 0 {
			q = middleware.Query{Operation: got.row.Operation}
		}
		row, _, err := s.Find(t.Context(), q)
		check(t, err)
		if row.Found != nil && *row.Found != c.Call {
			t.Errorf("the alias of claim %d is %+v, want %+v", i, *row.Found, c.Call)
		}
		row.Now, row.Found, got.row.Now = time.Time{}, nil, time.Time{}
		if diff := cmp.Diff(got.row, row); diff != "" || row.Token != c.Token {
			t.Errorf("claim %d is read back otherwise: %s", i, diff)
		}
	}
	if n := transactions(t, p, "operations"); n != 1 {
		t.Errorf("%d transactions, want 1", n)
	}
}

func TestManyResultsShareATransactionAndEachIsToldItsOwn(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	var steps []middleware.Transition
	for i := range 100 {
		steps = append(steps, result(claimed(t, s.Namespace(""), aClaim("run", i+1)), fmt.Sprint("result ", i)))
		steps[i].HasResult, steps[i].Resource = i%3 > 0, []string{"", freshHash()}[i%2]
	}
	booked := claimed(t, s, aClaim("run", 101))
	_, err := s.Change(t.Context(), result(booked, "booked"))
	check(t, err)
	undo := aClaim("run", 102)
	undo.Undoes = booked.Operation
	stranger, second := result(claimed(t, s, aClaim("run", 103)), "a stranger's"), steps[11]
	stranger.Token = "another's"
	second.Result = "another"
	steps = append(steps, result(claimed(t, s, undo), "cancelled"), stranger, result(booked, "again"))
	rows, errs := completedTogether(s, steps...)
	for i, step := range steps {
		got := found(t, s, step.Operation)
		switch {
		case i < 101:
			want := step.Result
			if !step.HasResult {
				want = ""
			}
			if errs[i] != nil || rows[i].Operation != step.Operation || got.Result != want || got.HasResult != step.HasResult || got.State != middleware.Done || got.Resource != step.Resource {
				t.Errorf("result %d: %v, %q of %s", i, errs[i], got.Result, got.State)
			}
		case !errors.Is(errs[i], middleware.ErrLost):
			t.Errorf("result %d: %v, want that it is lost", i, errs[i])
		}
	}
	if got := found(t, s, stranger.Operation); got.State != middleware.Running || !got.Late {
		t.Errorf("with a stranger's result it is %s, late %v", got.State, got.Late)
	}
	if got := found(t, s, booked.Operation); got.State != middleware.Released || got.Result != "booked" || !got.Late {
		t.Errorf("what was undone is %s with %q", got.State, got.Result)
	}
	_, errs = completedTogether(s, second, second)
	if !errors.Is(errs[0], middleware.ErrLost) || !errors.Is(errs[1], middleware.ErrLost) {
		t.Errorf("second results: %v", errs)
	}
	if n := number(t, p, "SELECT max(n) FROM (SELECT count(*) AS n FROM "+quoted(p.schema, "operations")+" GROUP BY xmin::text) AS of_one"); n != 99 {
		t.Errorf("%d are of one transaction, want all but those that others have changed later", n)
	}
}

func TestABadClaimDoesNotFailItsNeighbours(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, s *pgstore.Store, c *middleware.Claim)
		fails bool
	}{
		"whose place is taken": {func(t *testing.T, s *pgstore.Store, c *middleware.Claim) {
			other := aClaim(c.Call.Run, c.Call.Turn)
			claimed(t, s, other)
		}, false},
		"that the server refuses": {func(_ *testing.T, _ *pgstore.Store, c *middleware.Claim) {
			for len(c.Identity) < 10_000 {
				c.Identity += rand.Text()
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := fresh(t)
			s := p.open(t)
			claims := manyClaims("run", 20)
			c.spoil(t, s, &claims[7])
			for i, got := range claimedTogether(s, claims...) {
				switch {
				case i == 7:
					if got.won || (got.err != nil) != c.fails || !c.fails && got.row.Claimer.Turn != 8 {
						t.Errorf("the bad one: %+v", got)
					}
				case got.err != nil || !got.won || got.row.Token != claims[i].Token:
					t.Errorf("claim %d: won %v, %v", i, got.won, got.err)
				}
			}
		})
	}
}

func TestOfTwoClaimsOfOneIdentityThatGoTogetherOneWins(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	claims := manyClaims("run", 30)
	for i := range claims {
		claims[i].Identity = claims[i%15].Identity
	}
	got := claimedTogether(s, claims...)
	for i := range 15 {
		a, b := got[i], got[i+15]
		if a.err != nil || b.err != nil || a.won == b.won || a.row.Operation != b.row.Operation || a.row.Operation == "" {
			t.Errorf("identity %d: %v %v, %s and %s, %v %v", i, a.won, b.won, a.row.Operation, b.row.Operation, a.err, b.err)
		}
		if token := claims[i].Token; a.won != (a.row.Token == token) {
			t.Errorf("identity %d: won %v with the token of another", i, a.won)
		}
	}
	if n := count(t, p, "operations"); n != 15 {
		t.Errorf("%d operations, want 15", n)
	}
}

func TestTwoOfManyClaimsThatGetOneIDBothWin(t *testing.T) {
	s := fresh(t).open(t)
	var mu sync.Mutex
	ids := []int64{1 << 40, 1 << 40, 1 << 41}
	s.SetNewID(func() (id int64) {
		mu.Lock()
		defer mu.Unlock()
		id, ids = ids[0], ids[1:]
		return id
	})
	claims := manyClaims("run", 2)
	for i, got := range claimedTogether(s, claims...) {
		if got.err != nil || !got.won || found(t, s, got.row.Operation).Token != claims[i].Token {
			t.Errorf("claim %d: won %v, %v", i, got.won, got.err)
		}
	}
}
