package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// Run names one task given to a loop; it is registry.Run.
type Run = registry.Run

// IncompleteError says that a model answer ended in a way that forbids running its calls: it was cut off, filtered, is
// still being made, or has failed. Nothing was run.
type IncompleteError struct {
	// Reason is the finish_reason, or the status of a response or why it is incomplete: "length", "content_filter",
	// "max_output_tokens", "failed". "0 choices" or "2 choices" for a completion that has not exactly one. "" for a stream
	// that ended without a reason.
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

// wrongChoices says that a completion has not exactly one choice.
func wrongChoices(n int) error {
	e := &IncompleteError{Reason: fmt.Sprintf("%d choices", n)}
	if n > 1 {
		e.Message = "running the calls of all would do things several times, leave N at 1"
	}
	return e
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
	a := &answering{handle: h, naming: n, calls: calls}
	err := a.all(ctx)
	if paused, ok := errors.AsType[*middleware.PausedError](err); ok {
		err = errors.Join(append(a.errs.others(), a.pause(ctx, paused))...)
	}
	switch {
	case len(a.results) == len(calls):
		return a.results, err
	case !a.cancelled || len(a.results) == 0: // then the turn can as well be asked for again
		return nil, err
	}
	for _, c := range calls[len(a.results):] {
		a.results = append(a.results, notExecuted(n.name(c.name), "not executed: the run was cancelled before this call"))
	}
	return a.results, err
}

// notExecuted answers a call that has not started and will not, so that the turn can stay in the history.
func notExecuted(tool, why string) registry.Result {
	return registry.Envelope{Status: registry.Refused, Tool: tool, Reason: why}.Result()
}

// problems are the errors of a turn. That an operation is repeated too often is told once, with the last count.
type problems struct {
	list     []error
	repeated map[string]int // operation: where in list
}

// others are those that do not wait for a person.
func (p *problems) others() []error {
	return slices.DeleteFunc(slices.Clone(p.list), func(err error) bool {
		_, waits := errors.AsType[*middleware.PausedError](err)
		return waits
	})
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
