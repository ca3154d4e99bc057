package middleware

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	if needs, err := g.needsApproval(ctx, c); err != nil || needs {
		if err == nil {
			err = fmt.Errorf("middleware: %s needs an approval, which is bound to the call: %w", c.Tool, ErrNoTurn)
		}
		return registry.Result{}, err
	}
	c.Approved()
	began := time.Now()
	o, late := g.within(ctx, g.next, c)
	o = g.redacted(c, o)
	g.timed(ctx, c, "run", began, bare(o.err))
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

// within runs h for a caller who waits until the tool's Timeout is over or ctx ends, not longer. late: the former.
func (g *guard) within(ctx context.Context, h registry.Handler, c *registry.Call) (o outcome, late bool) {
	w := &waited{timeout: c.Info().Timeout, over: make(chan struct{})}
	bctx := w.bind(ctx, time.Now().Add(w.timeout))
	defer time.AfterFunc(w.timeout, w.timeOut).Stop()
	go w.run(bctx, h, c)
	select {
	case <-w.over:
		o = w.outcome
	case <-ctx.Done():
		o.err = ctx.Err()
	}
	late = w.Err() != nil
	w.end(context.Canceled)
	return o, late
}

// waited is a handler that is waited for, up to a time. It is one piece of memory, and its channel carries nothing: this is
// the path that every Read takes.
type waited struct {
	boundedContext
	timeout time.Duration
	once    sync.Once
	over    chan struct{} // closed when outcome is set
	outcome outcome
}

func (w *waited) tell(o outcome) {
	w.once.Do(func() {
		w.outcome = o
		close(w.over)
	})
}

func (w *waited) timeOut() {
	w.expire()
	w.tell(outcome{err: fmt.Errorf("timed out after %s", w.timeout)})
}

func (w *waited) run(ctx context.Context, h registry.Handler, c *registry.Call) {
	into(ctx, h, c, w.tell)
}

// into tells what h comes to, after runtime.Goexit too.
func into(ctx context.Context, h registry.Handler, c *registry.Call, tell func(outcome)) {
	o := outcome{err: errExit}
	defer func() { tell(o) }()
	o = protect(ctx, h, c)
}

// check asks the tool's Check, up to the tool's Timeout. A Check that breaks down or does not return is a refusal, since
// it changes nothing.
func (g *guard) check(ctx context.Context, c *registry.Call) error {
	if c.Refusal() != nil || !c.Info().HasCheck {
		return c.Refusal()
	}
	asked := *c // a Check that does not return must not meet the call again
	o, _ := g.within(ctx, askCheck, &asked)
	if _, broke := errors.AsType[*PanicError](o.err); broke {
		g.tellError(ctx, c, o.err)
		return errors.New("the check of this call broke down")
	}
	c.Checked()
	return o.err
}

func askCheck(ctx context.Context, c *registry.Call) (registry.Result, error) {
	return registry.Result{}, c.Check(ctx)
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

// PanicError is a panic of a tool, of its Lookup or its Check. Its text does not tell the value, which may hold what the
// tool was working on.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("the tool broke down (panic of type %T)", e.Value)
}
