package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
)

type seatInput struct {
	Seat string `json:"seat" once:"key,resource"`
}

func TestAnUndoOfWhatIsNotYetSettledIsRefusedAndLeavesNoRow(t *testing.T) {
	for state, reason := range map[middleware.State]string{middleware.Running: "still being done", middleware.InDoubt: "a person must check"} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			stop := make(chan struct{})
			r := registry.New()
			registry.Add(r, registry.Tool[seatInput, string]{
				Name: "reserve", Effect: registry.NonIdempotentWrite, Timeout: timeout,
				Run: func(context.Context, seatInput) (string, error) {
					if state == middleware.InDoubt {
						return "", errTimeout
					}
					<-stop
					return "reserved", nil
				},
			})
			registry.Add(r, registry.Tool[seatInput, string]{
				Name: "give_up", Effect: registry.NonIdempotentWrite, Undoes: "reserve", Timeout: timeout,
				Run: func(context.Context, seatInput) (string, error) {
					w.did("give_up")
					return "given up", nil
				},
			})
			l := middleware.Memory()
			h := r.Handler(middleware.Once(l, options()))
			var wg sync.WaitGroup
			wg.Go(func() { ask(t, h, at(1, 0, "reserve", `{"seat":"12A"}`)) })
			synctest.Wait()
			before := only(t, l)
			if before.State != state {
				t.Fatalf("row is %s, want %s", before.State, state)
			}
			for turn := 2; turn <= 3; turn++ {
				want(t, ask(t, h, at(turn, 0, "give_up", `{"seat":"12A"}`)), registry.Refused, reason)
			}
			if after := only(t, l); after.State != state || after.Tool != "reserve" || after.Token != before.Token {
				t.Errorf("row is %s of %s", after.State, after.Tool)
			}
			wantEffects(t, w, "give_up", 0)
			close(stop)
			wg.Wait()
			if state == middleware.Running { // once it is done it can be undone
				want(t, ask(t, h, at(2, 0, "give_up", `{"seat":"12A"}`)), registry.Executed)
			}
		})
	}
}

func TestWhatIsBeingUndoneIsNotUndoneInAnotherWay(t *testing.T) {
	w := newWorld(t)
	tool := func(name string, fails error) registry.Tool[seatInput, string] {
		return registry.Tool[seatInput, string]{Name: name, Effect: registry.NonIdempotentWrite, Timeout: timeout, Run: func(context.Context, seatInput) (string, error) {
			w.did(name)
			return name, fails
		}}
	}
	r := registry.New()
	registry.Add(r, tool("charge", nil))
	void, refund := tool("void", errTimeout), tool("refund", nil)
	void.Undoes, refund.Undoes = "charge", "charge"
	registry.Add(r, void)
	registry.Add(r, refund)
	l := middleware.Memory()
	h := r.Handler(middleware.Once(l, options()))
	want(t, ask(t, h, at(1, 0, "charge", `{"seat":"12A"}`)), registry.Executed)
	want(t, ask(t, h, at(2, 0, "void", `{"seat":"12A"}`)), registry.OutcomeUnknown)
	want(t, ask(t, h, at(3, 0, "refund", `{"seat":"12A"}`)), registry.Refused, "being undone already", "another way")
	wantEffects(t, w, "refund", 0)
	open, err := l.List(t.Context(), []middleware.State{middleware.InDoubt}, 0)
	if err != nil || len(open) != 1 {
		t.Fatalf("%d in doubt, %v", len(open), err)
	}
	settled := middleware.Transition{Step: middleware.Happened, Operation: open[0].Operation, Token: open[0].Token, Attempt: open[0].Attempt, By: "ann"}
	if _, err := l.Change(t.Context(), settled); err != nil {
		t.Fatal(err)
	}
	want(t, ask(t, h, at(4, 0, "refund", `{"seat":"12A"}`)), registry.Refused, "undone already")
	want(t, ask(t, h, at(5, 0, "charge", `{"seat":"12A"}`)), registry.Executed)
	want(t, ask(t, h, at(6, 0, "refund", `{"seat":"12A"}`)), registry.Executed)
	wantEffects(t, w, "refund", 1)
}

