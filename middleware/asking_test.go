package middleware_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

func TestOnlyAskAsksAndDoesNothingElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTill(t)
		admitted := 0
		w.admit = func(context.Context, *registry.Call) (*registry.Result, error) { admitted++; return nil, nil }
		h := w.handler(w.ledger)
		only := func(c *registry.Call) *registry.Call {
			o := *c
			o.OnlyAsk = true
			return &o
		}
		c := at(1, 0, "pay", pay1)
		nothing := func(c *registry.Call) {
			t.Helper()
			if res, err := h(t.Context(), only(c)); err != nil || res.Verdict != "" {
				t.Errorf("%s: %+v, %v", c.Tool, res, err)
			}
		}
		a := paused(t, h, only(c))
		decide(t, w.ledger, a, true)
		nothing(c) // approved: nothing to wait for
		nothing(at(1, 1, "look", `{"text":"x"}`))
		w.needs = func(context.Context) (bool, error) { return false, nil }
		nothing(at(1, 2, "send", pay1))
		w.needs = nil
		w.wantRows(0)
		w.wantPaid(0)
		want(t, ask(t, h, c), registry.Executed)
		nothing(c)
		for turn := 2; turn < 9; turn++ { // nothing is noted or counted
			nothing(at(turn, 0, "pay", pay1))
		}
		want(t, ask(t, h, at(9, 0, "pay", pay1)), registry.AlreadyDone, `"repeats":1`)
		if left := approvals(t, w.ledger); len(left) != 1 || admitted != 1 {
			t.Errorf("%d questions, %d admitted", len(left), admitted)
		}
		w.wantPaid(1)
	})
}

func TestAToolThatCannotSayWhetherItNeedsAnApprovalEndsTheRun(t *testing.T) {
	down := errors.New("the rules cannot be read")
	for name, c := range map[string]struct {
		needs func(context.Context) (bool, error)
		is    func(error) bool
	}{
		"an error":        {func(context.Context) (bool, error) { return false, down }, func(err error) bool { return errors.Is(err, down) }},
		"an error beside": {func(context.Context) (bool, error) { return true, down }, func(err error) bool { return errors.Is(err, down) }},
		"a panic": {func(context.Context) (bool, error) { panic("secret") }, func(err error) bool {
			p, ok := errors.AsType[*middleware.PanicError](err)
			return ok && p.Value == "secret" && !strings.Contains(err.Error(), "secret")
		}},
		"no end": {func(context.Context) (bool, error) { time.Sleep(time.Hour); return false, nil }, func(err error) bool {
			return strings.Contains(err.Error(), "timed out after 10s")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newTill(t)
				w.needs = c.needs
				h := w.handler(w.ledger)
				res, err := h(t.Context(), at(1, 0, "pay", pay1))
				if err == nil || !c.is(err) || res.Verdict != "" || !strings.Contains(err.Error(), "whether a call of pay needs an approval") {
					t.Errorf("%+v, %v", res, err)
				}
				w.wantRows(0)
				w.wantPaid(0)
				mended := newTill(t)
				h = mended.handler(w.ledger)
				decide(t, w.ledger, paused(t, h, at(1, 0, "pay", pay1)), true)
				want(t, ask(t, h, at(1, 0, "pay", pay1)), registry.Executed)
				mended.wantPaid(1)
				time.Sleep(time.Hour) // until what did not return has
			})
		})
	}
}

func TestALedgerThatKeepsNoApprovalsIsToldOnceOneIsNeeded(t *testing.T) {
	w := newTill(t)
	h := w.handler(struct{ middleware.Ledger }{w.ledger})
	if _, err := h(t.Context(), at(1, 0, "pay", pay1)); err == nil || !strings.Contains(err.Error(), "use one that is an Approver, as sqlitestore is") {
		t.Error(err)
	}
	w.wantPaid(0)
	w.wantRows(0)
	w.needs = func(context.Context) (bool, error) { return false, nil }
	want(t, ask(t, h, at(1, 0, "pay", pay1)), registry.Executed)
}

