package middleware_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
)

// asks is a ledger at which something happens as a question is stored.
type asks struct {
	*middleware.MemoryLedger
	during func(ctx context.Context) error
}

func (l asks) Ask(ctx context.Context, a middleware.Approval, expires time.Duration) (middleware.Approval, error) {
	if err := l.during(ctx); err != nil {
		return middleware.Approval{}, err
	}
	return l.MemoryLedger.Ask(ctx, a, expires)
}

func TestAQuestionThatCannotBeStoredIsAnErrorAndNoPause(t *testing.T) {
	w := newTill(t)
	full := errors.New("disk full")
	h := w.handler(asks{w.ledger, func(context.Context) error { return full }})
	res, err := h(t.Context(), at(1, 0, "pay", pay1))
	if _, waits := errors.AsType[*middleware.PausedError](err); waits || !errors.Is(err, full) || res.Verdict != "" ||
		!strings.Contains(err.Error(), "middleware: asking for an approval of a call of pay: ") {
		t.Errorf("%+v, %v", res, err)
	}
	w.wantPaid(0)
	w.wantRows(0)
}

// A person can answer what was asked, though whoever started the run has gone meanwhile.
func TestAQuestionIsStoredThoughItsCallerHasGone(t *testing.T) {
	w := newTill(t)
	ctx, cancel := context.WithCancel(t.Context())
	h := w.handler(asks{w.ledger, func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	}})
	_, err := h(ctx, at(1, 0, "pay", pay1))
	if _, waits := errors.AsType[*middleware.PausedError](err); !waits || len(approvals(t, w.ledger, middleware.Pending)) != 1 {
		t.Error(err)
	}
	w.wantPaid(0)
}

func TestAQuestionTellsAPersonWhatItIsAbout(t *testing.T) {
	w := newTill(t)
	a := paused(t, w.handler(w.ledger), placedIn("chat-7", at(3, 1, "pay", pay1)))
	if a.Conversation != "chat-7" || string(a.Input) != `{"cents":100,"order":"1"}` || a.RepeatOf != "" || a.Call.Tool != "pay" || a.Call.Turn != 3 || a.Call.Position != 1 {
		t.Errorf("%+v", a)
	}
}

// What a repeat is known by must not change from one version to the next, or it would be made once more.
func TestTheIdentityOfARepeatIsFixed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var p post
		l := middleware.Memory()
		first := rowOf(t, l, ask(t, p.handler(l), mail("1", 1)).Operation)
		later()
		res := ask(t, p.handler(l), again("mail", "2", 1, first.Operation))
		want(t, res, registry.Executed)
		h := sha256.Sum256([]byte("repeat\x00" + first.Identity + "\x00" + first.Operation))
		if second := rowOf(t, l, res.Operation); second.Identity != hex.EncodeToString(h[:]) {
			t.Errorf("it is known as %s", second.Identity)
		}
	})
}

func TestTheSameArgumentsOfAnotherToolAreAnotherOperation(t *testing.T) {
	r := registry.New()
	for _, name := range []string{"pay", "charge"} {
		registry.Add(r, registry.Tool[payInput, string]{Name: name, Effect: registry.NonIdempotentWrite, Run: func(context.Context, payInput) (string, error) { return name, nil }})
	}
	h := r.Handler(middleware.Once(middleware.Memory(), options()))
	want(t, ask(t, h, at(1, 0, "pay", pay1)), registry.Executed, "pay")
	want(t, ask(t, h, at(1, 1, "charge", pay1)), registry.Executed, "charge")
}

func TestByCallEachPlaceIsMeant(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	for n, c := range []*registry.Call{at(1, 0, "add_note", `{"text":"x"}`), at(1, 1, "add_note", `{"text":"x"}`), in("other", at(1, 0, "add_note", `{"text":"x"}`))} {
		want(t, ask(t, h, c), registry.Executed)
		wantEffects(t, w, "note", n+1)
	}
}

func TestOutcomesAreStoredThoughTheirCallerHasGone(t *testing.T) {
	for name, fails := range map[string]error{"a result": nil, "a doubt": errTimeout, "no effect": registry.NoEffect(errTimeout)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.run = func(context.Context, refundInput) (refund, error) {
					time.Sleep(2 * time.Second)
					return refund{}, fails
				}
				l := &ledgertest.Faulty{Ledger: middleware.Memory(), Before: func(ctx context.Context, op ledgertest.Op) error {
					if op.Method == "Change" && ctx.Err() != nil {
						t.Errorf("%s under a context that has ended", op)
					}
					return nil
				}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := w.handler(l, nil)(ctx, at(1, 0, "issue_refund", r7)); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				if row := only(t, l); row.State == middleware.Running {
					t.Error("the outcome is not stored")
				}
			})
		})
	}
}

