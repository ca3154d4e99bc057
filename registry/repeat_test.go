package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/registry"
)

// resolved answers one call and gives the call as middleware saw it, resolved.
func resolved(t *testing.T, r *registry.Registry, c registry.Call) *registry.Call {
	t.Helper()
	var got *registry.Call
	h := r.Handler(func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
			got = c
			c.Approved()
			return next(ctx, c)
		}
	})
	if _, err := h(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRepeatOfIsNoPartOfWhatACallMeans(t *testing.T) {
	r := registry.New()
	tool(func(t *registry.Tool[in, string]) { t.Repeat = registry.RepeatFreely })(r)
	var raw string
	if err := r.AddRaw(registry.RawTool{
		Name: "raw", Effect: registry.NonIdempotentWrite, Repeat: registry.RepeatApproved,
		Run: func(_ context.Context, in json.RawMessage) (any, error) {
			raw = string(in)
			return "ok", nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"t", "raw"} {
		plain := resolved(t, r, registry.Call{Run: registry.Run{ID: "r"}, Tool: name, Arguments: `{"id":"1"}`})
		again := resolved(t, r, registry.Call{Run: registry.Run{ID: "r"}, Tool: name, Arguments: `{"repeat_of":"op_1","id":"1"}`})
		if plain.RepeatOf() != "" || again.RepeatOf() != "op_1" {
			t.Errorf("%s: repeats %q and %q", name, plain.RepeatOf(), again.RepeatOf())
		}
		identity, fingerprint := plain.Operation()
		identity2, fingerprint2 := again.Operation()
		if identity == "" || identity != identity2 || fingerprint != fingerprint2 {
			t.Errorf("%s: repeat_of changes what the call means", name)
		}
		if diff := cmp.Diff(`{"id":"1"}`, string(again.Input())); diff != "" {
			t.Error(name, diff)
		}
		if plain.ArgumentsHash() == again.ArgumentsHash() {
			t.Errorf("%s: the arguments as sent have one hash", name)
		}
	}
	if raw != `{"id":"1"}` {
		t.Errorf("the raw tool reads %s", raw)
	}
	c := resolved(t, r, registry.Call{Tool: "t", Arguments: `{"repeat_of":"op_1","id":"1"}`})
	c.Arguments = `{"repeat_of":7,"id":"1"}`
	if c = resolved(t, r, *c); c.Refusal() == nil || c.RepeatOf() != "" {
		t.Errorf("a refused call repeats %q: %v", c.RepeatOf(), c.Refusal())
	}
}

func TestOnlyAToolThatLetsItTellsTheModelOfRepeatOf(t *testing.T) {
	r := registry.New()
	add := func(name string, rule registry.RepeatRule) {
		tool(func(t *registry.Tool[in, string]) { t.Name, t.Repeat = name, rule })(r)
	}
	add("never", registry.RepeatNever)
	add("approved", registry.RepeatApproved)
	add("freely", registry.RepeatFreely)
	for _, i := range r.Tools() {
		if told := strings.Contains(string(i.Schema), "repeat_of"); told != (i.Repeat != registry.RepeatNever) || !i.Strict {
			t.Errorf("%s: strict %t, %s", i.Name, i.Strict, i.Schema)
		}
	}
	if got := resolved(t, r, registry.Call{Tool: "never", Arguments: `{"repeat_of":"op_1","id":"1"}`}); got.Refusal() == nil {
		t.Error("a tool that is never repeated takes repeat_of")
	}
}

type list struct {
	IDs []string `json:"ids"`
}

func TestNeedsApprovalIsAskedWithItsOwnValue(t *testing.T) {
	r := registry.New()
	var ran []string
	down := errors.New("the rules cannot be read")
	registry.Add(r, registry.Tool[list, string]{
		Name: "ask", Effect: registry.NonIdempotentWrite,
		NeedsApproval: func(_ context.Context, v list) (bool, error) {
			if v.IDs[0] == "down" {
				return false, down
			}
			v.IDs[0] = "spoilt"
			return len(v.IDs) > 1, nil
		},
		Run: func(_ context.Context, v list) (string, error) {
			ran = append(ran, v.IDs...)
			return "ok", nil
		},
	})
	if err := r.AddRaw(registry.RawTool{
		Name: "raw", Effect: registry.NonIdempotentWrite,
		NeedsApproval: func(_ context.Context, v json.RawMessage) (bool, error) {
			return string(v) == `{"id":"2"}`, nil
		},
		Run: func(context.Context, json.RawMessage) (any, error) { return "ok", nil },
	}); err != nil {
		t.Fatal(err)
	}
	tool[in](nil)(r)
	for _, c := range []struct {
		tool, arguments string
		want            bool
		err             error
	}{
		{"ask", `{"ids":["1"]}`, false, nil},
		{"ask", `{"ids":["1","2"]}`, true, nil},
		{"ask", `{"ids":["down"]}`, false, down},
		{"raw", `{"id":"1"}`, false, nil},
		{"raw", `{"id":"2"}`, true, nil},
		{"t", `{"id":"1"}`, false, nil},
	} {
		h := r.Handler(func(next registry.Handler) registry.Handler {
			return func(ctx context.Context, call *registry.Call) (registry.Result, error) {
				if call.Info().HasApproval != (c.tool != "t") {
					t.Errorf("%s: HasApproval %t", c.tool, call.Info().HasApproval)
				}
				if needs, err := call.NeedsApproval(ctx); needs != c.want || !errors.Is(err, c.err) {
					t.Errorf("%s %s: %t, %v", c.tool, c.arguments, needs, err)
				}
				call.Approved()
				return next(ctx, call)
			}
		})
		if res, err := h(t.Context(), &registry.Call{Tool: c.tool, Arguments: c.arguments}); err != nil || res.Verdict != registry.Executed {
			t.Errorf("%s %s: %v, %v", c.tool, c.arguments, res, err)
		}
	}
	if diff := cmp.Diff([]string{"1", "1", "2", "down"}, ran); diff != "" {
		t.Error("Run gets what NeedsApproval has changed", diff)
	}
	bad := resolved(t, r, registry.Call{Tool: "ask", Arguments: `{}`})
	if needs, err := bad.NeedsApproval(t.Context()); needs || err == nil || !errors.Is(err, bad.Refusal()) {
		t.Errorf("a refused call: %t, %v", needs, err)
	}
}

func TestNeedsApprovalEndsAtTheTimeoutOfTheTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry.New()
		tool(func(t *registry.Tool[in, string]) {
			t.Timeout = time.Minute
			t.NeedsApproval = func(ctx context.Context, _ in) (bool, error) {
				<-ctx.Done()
				return false, ctx.Err()
			}
		})(r)
		start := time.Now()
		_, err := resolved(t, r, registry.Call{Tool: "t", Arguments: `{"id":"1"}`}).NeedsApproval(t.Context())
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != time.Minute {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestWhatNeedsAnApprovalDoesNotRunWhereNobodyAsksForOne(t *testing.T) {
	r, ran := registry.New(), false
	run := func(context.Context, in) (string, error) {
		ran = true
		return "", nil
	}
	registry.Add(r, registry.Tool[in, string]{
		Name: "ask", Effect: registry.NonIdempotentWrite, Run: run,
		NeedsApproval: func(context.Context, in) (bool, error) { return false, nil },
	})
	registry.Add(r, registry.Tool[in, string]{Name: "again", Effect: registry.NonIdempotentWrite, Repeat: registry.RepeatFreely, Run: run})
	for tool, arguments := range map[string]string{"ask": `{"id":"1"}`, "again": `{"id":"1","repeat_of":"op_1"}`} {
		_, err := r.Handler()(t.Context(), &registry.Call{Tool: tool, Arguments: arguments})
		if err == nil || !strings.Contains(err.Error(), "put middleware.Once into the chain") || ran {
			t.Errorf("%s: %v, ran %v", tool, err, ran)
		}
	}
	if _, err := r.Handler()(t.Context(), &registry.Call{Tool: "again", Arguments: `{"id":"1"}`}); err != nil || !ran {
		t.Errorf("a call that repeats nothing: %v, ran %v", err, ran)
	}
}
