package middleware

import (
	"errors"
	"fmt"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// NotSavedError says that the outcome of a handler that has run could not be stored. The process goes on trying while
// it lives; a call in this process gets the result. It is never told to the model.
type NotSavedError struct {
	Tool, Operation string
	// Result is what the tool returned, "" where it returned an error.
	Result string
	// Cause is the error that the tool returned, nil where it returned a result.
	Cause error
	Err   error
}

func (e *NotSavedError) Error() string {
	return fmt.Sprintf("middleware: storing the outcome of %s operation %s: %v: it has run; storing goes on in the background until this process ends", e.Tool, e.Operation, e.Err)
}

// Unwrap gives the store's error and the tool's.
func (e *NotSavedError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Cause}
}

// keep stores a result, which is taken from any attempt of the claim.
func (a *attempt) keep(s Step, o outcome) stage {
	t := a.result(s, o)
	told := o
	if o.err != nil { // it has run, and must not run again for want of a readable result
		told = outcome{res: registry.Result{Content: "done; its result cannot be shown", Verdict: registry.Executed}}
	}
	row, err := a.change(t, &told)
	if s == Found && err != nil { // whoever settled it first: what was found is a result all the same
		return a.keep(Complete, o)
	}
	return a.kept(t, told, row, err)
}

// kept tells what came of storing a result.
func (a *attempt) kept(t Transition, told outcome, row Row, err error) stage {
	if err != nil {
		stored := (row.State == Done || row.State == Released) && row.Token == t.Token && row.Result == t.Result && row.HasResult == t.HasResult
		return a.report(row, &told, stored)
	}
	if t.Blind {
		row = *a.row
	} else if err := readable(a.call.Tool, &row); err != nil {
		return a.tell(registry.Result{}, err)
	}
	return a.tell(a.done(&row, told), nil)
}

// result is the step that stores a result.
func (a *attempt) result(s Step, o outcome) Transition {
	t := a.step(s)
	t.Result, t.HasResult = o.res.Content, true
	t.Resource = o.resource
	if len(t.Result) > maxStored {
		a.g.Logger.Warn("toolonce: a result is too long to be kept", "event", "result_too_long", "tool", a.call.Tool, "operation", a.row.Operation, "bytes", len(t.Result))
	}
	if len(t.Result) > maxStored || o.err != nil {
		t.Result, t.HasResult = "", false
	}
	t.Blind = a.own // who reads the tool's own output needs nothing of the row
	return t
}

// done answers the caller from a row that this attempt has made done.
func (a *attempt) done(row *Row, o outcome) registry.Result {
	if !a.own {
		return a.g.doneAnswer(a.caller, row, false, a.repeats)
	}
	v := registry.Executed
	if a.fresh && o.res.Verdict != registry.Executed {
		v = registry.Replayed
	}
	return registry.Result{Content: a.g.present(o.res.Content), Verdict: v, Operation: row.Operation}
}

// change makes a step. Where the store fails, the caller is told so, and the step is tried again while the process
// lives; the error returned is ErrLost or an *EarlyError.
func (a *attempt) change(t Transition, o *outcome) (Row, error) {
	row, err := a.try(t)
	if !decided(err) {
		row, err = a.insist(t, o, err)
	}
	return row, err
}

// try makes a step once.
func (a *attempt) try(t Transition) (Row, error) {
	began := time.Now()
	row, err := a.g.ledger.Change(a.ctx, t)
	a.timed(a.call, "save", time.Since(began), err)
	return row, err
}

// decided reports whether a step is made, or never will be.
func decided(err error) bool {
	var early *EarlyError
	return err == nil || errors.Is(err, ErrLost) || errors.As(err, &early)
}

// insist goes on with a step that has failed once. The caller is told so and leaves.
func (a *attempt) insist(t Transition, o *outcome, err error) (row Row, _ error) {
	a.g.Logger.Error("toolonce: an outcome could not be stored; storing goes on while this process lives", "event", "not_saved",
		"tool", a.call.Tool, "operation", a.row.Operation, "error", err)
	for pause := firstPause; !decided(err); pause = min(2*pause, longestPause) {
		a.notSaved(o, err)
		time.Sleep(pause)
		row, err = a.try(t)
		if errors.Is(err, ErrLost) && committed(&row, t) {
			return row, nil
		}
	}
	return row, err
}

func (a *attempt) notSaved(o *outcome, err error) {
	e := &NotSavedError{Tool: a.call.Tool, Operation: a.row.Operation, Cause: a.cause, Err: err}
	if o != nil {
		e.Result = o.res.Content
	}
	a.tell(registry.Result{}, e)
	if o != nil {
		row := *a.row
		row.State, row.Result, row.HasResult, row.DoneAt = Done, o.res.Content, true, time.Now()
		a.held.Changed(&row)
	}
}
