package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
)

// asked is a ledger that keeps what it was asked.
type asked struct {
	*ledgertest.Faulty
	mu  sync.Mutex
	ops []string
}

func newAsked(l middleware.Ledger) *asked {
	a := &asked{}
	a.Faulty = &ledgertest.Faulty{Ledger: l, Before: func(_ context.Context, op ledgertest.Op) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.ops = append(a.ops, op.String())
		return nil
	}}
	return a
}

// since gives what was asked since the last time.
func (a *asked) since() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	ops := a.ops
	a.ops = nil
	return ops
}

func TestANewCallIsClaimedWithoutALookAndAfterARepeatOthersAreLookedFor(t *testing.T) {
	w := newWorld(t)
	l := newAsked(middleware.Memory())
	h := w.handler(l, nil)
	unlooked, looked := []string{"Claim", "Change complete"}, []string{"Find", "Claim", "Change complete"}
	next := 0
	expect := func(v registry.Verdict, arguments string, ops ...string) {
		t.Helper()
		next++
		want(t, ask(t, h, at(next, 0, "issue_refund", arguments)), v)
		if d := cmp.Diff(ops, l.since()); d != "" {
			t.Errorf("call %d: %s", next, d)
		}
	}
	fresh := func() string { return fmt.Sprintf(`{"order_id":"N-%d","cents":500}`, next) }
	expect(registry.Executed, r7, unlooked...)
	expect(registry.Executed, fresh(), unlooked...)
	expect(registry.AlreadyDone, r7, "Claim", "Find", "Note")
	for range 63 {
		expect(registry.Executed, fresh(), looked...)
	}
	expect(registry.AlreadyDone, r7, "Find", "Note")
	expect(registry.Executed, fresh(), unlooked...)
	expect(registry.AlreadyDone, r7, "Claim", "Find", "Note")
}

func TestACallOfWhichMoreIsAskedThanWhetherItIsNewIsLookedForFirst(t *testing.T) {
	type input struct {
		Order string `json:"order" once:"resource"`
	}
	plain := registry.Tool[input, string]{
		Name: "act", Effect: registry.NonIdempotentWrite,
		Run: func(context.Context, input) (string, error) { return "done", nil },
	}
	for _, c := range []struct {
		name   string
		change func(*registry.Tool[input, string])
		opts   middleware.OnceOptions
		call   func(*registry.Call)
	}{
		{name: "Check", change: func(t *registry.Tool[input, string]) { t.Check = func(context.Context, input) error { return nil } }},
		{name: "NeedsApproval", change: func(t *registry.Tool[input, string]) {
			t.NeedsApproval = func(context.Context, input) (bool, error) { return false, nil }
		}},
		{name: "Repeat", change: func(t *registry.Tool[input, string]) { t.Repeat = registry.RepeatFreely }},
		{name: "Undoes", change: func(t *registry.Tool[input, string]) { t.Undoes = "book" }},
		{name: "Admit", opts: middleware.OnceOptions{Admit: func(context.Context, *registry.Call) (*registry.Result, error) { return nil, nil }}},
		{name: "resumed", call: func(c *registry.Call) { c.Resumed = true }},
		{name: "without a turn", call: func(c *registry.Call) { c.Turn = 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			tool := plain
			if c.change != nil {
				c.change(&tool)
			}
			r := registry.New()
			registry.Add(r, tool)
			registry.Add(r, registry.Tool[bookInput, booking]{
				Name: "book", Effect: registry.NonIdempotentWrite,
				Run: func(context.Context, bookInput) (booking, error) { return booking{"R1"}, nil },
			})
			l := newAsked(middleware.Memory())
			call := at(1, 0, "act", `{"order":"7"}`)
			if c.call != nil {
				c.call(call)
			}
			want(t, ask(t, r.Handler(middleware.Once(l, &c.opts)), call), registry.Executed)
			if ops := l.since(); ops[0] != "Find" || slices.Index(ops, "Claim") < 0 {
				t.Errorf("the ledger was asked %q, want Find first", ops)
			}
		})
	}
}

// TestAResultIsSavedThoughItsCallerLeavesMeanwhile has a handler after which the caller itself saves the result, and one
// that takes longer. Both are saved; the first caller hears it.
func TestAResultIsSavedThoughItsCallerLeavesMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name string
		took time.Duration
		want error
	}{{"a quick tool", 0, nil}, {"a slow tool", time.Second, context.Canceled}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				mem := middleware.Memory()
				ctx, leave := context.WithCancel(t.Context())
				l := &ledgertest.Faulty{Ledger: mem, Before: func(_ context.Context, op ledgertest.Op) error {
					if op.Method == "Change" {
						leave()
						time.Sleep(time.Second)
					}
					return nil
				}}
				w.run = func(context.Context, refundInput) (refund, error) {
					time.Sleep(c.took)
					return refund{ID: "re_1"}, nil
				}
				res, err := w.handler(l, nil)(ctx, at(1, 0, "issue_refund", r7))
				if !errors.Is(err, c.want) {
					t.Errorf("error %v, want %v", err, c.want)
				}
				if err == nil {
					want(t, res, registry.Executed, "re_1")
				}
				time.Sleep(2 * time.Second)
				if row := only(t, mem); row.State != middleware.Done || row.Result == "" {
					t.Errorf("row is %s, want done", row.State)
				}
			})
		})
	}
}

func TestACallerThatHasLeftSavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		mem := middleware.Memory()
		ctx, leave := context.WithCancel(t.Context())
		w.run = func(context.Context, refundInput) (refund, error) {
			leave()
			return refund{ID: "re_1"}, nil
		}
		if _, err := w.handler(mem, nil)(ctx, at(1, 0, "issue_refund", r7)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want canceled", err)
		}
		time.Sleep(time.Second)
		if row := only(t, mem); row.State != middleware.Done || row.Result == "" {
			t.Errorf("row is %s, want done", row.State)
		}
	})
}

func TestWhatIsDoneIsToldThoughTheLedgerCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	full := errors.New("the disk is full")
	var writable atomic.Bool
	writable.Store(true)
	l := newAsked(&ledgertest.Faulty{Ledger: middleware.Memory(), Before: func(_ context.Context, op ledgertest.Op) error {
		if op.Method != "Find" && !writable.Load() {
			return full
		}
		return nil
	}})
	h := w.handler(l, nil)
	want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Executed)
	writable.Store(false)
	l.since()
	want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Replayed, "re_R-7")
	want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.AlreadyDone, "re_R-7")
	want(t, ask(t, h, at(2, 0, "issue_refund", `{"order_id":"R-7","cents":1}`)), registry.Conflict)
	if ops := l.since(); ops[0] != "Claim" || slices.Contains(ops[1:], "Claim") {
		t.Errorf("the ledger was asked %q, want one Claim", ops)
	}
	if _, err := h(t.Context(), at(3, 0, "issue_refund", `{"order_id":"R-8","cents":1}`)); !errors.Is(err, full) {
		t.Errorf("of what is new: %v, want that the disk is full", err)
	}
	wantEffects(t, w, "refund", 1)
}

func TestNothingIsLeftOpenOfAClaimThatSurelyWasNotMade(t *testing.T) {
	w := newWorld(t)
	mem, closed := middleware.Memory(), errors.New("the ledger is closed")
	h := w.handler(&ledgertest.Faulty{Ledger: mem, Before: func(_ context.Context, op ledgertest.Op) error {
		if op.Method == "Claim" {
			return registry.NoEffect(closed)
		}
		return closed
	}}, nil)
	for turn := range 3 {
		if _, err := h(t.Context(), at(1+turn, 0, "issue_refund", r7)); !errors.Is(err, closed) {
			t.Errorf("%v, want that the ledger is closed", err)
		}
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	if err := mem.Handlers().Wait(ctx); err != nil {
		t.Error(err)
	}
}

func TestAResultIsSavedThoughTheLedgerPanicsOnItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		mem := middleware.Memory()
		var broken atomic.Bool
		broken.Store(true)
		h := w.handler(&ledgertest.Faulty{Ledger: mem, Before: func(_ context.Context, op ledgertest.Op) error {
			if op.Method == "Change" && broken.Swap(false) {
				panic("broken")
			}
			return nil
		}}, nil)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was not told")
				}
			}()
			_, _ = h(t.Context(), at(1, 0, "issue_refund", r7))
		}()
		time.Sleep(time.Minute)
		if row := only(t, mem); row.State != middleware.Done || row.Result == "" {
			t.Errorf("row is %s, want done", row.State)
		}
		if err := mem.Handlers().Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// hasty is a ledger of which somebody in this process has met each operation before its claimer hears that it is claimed.
type hasty struct {
	*middleware.MemoryLedger
	met       *middleware.Held
	operation string
}

func (l *hasty) Claim(ctx context.Context, c middleware.Claim) (middleware.Row, bool, error) {
	row, won, err := l.MemoryLedger.Claim(ctx, c)
	if won {
		l.met, l.operation = l.Handlers().Open(row.Operation), row.Operation
	}
	return row, won, err
}

func TestAHandlerIsKnownToRunThoughItsOperationWasMetBefore(t *testing.T) {
	w := newWorld(t)
	l := &hasty{MemoryLedger: middleware.Memory()}
	var running bool
	w.run = func(context.Context, refundInput) (refund, error) {
		running = l.Handlers().Running(l.operation)
		return refund{ID: "re_1"}, nil
	}
	want(t, ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7)), registry.Executed)
	if !running {
		t.Error("the handler was not known to run")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := l.Handlers().Wait(ended); err == nil {
		t.Error("the work of who has met it is forgotten")
	}
	l.met.End()
	if err := l.Handlers().Wait(ended); err != nil {
		t.Error(err)
	}
}
