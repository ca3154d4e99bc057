package middleware_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// journaled is a call of a loop that keeps its turns.
func journaled(c *registry.Call) *registry.Call {
	c.Journaled = true
	return c
}

func TestAnotherCallAtATakenPlaceOfAJournaledRunIsAConflictAndChangesNothing(t *testing.T) {
	states := map[middleware.State]func(w *world, h registry.Handler){
		middleware.Done: func(_ *world, h registry.Handler) { ask(t, h, journaled(at(1, 0, "book", `{"flight":"LH1"}`))) },
		middleware.Released: func(_ *world, h registry.Handler) {
			ask(t, h, journaled(at(1, 0, "book", `{"flight":"LH1"}`)))
			ask(t, h, journaled(at(2, 0, "cancel", `{"reservation_id":"R1"}`)))
		},
		middleware.InDoubt: func(w *world, h registry.Handler) {
			w.run = func(context.Context, refundInput) (refund, error) { return refund{}, errTimeout }
			ask(t, h, journaled(at(1, 0, "issue_refund", r7)))
		},
		middleware.Free: func(w *world, h registry.Handler) {
			w.run = func(context.Context, refundInput) (refund, error) { return refund{}, registry.NoEffect(errTimeout) }
			ask(t, h, journaled(at(1, 0, "issue_refund", r7)))
		},
	}
	others := map[string]*registry.Call{
		"other arguments": at(1, 0, "issue_refund", `{"order_id":"R-8","cents":1}`),
		"another tool":    at(1, 0, "pay", `{"order":"a","cents":1}`),
		"unknown tool":    at(1, 0, "nonesuch", `{}`),
		"bad arguments":   at(1, 0, "pay", `{"order":`),
		"an undo":         at(1, 0, "cancel", `{"reservation_id":"R1"}`),
	}
	for state, begin := range states {
		for name, other := range others {
			t.Run(string(state)+", "+name, func(t *testing.T) {
				w, l := newWorld(t), middleware.Memory()
				begin(w, w.handler(l, nil))
				o := options()
				o.Admit = func(context.Context, *registry.Call) (*registry.Result, error) {
					t.Error("a limit was asked")
					return nil, nil
				}
				w.check = func(context.Context, refundInput) error { t.Error("Check was asked"); return nil }
				h, before := w.handler(l, o), rows(t, l)
				for range 5 { // no repeat is counted
					c := *other
					want(t, ask(t, h, journaled(&c)), registry.Conflict, "Another call was recorded at this place")
				}
				if diff := cmp.Diff(before, rows(t, l)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// rows are all rows of a ledger by operation.
func rows(t *testing.T, l middleware.Lister) map[string]middleware.Row {
	t.Helper()
	list, err := l.List(t.Context(), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]middleware.Row{}
	for _, r := range list {
		r.Now = r.Created
		m[r.Operation] = r
	}
	return m
}

func TestAConflictAtATakenPlaceNamesTheFieldsThatDiffer(t *testing.T) {
	h := newWorld(t).handler(middleware.Memory(), nil)
	ask(t, h, at(1, 0, "pay", `{"order":"a","cents":1}`))
	want(t, ask(t, h, journaled(at(1, 0, "pay", `{"order":"a","cents":2}`))), registry.Conflict, `"fields":["cents"]`)
}

func TestTheSameCallOfAJournaledRunIsAnsweredAndAFreeOneRunsAgain(t *testing.T) {
	w, l := newWorld(t), middleware.Memory()
	w.run = func(context.Context, refundInput) (refund, error) {
		return refund{}, registry.NoEffect(errors.New("declined"))
	}
	h := w.handler(l, nil)
	want(t, ask(t, h, journaled(at(1, 0, "issue_refund", r7))), registry.Failed)
	w.run = nil
	want(t, ask(t, h, journaled(at(1, 0, "issue_refund", r7))), registry.Executed)
	want(t, ask(t, h, journaled(at(1, 0, "issue_refund", `{"cents":500,"order_id":"R-7"}`))), registry.Replayed)
	wantEffects(t, w, "refund", 1)
}

func TestTheNotedPlaceOfARepeatIsTakenToo(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	ask(t, h, journaled(at(1, 0, "issue_refund", r7)))
	want(t, ask(t, h, journaled(at(2, 0, "issue_refund", r7))), registry.AlreadyDone)
	want(t, ask(t, h, journaled(at(2, 0, "pay", `{"order":"a","cents":1}`))), registry.Conflict)
	wantEffects(t, w, "refund", 1)
}

func TestAnotherCallAtATakenPlaceOfAnOwnLoopIsAnOperationOfItsOwn(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	ask(t, h, at(1, 0, "issue_refund", r7))
	want(t, ask(t, h, at(1, 0, "pay", `{"order":"a","cents":1}`)), registry.Executed)
	wantEffects(t, w, "refund", 2)
}

// pinned is a ledger in which the call of a run that is not finished still points to what has expired.
type pinned struct{ middleware.Ledger }

func (p pinned) Claim(ctx context.Context, c middleware.Claim) (middleware.Row, bool, error) {
	if c.Seen.State == middleware.Done {
		return c.Seen, false, nil
	}
	return p.Ledger.Claim(ctx, c)
}

func TestAnExpiredOperationThatARunStillNeedsIsAlreadyDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.keep = 24 * time.Hour
		h := w.handler(pinned{middleware.Memory()}, nil)
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Executed)
		time.Sleep(25 * time.Hour)
		want(t, ask(t, h, in("s", at(1, 0, "issue_refund", r7))), registry.AlreadyDone)
		if n := w.count("refund"); n != 1 {
			t.Errorf("%d refunds", n)
		}
	})
}
