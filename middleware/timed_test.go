package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
)

// clock keeps what Timed is told.
type clock struct {
	mu    sync.Mutex
	parts []string
}

func (k *clock) timed(_ context.Context, c *registry.Call, part string, took time.Duration, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	line := fmt.Sprintf("%s %s %v", c.Tool, part, took)
	if err != nil {
		line += " " + err.Error()
	}
	k.parts = append(k.parts, line)
}

func (k *clock) told() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.parts)
}

type placeInput struct {
	Seat string `json:"seat"`
}

// slow is a ledger whose writes take time.
func slow(l middleware.Ledger) middleware.Ledger {
	return &ledgertest.Faulty{Ledger: l, Before: func(_ context.Context, o ledgertest.Op) error {
		switch o.Method {
		case "Claim":
			time.Sleep(3 * time.Second)
		case "Change":
			time.Sleep(5 * time.Second)
		}
		return nil
	}}
}

func TestEachPartOfACallIsTimed(t *testing.T) {
	for _, c := range []struct {
		name   string
		effect registry.Effect
		err    error
		want   []string
	}{
		{"write", registry.NonIdempotentWrite, nil, []string{"act claim 3s", "act run 7s", "act save 5s"}},
		{"unclear", registry.NonIdempotentWrite, errTimeout, []string{"act claim 3s", "act run 7s " + errTimeout.Error(), "act save 5s"}},
		{"read", registry.Read, nil, []string{"act run 7s"}},
		{"failing read", registry.Read, errTimeout, []string{"act run 7s " + errTimeout.Error()}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &clock{}
				r := registry.New()
				registry.Add(r, registry.Tool[placeInput, string]{Name: "act", Effect: c.effect, Run: func(context.Context, placeInput) (string, error) {
					time.Sleep(7 * time.Second)
					return "done", c.err
				}})
				h := r.Handler(middleware.Once(slow(middleware.Memory()), &middleware.OnceOptions{Timed: k.timed}))
				ask(t, h, at(1, 0, "act", `{"seat":"12A"}`))
				synctest.Wait()
				if d := cmp.Diff(c.want, k.told()); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

func TestAWaitForAnotherIsTimedAndEachTryToSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &clock{}
		r := registry.New()
		registry.Add(r, registry.Tool[placeInput, string]{
			Name: "act", Effect: registry.NonIdempotentWrite, Timeout: time.Minute,
			Run: func(context.Context, placeInput) (string, error) {
				time.Sleep(12 * time.Second)
				return "done", nil
			},
		})
		down := errors.New("the disk is full")
		l := &ledgertest.Faulty{Ledger: middleware.Memory(), Before: ledgertest.Fail(1, ledgertest.Op{Method: "Change"}, down)}
		h := r.Handler(middleware.Once(l, &middleware.OnceOptions{Timed: k.timed}))
		go func() { _, _ = h(t.Context(), at(1, 0, "act", `{"seat":"12A"}`)) }()
		synctest.Wait()
		time.Sleep(2 * time.Second)
		ask(t, h, at(1, 1, "act", `{"seat":"12A"}`))
		time.Sleep(time.Second)
		got := k.told()
		slices.Sort(got)
		want := []string{"act claim 0s", "act claim 0s", "act run 12s", "act save 0s", "act save 0s " + down.Error(), "act wait 10s"}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d, strings.Join(got, "\n"))
		}
	})
}

// TestAHookDecidesNothing has one that is slower than the tool may be, one that panics and one that ends its goroutine.
func TestAHookDecidesNothing(t *testing.T) {
	for name, hook := range map[string]func(){
		"slow": func() { time.Sleep(time.Hour) }, "panics": func() { panic("hook") }, "exits": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				l := middleware.Memory()
				h := w.handler(l, &middleware.OnceOptions{Timed: func(context.Context, *registry.Call, string, time.Duration, error) { hook() }})
				want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Executed)
				want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.AlreadyDone)
				if err := l.Handlers().Wait(t.Context()); err != nil || only(t, l).State != middleware.Done {
					t.Errorf("%v, the row is %s", err, only(t, l).State)
				}
				wantEffects(t, w, "refund", 1)
			})
		})
	}
}
