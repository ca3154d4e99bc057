package middleware_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

const day = 24 * time.Hour

// payTool counts how often it has run.
func payTool(retain time.Duration, runs *int) *registry.Registry {
	type in struct {
		Order string `json:"order" once:"key"`
	}
	r := registry.New()
	registry.Add(r, registry.Tool[in, string]{
		Name: "pay", Effect: registry.NonIdempotentWrite, Retain: retain,
		Run: func(context.Context, in) (string, error) { *runs++; return "paid: re_1", nil },
	})
	return r
}

func pay(t *testing.T, h registry.Handler, run string) registry.Result {
	t.Helper()
	res, err := h(t.Context(), &registry.Call{Run: registry.Run{ID: run}, Turn: 1, Tool: "pay", Arguments: `{"order":"A-1"}`})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func forget(t *testing.T, p middleware.Pruner, contents int) {
	t.Helper()
	r, err := p.Prune(t.Context(), middleware.PruneOptions{})
	if err != nil || r.Contents != contents || r.Identities != 0 {
		t.Errorf("%+v %v, want %d contents and no identity", r, err, contents)
	}
}

func TestWhatIsForgottenIsAnsweredWithoutItsResultAndNotDoneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, runs := middleware.Memory(), 0
		h := payTool(0, &runs).Handler(middleware.Once(l, nil))
		if res := pay(t, h, "first"); res.Verdict != registry.Executed {
			t.Fatal(res)
		}
		time.Sleep(90*day - time.Second)
		forget(t, l, 0)
		if res := pay(t, h, "first"); res.Content != "paid: re_1" || res.Verdict != registry.Replayed {
			t.Error(res)
		}
		time.Sleep(2 * time.Second)
		forget(t, l, 1)
		for _, run := range []string{"first", "second"} {
			res := pay(t, h, run)
			if res.Verdict != registry.AlreadyDone || !strings.Contains(res.Content, "Its result is not kept.") || strings.Contains(res.Content, "re_1") {
				t.Errorf("the call of run %s: %v", run, res)
			}
		}
		if runs != 1 {
			t.Errorf("it has run %d times", runs)
		}
	})
}

func TestApprovalsAreForgottenNinetyDaysAfterTheirDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := middleware.Memory()
		for _, ledger := range []*middleware.MemoryLedger{l, l.Namespace("other")} {
			a, err := ledger.Ask(t.Context(), middleware.Approval{Call: middleware.Alias{Run: "run", Turn: 1, Tool: "pay"}, Identity: "i"}, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ledger.Decide(t.Context(), middleware.Decision{Run: "run", Turn: 1, ID: a.ID}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(90*day + time.Hour - time.Second)
		for want := range 2 {
			for _, dry := range []bool{true, false} {
				if r, err := l.Prune(t.Context(), middleware.PruneOptions{DryRun: dry}); err != nil || r.Approvals != want {
					t.Errorf("%+v (dry %v), %v, want %d approvals", r, dry, err, want)
				}
			}
			time.Sleep(2 * time.Second)
		}
		if all, err := l.Namespace("other").Approvals(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("another tenant has %d approvals, %v", len(all), err)
		}
	})
}
