package middleware_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
)

var errDown = errors.New("database is gone")

const forA = `{"order_id":"A","cents":1}`

// outage is a store that does not answer from the first step like step on, for a time. made: that step was made.
func outage(l middleware.Ledger, like ledgertest.Op, made bool, d time.Duration) *ledgertest.Faulty {
	var until atomic.Int64
	is := func(o ledgertest.Op) bool { return o.Method == like.Method && (like.Step == 0 || o.Step == like.Step) }
	f := &ledgertest.Faulty{Ledger: l}
	f.Before = func(_ context.Context, o ledgertest.Op) error {
		if u := until.Load(); u != 0 && time.Now().UnixNano() < u || u == 0 && !made && is(o) {
			until.CompareAndSwap(0, time.Now().Add(d).UnixNano())
			return errDown
		}
		return nil
	}
	f.After = func(_ context.Context, o ledgertest.Op) error {
		if made && is(o) && until.CompareAndSwap(0, time.Now().Add(d).UnixNano()) {
			return errDown
		}
		return nil
	}
	return f
}

func TestATakeOverWhoseAnswerWasLostIsNotMadeBesideAnother(t *testing.T) {
	for _, made := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.recovery = registry.Rerun
			_, mem, release := orphans(t, w, "A")
			var now, peak atomic.Int32
			w.run = func(context.Context, refundInput) (refund, error) {
				peak.Store(max(peak.Load(), now.Add(1)))
				defer now.Add(-1)
				w.did("refund")
				time.Sleep(5 * time.Second)
				return refund{ID: "re_1"}, nil
			}
			h := w.handler(outage(mem, ledgertest.Op{Method: "Change", Step: middleware.Again}, made, 4*time.Second), nil)
			if _, err := h(t.Context(), at(2, 0, "issue_refund", forA)); !errors.Is(err, errDown) {
				t.Errorf("%v", err)
			}
			time.Sleep(4*time.Second + time.Millisecond) // it is back, and nobody has looked yet
			want(t, ask(t, h, at(3, 0, "issue_refund", forA)), registry.AlreadyDone, "re_1")
			time.Sleep(time.Minute)
			if w.count("refund") != 1 || peak.Load() != 1 || only(t, mem).Attempt != 2 {
				t.Errorf("made %v: ran %d times, %d at once, attempt %d", made, w.count("refund"), peak.Load(), only(t, mem).Attempt)
			}
			release()
		})
	}
}

func TestAfterALongOutageNothingIsLeftThatNobodyWorksOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		w := newWorld(t)
		h := w.handler(outage(mem, ledgertest.Op{Method: "Claim"}, true, time.Hour), nil)
		if _, err := h(t.Context(), at(1, 0, "issue_refund", r7)); !errors.Is(err, errDown) {
			t.Errorf("%v", err)
		}
		time.Sleep(2 * time.Hour)
		if row := only(t, mem); row.State != middleware.Free {
			t.Errorf("a claim that nobody runs is %s, want free", row.State)
		}
		want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.Executed)
	})
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.lookup = func(context.Context, refundInput) (refund, error) { return refund{ID: "re_found"}, nil }
		_, mem, release := orphans(t, w, "A")
		h := w.handler(outage(mem, ledgertest.Op{Method: "Change", Step: middleware.Take}, true, time.Hour), nil)
		if _, err := h(t.Context(), at(2, 0, "issue_refund", forA)); !errors.Is(err, errDown) {
			t.Errorf("%v", err)
		}
		time.Sleep(2 * time.Hour)
		if row := only(t, mem); row.State != middleware.Done {
			t.Errorf("what was taken to be settled is %s, want done", row.State)
		}
		release()
	})
}

func TestManyClaimsInAnOutageAreClearedAwayByOneGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		w := newWorld(t)
		f := outage(mem, ledgertest.Op{Method: "Claim"}, true, time.Hour)
		var looks atomic.Int32
		before := f.Before
		f.Before = func(ctx context.Context, o ledgertest.Op) error {
			if o.Method == "Claim" {
				return nil
			}
			if o.Method == "Find" {
				looks.Add(1)
			}
			return before(ctx, o)
		}
		h := w.handler(f, nil)
		if _, err := h(t.Context(), at(1, 0, "issue_refund", r7)); err == nil {
			t.Error("no error")
		}
		synctest.Wait()
		done := make(chan error)
		go func() { done <- mem.Handlers().Wait(t.Context()) }() // whoever closes waits for it
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			t.Errorf("nothing is open while a claim is in doubt: %v", err)
		default:
		}
		if n := looks.Load(); n > 25 {
			t.Errorf("looked %d times in a minute", n)
		}
		time.Sleep(2 * time.Hour)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestRecoverThatIsCancelledBeginsNothingMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.recovery = registry.Rerun
		_, mem, release := orphans(t, w, "A", "B", "C")
		w.run = func(context.Context, refundInput) (refund, error) {
			w.did("refund")
			time.Sleep(5 * time.Second)
			return refund{ID: "re_1"}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := middleware.Recover(ctx, w.registry(), mem, options()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Minute)
		wantEffects(t, w, "refund", 1)
		release()
	})
}

func TestALateLookupWhoseResultIsNoJSONStillSaysThatItHappened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		stop := make(chan struct{})
		r := registry.New()
		registry.Add(r, registry.Tool[noteInput, any]{
			Name: "bad", Effect: registry.NonIdempotentWrite, Timeout: timeout,
			Run:    func(context.Context, noteInput) (any, error) { return nil, errTimeout },
			Lookup: func(context.Context, noteInput) (any, error) { <-stop; return make(chan int), nil },
		})
		want(t, ask(t, r.Handler(middleware.Once(mem, options())), at(1, 0, "bad", `{"text":"x"}`)), registry.OutcomeUnknown)
		close(stop)
		time.Sleep(time.Second)
		if row := only(t, mem); row.State != middleware.Done || row.HasResult || row.Late {
			t.Errorf("row is %s, with a result: %v, late: %v", row.State, row.HasResult, row.Late)
		}
	})
}
