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

func TestAStoreThatFailsOnReadingRunsNothing(t *testing.T) {
	w := newWorld(t)
	h := w.handler(&blind{middleware.Memory()}, nil)
	if _, err := h(t.Context(), at(1, 0, "issue_refund", r7)); !errors.Is(err, errBlind) {
		t.Errorf("%v", err)
	}
	wantEffects(t, w, "refund", 0)
}

type blind struct{ middleware.Ledger }

var errBlind = errors.New("database is gone")

func (*blind) Find(context.Context, middleware.Query) (middleware.Row, bool, error) {
	return middleware.Row{}, false, errBlind
}