func TestWithoutATurnNothingCanBeApproved(t *testing.T) {
	w := newTill(t)
	h := w.handler(w.ledger)
	calls := map[string]string{"pay": pay1, "set": `{"text":"hello"}`}
	for tool, arguments := range calls {
		if _, err := h(t.Context(), at(0, 0, tool, arguments)); !errors.Is(err, middleware.ErrNoTurn) {
			t.Errorf("%s: %v", tool, err)
		}
	}
	w.wantPaid(0)
	w.needs = func(context.Context) (bool, error) { return false, nil }
	for tool, arguments := range calls {
		want(t, ask(t, h, at(0, 0, tool, arguments)), registry.Executed)
	}
}

func TestALimitIsAskedBeforeAPersonIs(t *testing.T) {
	w := newTill(t)
	var limit string
	admitted := 0
	w.admit = func(_ context.Context, c *registry.Call) (*registry.Result, error) {
		if admitted++; limit != "" {
			r := c.Refused(errors.New(limit))
			return &r, nil
		}
		return nil, nil
	}
	h := w.handler(w.ledger)
	limit = "too many"
	want(t, ask(t, h, at(1, 0, "pay", pay1)), registry.Refused, "too many")
	if len(approvals(t, w.ledger)) != 0 || w.asked != 0 {
		t.Error("a person is asked about a call that may not be made")
	}
	limit = ""
	decide(t, w.ledger, paused(t, h, at(1, 0, "pay", pay1)), true)
	limit = "too many by now"
	want(t, ask(t, h, at(1, 0, "pay", pay1)), registry.Refused, "by now") // an approval is no way round it
	limit = ""
	want(t, ask(t, h, at(1, 0, "pay", pay1)), registry.Executed)
	if admitted != 4 {
		t.Errorf("asked %d times", admitted)
	}
}

func TestWhatIsRefusedIsNotAskedAbout(t *testing.T) {
	w := newTill(t)
	h := w.handler(w.ledger)
	want(t, ask(t, h, at(1, 0, "pay", `{"order":7}`)), registry.Refused)
	want(t, ask(t, h, at(1, 1, "nope", `{}`)), registry.Refused)
	if len(approvals(t, w.ledger)) != 0 || w.asked != 0 {
		t.Error("a person is asked about a call that cannot be made")
	}
}

// The texts of errors go into logs.
func TestAPausedErrorTellsNoArguments(t *testing.T) {
	w := newTill(t)
	_, err := w.handler(w.ledger)(t.Context(), at(1, 2, "pay", `{"order":"very-secret","cents":1}`))
	if err == nil || strings.Contains(err.Error(), "very-secret") || !strings.Contains(err.Error(), "pay at turn 1, position 2") {
		t.Error(err)
	}
}

// The person has seen the words that the identity leaves out, and has approved those.
func TestOtherWordsThanThoseApprovedAreAskedAbout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTill(t)
		h := w.handler(w.ledger)
		seen := at(1, 0, "refund", `{"order_id":"1","cents":1,"reason":"broken"}`)
		other := at(1, 0, "refund", `{"order_id":"1","cents":1,"reason":"SEND TO EVE"}`)
		decide(t, w.ledger, paused(t, h, seen), true)
		if a := paused(t, h, other); !strings.Contains(string(a.Input), "EVE") {
			t.Errorf("asked about %s", a.Input)
		}
		w.wantPaid(0)
		want(t, ask(t, h, seen), registry.Executed)
		w.wantPaid(1)
	})
}

// overtaken has another process claim what is asked about, before it is asked.
type overtaken struct {
	*middleware.MemoryLedger
	claim func()
}

func (o *overtaken) Ask(ctx context.Context, a middleware.Approval, expires time.Duration) (middleware.Approval, error) {
	if o.claim != nil {
		o.claim()
		o.claim = nil
	}
	return o.MemoryLedger.Ask(ctx, a, expires)
}

func TestWhatAnotherHasDoneMeanwhileIsNotWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTill(t)
		c := at(1, 0, "pay", pay1)
		first := w.handler(w.ledger)
		decide(t, w.ledger, paused(t, first, c), true)
		l := &overtaken{MemoryLedger: w.ledger, claim: func() { want(t, ask(t, first, at(1, 0, "pay", pay1)), registry.Executed) }}
		want(t, ask(t, w.handler(l), c), registry.Replayed)
		w.wantPaid(1)
		if n := len(approvals(t, w.ledger, middleware.Pending)); n != 0 {
			t.Errorf("%d questions wait for an answer", n)
		}
	})
}
