package middleware

import (
	"context"
	"errors"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// transactor is a Ledger that runs Local tools.
type transactor interface {
	// Within runs f in a transaction, and then makes the step that it returns, in that too: all of it stays, or nothing
	// does. Nothing stays after an error that is marked by registry.NoEffect, and where the step loses, which is ErrLost
	// beside the row.
	Within(ctx context.Context, f func(context.Context) (Transition, error)) (Row, error)
}

func (g *guard) transacts() bool {
	_, ok := g.ledger.(transactor)
	return ok
}

var errNothingStays = errors.New("the tool has come to no result")

// invokeLocal runs a handler in the transaction that makes the row done. Whatever else comes of it, nothing has happened:
// that goes for every attempt, since the first of them to be stored is the only one whose changes stay.
func (a *attempt) invokeLocal() stage {
	info, call := a.call.Info(), a.take()
	end := time.Now().Add(info.Timeout)
	try := &registry.Attempt{Key: a.row.Key, Number: a.row.Attempt, SendBefore: end}
	ctx, b := bounded(marked(try.Context(a.ctx), call), end)
	watch := watched(b, info.Timeout, min(graceTime, a.g.Margin), func() { a.tell(inProgress(nil, a.row), nil) })
	var o outcome
	var ended time.Time // of the handler
	exited := true
	defer func() {
		watch.stop()
		b.end(context.Canceled)
		if exited { // runtime.Goexit ends this goroutine; the attempt goes on
			a.held.Returned()
			go a.run(func() stage { return a.nothing(errExit) })
		}
	}()
	a.held.Begin()
	row, err := a.g.ledger.(transactor).Within(ctx, func(ctx context.Context) (Transition, error) {
		began := time.Now()
		o = protect(ctx, a.g.next, call)
		ended = time.Now()
		a.timed(call, "run", ended.Sub(began), bare(o.err))
		o = a.g.redacted(call, o)
		if !ran(o) {
			return Transition{}, errNothingStays
		}
		return a.result(Complete, o), nil
	})
	exited = false
	a.held.Returned()
	if !ended.IsZero() && ran(o) {
		a.timed(call, "save", time.Since(ended), err)
	}
	switch {
	case err == nil:
		if a.own {
			row = *a.row
		}
		return a.tell(a.done(&row, o), nil)
	case errors.Is(err, ErrLost):
		return a.report(row, nil, false)
	case errors.Is(err, errNothingStays) && o.err == nil: // a middleware within has refused it
		return a.giveBack(o)
	case errors.Is(err, errNothingStays):
		a.note(o.err)
		return a.nothing(o.err)
	case registry.HasNoEffect(err):
		a.g.tellError(a.ctx, a.call, err)
		return a.nothing(err)
	default:
		a.g.tellError(a.ctx, a.call, err)
		return a.unclear(true)
	}
}

// nothing gives the row back of a tool of which nothing stays.
func (a *attempt) nothing(err error) stage {
	return a.giveBack(outcome{err: registry.NoEffect(err)})
}
