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

// killed lets a worker die in the middle of a refund: before or after the effect. The ledger returned is a new
// process's.
func killed(t *testing.T, w *world, afterEffect bool) (l *middleware.MemoryLedger, release func()) {
	t.Helper()
	mem := middleware.Memory()
	stop := make(chan struct{})
	inside := make(chan struct{})
	dead := newWorld(t)
	dead.recovery, dead.window, dead.absent, dead.lookup = w.recovery, w.window, w.absent, w.lookup
	dead.run = func(ctx context.Context, in refundInput) (refund, error) {
		w.mu.Lock()
		w.keys = append(w.keys, registry.IdempotencyKey(ctx))
		w.mu.Unlock()
		if afterEffect {
			w.did("refund")
		}
		close(inside)
		<-stop
		return refund{}, errors.New("killed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = dead.handler(mem, nil)(ctx, at(1, 0, "issue_refund", r7)) }()
	<-inside
	mem.Die()
	cancel()
	return mem.Peer(), func() {
		close(stop)
		time.Sleep(time.Hour) // what the dead process would still do is over
	}
}

func TestKilledAfterTheEffectRefundsOnce(t *testing.T) {
	found := func(w *world) func(context.Context, refundInput) (refund, error) {
		return func(context.Context, refundInput) (refund, error) {
			if w.count("refund") == 0 {
				return refund{}, registry.NoEffect(errors.New("no such refund"))
			}
			return refund{ID: "re_found"}, nil
		}
	}
	keyed := func(w *world) func(context.Context, refundInput) (refund, error) {
		return func(context.Context, refundInput) (refund, error) { // a provider that remembers its key
			if w.count("refund") == 0 {
				w.did("refund")
			}
			return refund{ID: "re_first"}, nil
		}
	}
	for _, c := range []struct {
		name        string
		afterEffect bool
		lookup      bool
		recovery    registry.Recovery
		verdict     registry.Verdict
		contains    string
		effects     int
	}{
		{"plain, before the effect", false, false, registry.Hold, registry.OutcomeUnknown, "a person must check", 0},
		{"plain, after the effect", true, false, registry.Hold, registry.OutcomeUnknown, "a person must check", 1},
		{"keyed, before the effect", false, false, registry.Rerun, registry.Executed, "re_first", 1},
		{"keyed, after the effect", true, false, registry.Rerun, registry.Executed, "re_first", 1},
		{"lookup, after the effect", true, true, registry.Hold, registry.Replayed, "re_found", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.recovery = c.recovery
				if c.lookup {
					w.lookup = found(w)
				}
				l, release := killed(t, w, c.afterEffect)
				w.run = keyed(w)
				h := w.handler(l, nil)
				want(t, ask(t, h, at(1, 0, "issue_refund", r7)), c.verdict, c.contains)
				wantEffects(t, w, "refund", c.effects)
				if c.recovery == registry.Rerun && w.keys[0] != w.keys[1] {
					t.Errorf("the second attempt has another key: %v", w.keys)
				}
				again := ask(t, h, at(2, 0, "issue_refund", r7)) // and a repeat under another turn
				if c.verdict == registry.OutcomeUnknown {
					want(t, again, registry.OutcomeUnknown)
				} else {
					want(t, again, registry.AlreadyDone, c.contains)
				}
				wantEffects(t, w, "refund", c.effects)
				release()
			})
		})
	}
}

func TestLookupSaysAbsentOnlyAfterTheDeadlineAndThenItRunsWithTheSameKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.absent = 20 * time.Second
		w.lookup = func(context.Context, refundInput) (refund, error) {
			w.did("lookup")
			return refund{}, registry.NoEffect(errors.New("no such refund"))
		}
		l, release := killed(t, w, false)
		h := w.handler(l, nil)
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		wantEffects(t, w, "refund", 0)
		time.Sleep(timeout + 5*time.Second) // the deadline is over, AbsentAfter is not
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		time.Sleep(w.absent)
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Executed)
		wantEffects(t, w, "refund", 1)
		wantEffects(t, w, "lookup", 3)
		if len(w.keys) != 2 || w.keys[0] != w.keys[1] {
			t.Errorf("keys %v", w.keys)
		}
		release()
	})
}

func TestLookupThatIsUnsureLeavesItInDoubtAndIsAskedAgainByALaterCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run = func(context.Context, refundInput) (refund, error) { w.did("refund"); return refund{}, errTimeout }
		w.lookup = func(context.Context, refundInput) (refund, error) {
			if w.did("lookup") < 3 {
				return refund{}, errors.New("provider is down")
			}
			return refund{ID: "re_found"}, nil
		}
		h := w.handler(middleware.Memory(), nil)
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		want(t, ask(t, h, at(3, 0, "issue_refund", r7)), registry.AlreadyDone, "re_found")
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Replayed, "re_found")
		wantEffects(t, w, "refund", 1)
	})
}

