package middleware_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// till pays out with approvals.
type till struct {
	t      *testing.T
	paid   int
	asked  int // times that a tool was asked whether it needs one
	needs  func(ctx context.Context) (bool, error)
	run    func() error
	admit  func(context.Context, *registry.Call) (*registry.Result, error)
	ledger *middleware.MemoryLedger
}

func newTill(t *testing.T) *till { return &till{t: t, ledger: middleware.Memory()} }

func (w *till) needsOne(ctx context.Context) (bool, error) {
	w.asked++
	if w.needs != nil {
		return w.needs(ctx)
	}
	return true, nil
}

func addTo[In any](w *till, r *registry.Registry, tool registry.Tool[In, string]) {
	tool.Timeout = timeout
	tool.NeedsApproval = func(ctx context.Context, _ In) (bool, error) { return w.needsOne(ctx) }
	tool.Run = func(context.Context, In) (string, error) {
		w.paid++
		if w.run != nil {
			return "", w.run()
		}
		return "paid", nil
	}
	registry.Add(r, tool)
}

// handler has tools whose calls all need an approval: pay and send by their arguments, refund by its order, note by its
// place, set that may be set again, and look, which needs none.
func (w *till) handler(l middleware.Ledger) registry.Handler {
	r := registry.New()
	addTo(w, r, registry.Tool[payInput, string]{Name: "pay", Effect: registry.NonIdempotentWrite})
	addTo(w, r, registry.Tool[payInput, string]{Name: "send", Effect: registry.NonIdempotentWrite})
	addTo(w, r, registry.Tool[refundInput, string]{Name: "refund", Effect: registry.NonIdempotentWrite})
	addTo(w, r, registry.Tool[noteInput, string]{Name: "note", Effect: registry.NonIdempotentWrite, Identity: registry.ByCall})
	addTo(w, r, registry.Tool[noteInput, string]{Name: "set", Effect: registry.IdempotentWrite})
	registry.Add(r, registry.Tool[noteInput, string]{
		Name: "look", Effect: registry.Read,
		Run: func(context.Context, noteInput) (string, error) { w.paid++; return "", nil },
	})
	o := options()
	o.Admit = w.admit
	return r.Handler(middleware.Once(l, o))
}

// paused makes a call that must wait, and gives the question.
func paused(t *testing.T, h registry.Handler, c *registry.Call) middleware.Approval {
	t.Helper()
	res, err := h(t.Context(), c)
	p, ok := errors.AsType[*middleware.PausedError](err)
	if !ok || len(p.Waiting) != 1 || res.Verdict != "" {
		t.Fatalf("%s at %d.%d does not wait: %+v, %v", c.Tool, c.Turn, c.Position, res, err)
	}
	return p.Waiting[0]
}

func decide(t *testing.T, l middleware.Approver, a middleware.Approval, approve bool) {
	t.Helper()
	d := middleware.Decision{Run: a.Call.Run, Turn: a.Call.Turn, Position: a.Call.Position, ID: a.ID, Approve: approve, By: "ann", Why: "rule 7"}
	if _, err := l.Decide(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func approvals(t *testing.T, l middleware.Approver, states ...middleware.ApprovalState) []middleware.Approval {
	t.Helper()
	all, err := l.Approvals(t.Context(), states...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func (w *till) wantPaid(n int) {
	w.t.Helper()
	if w.paid != n {
		w.t.Errorf("paid %d times, want %d", w.paid, n)
	}
}

func (w *till) wantRows(n int) {
	w.t.Helper()
	if rows, err := w.ledger.List(w.t.Context(), nil, 0); err != nil || len(rows) != n {
		w.t.Errorf("%d operations, want %d: %v", len(rows), n, err)
	}
}

const pay1 = `{"order":"1","cents":100}`

func TestACallThatNeedsAnApprovalWaitsWithoutARowAndRunsOnceApproved(t *testing.T) {
	for _, tool := range []string{"pay", "note", "set"} { // whatever identifies its operation
		t.Run(tool, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newTill(t)
				h := w.handler(w.ledger)
				c := at(1, 2, tool, pay1)
				if tool != "pay" {
					c.Arguments = `{"text":"hello"}`
				}
				a := paused(t, h, c)
				later()
				if b := paused(t, w.handler(w.ledger.Peer()), c); b.ID != a.ID { // in another process, asked no second time
					t.Errorf("asked again: %s and %s", a.ID, b.ID)
				}
				w.wantRows(0)
				w.wantPaid(0)
				decide(t, w.ledger, a, true)
				w.wantRows(0)
				res := ask(t, h, c)
				want(t, res, registry.Executed, "paid")
				if all := approvals(t, w.ledger); len(all) != 1 || all[0].State != middleware.Spent || all[0].Operation != res.Operation {
					t.Errorf("%+v, want it spent on %s", all, res.Operation)
				}
				want(t, ask(t, h, c), registry.Replayed, "paid")
				w.wantPaid(1)
			})
		})
	}
}

// Each thing that an approval is bound to, changed alone: the call waits for an approval of its own.
func TestAnApprovalServesTheVeryCallAlone(t *testing.T) {
	for _, c := range []struct {
		name   string
		tool   string
		args   string
		change func(w *till, c *registry.Call) middleware.Ledger // nil: the same ledger
	}{
		{"run", "pay", pay1, func(_ *till, c *registry.Call) middleware.Ledger { c.Run.ID = "another"; return nil }},
		{"turn", "pay", pay1, func(_ *till, c *registry.Call) middleware.Ledger { c.Turn++; return nil }},
		{"position", "pay", pay1, func(_ *till, c *registry.Call) middleware.Ledger { c.Position++; return nil }},
		{"tool", "pay", pay1, func(_ *till, c *registry.Call) middleware.Ledger { c.Tool = "send"; return nil }},
		{"fingerprint", "refund", `{"order_id":"1","cents":100}`, func(_ *till, c *registry.Call) middleware.Ledger {
			c.Arguments = `{"order_id":"1","cents":101}`
			return nil
		}},
		{"identity", "pay", pay1, func(_ *till, c *registry.Call) middleware.Ledger { c.Run.Conversation = "another"; return nil }},
		{"namespace", "pay", pay1, func(w *till, _ *registry.Call) middleware.Ledger { return w.ledger.Namespace("acme") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newTill(t)
				h := w.handler(w.ledger)
				call := placedIn("c", at(1, 0, c.tool, c.args))
				a := paused(t, h, call)
				decide(t, w.ledger, a, true)
				other := *call
				there := h
				if l := c.change(w, &other); l != nil {
					there = w.handler(l)
				}
				if b := paused(t, there, &other); b.ID == a.ID || b.State != middleware.Pending {
					t.Errorf("%+v is asked about another call than %+v", b, a)
				}
				w.wantPaid(0)
				want(t, ask(t, h, call), registry.Executed)
				w.wantPaid(1)
			})
		})
	}
}

