package middleware

import (
	"context"
	"errors"
	"sync"
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
	timeout := c.Info().Timeout
	bctx, b := bounded(ctx, timeout)
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
		return registry.FailedResult(c, "", o.err), nil
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

// boundedContext is context.WithTimeout for a caller who stays until the end and passes its own cancel on: it costs half
// of what that does, on the path that every Read takes.
type boundedContext struct {
	context.Context
	deadline time.Time
	done     chan struct{}
	once     sync.Once
	err      error // set before done is closed
}

func bounded(ctx context.Context, timeout time.Duration) (context.Context, *boundedContext) {
	b := &boundedContext{Context: ctx, deadline: time.Now().Add(timeout), done: make(chan struct{})}
	if d, ok := ctx.Deadline(); ok && d.Before(b.deadline) {
		b.deadline = d
	}
	return b, b
}

func (b *boundedContext) expire() { b.end(context.DeadlineExceeded) }

func (b *boundedContext) end(err error) {
	b.once.Do(func() {
		b.err = err
		close(b.done)
	})
}

func (b *boundedContext) Deadline() (time.Time, bool) { return b.deadline, true }
func (b *boundedContext) Done() <-chan struct{}       { return b.done }

func (b *boundedContext) Err() error {
	select {
	case <-b.done:
		return b.err
	default:
		return nil
	}
}