func TestALookupThatAnswersAfterItsTimeoutIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run = func(context.Context, refundInput) (refund, error) {
			w.did("refund")
			return refund{}, errTimeout
		}
		w.lookup = func(context.Context, refundInput) (refund, error) {
			w.did("lookup")
			time.Sleep(2 * timeout)
			return refund{ID: "re_found"}, nil
		}
		l := middleware.Memory()
		h := w.handler(l, nil)
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		time.Sleep(2 * timeout)
		if row := only(t, l); row.State != middleware.Done || !strings.Contains(row.Result, "re_found") || row.Late {
			t.Errorf("row is %s with %q, late %v", row.State, row.Result, row.Late)
		}
		want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.AlreadyDone, "re_found")
		wantEffects(t, w, "refund", 1)
		wantEffects(t, w, "lookup", 1)
	})
}

func TestAHandlerThatReturnsLateWhileItsLookupHangsHasItsResultStored(t *testing.T) {
	for _, deaf := range []bool{false, true} { // whether Lookup looks at its context
		t.Run(fmt.Sprintf("deaf: %v", deaf), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.run = func(context.Context, refundInput) (refund, error) { // ignores its context
					w.did("refund")
					time.Sleep(timeout + 5*time.Second)
					return refund{ID: "re_late"}, nil
				}
				stop := make(chan struct{})
				w.lookup = func(ctx context.Context, _ refundInput) (refund, error) {
					w.did("lookup")
					if deaf {
						<-stop
					} else {
						<-ctx.Done()
					}
					return refund{}, errTimeout
				}
				l := middleware.Memory()
				h := w.handler(l, nil)
				var wg sync.WaitGroup
				wg.Go(func() {
					want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Replayed, `{"id":"re_late"`) // Lookup has ended, and the result is there
				})
				time.Sleep(timeout + 6*time.Second) // the handler has returned, Lookup has not
				if row := only(t, l); row.State != middleware.Done || !strings.Contains(row.Result, "re_late") || row.Late {
					t.Errorf("while Lookup hangs the row is %s with %q, late %v; want done with the handler's result", row.State, row.Result, row.Late)
				}
				want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.AlreadyDone, "re_late")
				close(stop)
				wg.Wait()
				time.Sleep(time.Hour)
				if row := only(t, l); row.State != middleware.Done || !strings.Contains(row.Result, "re_late") || row.Late {
					t.Errorf("once Lookup has ended the row is %s with %q, late %v", row.State, row.Result, row.Late)
				}
				wantEffects(t, w, "refund", 1)
				wantEffects(t, w, "lookup", 1)
			})
		})
	}
}

func TestACancelledReadEndsWithTheContextsErrorAndItsHandlerToo(t *testing.T) {
	for cause, with := range map[error]func(context.Context) (context.Context, context.CancelFunc){
		context.Canceled: context.WithCancel,
		context.DeadlineExceeded: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
	} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			ended := make(chan error, 1)
			w.status = func(ctx context.Context, _ noteInput) (string, error) {
				<-ctx.Done()
				ended <- ctx.Err()
				return "", ctx.Err()
			}
			ctx, cancel := with(t.Context())
			go func() {
				time.Sleep(2 * time.Second)
				cancel()
			}()
			start := time.Now()
			res, err := w.handler(middleware.Memory(), nil)(ctx, at(1, 0, "job_status", `{"text":"1"}`))
			if !errors.Is(err, cause) || res.Verdict != "" {
				t.Errorf("%q, error %v, want %v", res.Verdict, err, cause)
			}
			synctest.Wait()
			if waited := time.Since(start); len(ended) != 1 || waited >= timeout {
				t.Fatalf("after %v the handler has not ended", waited)
			}
			if err := <-ended; err == nil {
				t.Error("the handler's context has no error")
			}
			time.Sleep(time.Minute)
		})
	}
}

func TestRecoverNeedsALedgerThatCanBeListed(t *testing.T) {
	got, err := middleware.Recover(t.Context(), registry.New(), struct{ middleware.Ledger }{middleware.Memory()}, options())
	if err == nil || len(got) != 0 || !strings.Contains(err.Error(), "Lister") {
		t.Errorf("%+v, error %v, want one that names Lister", got, err)
	}
}

