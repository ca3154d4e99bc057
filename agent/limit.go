package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/registry"
)

// The limits, as a LimitError names them.
const (
	limitTurns  = "turns"
	limitCalls  = "calls"
	limitTokens = "tokens"
	limitTime   = "time"
	limitErrors = "errors"
)

// LimitError says that a run has reached a limit before it had an answer. The calls of the last turn were answered as
// refused, unless they had run before. The same run with a higher limit goes on.
type LimitError struct {
	// Limit is "turns", "calls", "tokens", "time" or "errors", for Options.MaxTurns and so on.
	Limit string
	// Max is the limit; of the time in nanoseconds.
	Max int64
}

func (e *LimitError) Error() string {
	switch e.Limit {
	case limitTurns:
		return fmt.Sprintf("no answer within the limit of %d turns: raise Options.MaxTurns, or look at what the model repeats", e.Max)
	case limitCalls:
		return fmt.Sprintf("the model has made more than %d tool calls: raise Options.MaxCalls, or look at what it repeats", e.Max)
	case limitTokens:
		return fmt.Sprintf("no answer within the limit of %d tokens: raise Options.MaxTokens", e.Max)
	case limitTime:
		return fmt.Sprintf("no answer within %v: raise Options.MaxTime, or call again to go on", time.Duration(e.Max))
	default:
		return fmt.Sprintf("%d tool calls in a row have failed or were refused: look at what the model was told", e.Max)
	}
}

// over is the limit that the run has reached, nil for none. It is asked before the calls of a turn, after each of them and
// before a request. What was reached once stays so, since calls were refused for it.
func (s *session) over() *LimitError {
	if s.limit != nil {
		return s.limit
	}
	o := &s.opts
	total := s.report.Total()
	for _, l := range []struct {
		limit   string
		max     int64
		reached bool
	}{
		{limitTurns, int64(o.MaxTurns), s.turn >= o.MaxTurns},
		{limitCalls, int64(o.MaxCalls), s.calls > o.MaxCalls},
		{limitTokens, o.MaxTokens, total.Input+total.Output >= o.MaxTokens},
		{limitTime, int64(o.MaxTime), s.late() != nil},
		{limitErrors, int64(o.MaxErrors), s.bad >= o.MaxErrors},
	} {
		if l.max > 0 && l.reached {
			return &LimitError{Limit: l.limit, Max: l.max}
		}
	}
	return nil
}

// refuses is the limit for which a call is refused. Reads ask at the same time.
func (s *session) refuses() *LimitError {
	if s.limit != nil {
		return s.limit
	}
	return s.late()
}

// late is the limit of time, nil where it is not reached.
func (s *session) late() *LimitError {
	if limit := s.opts.MaxTime; limit > 0 && time.Since(s.began) >= limit {
		return &LimitError{Limit: limitTime, Max: int64(limit)}
	}
	return nil
}

// inARow counts the calls that have not come out well. One that was refused for a limit says nothing of the model, and
// would keep a run from going on under a higher one.
func (s *session) inARow(r registry.Result) {
	switch r.Verdict {
	case registry.Failed, registry.Refused, registry.OutcomeUnknown:
		if !strings.HasPrefix(gjson.Get(r.Content, "reason").String(), atLimit) {
			s.bad++
		}
	default:
		s.bad = 0
	}
}

// atLimit begins what the model is told of a call that was refused for a limit.
const atLimit = "not executed: the run has reached its limit of "

// At a limit the calls of the last turn are not run, nor is what comes after the time is over. One that has run already,
// in an earlier attempt at the run, is answered with what came of it. So it is Admit, behind the ledger, that refuses,
// and for reads, which have no row, a middleware of ours.

type refusingKey struct{}

func refusing(ctx context.Context, over func() *LimitError) context.Context {
	return context.WithValue(ctx, refusingKey{}, over)
}

func refused(ctx context.Context, c *registry.Call) *registry.Result {
	over, ok := ctx.Value(refusingKey{}).(func() *LimitError)
	if !ok {
		return nil
	}
	limit := over()
	if limit == nil {
		return nil
	}
	r := notExecuted(c.Tool, atLimit+limit.Limit)
	return &r
}

type admit = func(context.Context, *registry.Call) (*registry.Result, error)

func admitWithin(next admit) admit {
	return func(ctx context.Context, c *registry.Call) (*registry.Result, error) {
		if r := refused(ctx, c); r != nil || next == nil {
			return r, nil
		}
		return next(ctx, c)
	}
}

func refuseReads(next registry.Handler) registry.Handler {
	return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
		if info := c.Info(); info != nil && !info.Guarded(c.Turn) {
			if r := refused(ctx, c); r != nil {
				return *r, nil
			}
		}
		return next(ctx, c)
	}
}
