package middleware_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

func TestHandlersAreWaitedForUntilTheirResultIsStored(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run = func(context.Context, refundInput) (refund, error) {
			time.Sleep(5 * time.Second)
			return refund{ID: "re_1"}, nil
		}
		l := middleware.Memory()
		h := w.handler(l, nil)
		go func() { _, _ = h(t.Context(), at(1, 0, "issue_refund", r7)) }()
		synctest.Wait()
		hs := l.Namespace("any").Handlers() // one record for all namespaces
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := hs.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 operations") {
			t.Errorf("while one runs: %v", err)
		}
		if err := hs.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if row := only(t, l); row.State != middleware.Done {
			t.Errorf("row is %s after the wait", row.State)
		}
	})
}

func TestAForgottenOperationIsANewOneAndNotBefore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.keep = 25 * time.Hour
		l := middleware.Memory()
		h := w.handler(l, nil)
		first := ask(t, h, at(1, 0, "issue_refund", r7))
		time.Sleep(25*time.Hour - time.Second)
		want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.AlreadyDone)
		time.Sleep(time.Second)
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Replayed) // the call itself still has its row
		got := ask(t, h, at(3, 0, "issue_refund", r7))
		want(t, got, registry.Executed)
		if got.Operation == first.Operation {
			t.Error("the new operation has the id of the old one")
		}
		w.keep = 0
		time.Sleep(24 * 365 * time.Hour)
		want(t, ask(t, w.handler(l, nil), in("x", at(1, 0, "issue_refund", `{"order_id":"B","cents":1}`))), registry.Executed)
		time.Sleep(24 * 3650 * time.Hour)
		want(t, ask(t, w.handler(l, nil), in("x", at(2, 0, "issue_refund", `{"order_id":"B","cents":1}`))), registry.AlreadyDone) // time alone frees nothing
		wantEffects(t, w, "refund", 3)
	})
}

func TestAKeyWhoseWindowIsOverIsFreshForAClaimAfterAPersonsVerdict(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.recovery, w.window = registry.Rerun, time.Hour
		l, release := killed(t, w, false)
		release()
		row := only(t, l)
		if _, err := l.Change(t.Context(), middleware.Transition{Step: middleware.Doubt, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, Owner: row.Owner}); err != nil && row.State == middleware.Running {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		row = only(t, l)
		if _, err := l.Change(t.Context(), middleware.Transition{Step: middleware.NotHappened, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		want(t, ask(t, w.handler(l, nil), at(2, 0, "issue_refund", r7)), registry.Executed)
		if row = only(t, l); !row.KeySince.After(time.Now().Add(-time.Minute)) || row.Key != w.keys[0] {
			t.Errorf("key since %v, now %v", row.KeySince, time.Now())
		}
	})
}