func TestRecoverThatIsOvertakenRunsNothingTwice(t *testing.T) {
	for _, way := range []string{"hold", "lookup", "rerun"} {
		t.Run(way, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				switch way {
				case "lookup":
					w.lookup = func(context.Context, refundInput) (refund, error) { w.did("settle"); return refund{ID: "re_1"}, nil }
				case "rerun":
					w.recovery = registry.Rerun
				}
				l, release := killed(t, w, true)
				w.run = func(context.Context, refundInput) (refund, error) { w.did("settle"); return refund{ID: "re_1"}, nil }
				var first registry.Result
				overtaken := &ledgertest.Faulty{Ledger: l, After: func(ctx context.Context, op ledgertest.Op) (err error) {
					if op.Method == "List" {
						first, err = w.handler(l.Peer(), nil)(ctx, at(1, 0, "issue_refund", r7))
					}
					return err
				}}
				got, err := middleware.Recover(t.Context(), w.registry(), overtaken, options())
				if err != nil || len(got) > 1 || len(got) == 1 && got[0].Verdict != registry.InProgress {
					t.Errorf("%+v %v, want nothing or in_progress", got, err)
				}
				state, settles := middleware.Done, 1
				if way == "hold" {
					state, settles = middleware.InDoubt, 0
				}
				if row := only(t, l); row.State != state || row.Settle != "" {
					t.Errorf("row is %s after %s, want %s", row.State, first.Verdict, state)
				}
				wantEffects(t, w, "settle", settles)
				release()
			})
		})
	}
}

func TestRecoverGoesOnAfterARowThatFailsAndReturnsItsError(t *testing.T) {
	for i, bad := range []string{"A", "B", "C"} {
		for _, way := range []string{"hold", "lookup", "rerun"} {
			t.Run(fmt.Sprintf("%s, %d of 3", way, i+1), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t)
					w.lookup = nil
					switch way {
					case "lookup":
						w.lookup = func(context.Context, refundInput) (refund, error) { return refund{ID: "re_1"}, nil }
					case "rerun":
						w.recovery = registry.Rerun
					}
					operations, l, release := orphans(t, w, "A", "B", "C")
					f, heal := failing(l, ledgertest.Op{Method: "Change", Operation: operations[bad]})
					got, err := middleware.Recover(t.Context(), w.registry(), f, options())
					if !errors.Is(err, errFull) || !strings.Contains(err.Error(), operations[bad]) {
						t.Errorf("error %v, want %v of operation %s", err, errFull, operations[bad])
					}
					told := map[string]bool{}
					for _, r := range got {
						told[r.Operation] = true
					}
					for order, operation := range operations {
						if told[operation] != (order != bad) {
							t.Errorf("%s (%s) was recovered: %v", operation, order, told[operation])
						}
						if row := rowOf(t, l, operation); order != bad && row.State == middleware.Running {
							t.Errorf("the row of %s is running", order)
						}
					}
					heal()
					time.Sleep(time.Hour)
					if _, err := middleware.Recover(t.Context(), w.registry(), f, options()); err != nil {
						t.Errorf("once the store is well: %v", err)
					}
					if row := rowOf(t, l, operations[bad]); row.State == middleware.Running {
						t.Errorf("once the store is well the row of %s is running", bad)
					}
					release()
				})
			})
		}
	}
}

// orphans lets a worker die in the middle of several refunds. The ledger returned is a new process's.
func orphans(t *testing.T, w *world, orders ...string) (operations map[string]string, l *middleware.MemoryLedger, release func()) {
	t.Helper()
	mem := middleware.Memory()
	stop := make(chan struct{})
	dead := newWorld(t)
	dead.recovery, dead.lookup = w.recovery, w.lookup
	dead.run = func(context.Context, refundInput) (refund, error) { <-stop; return refund{}, errors.New("killed") }
	ctx, cancel := context.WithCancel(t.Context())
	operations = map[string]string{}
	for i, order := range orders {
		go func() {
			_, _ = dead.handler(mem, nil)(ctx, at(1, i, "issue_refund", fmt.Sprintf(`{"order_id":%q,"cents":1}`, order)))
		}()
		time.Sleep(time.Millisecond)
		row, ok, err := mem.Find(t.Context(), middleware.Query{Run: "r", Turn: 1, Position: i})
		if err != nil || !ok {
			t.Fatalf("the row of %s: %v %v", order, ok, err)
		}
		operations[order] = row.Operation
	}
	mem.Die()
	cancel()
	return operations, mem.Peer(), func() {
		close(stop)
		time.Sleep(time.Hour)
	}
}

