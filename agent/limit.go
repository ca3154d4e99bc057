package agent

import (
	"context"

	"github.com/toolonce/toolonce/registry"
)

// At a limit the calls of the last turn are not run, but one that has run already, in an earlier attempt at the run, is
// answered with what came of it. So it is Admit, behind the ledger, that refuses, and for reads, which have no row, a
// middleware of ours.

type refusingKey struct{}

func refusing(ctx context.Context) context.Context {
	return context.WithValue(ctx, refusingKey{}, true)
}

func refused(ctx context.Context, c *registry.Call) *registry.Result {
	if ctx.Value(refusingKey{}) == nil {
		return nil
	}
	r := notExecuted(c.Tool, "not executed: the run has reached its limit of turns")
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
