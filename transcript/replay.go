package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// Decision is what was decided for a saved call.
type Decision struct {
	Call
	// Verdict is registry.Executed where the call reached the tool, whatever the tool then said.
	Verdict registry.Verdict
	// Repeats is the call whose operation this one met, nil where it reached the tool or was refused.
	Repeats *Call
	// Reason says why it was refused, or names the arguments in which it conflicts, never their values.
	Reason string
	// Collides is true where an earlier call of the run, of another tool or with other canonical arguments, had this
	// call's id.
	Collides bool
}

// Replay gives the calls of a saved run to the guard, in order, and to each that reaches its tool what was saved as its
// output, or the tool's refusal; no tool is run, and no Check is asked. A call that was saved without an output counts as
// one that has succeeded. The guard has a ledger of its own for the run, in memory, and no repeat budget.
//
// The tools may be a program's own, or come from [ReadTools]; none may be added to them afterwards. A call that needs an
// approval ends the replay with an error, which names run, turn and position, never arguments. Several runs may be replayed
// at once.
func Replay(ctx context.Context, tools *registry.Registry, run Run) ([]Decision, error) {
	r := &replay{operations: map[string]*Call{}}
	handle := tools.Handler(unchecked, middleware.Once(middleware.Memory().Namespace(run.ID), &middleware.OnceOptions{
		Repeats: -1, Logger: slog.New(slog.DiscardHandler),
	}), r.answer)
	var all []Decision
	for c := range run.Calls() {
		d, err := r.decide(ctx, handle, run.ID, c)
		if err != nil {
			return nil, fmt.Errorf("transcript: replaying run %q turn %d position %d: %w", run.ID, c.Turn, c.Position, err)
		}
		all = append(all, d)
	}
	markCollisions(all, meanings(ctx))
	return all, nil
}

// replay is a run being replayed.
type replay struct {
	at         *Call // the saved call that is being decided
	reached    bool
	operations map[string]*Call // the call that did each
}

// unchecked has nobody asked about calls whose outcome is known.
func unchecked(next registry.Handler) registry.Handler {
	return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
		c.Checked()
		return next(ctx, c)
	}
}

// answer stands in place of the tool.
func (r *replay) answer(registry.Handler) registry.Handler {
	return func(_ context.Context, c *registry.Call) (registry.Result, error) {
		if err := c.Refusal(); err != nil {
			return c.Refused(err), nil
		}
		r.reached = true
		if r.at.Error {
			return registry.Result{}, &registry.ToolError{Err: registry.NoEffect(errors.New(r.at.Output))}
		}
		return registry.Result{Content: or(r.at.Output, "success"), Verdict: registry.Executed}, nil
	}
}

func (r *replay) decide(ctx context.Context, handle registry.Handler, run string, c Call) (Decision, error) {
	r.at, r.reached = &c, false
	res, err := handle(ctx, &registry.Call{
		Run: registry.Run{ID: run}, Turn: c.Turn, Position: c.Position, ID: c.ID, Tool: c.Name, Arguments: c.Arguments,
	})
	if err != nil {
		return Decision{}, err
	}
	if r.reached {
		if res.Operation != "" { // reads have none
			r.operations[res.Operation] = &c
		}
		return Decision{Call: c, Verdict: registry.Executed}, nil
	}
	d := Decision{Call: c, Verdict: res.Verdict, Repeats: r.operations[res.Operation]}
	var e registry.Envelope
	if json.Unmarshal([]byte(res.Content), &e) == nil {
		d.Reason = or(e.Reason, strings.Join(e.Fields, ", "))
		if e.Path != "" {
			d.Reason = e.Path + " " + d.Reason
		}
	}
	return d, nil
}

// markCollisions finds the ids that came back for another call.
func markCollisions(ds []Decision, meaning func(ToolCall) string) {
	meant := map[string]map[string]bool{} // by id, what calls under it meant
	for i := range ds {
		c := ds[i].Call
		m := meaning(c.ToolCall)
		if meant[c.ID] == nil {
			meant[c.ID] = map[string]bool{}
		}
		before := len(meant[c.ID])
		if meant[c.ID][m] {
			before-- // an equal call is none
		}
		ds[i].Collides = before > 0
		meant[c.ID][m] = true
	}
}

// meanings tells what calls mean: the tool and the canonical arguments, or the arguments as they are where they have no
// canonical form.
func meanings(ctx context.Context) func(ToolCall) string {
	const name = "any"
	r := registry.New()
	if err := r.AddRaw(registry.RawTool{Name: name, Effect: registry.Read, Run: unrunnable}); err != nil {
		panic(err) // the tool above
	}
	h := r.Handler(func(registry.Handler) registry.Handler {
		return func(_ context.Context, c *registry.Call) (registry.Result, error) {
			return registry.Result{Content: or(string(c.Input()), c.Arguments)}, nil
		}
	})
	return func(c ToolCall) string {
		res, err := h(ctx, &registry.Call{Tool: name, Arguments: c.Arguments})
		if err != nil {
			panic(err) // the handler above gives none
		}
		return c.Name + "\x00" + res.Content
	}
}

// unrunnable stands for a tool that is known by its declaration.
func unrunnable(context.Context, json.RawMessage) (any, error) {
	return nil, registry.NoEffect(errors.New("declared for replays, and cannot be run"))
}
