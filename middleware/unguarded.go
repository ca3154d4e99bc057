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
		return c.Refused(err), nil
	}
	timeout := c.Info().Timeout
	bctx, b := bounded(ctx, time.Now().Add(timeout))
	defer time.AfterFunc(timeout, b.expire).Stop()
	out := make(chan outcome, 1)
	go g.into(bctx, c, out)
	var o outcome
	select {
	case o = <-out:
	case <-b.done:
		o.err = errors.New("timed out after " + timeout.String())
	case <-ctx.Done():
		b.end(ctx.Err())
		return registry.Result{}, ctx.Err()
	}
	late := b.Err() != nil
	b.end(context.Canceled)
	switch {
	case o.err == nil:
		if o.res.Verdict == registry.Executed {
			o.res.Content = g.present(o.res.Content)
		}
		return o.res, nil
	case ctx.Err() != nil: // the caller has left: its run goes on another time
		return registry.Result{}, ctx.Err()
	case late, ofTool(o.err):
		return c.Failed("", o.err), nil
	default:
		return o.res, o.err
	}
}

func (g *guard) into(ctx context.Context, c *registry.Call, out chan<- outcome) {
	out <- protect(ctx, g.next, c)
}

// ofTool reports whether an error is the tool's own and not a middleware's.
func ofTool(err error) bool {
	_, tool := errors.AsType[*registry.ToolError](err)
	_, broke := errors.AsType[*panicError](err)
	return tool || broke
}
