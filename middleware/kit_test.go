package middleware_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

type refundInput struct {
	OrderID string `json:"order_id" once:"key"`
	Cents   int64  `json:"cents" jsonschema:"minimum=1"`
	Reason  string `json:"reason,omitempty" once:"-"`
}

type refund struct {
	ID    string `json:"id"`
	Cents int64  `json:"cents"`
}

type payInput struct {
	Order string `json:"order"`
	Cents int64  `json:"cents"`
}

type bookInput struct {
	Flight string `json:"flight"`
}

type booking struct {
	ReservationID string `json:"reservation_id" once:"resource"`
}

type cancelInput struct {
	ReservationID string `json:"reservation_id" once:"key,resource"`
}

type noteInput struct {
	Text string `json:"text"`
}

// world counts effects and says how the next handler ends.
type world struct {
	t  *testing.T
	mu sync.Mutex

	effects map[string]int
	keys    []string
	// run, if set, replaces the plain behaviour of issue_refund and pay.
	run func(ctx context.Context, in refundInput) (refund, error)
	// lookup, if set, is issue_refund's Lookup.
	lookup   func(ctx context.Context, in refundInput) (refund, error)
	check    func(ctx context.Context, in refundInput) error
	recovery registry.Recovery
	window   time.Duration
	absent   time.Duration
	keep     time.Duration
	share    bool
	// reservation is the id that the next booking gets.
	reservation string
	set         func(ctx context.Context, in noteInput) (string, error)
	status      func(ctx context.Context, in noteInput) (string, error)
}

const timeout = 10 * time.Second

func newWorld(t *testing.T) *world {
	return &world{t: t, effects: map[string]int{}, reservation: "R1"}
}

func (w *world) did(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects[what]++
	return w.effects[what]
}

func (w *world) count(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.effects[what]
}

func (w *world) refund(ctx context.Context, in refundInput) (refund, error) {
	w.mu.Lock()
	w.keys = append(w.keys, registry.IdempotencyKey(ctx))
	run := w.run
	w.mu.Unlock()
	if run != nil {
		return run(ctx, in)
	}
	w.did("refund")
	return refund{"re_" + in.OrderID, in.Cents}, nil
}

func (w *world) registry() *registry.Registry {
	r := registry.New()
	t := registry.Tool[refundInput, refund]{
		Name: "issue_refund", Effect: registry.NonIdempotentWrite, Recovery: w.recovery, Timeout: timeout,
		KeyWindow: w.window, AbsentAfter: w.absent, Keep: w.keep, ShareResult: w.share, Check: w.check, Run: w.refund, Lookup: w.lookup,
	}
	registry.Add(r, t)
	registry.Add(r, registry.Tool[payInput, refund]{
		Name: "pay", Effect: registry.NonIdempotentWrite, Recovery: w.recovery, Timeout: timeout, KeyWindow: w.window,
		Run: func(ctx context.Context, in payInput) (refund, error) {
			return w.refund(ctx, refundInput{OrderID: in.Order, Cents: in.Cents})
		},
	})
	registry.Add(r, registry.Tool[bookInput, booking]{
		Name: "book", Effect: registry.NonIdempotentWrite, Timeout: timeout,
		Run: func(context.Context, bookInput) (booking, error) {
			w.did("book")
			return booking{w.reservation}, nil
		},
	})
	for _, name := range []string{"cancel", "void"} {
		registry.Add(r, registry.Tool[cancelInput, string]{
			Name: name, Effect: registry.NonIdempotentWrite, Undoes: "book", Timeout: timeout,
			Run: func(context.Context, cancelInput) (string, error) {
				w.did(name)
				return "cancelled", nil
			},
		})
	}
	registry.Add(r, registry.Tool[noteInput, string]{
		Name: "add_note", Effect: registry.NonIdempotentWrite, Identity: registry.ByCall, Timeout: timeout,
		Run: func(context.Context, noteInput) (string, error) {
			w.did("note")
			return "", nil
		},
	})
	registry.Add(r, registry.Tool[noteInput, string]{
		Name: "set_address", Effect: registry.IdempotentWrite, Timeout: timeout,
		Run: func(ctx context.Context, in noteInput) (string, error) {
			w.did("set")
			if w.set != nil {
				return w.set(ctx, in)
			}
			return "set", nil
		},
	})
	registry.Add(r, registry.Tool[noteInput, string]{
		Name: "job_status", Effect: registry.Read, Timeout: timeout,
		Run: func(ctx context.Context, in noteInput) (string, error) {
			w.did("status")
			if w.status != nil {
				return w.status(ctx, in)
			}
			return "queued", nil
		},
	})
	return r
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// options are short enough for a bubble and quiet.
func options() *middleware.OnceOptions {
	return &middleware.OnceOptions{Logger: quiet(), Margin: 5 * time.Second}
}

func (w *world) handler(l middleware.Ledger, o *middleware.OnceOptions) registry.Handler {
	if o == nil {
		o = options()
	}
	return w.registry().Handler(middleware.Once(l, o))
}

// at makes a call of the run "r" at a place.
func at(turn, position int, tool, arguments string) *registry.Call {
	return &registry.Call{Run: registry.Run{ID: "r"}, Turn: turn, Position: position, ID: "call_x", Tool: tool, Arguments: arguments}
}

func in(run string, c *registry.Call) *registry.Call {
	c.Run.ID = run
	return c
}

func ask(t *testing.T, h registry.Handler, c *registry.Call) registry.Result {
	t.Helper()
	res, err := h(t.Context(), c)
	if err != nil {
		t.Fatalf("%s at turn %d: unexpected error: %v", c.Tool, c.Turn, err)
	}
	return res
}

func want(t *testing.T, got registry.Result, verdict registry.Verdict, contains ...string) {
	t.Helper()
	if got.Verdict != verdict {
		t.Fatalf("verdict %q, want %q; content %s", got.Verdict, verdict, got.Content)
	}
	for _, s := range contains {
		if !strings.Contains(got.Content, s) {
			t.Errorf("content lacks %q: %s", s, got.Content)
		}
	}
}

func wantEffects(t *testing.T, w *world, what string, n int) {
	t.Helper()
	if got := w.count(what); got != n {
		t.Errorf("%s happened %d times, want %d", what, got, n)
	}
}

func rowOf(t *testing.T, l middleware.Ledger, operation string) middleware.Row {
	t.Helper()
	row, ok, err := l.Find(t.Context(), middleware.Query{Operation: operation})
	if err != nil || !ok {
		t.Fatalf("row of %s: %v %v", operation, ok, err)
	}
	return row
}

// only gives the one row of a ledger in a state.
func only(t *testing.T, l middleware.Lister, states ...middleware.State) middleware.Row {
	t.Helper()
	rows, err := l.List(t.Context(), states, 0)
	if err != nil || len(rows) != 1 {
		t.Fatalf("%d rows, want 1: %v", len(rows), err)
	}
	return rows[0]
}

var errTimeout = errors.New("read: connection timed out")
