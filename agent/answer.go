package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// Run names one task given to a loop; it is registry.Run.
type Run = registry.Run

// IncompleteError says that a model answer ended in a way that forbids running its calls: it was cut off, filtered, is
// still being made, or has failed. Nothing was run.
type IncompleteError struct {
	// Reason is the finish_reason, or the status of a response or why it is incomplete: "length", "content_filter",
	// "max_output_tokens", "failed". "" for a stream that ended without one.
	Reason string
	// Message is what the API says about a response that failed, "" for nothing.
	Message string
	// Calls is how many calls the answer has.
	Calls int
}

func (e *IncompleteError) Error() string {
	s := "the answer has no end mark: the stream was cut off"
	if e.Reason != "" {
		s = fmt.Sprintf("the answer is not complete (%s)", e.Reason)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return fmt.Sprintf("%s; none of its %d calls was run; ask the model again", s, e.Calls)
}

// ChoicesError says that a completion has not exactly one choice. Nothing was run.
type ChoicesError struct {
	// Choices is how many it has.
	Choices int
}

func (e *ChoicesError) Error() string {
	if e.Choices == 0 {
		return "the completion has no choices; nothing was run; ask the model again"
	}
	return fmt.Sprintf("the completion has %d choices and running the calls of all would do things several times; nothing was run; leave N at 1", e.Choices)
}

// checkPlace finds mistakes of the loop before anything runs.
func checkPlace(run Run, turn int) error {
	switch {
	case run.ID == "":
		return errors.New("the run has no ID, and its operations could not be told from those of other runs: set Run.ID")
	case turn < 0:
		return errors.New("the turn is negative: count the model's answers from 1, or give 0 for no count")
	}
	return nil
}

// placed says which answer an error is about.
func placed(run Run, turn int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("agent: answering turn %d of run %q: %w", turn, run.ID, err)
}

// answerAll answers the calls in order. An error with results means that every call is answered and the run ends; without
// results, that the turn is not answered.
func answerAll(ctx context.Context, h registry.Handler, n naming, calls []toolCall) ([]registry.Result, error) {
	var errs problems
	results := make([]registry.Result, 0, len(calls))
	for i, c := range calls {
		if ctx.Err() != nil {
			return cancelled(ctx, n, calls, results, errs.list)
		}
		res, err := answerOne(ctx, h, n, i, c)
		if err != nil {
			errs.add(fmt.Errorf("call %d (%s): %w", i, n.name(c.name), err))
			if res.Verdict == "" {
				return nil, errors.Join(errs.list...)
			}
		}
		results = append(results, res)
	}
	return results, errors.Join(errs.list...)
}

// problems are the errors of a turn. That an operation is repeated too often is told once, with the last count.
type problems struct {
	list     []error
	repeated map[string]int // operation: where in list
}

func (p *problems) add(err error) {
	if over, ok := errors.AsType[*middleware.RepeatError](err); ok {
		if at, told := p.repeated[over.Operation]; told {
			p.list[at] = err
			return
		}
		if p.repeated == nil {
			p.repeated = map[string]int{}
		}
		p.repeated[over.Operation] = len(p.list)
	}
	p.list = append(p.list, err)
}

func answerOne(ctx context.Context, h registry.Handler, n naming, position int, c toolCall) (registry.Result, error) {
	refused := registry.Envelope{Status: registry.Refused, Tool: n.name(c.name)}
	switch {
	case c.custom:
		refused.Reason = "free text tools are not answered here; call a function tool with JSON arguments"
		return refused.Result(), nil
	case c.cut:
		refused.Reason = "the call was cut off before it was complete; it was not run; call it again, whole"
		return refused.Result(), nil
	}
	return h(ctx, &registry.Call{Run: n.run, Turn: n.turn, Position: position, ID: c.id, Tool: c.name, Arguments: c.arguments})
}

// cancelled answers the calls that have not started, so that the turn can stay in the history. Where none has started,
// the turn can as well be asked for again.
func cancelled(ctx context.Context, n naming, calls []toolCall, results []registry.Result, errs []error) ([]registry.Result, error) {
	errs = append(errs, fmt.Errorf("cancelled before call %d: %w", len(results), ctx.Err()))
	if cause := context.Cause(ctx); !errors.Is(ctx.Err(), cause) {
		errs = append(errs, cause)
	}
	err := errors.Join(errs...)
	if len(results) == 0 {
		return nil, err
	}
	for _, c := range calls[len(results):] {
		results = append(results, registry.Envelope{
			Status: registry.Refused, Tool: n.name(c.name), Reason: "not executed: the run was cancelled before this call",
		}.Result())
	}
	return results, err
}