func TestLookupIsAskedByOneAtATimeAndAnswersAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.lookup = func(context.Context, refundInput) (refund, error) {
			w.did("lookup")
			time.Sleep(2 * time.Second)
			return refund{ID: "re_found"}, nil
		}
		l, release := killed(t, w, true)
		var wg sync.WaitGroup
		for i, led := range []*middleware.MemoryLedger{l, l, l.Peer(), l.Peer()} {
			wg.Go(func() {
				got, err := w.handler(led, nil)(t.Context(), at(1, i, "issue_refund", r7))
				if err != nil || got.Verdict != registry.AlreadyDone && got.Verdict != registry.Replayed {
					t.Errorf("%v %v", got, err)
				}
			})
		}
		wg.Wait()
		wantEffects(t, w, "lookup", 1)
		release()
	})
}

func TestLookupGetsTheStoredInputAndNotTheNewCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.lookup = func(_ context.Context, in refundInput) (refund, error) { return refund{ID: in.Reason}, nil }
		l, release := killed(t, w, true)
		got := ask(t, w.handler(l, nil), at(2, 0, "issue_refund", `{"order_id":"R-7","cents":500,"reason":"other words"}`))
		want(t, got, registry.AlreadyDone, `"id":"broken"`)
		release()
	})
}

func TestOutsideTheKeyWindowNothingIsRunAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.recovery, w.window = registry.Rerun, time.Minute
		l, release := killed(t, w, true)
		time.Sleep(56 * time.Second) // the window is a minute less the margin of 5 s
		want(t, ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		wantEffects(t, w, "refund", 1)
		release()
	})
}

func TestAnOrphanedIdempotentWriteRunsAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		l := middleware.Memory()
		stop := make(chan struct{})
		w.set = func(context.Context, noteInput) (string, error) { <-stop; return "", errors.New("killed") }
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = w.handler(l, nil)(ctx, at(1, 0, "set_address", `{"text":"x"}`)) }()
		synctest.Wait()
		l.Die()
		cancel()
		next := newWorld(t)
		want(t, ask(t, next.handler(l.Peer(), nil), at(1, 0, "set_address", `{"text":"x"}`)), registry.Executed, "set")
		wantEffects(t, next, "set", 1)
		close(stop)
	})
}

func TestAnIdempotentWriteThatFailsMayBeTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.set = func(context.Context, noteInput) (string, error) { return "", errTimeout }
		l := middleware.Memory()
		h := w.handler(l, nil)
		want(t, ask(t, h, at(1, 0, "set_address", `{"text":"x"}`)), registry.Failed, `"retryable":true`)
		if row := only(t, l); row.State != middleware.Free {
			t.Errorf("row is %s, want free", row.State)
		}
		w.set = func(context.Context, noteInput) (string, error) { time.Sleep(3 * timeout); return "late", nil }
		want(t, ask(t, h, at(1, 0, "set_address", `{"text":"x"}`)), registry.Failed, "timed out")
		time.Sleep(3 * timeout)
		want(t, ask(t, h, at(1, 0, "set_address", `{"text":"x"}`)), registry.Replayed, "late")
		wantEffects(t, w, "set", 2)
	})
}

func TestAReadThatHangsEndsAtItsTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.status = func(context.Context, noteInput) (string, error) { time.Sleep(time.Hour); return "", nil }
		start := time.Now()
		want(t, ask(t, w.handler(middleware.Memory(), nil), at(1, 0, "job_status", `{"text":"1"}`)), registry.Failed, "timed out")
		if time.Since(start) != timeout {
			t.Errorf("took %v", time.Since(start))
		}
		time.Sleep(time.Hour)
	})
}

func TestALateResultOfASlowProcessSettlesWhatIsInDoubt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		slow, fast := newWorld(t), newWorld(t)
		slow.run = func(context.Context, refundInput) (refund, error) {
			slow.did("refund")
			time.Sleep(5 * time.Second)
			return refund{ID: "re_slow"}, nil
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			want(t, ask(t, slow.handler(mem, nil), at(1, 0, "issue_refund", r7)), registry.Executed, "re_slow")
		})
		synctest.Wait()
		mem.Die() // wrongly believed dead
		h := fast.handler(mem.Peer(), nil)
		want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		wg.Wait()
		want(t, ask(t, h, at(3, 0, "issue_refund", r7)), registry.AlreadyDone, "re_slow")
		wantEffects(t, fast, "refund", 0)
	})
}