// An approval is for one downstream key: after a claim that surely had no effect the provider gets another.
func TestAnApprovalServesOneGenerationAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTill(t)
		h := w.handler(w.ledger)
		first, second := at(1, 0, "pay", pay1), at(2, 0, "pay", pay1)
		a, b := paused(t, h, first), paused(t, h, second)
		decide(t, w.ledger, a, true)
		decide(t, w.ledger, b, true)
		w.run = func() error { return registry.NoEffect(errors.New("declined")) }
		want(t, ask(t, h, first), registry.Failed)
		w.run = nil
		if c := paused(t, h, second); c.Generation != 1 || c.ID == b.ID {
			t.Errorf("%+v, after %+v", c, b)
		}
		if c := paused(t, h, first); c.Generation != 1 || c.ID == a.ID { // and one claim alone
			t.Errorf("%+v, after %+v", c, a)
		}
		w.wantPaid(1)
	})
}

func TestADenialStandsForEqualCallsOfItsRunAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTill(t)
		h := w.handler(w.ledger)
		c := at(1, 0, "pay", pay1)
		elsewhere := at(1, 1, "pay", pay1)
		decide(t, w.ledger, paused(t, h, elsewhere), true)
		decide(t, w.ledger, paused(t, h, c), false)
		want(t, ask(t, h, c), registry.Refused, "a person has denied it: rule 7; do not try it again")
		want(t, ask(t, h, elsewhere), registry.Refused, "denied") // though it was approved
		want(t, ask(t, h, at(5, 3, "pay", `{"cents":1e2,"order":"1"}`)), registry.Refused, "denied")
		time.Sleep(48 * time.Hour)
		want(t, ask(t, h, at(6, 0, "pay", pay1)), registry.Refused, "denied")
		w.wantRows(0)
		if n := len(approvals(t, w.ledger)); n != 2 {
			t.Errorf("%d questions, want no more than 2", n)
		}
		paused(t, h, at(7, 0, "pay", `{"order":"1","cents":101}`))
		paused(t, h, at(8, 0, "send", pay1))
		decide(t, w.ledger, paused(t, h, in("another", at(1, 0, "pay", pay1))), true)
		want(t, ask(t, h, in("another", at(1, 0, "pay", pay1))), registry.Executed)
		w.wantPaid(1)
	})
}

func TestADenialStandsWhenTheToolAsksForNoApprovalAnyMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTill(t)
		h := w.handler(w.ledger)
		decide(t, w.ledger, paused(t, h, at(1, 0, "pay", pay1)), false)
		w.needs = func(context.Context) (bool, error) { return false, nil }
		want(t, ask(t, h, at(1, 0, "pay", pay1)), registry.Refused, "a person has denied it")
		want(t, ask(t, h, at(2, 0, "pay", pay1)), registry.Refused, "a person has denied it")
		w.wantPaid(0)
		want(t, ask(t, h, at(3, 0, "pay", `{"order":"2","cents":100}`)), registry.Executed)
		if n := len(approvals(t, w.ledger)); n != 1 {
			t.Errorf("%d questions, want the denied one alone", n)
		}
	})
}

