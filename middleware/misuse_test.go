package middleware_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
)

func TestACallWithoutARunIsAnErrorAndNotTheSameCallAsAnother(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	for _, tool := range []string{"issue_refund", "pay", "add_note", "set_address"} {
		arguments := map[string]string{"issue_refund": r7, "pay": `{"order":"1","cents":1}`}[tool]
		if arguments == "" {
			arguments = `{"text":"x"}`
		}
		if _, err := h(t.Context(), in("", at(1, 0, tool, arguments))); !errors.Is(err, middleware.ErrNoRun) {
			t.Errorf("%s: %v, want ErrNoRun", tool, err)
		}
	}
	want(t, ask(t, h, in("", at(1, 0, "job_status", `{"text":"1"}`))), registry.Executed)
	want(t, ask(t, h, in("", at(0, 0, "set_address", `{"text":"x"}`))), registry.Executed) // unguarded
	wantEffects(t, w, "refund", 0)
}

func TestOnceTwiceInAChainIsToldAndRunsNothing(t *testing.T) {
	w := newWorld(t)
	l := middleware.Memory()
	h := w.registry().Handler(middleware.Once(l, options()), middleware.Once(l, options()))
	_, err := h(t.Context(), at(1, 0, "issue_refund", r7))
	if err == nil || !strings.Contains(err.Error(), "in the chain twice") {
		t.Errorf("%v", err)
	}
	if row := only(t, l); row.State != middleware.Free {
		t.Errorf("row is %s, want free", row.State)
	}
	wantEffects(t, w, "refund", 0)
}

func TestAnErrorOfAMiddlewareWithinEndsTheRunAndLeavesTheRowAsItProves(t *testing.T) {
	for proof, state := range map[bool]middleware.State{true: middleware.Free, false: middleware.InDoubt} {
		w := newWorld(t)
		l := middleware.Memory()
		cause := errors.New("quota store is down")
		h := w.registry().Handler(middleware.Once(l, options()), func(registry.Handler) registry.Handler {
			return func(context.Context, *registry.Call) (registry.Result, error) {
				if proof {
					return registry.Result{}, registry.NoEffect(cause)
				}
				return registry.Result{}, cause
			}
		})
		if _, err := h(t.Context(), at(1, 0, "issue_refund", r7)); !errors.Is(err, cause) {
			t.Errorf("%v", err)
		}
		if row := only(t, l); row.State != state {
			t.Errorf("row is %s, want %s", row.State, state)
		}
	}
}

func TestARefusalOfAMiddlewareWithinFreesTheRow(t *testing.T) {
	w := newWorld(t)
	l := middleware.Memory()
	h := w.registry().Handler(middleware.Once(l, options()), func(registry.Handler) registry.Handler {
		return func(_ context.Context, c *registry.Call) (registry.Result, error) {
			return c.Refused(errors.New("over the daily limit")), nil
		}
	})
	want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Refused, "over the daily limit")
	if row := only(t, l); row.State != middleware.Free {
		t.Errorf("row is %s, want free", row.State)
	}
}

func TestAToolThatEndsItsGoroutineIsUnclearAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run = func(context.Context, refundInput) (refund, error) { runtime.Goexit(); return refund{}, nil }
		w.status = func(context.Context, noteInput) (string, error) { runtime.Goexit(); return "", nil }
		h := w.handler(middleware.Memory(), nil)
		start := time.Now()
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		want(t, ask(t, h, at(1, 1, "job_status", `{"text":"1"}`)), registry.Failed)
		if time.Since(start) != 0 {
			t.Errorf("told after %v", time.Since(start))
		}
	})
}

func TestACheckThatHangsOrBreaksDownIsARefusal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		var told []error
		w.check = func(context.Context, refundInput) error {
			if w.did("check") == 1 {
				time.Sleep(time.Hour)
			}
			panic("secret")
		}
		o := options()
		o.OnError = func(_ context.Context, _ *registry.Call, err error) { told = append(told, err) }
		h := w.handler(middleware.Memory(), o)
		start := time.Now()
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Refused, "timed out")
		if time.Since(start) != timeout {
			t.Errorf("told after %v", time.Since(start))
		}
		got := ask(t, h, at(2, 0, "issue_refund", r7))
		want(t, got, registry.Refused, "broke down")
		p, ok := errors.AsType[*middleware.PanicError](errors.Join(told...))
		if !ok || p.Value != "secret" || len(p.Stack) == 0 || strings.Contains(got.Content+p.Error(), "secret") {
			t.Errorf("told %v, the model %s", told, got.Content)
		}
		wantEffects(t, w, "refund", 0)
		time.Sleep(time.Hour)
	})
}

func TestOnErrorIsToldWhatTheGuardDoesNotLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		declined, down := registry.NoEffect(errors.New("declined")), errors.New("provider is down")
		w.run = func(context.Context, refundInput) (refund, error) {
			if w.did("try") == 1 {
				return refund{}, declined
			}
			return refund{}, errTimeout
		}
		w.lookup = func(context.Context, refundInput) (refund, error) { return refund{}, down }
		w.status = func(context.Context, noteInput) (string, error) { return "", errTimeout }
		var told []error
		o := options()
		o.OnError = func(_ context.Context, _ *registry.Call, err error) { told = append(told, err) }
		h := w.handler(middleware.Memory(), o)
		ask(t, h, at(1, 0, "issue_refund", r7))
		ask(t, h, at(2, 0, "issue_refund", r7))
		ask(t, h, at(3, 0, "job_status", `{"text":"1"}`))
		if len(told) != 4 || !errors.Is(told[0], declined) || !errors.Is(told[1], errTimeout) || !errors.Is(told[2], down) || !errors.Is(told[3], errTimeout) {
			t.Errorf("told %v", told)
		}
	})
}

func TestRecoverAsksLookupAgainAboutWhatIsInDoubt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run = func(context.Context, refundInput) (refund, error) {
			if w.did("try") == 1 {
				return refund{}, errTimeout
			}
			return refund{ID: "re_2"}, nil
		}
		w.lookup = func(context.Context, refundInput) (refund, error) {
			return refund{}, registry.NoEffect(errors.New("no such refund"))
		}
		l := middleware.Memory()
		want(t, ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		for _, want := range []string{"outcome_unknown", "executed", ""} { // before the deadline, after it, and once it is done
			got, err := middleware.Recover(t.Context(), w.registry(), l, options())
			if err != nil || want == "" && len(got) != 0 || want != "" && (len(got) != 1 || string(got[0].Verdict) != want) {
				t.Errorf("%+v %v, want %q", got, err, want)
			}
			time.Sleep(timeout + 5*time.Second)
		}
		want(t, ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7)), registry.Replayed, "re_2")
	})
}

func TestWhatIsDoneIsToldThoughTheRepeatCannotBeNoted(t *testing.T) {
	w := newWorld(t)
	mem := middleware.Memory()
	ask(t, w.handler(mem, nil), at(1, 0, "issue_refund", r7))
	full := &ledgertest.Faulty{Ledger: mem, Before: ledgertest.Fail(-1, ledgertest.Op{Method: "Note"}, errors.New("disk full"))}
	want(t, ask(t, w.handler(full, nil), at(2, 0, "issue_refund", r7)), registry.AlreadyDone, "re_R-7")
}