func TestDidNotHappenIsRefusedWhileARequestMayLandAndALateResultIsShown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		w := newWorld(t)
		w.run = func(context.Context, refundInput) (refund, error) {
			w.did("refund")
			time.Sleep(time.Minute) // far beyond its deadline
			return refund{ID: "re_late"}, nil
		}
		h := w.handler(mem, nil)
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		row := only(t, mem)
		verdict := middleware.Transition{Step: middleware.NotHappened, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, By: "ann", Why: "not at the provider"}
		person := mem.Peer()
		var early *middleware.EarlyError
		if _, err := person.Change(t.Context(), verdict); !errors.As(err, &early) || !early.Until.Equal(row.Deadline) {
			t.Fatalf("before the deadline: %v", err)
		}
		if _, err := mem.Change(t.Context(), verdict); !errors.As(err, &early) || !early.Until.IsZero() {
			t.Fatalf("while the handler runs here: %v", err)
		}
		time.Sleep(timeout + 5*time.Second)
		if _, err := person.Change(t.Context(), verdict); err != nil {
			t.Fatalf("after the deadline: %v", err)
		}
		time.Sleep(time.Minute) // the result of that claim comes: the first claim still stands, so it is taken
		if got := rowOf(t, mem, row.Operation); got.State != middleware.Done || got.Result != `{"id":"re_late","cents":0}` {
			t.Errorf("%s %s", got.State, got.Result)
		}
		if _, err := person.Change(t.Context(), verdict); !errors.Is(err, middleware.ErrLost) {
			t.Errorf("an old verdict on a done row: %v", err)
		}
	})
}

func TestALateResultAfterAnotherClaimIsMarkedForTheOperator(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		slow := newWorld(t)
		slow.run = func(context.Context, refundInput) (refund, error) {
			time.Sleep(time.Minute)
			return refund{ID: "re_late"}, nil
		}
		want(t, ask(t, slow.handler(mem, nil), at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		time.Sleep(timeout)
		row := only(t, mem)
		other := mem.Peer()
		if _, err := other.Change(t.Context(), middleware.Transition{Step: middleware.NotHappened, Operation: row.Operation, Token: row.Token, Attempt: 1, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		fast := newWorld(t)
		want(t, ask(t, fast.handler(other, nil), at(2, 0, "issue_refund", r7)), registry.Executed, "re_R-7")
		time.Sleep(time.Minute)
		if got := rowOf(t, mem, row.Operation); !got.Late || got.Result != `{"id":"re_R-7","cents":500}` {
			t.Errorf("late %v, result %s", got.Late, got.Result)
		}
	})
}

func TestDidNotHappenKeepsTheKeyUnlessANewOneIsAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, renew := range []bool{false, true} {
			mem := middleware.Memory()
			w := newWorld(t)
			w.run = func(context.Context, refundInput) (refund, error) {
				if w.did("try") == 1 {
					return refund{}, errTimeout
				}
				return refund{ID: "re_2"}, nil
			}
			h := w.handler(mem, nil)
			want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
			row := only(t, mem)
			time.Sleep(time.Until(row.Deadline))
			if _, err := mem.Change(t.Context(), middleware.Transition{Step: middleware.NotHappened, Operation: row.Operation, Token: row.Token, Attempt: 1, By: "ann", NewKey: renew}); err != nil {
				t.Fatal(err)
			}
			want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.Executed)
			if same := w.keys[0] == w.keys[1]; same == renew {
				t.Errorf("new key asked for: %v, same key: %v", renew, same)
			}
		}
	})
}

func TestNoEffectAfterAnUnclearClaimKeepsTheKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		w := newWorld(t)
		w.run = func(context.Context, refundInput) (refund, error) {
			switch w.did("try") {
			case 1:
				return refund{}, errTimeout
			case 2:
				return refund{}, registry.NoEffect(errors.New("not sent"))
			}
			return refund{}, nil
		}
		h := w.handler(mem, nil)
		ask(t, h, at(1, 0, "issue_refund", r7))
		row := only(t, mem)
		time.Sleep(time.Until(row.Deadline))
		if _, err := mem.Change(t.Context(), middleware.Transition{Step: middleware.NotHappened, Operation: row.Operation, Token: row.Token, Attempt: 1, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.Failed)
		want(t, ask(t, h, at(3, 0, "issue_refund", r7)), registry.Executed)
		if w.keys[0] != w.keys[1] || w.keys[1] != w.keys[2] {
			t.Errorf("keys %v: if the person erred, the provider would not stop it", w.keys)
		}
	})
}

