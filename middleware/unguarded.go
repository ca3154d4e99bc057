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
	if err := g.check(ctx, c); err != nil {
		if ctx.Err() != nil {
			return registry.Result{}, ctx.Err()
		}
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
		g.tellError(ctx, c, o.err)
		return c.Failed("", o.err), nil
	default:
		return o.res, o.err
	}
}

func (g *guard) into(ctx context.Context, c *registry.Call, out chan<- outcome) {
	o := outcome{err: errExit}
	defer func() { out <- o }() // after runtime.Goexit too
	o = protect(ctx, g.next, c)
}

// check asks the tool's Check, up to the tool's Timeout. A Check that breaks down or does not return is a refusal, since
// it changes nothing.
func (g *guard) check(ctx context.Context, c *registry.Call) error {
	if c.Refusal() != nil || !c.Info().HasCheck {
		return c.Refusal()
	}
	bctx, b := bounded(ctx, time.Now().Add(c.Info().Timeout))
	defer b.end(context.Canceled)
	defer time.AfterFunc(c.Info().Timeout, b.expire).Stop()
	asked := *c // a Check that does not return must not meet the call again
	out := make(chan outcome, 1)
	ask := &guard{next: func(ctx context.Context, c *registry.Call) (registry.Result, error) {
		return registry.Result{}, c.Check(ctx)
	}}
	go ask.into(bctx, &asked, out)
	select {
	case o := <-out:
		if _, broke := errors.AsType[*PanicError](o.err); broke {
			g.tellError(ctx, c, o.err)
			return errors.New("the check of this call broke down")
		}
		c.Checked()
		return o.err
	case <-b.done:
		return errors.New("the check of this call timed out")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tellError tells the program of a tool's error as it is.
func (g *guard) tellError(ctx context.Context, c *registry.Call, err error) {
	if g.OnError != nil {
		g.OnError(ctx, c, bare(err))
	}
}

// bare is a tool's error as the tool returned it.
func bare(err error) error {
	if te, ok := errors.AsType[*registry.ToolError](err); ok {
		return te.Err
	}
	return err
}

// ofTool reports whether an error is the tool's own and not a middleware's.
func ofTool(err error) bool {
	_, tool := errors.AsType[*registry.ToolError](err)
	_, broke := errors.AsType[*PanicError](err)
	return tool || broke || errors.Is(err, errExit)
}
