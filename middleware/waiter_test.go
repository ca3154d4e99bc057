package middleware_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

func TestAWaiterThatWakesOnOtherArgumentsIsToldConflict(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		w := newWorld(t)
		w.run = func(_ context.Context, in refundInput) (refund, error) {
			if w.did("try") == 1 {
				time.Sleep(3 * time.Second)
				return refund{}, registry.NoEffect(errors.New("declined"))
			}
			time.Sleep(10 * time.Millisecond) // shorter than the waiter polls
			return refund{ID: "re_other", Cents: in.Cents}, nil
		}
		h := w.handler(mem, nil)
		var wg sync.WaitGroup
		wg.Go(func() { want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Failed) })
		synctest.Wait()
		wg.Go(func() { // polls from another process, once a second by then
			want(t, ask(t, w.handler(mem.Peer(), nil), at(2, 0, "issue_refund", r7)), registry.Conflict, `"fields":["cents"]`)
		})
		time.Sleep(3*time.Second + time.Millisecond)
		want(t, ask(t, h, at(3, 0, "issue_refund", `{"order_id":"R-7","cents":1}`)), registry.Executed)
		wg.Wait()
		wantEffects(t, w, "try", 2)
	})
}

func TestAWaiterThatGivesUpLeavesTheOwnersRowAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		w := newWorld(t)
		w.run = func(context.Context, refundInput) (refund, error) {
			time.Sleep(5 * time.Second)
			return refund{ID: "re_1"}, nil
		}
		h := w.handler(mem, nil)
		var wg sync.WaitGroup
		wg.Go(func() { want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Executed) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := only(t, mem)
		if _, err := w.handler(mem.Peer(), nil)(ctx, at(2, 0, "issue_refund", r7)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if after := only(t, mem); after.Token != before.Token || after.State != middleware.Running {
			t.Errorf("row is %s", after.State)
		}
		wg.Wait()
	})
}

func TestOtherOperationsDoNotWaitForEachOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run = func(_ context.Context, in refundInput) (refund, error) {
			if in.OrderID == "slow" {
				time.Sleep(5 * time.Second)
			}
			return refund{ID: in.OrderID}, nil
		}
		h := w.handler(middleware.Memory(), nil)
		var wg sync.WaitGroup
		wg.Go(func() { ask(t, h, at(1, 0, "issue_refund", `{"order_id":"slow","cents":1}`)) })
		synctest.Wait()
		start := time.Now()
		want(t, ask(t, h, at(1, 1, "issue_refund", `{"order_id":"fast","cents":1}`)), registry.Executed)
		if time.Since(start) != 0 {
			t.Errorf("waited %v", time.Since(start))
		}
		wg.Wait()
	})
}

func TestAStoreThatFailsOnReadingRunsNothingAgain(t *testing.T) {
	w := newWorld(t)
	l := &blind{Ledger: middleware.Memory()}
	h := w.handler(l, nil)
	want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Executed)
	l.gone = true
	for turn := range 3 { // the first is claimed as new, and the others looked for at once
		if _, err := h(t.Context(), at(2+turn, 0, "issue_refund", r7)); !errors.Is(err, errBlind) {
			t.Errorf("%v", err)
		}
	}
	wantEffects(t, w, "refund", 1)
}

// blind is a ledger that cannot be read when it is gone.
type blind struct {
	middleware.Ledger
	gone bool
}

var errBlind = errors.New("database is gone")

func (b *blind) Find(ctx context.Context, q middleware.Query) (middleware.Row, bool, error) {
	if b.gone {
		return middleware.Row{}, false, errBlind
	}
	return b.Ledger.Find(ctx, q)
}
