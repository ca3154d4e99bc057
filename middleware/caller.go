package middleware

import (
	"context"
	"errors"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// Who saves what the handler has come to.
const (
	theAttempt int32 = iota // in the background
	anyone                  // the attempt, or the caller, who waits
	theCaller
)

// quick is how long a handler takes at most whose result the caller saves.
const quick = 50 * time.Microsecond

// startAndWait goes through the stages of a claim's first attempt while the caller waits.
func (a *attempt) startAndWait(ctx context.Context) (registry.Result, error) {
	a.waits = ctx
	a.saver.Store(anyone)
	a.start(a.invoke)
	return a.wait(ctx)
}

// wait is the caller's: its cancel ends the wait, not the handler.
func (a *attempt) wait(ctx context.Context) (registry.Result, error) {
	select {
	case <-a.told:
	case <-ctx.Done():
		if a.saver.CompareAndSwap(anyone, theAttempt) || a.saver.Load() != theCaller {
			return registry.Result{}, ctx.Err()
		}
		<-a.told
	}
	if a.saver.Load() == theCaller {
		return a.finish(ctx)
	}
	return a.res, a.err
}

// hand has the caller save the result of a quick handler, if it still waits: it has hardly fallen asleep. To save here, and
// wake it then, would wake another processor once more, which takes longer than all that the guard does. It reports whether
// the caller does.
func (a *attempt) hand(o outcome) bool {
	if a.waits == nil || a.waits.Err() != nil || !a.saver.CompareAndSwap(anyone, theCaller) {
		return false
	}
	a.handed = o
	a.told <- struct{}{}
	return true
}

// finish saves what was handed to the caller. What cannot be saved at once is left to the background.
func (a *attempt) finish(ctx context.Context) (registry.Result, error) {
	t, err := a.result(Complete, a.handed), errEnded
	left := false
	defer func() {
		if !left { // the ledger has panicked, or ended the goroutine
			go a.saveOn(t, err)
		}
	}()
	row, err := a.try(t)
	left = true
	if decided(err) {
		a.kept(t, a.handed, row, err)
		a.over()
		return a.res, a.err
	}
	go a.saveOn(t, err)
	select {
	case <-a.told:
		return a.res, a.err
	case <-ctx.Done():
		return registry.Result{}, ctx.Err()
	}
}

var errEnded = errors.New("the ledger ended the goroutine")

// saveOn goes on with what the caller could not save.
func (a *attempt) saveOn(t Transition, err error) {
	row, err := a.insist(t, &a.handed, err)
	a.kept(t, a.handed, row, err)
	a.over()
}
