package middleware

import (
	"context"
	"errors"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// unguarded runs what is not recorded, with its timeout and safe against panics.
func (g *guard) unguarded(ctx context.Context, c *registry.Call) (registry.Result, error) {
	if c.Refusal() != nil {
		return g.next(ctx, c)
	}
	if err := check(ctx, c); err != nil {
		return registry.RefusedResult(c, err), nil
	}
	rctx, cancel := context.WithTimeout(ctx, c.Info().Timeout)
	out := make(chan outcome, 1)
	go func() {
		defer cancel()
		out <- protect(func() (registry.Result, error) { return g.next(rctx, c) })
	}()
	var o outcome
	select {
	case o = <-out:
	case <-rctx.Done():
		select {
		case o = <-out:
		default:
			o.err = errors.New("timed out after " + c.Info().Timeout.Round(time.Millisecond).String())
		}
	}
	var te *registry.ToolError
	var pe *panicError
	switch {
	case o.err != nil && ctx.Err() != nil: // the caller has left: its run goes on another time
		return registry.Result{}, ctx.Err()
	case o.err == nil:
		if o.res.Verdict == registry.Executed {
			o.res.Content = g.present(o.res.Content)
		}
		return o.res, nil
	case errors.As(o.err, &te), errors.As(o.err, &pe), errors.Is(rctx.Err(), context.DeadlineExceeded):
		return registry.FailedResult(c, "", o.err), nil
	default:
		return o.res, o.err
	}
}