func TestALateNoEffectOfALaterAttemptSpeaksForItselfOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.recovery = registry.Rerun
		w.run = func(context.Context, refundInput) (refund, error) {
			if w.did("try") == 1 {
				return refund{}, errTimeout // may have happened
			}
			time.Sleep(2 * timeout)
			return refund{}, registry.NoEffect(errors.New("connection refused"))
		}
		l := middleware.Memory()
		want(t, ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		time.Sleep(3 * timeout)
		if row := only(t, l); row.State != middleware.InDoubt || row.Attempt != 2 {
			t.Errorf("%s after attempt %d, want in_doubt after 2", row.State, row.Attempt)
		}
	})
}

func TestWhatMayHaveHappenedIsNotRunAgainHoweverLate(t *testing.T) {
	for name, lookup := range map[string]func(context.Context, refundInput) (refund, error){
		"hold": nil, "a Lookup that does not know": func(context.Context, refundInput) (refund, error) { return refund{}, errTimeout },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.lookup = lookup
				l, release := killed(t, w, true)
				for turn := range 3 {
					time.Sleep(48 * time.Hour)
					want(t, ask(t, w.handler(l, nil), at(turn+1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
				}
				wantEffects(t, w, "refund", 1)
				release()
			})
		})
	}
}

func TestDidNotHappenIsRefusedUntilTheMarginAfterTheTimeoutIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run = func(context.Context, refundInput) (refund, error) { return refund{}, errTimeout }
		l := middleware.Memory()
		want(t, ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		row := only(t, l)
		verdict := middleware.Transition{Step: middleware.NotHappened, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, By: "ann"}
		time.Sleep(time.Until(row.Created.Add(timeout + options().Margin - 1)))
		if _, err := l.Change(t.Context(), verdict); err == nil {
			t.Error("want it to be too early")
		}
		time.Sleep(time.Nanosecond)
		if _, err := l.Change(t.Context(), verdict); err != nil {
			t.Error(err)
		}
	})
}

// The answer of the claim takes as long as the tool may, so that little of the deadline is left.
func TestAHandlersTimeEndsBeforeItsDeadlineThoughTheClaimWasSlow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		var ended time.Time
		w.run = func(ctx context.Context, _ refundInput) (refund, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			ended = time.Now()
			return refund{}, ctx.Err()
		}
		l := &ledgertest.Faulty{Ledger: middleware.Memory(), After: func(_ context.Context, op ledgertest.Op) error {
			if op.Method == "Claim" {
				time.Sleep(timeout)
			}
			return nil
		}}
		want(t, ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		time.Sleep(2 * time.Hour)
		if row := only(t, l); !ended.Before(row.Deadline) {
			t.Errorf("it ended at %v, the deadline is %v", ended, row.Deadline)
		}
	})
}

// wireTo is the other side of a transport.
type wireTo func(*http.Request) (*http.Response, error)

func (p wireTo) RoundTrip(r *http.Request) (*http.Response, error) { return p(r) }

func TestARequestOfAHandlerThatIsLateIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		recovery registry.Recovery
		window   time.Duration // 5 s of it are the margin
		late     time.Duration
		sent     int
	}{
		"in time": {registry.Hold, 0, timeout - 1, 1}, "after its time": {registry.Hold, 0, timeout, 0},
		"inside the key window": {registry.Rerun, 12 * time.Second, 7*time.Second - 1, 1}, "outside the key window": {registry.Rerun, 12 * time.Second, 7 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				sent := 0
				transport := registry.Transport{Base: wireTo(func(*http.Request) (*http.Response, error) {
					sent++
					return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
				})}
				w := newWorld(t)
				w.recovery, w.window = c.recovery, c.window
				w.run = func(ctx context.Context, _ refundInput) (refund, error) {
					time.Sleep(c.late)
					req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider/refunds", nil)
					if err != nil {
						return refund{}, err
					}
					res, err := transport.RoundTrip(req)
					if err == nil {
						err = res.Body.Close()
					}
					return refund{}, err
				}
				_ = ask(t, w.handler(middleware.Memory(), nil), at(1, 0, "issue_refund", r7))
				time.Sleep(time.Minute)
				if sent != c.sent {
					t.Errorf("sent %d times, want %d", sent, c.sent)
				}
			})
		})
	}
}