func TestAWaiterIsBoundToTheOperationItMet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		w := newWorld(t)
		h := w.handler(mem, nil)
		r := registry.New()
		registry.Add(r, registry.Tool[bookInput, booking]{Name: "book", Effect: registry.NonIdempotentWrite, Timeout: timeout, Run: func(context.Context, bookInput) (booking, error) {
			w.did("book")
			time.Sleep(3 * time.Second)
			return booking{"R1"}, nil
		}})
		slow := r.Handler(middleware.Once(mem, options()))
		var wg sync.WaitGroup
		wg.Go(func() { ask(t, slow, at(1, 0, "book", `{"flight":"LH1"}`)) })
		synctest.Wait()
		// Another process waits for it, polling once a second in the end, and wakes when it has been undone since.
		wg.Go(func() {
			want(t, ask(t, w.handler(mem.Peer(), nil), at(2, 0, "book", `{"flight":"LH1"}`)), registry.AlreadyDone, "R1")
		})
		time.Sleep(3*time.Second + time.Millisecond)
		want(t, ask(t, h, at(3, 0, "cancel", `{"reservation_id":"R1"}`)), registry.Executed)
		wg.Wait()
		wantEffects(t, w, "book", 1)
	})
}

func TestAnUndoThatALookupOrAPersonSettlesReleasesToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		w := newWorld(t)
		h := w.handler(mem, nil)
		ask(t, h, at(1, 0, "book", `{"flight":"LH1"}`))
		r := registry.New()
		registry.Add(r, registry.Tool[bookInput, booking]{Name: "book", Effect: registry.NonIdempotentWrite, Run: func(context.Context, bookInput) (booking, error) { return booking{}, nil }})
		registry.Add(r, registry.Tool[cancelInput, string]{Name: "cancel", Effect: registry.NonIdempotentWrite, Undoes: "book", Timeout: timeout, Run: func(context.Context, cancelInput) (string, error) {
			return "", errTimeout
		}})
		want(t, ask(t, r.Handler(middleware.Once(mem, options())), at(2, 0, "cancel", `{"reservation_id":"R1"}`)), registry.OutcomeUnknown)
		want(t, ask(t, h, at(3, 0, "book", `{"flight":"LH1"}`)), registry.AlreadyDone) // not undone yet
		undo := only(t, mem, middleware.InDoubt)
		if _, err := mem.Change(t.Context(), middleware.Transition{Step: middleware.Happened, Operation: undo.Operation, Token: undo.Token, Attempt: 1, By: "ann"}); err != nil {
			t.Fatal(err)
		}
		want(t, ask(t, h, at(4, 0, "book", `{"flight":"LH1"}`)), registry.Executed)
		wantEffects(t, w, "book", 2)
		want(t, ask(t, h, at(5, 0, "cancel", `{"reservation_id":"R1"}`)), registry.Executed) // the second booking
	})
}

func TestRecoverSettlesTheOrphansOfANamespaceAndNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.lookup = func(context.Context, refundInput) (refund, error) { return refund{ID: "re_found"}, nil }
		l, release := killed(t, w, true)
		living := l.Peer()
		other := newWorld(t)
		other.run = func(context.Context, refundInput) (refund, error) { time.Sleep(5 * time.Second); return refund{}, nil }
		var wg sync.WaitGroup
		wg.Go(func() {
			want(t, ask(t, other.handler(living, nil), at(9, 0, "issue_refund", `{"order_id":"B","cents":1}`)), registry.Executed)
		})
		synctest.Wait()
		got, err := middleware.Recover(t.Context(), w.registry(), l, options())
		if err != nil || len(got) != 1 || got[0].Verdict != registry.Replayed || got[0].Tool != "issue_refund" {
			t.Errorf("%+v %v", got, err)
		}
		if got, err := middleware.Recover(t.Context(), w.registry(), l.Namespace("x"), options()); err != nil || len(got) != 0 {
			t.Errorf("%+v %v", got, err)
		}
		wg.Wait()
		want(t, ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7)), registry.Replayed, "re_found")
		release()
	})
}

func TestRecoverLeavesAnOrphanWhoseToolHasGoneToAPerson(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.recovery = registry.Rerun
		l, release := killed(t, w, true)
		got, err := middleware.Recover(t.Context(), registry.New(), l, options())
		if err != nil || len(got) != 1 || got[0].Verdict != registry.OutcomeUnknown {
			t.Errorf("%+v %v", got, err)
		}
		if row := only(t, l); row.State != middleware.InDoubt {
			t.Errorf("row is %s", row.State)
		}
		release()
	})
}