func TestADenialWithoutAReasonIsToldAsOne(t *testing.T) {
	w := newTill(t)
	h := w.handler(w.ledger)
	a := paused(t, h, at(1, 0, "pay", pay1))
	if _, err := w.ledger.Decide(t.Context(), middleware.Decision{Run: "r", Turn: 1, ID: a.ID, By: "ann"}); err != nil {
		t.Fatal(err)
	}
	want(t, ask(t, h, at(1, 0, "pay", pay1)), registry.Refused, "a person has denied it; do not try it again")
}

func TestAQuestionAndAnApprovalCountForADay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTill(t)
		h := w.handler(w.ledger)
		c := at(1, 0, "pay", pay1)
		first := paused(t, h, c)
		if got := first.Expires.Sub(first.Asked); got != 24*time.Hour {
			t.Errorf("it counts for %v", got)
		}
		time.Sleep(24*time.Hour - 1)
		if b := paused(t, h, c); b.ID != first.ID {
			t.Error("asked anew before the day was over")
		}
		time.Sleep(time.Nanosecond)
		second := paused(t, h, c)
		if second.ID == first.ID {
			t.Error("a question counts for more than a day")
		}
		decide(t, w.ledger, second, true)
		time.Sleep(24 * time.Hour)
		third := paused(t, h, c)
		if third.ID == second.ID || third.State != middleware.Pending {
			t.Error("an approval counts for more than a day")
		}
		w.wantPaid(0)
		decide(t, w.ledger, third, true)
		time.Sleep(24*time.Hour - 1)
		want(t, ask(t, h, c), registry.Executed)
	})
}

// The approval expires between the look at it and the claim.
func TestAnApprovalThatExpiresBeforeTheClaimIsAskedForAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTill(t)
		c := at(1, 0, "pay", pay1)
		first := paused(t, w.handler(w.ledger), c)
		decide(t, w.ledger, first, true)
		h := w.handler(beforeTheClaim(w.ledger, func() { time.Sleep(24 * time.Hour) }))
		if second := paused(t, h, c); second.ID == first.ID {
			t.Error("not asked anew")
		}
		w.wantRows(0)
		w.wantPaid(0)
	})
}

// Somebody else makes the operation between the approval and the claim.
func TestAnApprovalIsSpentOnlyIfTheClaimIsWon(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTill(t)
		c, other := at(1, 0, "pay", pay1), at(1, 1, "pay", pay1)
		direct := w.handler(w.ledger)
		a := paused(t, direct, c)
		decide(t, w.ledger, a, true)
		decide(t, w.ledger, paused(t, direct, other), true)
		h := w.handler(beforeTheClaim(w.ledger, func() { want(t, ask(t, direct, other), registry.Executed) }))
		want(t, ask(t, h, c), registry.AlreadyDone, "paid")
		w.wantPaid(1)
		if left := approvals(t, w.ledger, middleware.Approved); len(left) != 1 || left[0].ID != a.ID || left[0].Operation != "" {
			t.Errorf("approved and not spent: %+v", left)
		}
	})
}

func TestWhatIsDoneIsNeverAskedAbout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTill(t)
		c := at(1, 0, "pay", pay1)
		decide(t, w.ledger, paused(t, w.handler(w.ledger), c), true)
		want(t, ask(t, w.handler(w.ledger), c), registry.Executed)
		asked := w.asked
		w.ledger.Die()
		h := w.handler(w.ledger.Peer())
		time.Sleep(48 * time.Hour) // the approval is long over
		want(t, ask(t, h, c), registry.Replayed)
		want(t, ask(t, h, at(2, 0, "pay", pay1)), registry.AlreadyDone)
		if all := approvals(t, w.ledger); len(all) != 1 || w.asked != asked {
			t.Errorf("%d questions, %d times asked whether one is needed", len(all), w.asked-asked)
		}
	})
}

// What a dead process had begun with an approval is settled without another.
func TestAnOrphanIsSettledUnderTheApprovalOfItsClaim(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTill(t)
		c := at(1, 0, "set", `{"text":"hello"}`)
		decide(t, w.ledger, paused(t, w.handler(w.ledger), c), true)
		dead := newTill(t)
		dead.run = func() error { time.Sleep(time.Second); return nil }
		begun := *c
		go func() { _, _ = dead.handler(w.ledger)(t.Context(), &begun) }()
		time.Sleep(time.Millisecond)
		w.ledger.Die()
		want(t, ask(t, w.handler(w.ledger.Peer()), c), registry.Executed)
		time.Sleep(time.Minute)
		if all := approvals(t, w.ledger); len(all) != 1 {
			t.Errorf("%d questions", len(all))
		}
	})
}
