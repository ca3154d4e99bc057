package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// traced keeps what Trace is told, as begin and end of each.
type traced struct{ told []string }

type traceKey struct{}

func (r *traced) trace(ctx context.Context, run agent.Run, turn int) (context.Context, func(error)) {
	within, _ := ctx.Value(traceKey{}).(string)
	name := fmt.Sprintf("%s%s.%d", within, run.ID, turn)
	r.told = append(r.told, "begin "+name)
	return context.WithValue(ctx, traceKey{}, name+">"), func(err error) {
		if err != nil {
			name += " with an error"
		}
		r.told = append(r.told, "end "+name)
	}
}

// place is a middleware that tells in which trace a call is made.
func (r *traced) place(next registry.Handler) registry.Handler {
	return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
		r.told = append(r.told, fmt.Sprint(c.Tool, " in ", ctx.Value(traceKey{})))
		return next(ctx, c)
	}
}

func TestATraceIsToldOfARunAndEachOfItsRequests(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		r, b := &traced{}, &bank{}
		s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: []transcript.ToolCall{refundCall("call_1", "1001")}}, transcript.Step{Text: "Done."}), nil)
		l := agent.New(onceClient(s), b.tools(), memory(), &agent.Options{Trace: r.trace, Middleware: []registry.Middleware{r.place}})
		if o := f.do(t, l, run, request); o.err != nil {
			t.Fatal(o.err)
		}
		want := []string{
			"begin ticket-42.0", "begin ticket-42.0>ticket-42.1", "end ticket-42.0>ticket-42.1", "issue_refund in ticket-42.0>",
			"begin ticket-42.0>ticket-42.2", "end ticket-42.0>ticket-42.2", "end ticket-42.0",
		}
		if d := cmp.Diff(want, r.told); d != "" {
			t.Error(d)
		}
	})
}

func TestATraceIsToldOfErrorsAndPanics(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		r, b := &traced{}, &bank{}
		s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: []transcript.ToolCall{refundCall("call_1", "1001")}}), nil)
		broken := func(registry.Handler) registry.Handler {
			return func(context.Context, *registry.Call) (registry.Result, error) { panic("broken") }
		}
		l := agent.New(onceClient(s), b.tools(), memory(), &agent.Options{Trace: r.trace, Middleware: []registry.Middleware{broken}})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is lost")
				}
			}()
			f.do(t, l, run, request)
		}()
		if o := f.do(t, l, agent.Run{}, request); o.err == nil || errors.Is(o.err, context.Canceled) {
			t.Errorf("a run without id: %v", o.err)
		}
		want := []string{
			"begin ticket-42.0", "begin ticket-42.0>ticket-42.1", "end ticket-42.0>ticket-42.1", "end ticket-42.0 with an error",
			"begin .0", "end .0 with an error",
		}
		if d := cmp.Diff(want, r.told); d != "" {
			t.Error(d)
		}
	})
}