func TestAWaiterCountsAsOneRepeatAtMostAndAsNoneWhereItBecomesTheClaimer(t *testing.T) {
	for _, turn := range []int{0, 1} {
		for failures := range 3 {
			t.Run(fmt.Sprintf("turn %d, %d failures", turn, failures), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t)
					w.run = func(context.Context, refundInput) (refund, error) {
						time.Sleep(time.Second)
						if w.did("try") <= failures {
							return refund{}, registry.NoEffect(errors.New("not sent"))
						}
						return refund{ID: "re_1"}, nil
					}
					l := middleware.Memory()
					h := w.handler(l, nil)
					const calls = 5
					var wg sync.WaitGroup
					var mu sync.Mutex
					verdicts := map[registry.Verdict]int{}
					for i := range calls {
						wg.Go(func() {
							got, err := h(t.Context(), at(turn, i, "issue_refund", r7))
							mu.Lock()
							defer mu.Unlock()
							verdicts[got.Verdict]++
							if _, over := errors.AsType[*middleware.RepeatError](err); over && failures > 0 || err != nil && !over {
								t.Errorf("error %v", err)
							}
						})
					}
					wg.Wait()
					repeats := calls - 1 - failures
					if verdicts[registry.Failed] != failures || verdicts[registry.Executed] != 1 || verdicts[registry.AlreadyDone] != repeats {
						t.Errorf("verdicts %v", verdicts)
					}
					row, _, err := l.Find(t.Context(), middleware.Query{Operation: only(t, l).Operation, Run: "r"})
					if err != nil || row.Repeats != repeats {
						t.Errorf("%d repeats, want %d; error %v", row.Repeats, repeats, err)
					}
					wantEffects(t, w, "try", failures+1)
				})
			})
		}
	}
}

// stock is a thing of which there may be several orders.
type stock struct {
	SKU string `json:"sku" once:"resource"`
	N   int    `json:"n"`
}

type stockCancel struct {
	SKU string `json:"sku" once:"resource"`
}

func TestACancelCalledTwiceTakesBackOneOfTwo(t *testing.T) {
	for _, turn := range []int{1, 0} { // with a count of turns, and without
		w := newWorld(t)
		r := registry.New()
		registry.Add(r, registry.Tool[stock, string]{Name: "order", Effect: registry.NonIdempotentWrite, Run: func(context.Context, stock) (string, error) {
			w.did("order")
			return "ordered", nil
		}})
		registry.Add(r, registry.Tool[stockCancel, string]{Name: "cancel", Effect: registry.NonIdempotentWrite, Undoes: "order", Run: func(context.Context, stockCancel) (string, error) {
			w.did("cancel")
			return "cancelled", nil
		}})
		l := middleware.Memory()
		h := r.Handler(middleware.Once(l, options()))
		want(t, ask(t, h, at(turn, 0, "order", `{"sku":"x","n":1}`)), registry.Executed)
		want(t, ask(t, h, at(turn, 1, "order", `{"sku":"x","n":2}`)), registry.Executed)
		want(t, ask(t, h, at(turn, 2, "cancel", `{"sku":"x"}`)), registry.Executed)
		want(t, ask(t, h, at(turn, 3, "cancel", `{"sku":"x"}`)), registry.AlreadyDone)
		want(t, ask(t, h, at(turn, 4, "order", `{"sku":"x","n":2}`)), registry.Executed) // what was cancelled
		want(t, ask(t, h, at(turn, 5, "cancel", `{"sku":"x"}`)), registry.Executed)      // is new
		wantEffects(t, w, "order", 3)
		wantEffects(t, w, "cancel", 2)
	}
}
