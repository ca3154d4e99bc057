package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// answering is the calls of one turn on their way to their results.
type answering struct {
	naming
	handle    registry.Handler
	calls     []toolCall
	journaled bool                                                // the turn is stored
	resumed   bool                                                // turns were stored before this attempt at the run
	asked     time.Time                                           // when the user's message came, zero where nobody knows
	together  int                                                 // how many reads run at the same time
	read      func(tool string) bool                              // whether calls of a tool may run together; nil: none
	told      func(position int, c toolCall, res registry.Result) // nil: nobody listens
	each      map[string]bool                                     // the tools whose every call is meant, as far as they are known
	undoes    map[string]string                                   // and those that undo what another does

	results   []registry.Result // of the calls from the first on that are answered
	cancelled bool              // the context ended between two calls
	errs      problems
}

// all answers the calls in call order, consecutive reads together, anything else alone. It stops at a call that is not
// answered; an error beside all results ends the run.
func (a *answering) all(ctx context.Context) error {
	for len(a.results) < len(a.calls) {
		from := len(a.results)
		if ctx.Err() != nil {
			a.cancelled = true
			a.errs.add(fmt.Errorf("cancelled before call %d: %w", from, ctx.Err()))
			if cause := context.Cause(ctx); !errors.Is(ctx.Err(), cause) {
				a.errs.add(cause)
			}
			break
		}
		if !a.batch(ctx, from, from+a.next(from)) {
			break
		}
	}
	return errors.Join(a.errs.list...)
}

// next is how many calls from the given one on run at the same time.
func (a *answering) next(from int) int {
	n := 0
	for a.read != nil && n < a.together && from+n < len(a.calls) && a.read(a.calls[from+n].name) {
		n++
	}
	return max(n, 1)
}

// batch answers the calls from one to another, and reports whether all have been.
func (a *answering) batch(ctx context.Context, from, to int) bool {
	results, errs := make([]registry.Result, to-from), make([]error, to-from)
	if to-from == 1 {
		results[0], errs[0] = a.one(ctx, from)
	} else {
		var wg sync.WaitGroup
		panics := make(chan any, to-from)
		for i := range results {
			wg.Go(func() {
				defer func() {
					if p := recover(); p != nil {
						panics <- p
					}
				}()
				results[i], errs[i] = a.one(ctx, from+i)
			})
		}
		wg.Wait()
		select {
		case p := <-panics: // of a middleware: it belongs to the loop's caller, as it would without the goroutine
			panic(p)
		default:
		}
	}
	for i, err := range errs {
		c := a.calls[from+i]
		if err != nil {
			a.errs.add(fmt.Errorf("call %d (%s): %w", from+i, a.name(c.name), err))
			if results[i].Verdict == "" {
				return false
			}
		}
		a.results = append(a.results, results[i])
		if a.told != nil {
			a.told(from+i, c, results[i])
		}
	}
	return true
}

// one answers the call at a position.
func (a *answering) one(ctx context.Context, position int) (registry.Result, error) {
	c := a.calls[position]
	switch {
	case c.custom:
		return notExecuted(a.name(c.name), "free text tools are not answered here; call a function tool with JSON arguments"), nil
	case c.cut:
		return notExecuted(a.name(c.name), "the call was cut off before it was complete; it was not run; call it again, whole"), nil
	}
	return a.handle(ctx, a.call(position))
}

func (a *answering) call(position int) *registry.Call {
	c := a.calls[position]
	return &registry.Call{
		Run: a.run, Turn: a.turn, Position: position, ID: c.id, Tool: c.name, Arguments: c.arguments,
		Journaled: a.journaled, Resumed: a.resumed, Asked: a.asked,
	}
}

// pause asks for the approvals that the rest of the turn needs as well, so that a person can answer all at once.
func (a *answering) pause(ctx context.Context, first *middleware.PausedError) *middleware.PausedError {
	waiting, from := slices.Clone(first.Waiting), len(a.results)
	for i := from + 1; i < len(a.calls); i++ {
		if slices.ContainsFunc(a.calls[from:i], func(before toolCall) bool { return a.hangs(a.calls[i], before) }) {
			continue
		}
		_, err := a.ask(ctx, i)
		if more, ok := errors.AsType[*middleware.PausedError](err); ok {
			waiting = append(waiting, more.Waiting...)
		}
	}
	return &middleware.PausedError{Waiting: waiting}
}

// hangs reports whether what becomes of a call hangs on one before it: it means the same, or undoes what that does. It
// cannot be asked about before.
func (a *answering) hangs(c, before toolCall) bool {
	if undone := a.undoes[c.name]; undone != "" && undone == before.name {
		return true
	}
	return !a.each[c.name] && before.name == c.name && equalJSON(before.arguments, c.arguments)
}

// ask only asks for the approval that the call at a position needs, if it needs one.
func (a *answering) ask(ctx context.Context, position int) (registry.Result, error) {
	c := a.call(position)
	c.OnlyAsk = true
	if a.calls[position].custom || a.calls[position].cut {
		return registry.Result{}, nil
	}
	return a.handle(ctx, c)
}