func TestAnOrphanIsRunAgainInsideTheKeyWindowAlone(t *testing.T) {
	for name, c := range map[string]struct {
		after   time.Duration // the window is 12 s less the margin of 5 s, and the handler's time is longer
		verdict registry.Verdict
		effects int
	}{
		"inside": {7*time.Second - 1, registry.Executed, 2}, "outside": {7 * time.Second, registry.OutcomeUnknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.recovery, w.window = registry.Rerun, 12*time.Second
				l, release := killed(t, w, true)
				time.Sleep(c.after)
				want(t, ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7)), c.verdict)
				wantEffects(t, w, "refund", c.effects)
				release()
			})
		})
	}
}

// Two calls take an orphan over at once. The answer of the one's step is lost, the other's step fails, and the store says
// of both that it was made.
func TestATakeOverOfTwoWhoseAnswersWereLostIsMadeOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.recovery = registry.Rerun
		_, mem, release := orphans(t, w, "A")
		w.run = func(context.Context, refundInput) (refund, error) {
			w.did("refund")
			time.Sleep(5 * time.Second)
			return refund{ID: "re_1"}, nil
		}
		back := time.Now().Add(4 * time.Second)
		var steps atomic.Int32
		l := &ledgertest.Faulty{Ledger: mem}
		l.Before = func(_ context.Context, o ledgertest.Op) error {
			switch {
			case !time.Now().Before(back):
			case o.Method == "Find" && o.Operation != "":
				return errDown
			case o.Step == middleware.Again && steps.Add(1) == 1:
				time.Sleep(time.Second) // until the other has decided too
			case o.Step == middleware.Again:
				return errDown
			}
			return nil
		}
		l.After = func(_ context.Context, o ledgertest.Op) error {
			if o.Step == middleware.Again && time.Now().Before(back) {
				return errDown
			}
			return nil
		}
		h := w.handler(l, nil)
		var wg sync.WaitGroup
		for turn := range 2 {
			wg.Go(func() {
				if _, err := h(t.Context(), at(turn+2, 0, "issue_refund", forA)); !errors.Is(err, errDown) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		wantEffects(t, w, "refund", 1)
		if row := only(t, mem); row.State != middleware.Done || row.Attempt != 2 || steps.Load() != 2 {
			t.Errorf("%s after attempt %d and %d steps", row.State, row.Attempt, steps.Load())
		}
		release()
	})
}

func TestEachAttemptGetsTheStoredInputWhateverTheOneBeforeHasMadeOfIt(t *testing.T) {
	type listInput struct {
		Items []string `json:"items"`
	}
	bubble(t, func(t *testing.T) {
		var got []string
		r := registry.New()
		registry.Add(r, registry.Tool[listInput, string]{
			Name: "send", Effect: registry.NonIdempotentWrite, Recovery: registry.Rerun, Timeout: timeout,
			Run: func(_ context.Context, in listInput) (string, error) {
				got = append(got, in.Items[0])
				in.Items[0] = "changed"
				return "", errTimeout
			},
		})
		want(t, ask(t, r.Handler(middleware.Once(middleware.Memory(), options())), at(1, 0, "send", `{"items":["a"]}`)), registry.OutcomeUnknown)
		if diff := cmp.Diff([]string{"a", "a", "a"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// What was waited for is undone and made once more before the waiter looks again.
func TestAWaiterIsToldOfTheOperationItMetAndNotOfTheNext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		w := newWorld(t)
		slow := registry.New()
		registry.Add(slow, registry.Tool[bookInput, booking]{Name: "book", Effect: registry.NonIdempotentWrite, Timeout: timeout, Run: func(context.Context, bookInput) (booking, error) {
			time.Sleep(3 * time.Second)
			return booking{"R1"}, nil
		}})
		var wg sync.WaitGroup
		wg.Go(func() { ask(t, slow.Handler(middleware.Once(mem, options())), at(1, 0, "book", `{"flight":"LH1"}`)) })
		synctest.Wait()
		wg.Go(func() {
			want(t, ask(t, w.handler(mem.Peer(), nil), at(2, 0, "book", `{"flight":"LH1"}`)), registry.AlreadyDone, "R1")
		})
		time.Sleep(3*time.Second + time.Millisecond)
		h := w.handler(mem, nil)
		want(t, ask(t, h, at(3, 0, "cancel", `{"reservation_id":"R1"}`)), registry.Executed)
		w.reservation = "R2"
		want(t, ask(t, h, at(4, 0, "book", `{"flight":"LH1"}`)), registry.Executed, "R2")
		wg.Wait()
	})
}
