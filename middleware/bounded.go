package middleware

import (
	"context"
	"sync"
	"time"
)

// boundedContext is context.WithDeadline for one who stays until the end, keeps the time and passes the cancel of its
// parent on: it costs half of what that does, on the path that every call takes.
type boundedContext struct {
	context.Context
	deadline time.Time

	mu   sync.Mutex
	done chan struct{} // made when it is asked for
	err  error
}

func bounded(ctx context.Context, deadline time.Time) (context.Context, *boundedContext) {
	b := &boundedContext{}
	return b.bind(ctx, deadline), b
}

// bind is for one that has just been made.
func (b *boundedContext) bind(ctx context.Context, deadline time.Time) context.Context {
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	b.Context, b.deadline = ctx, deadline
	return b
}

func (b *boundedContext) expire() { b.end(context.DeadlineExceeded) }

func (b *boundedContext) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return
	}
	b.err = err
	if b.done != nil {
		close(b.done)
	}
}

func (b *boundedContext) Deadline() (time.Time, bool) { return b.deadline, true }

func (b *boundedContext) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done == nil {
		b.done = make(chan struct{})
		if b.err != nil {
			close(b.done)
		}
	}
	return b.done
}

func (b *boundedContext) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// watch ends a context after a time and calls late after a further grace, by one timer.
type watch struct {
	ctx   *boundedContext
	grace time.Duration
	late  func()

	mu      sync.Mutex
	timer   *time.Timer
	ended   bool // the context
	stopped bool
	called  bool           // late
	over    sync.WaitGroup // while late runs
}

func watched(ctx *boundedContext, after, grace time.Duration, late func()) *watch {
	w := &watch{ctx: ctx, grace: grace, late: late}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(after, w.fire)
	return w
}

func (w *watch) fire() {
	if w.step() {
		defer w.over.Done()
		w.late()
	}
}

// step reports whether it is time to call late.
func (w *watch) step() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.stopped:
		return false
	case !w.ended:
		w.ended = true
		w.ctx.expire()
		w.timer.Reset(w.grace)
		return false
	default:
		w.called = true
		w.over.Add(1)
		return true
	}
}

// stop reports whether late has not been called and will not be.
func (w *watch) stop() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
	return !w.called
}
