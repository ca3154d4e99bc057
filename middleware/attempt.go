package middleware

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// attempt drives one claimed operation until its outcome is stored. It is detached from the caller, who is only the
// first to wait for it.
type attempt struct {
	g       *guard
	ctx     context.Context // the caller's values without its cancel
	call    *registry.Call  // what runs: with the input that the claim has stored
	caller  *registry.Call  // who waits
	row     Row             // as the last step of this attempt left it
	own     bool            // the caller's call is the claim's: it reads the output unwrapped
	fresh   bool            // the caller met the operation: what is found was not made for it now
	repeats int
	mark    string    // of settling
	began   time.Time // before the step that began the attempt
	next    stage
	held    *Held

	used  bool  // call has been given to the tool, which may have changed its value
	cause error // of the last handler
	stop  error // of a middleware within: it ends the run
	once  sync.Once
	told  chan struct{} // closed when res and err are set
	res   registry.Result
	err   error

	mu    sync.Mutex
	parts []part // for Timed
}

// stage is one step of an attempt; it returns the next, nil at the end.
type stage func() stage

// outcome is what a handler or a Lookup came to.
type outcome struct {
	res      registry.Result
	err      error
	resource string // that links it to a tool which undoes it
}

func (g *guard) attempt(ctx context.Context, c *registry.Call, row Row, own bool) *attempt {
	return &attempt{
		g: g, ctx: context.WithoutCancel(ctx), call: c, caller: c, row: row, own: own,
		held: g.ledger.Handlers().Open(row.Operation), told: make(chan struct{}),
	}
}

// start goes through the stages in the background.
func (a *attempt) start(s stage) { go a.run(s) }

func (a *attempt) run(s stage) {
	for s != nil {
		s = s()
	}
	a.held.End()
	a.tellParts()
}

// wait is the caller's: its cancel ends the wait, not the handler.
func (a *attempt) wait(ctx context.Context) (registry.Result, error) {
	select {
	case <-a.told:
		return a.res, a.err
	case <-ctx.Done():
		return registry.Result{}, ctx.Err()
	}
}

// tell answers the caller, once, and wakes all others who wait for the operation.
func (a *attempt) tell(res registry.Result, err error) stage {
	a.tellParts()
	a.once.Do(func() {
		a.res, a.err = res, err
		if err == nil {
			a.err = a.stop
		}
		close(a.told)
	})
	a.held.Changed(nil)
	return nil
}

// unused gives a claim back whose caller left before the handler started.
func (a *attempt) unused() stage {
	return a.giveBack(outcome{err: registry.NoEffect(context.Canceled)})
}

// invoke runs the handler, up to its timeout and a moment more for it to return.
func (a *attempt) invoke() stage {
	info := a.call.Info()
	if info.Local {
		return a.invokeLocal()
	}
	end := time.Now().Add(info.Timeout)
	if last := a.began.Add(info.Timeout + a.g.Margin/2); last.Before(end) { // a slow claim must not eat up the margin
		end = last
	}
	if !time.Now().Before(end) { // it could only fail, and leave open what it did
		return a.returned(outcome{err: registry.NoEffect(errSlowClaim)})
	}
	try := &registry.Attempt{Key: a.row.Key, Number: a.row.Attempt, SendBefore: end}
	if info.Recovery == registry.Rerun && !info.HasLookup && info.Effect == registry.NonIdempotentWrite {
		try.WindowEnd = a.row.KeySince.Add(info.KeyWindow - a.g.Margin)
	}
	call, row := a.take(), a.row
	ctx, b := bounded(marked(try.Context(a.ctx), call), end)
	over := make(chan struct{})
	watch := watched(b, time.Until(end), min(graceTime, a.g.Margin), func() {
		defer close(over)
		a.timedOut()
	})
	after := func(o outcome) stage {
		inTime := watch.stop()
		b.end(context.Canceled)
		if !inTime && (ran(o) || unreadable(o.err)) { // stored at once, whoever asks Lookup meanwhile
			late := a.g.attempt(a.ctx, call, row, false)
			late.run(func() stage { return late.keep(Complete, o) })
		}
		if !inTime {
			<-over // until here the handler counts as running, so that nothing starts another
		}
		a.held.Returned()
		if inTime {
			return a.returned(o)
		}
		return a.late(o)
	}
	exited := true
	defer func() {
		if exited { // runtime.Goexit ends this goroutine; the attempt goes on
			go a.run(func() stage { return after(outcome{err: errExit}) })
		}
	}()
	a.held.Begin()
	began := time.Now()
	o := protect(ctx, a.g.next, call)
	a.timed(call, "run", time.Since(began), bare(o.err))
	o = a.g.redacted(call, o)
	exited = false
	return after(o)
}

// take is the call with the input that the claim has stored, whatever an earlier attempt has done to its value.
func (a *attempt) take() *registry.Call {
	if a.used {
		if c, err := a.call.With(a.row.Input); err == nil {
			a.call = c
		}
	}
	a.used = true
	return a.call
}

var errSlowClaim = errors.New("middleware: the ledger has taken longer to claim a call than its tool may: the tool was not run")

var errExit = errors.New("the tool ended its goroutine")

// protect turns a panic into an error.
func protect(ctx context.Context, h registry.Handler, c *registry.Call) (o outcome) {
	defer func() {
		if r := recover(); r != nil {
			o = outcome{err: &PanicError{Value: r, Stack: debug.Stack()}}
		}
	}()
	o.res, o.err = h(ctx, c)
	return o
}

// ran reports whether a tool has run and returned a value.
func ran(o outcome) bool {
	return o.err == nil && (o.res.Verdict == registry.Executed || o.res.Verdict == "")
}

// notRun reports whether a middleware within has kept the call from the tool.
func notRun(o outcome) bool {
	return o.err == nil && (o.res.Verdict == registry.Refused || o.res.Verdict == registry.Failed)
}

// note tells the program of an error. One that is not the tool's own ends the run, whatever becomes of the row.
func (a *attempt) note(err error) {
	if err == nil {
		return
	}
	a.g.tellError(a.ctx, a.call, err)
	if unreadable(err) {
		return
	}
	a.cause = bare(err)
	if !ofTool(err) {
		a.stop = err
	}
}

// unreadable reports whether a tool or a Lookup has come to a value that is no JSON.
func unreadable(err error) bool {
	var re *registry.ResultError
	return errors.As(err, &re)
}

// returned decides what a handler's outcome means.
func (a *attempt) returned(o outcome) stage {
	a.note(o.err)
	first := a.row.Attempt == 1 || a.call.Info().Effect == registry.IdempotentWrite
	switch {
	case unreadable(o.err):
		return a.keep(Complete, o)
	case ran(o):
		return a.keep(Complete, o)
	case o.err == nil && first && notRun(o), registry.HasNoEffect(o.err) && first, a.call.Info().Effect == registry.IdempotentWrite:
		return a.giveBack(o)
	}
	a.explain(o.err)
	return a.unclear(true)
}

// timedOut ends the wait for a handler that does not return.
func (a *attempt) timedOut() {
	if a.call.Info().Effect == registry.IdempotentWrite {
		a.tell(a.call.Failed(a.row.Operation, errors.New("timed out")), nil)
		return
	}
	a.explain(context.DeadlineExceeded)
	for s := a.unclear(false); s != nil; {
		s = s()
	}
}

// late deals with what a handler returns after its time and that is no result.
func (a *attempt) late(o outcome) stage {
	a.note(o.err)
	switch {
	case ran(o), unreadable(o.err): // it is stored
	case a.call.Info().Effect == registry.IdempotentWrite:
		return a.giveBack(o)
	case a.row.Attempt == 1 && (notRun(o) || registry.HasNoEffect(o.err)):
		return a.giveBack(o)
	}
	return nil
}

// keep stores a result, which is taken from any attempt of the claim.
func (a *attempt) keep(s Step, o outcome) stage {
	t := a.result(s, o)
	told := o
	if o.err != nil { // it has run, and must not run again for want of a readable result
		told = outcome{res: registry.Result{Content: "done; its result cannot be shown", Verdict: registry.Executed}}
	}
	row, err := a.change(t, &told)
	switch {
	case err == nil:
		if t.Blind {
			row = a.row
		} else if err := readable(a.call.Tool, &row); err != nil {
			return a.tell(registry.Result{}, err)
		}
		return a.tell(a.done(&row, told), nil)
	case s == Found: // whoever settled it first: what was found is a result all the same
		return a.keep(Complete, o)
	default:
		stored := (row.State == Done || row.State == Released) && row.Token == t.Token && row.Result == t.Result && row.HasResult == t.HasResult
		return a.report(row, &told, stored)
	}
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

// giveBack frees the row: nothing happened, or repeating is safe.
func (a *attempt) giveBack(o outcome) stage {
	proof := o.err == nil || registry.HasNoEffect(o.err)
	t := a.step(GiveBack)
	t.NewKey, t.Unclear = proof && a.row.Attempt == 1 && !a.row.Unclear, !proof
	row, err := a.change(t, nil)
	if err != nil {
		return a.report(row, nil, false)
	}
	if o.err == nil { // a middleware within has refused it
		o.res.Operation = row.Operation
		return a.tell(o.res, nil)
	}
	return a.tell(a.call.Failed(row.Operation, o.err), nil)
}

func (a *attempt) step(s Step) Transition {
	return Transition{Step: s, Operation: a.row.Operation, Token: a.row.Token, Attempt: a.row.Attempt, Mark: a.mark}
}

// change makes a step. Where the store fails, the caller is told so, and the step is tried again while the process
// lives; the error returned is ErrLost or an *EarlyError.
func (a *attempt) change(t Transition, o *outcome) (row Row, err error) {
	a.g.retry(func(try int) bool {
		began := time.Now()
		row, err = a.g.ledger.Change(a.ctx, t)
		if try > 1 && errors.Is(err, ErrLost) && committed(&row, t) {
			err = nil
		}
		a.timed(a.call, "save", time.Since(began), err)
		var early *EarlyError
		if err == nil || errors.Is(err, ErrLost) || errors.As(err, &early) {
			return true
		}
		if try == 1 { // the caller may have left
			a.g.Logger.Error("toolonce: an outcome could not be stored; storing goes on while this process lives", "event", "not_saved",
				"tool", a.call.Tool, "operation", a.row.Operation, "error", err)
		}
		a.notSaved(o, err)
		return false
	})
	return row, err
}

func (a *attempt) notSaved(o *outcome, err error) {
	e := &NotSavedError{Tool: a.call.Tool, Operation: a.row.Operation, Cause: a.cause, Err: err}
	if o != nil {
		e.Result = o.res.Content
	}
	a.tell(registry.Result{}, e)
	if o != nil {
		row := a.row
		row.State, row.Result, row.HasResult, row.DoneAt = Done, o.res.Content, true, time.Now()
		a.held.Changed(&row)
	}
}

// report tells what the row has become where another was first. It never claims again. stored: the result is there.
func (a *attempt) report(row Row, o *outcome, stored bool) stage {
	if o != nil && !stored {
		a.g.Logger.Warn("toolonce: a result came too late to be stored", "event", "result_too_late", "tool", a.call.Tool, "operation", a.row.Operation, "state", string(row.State))
	}
	if err := readable(a.call.Tool, &row); err != nil {
		return a.tell(registry.Result{}, err)
	}
	switch row.State {
	case Done, Released:
		if o != nil && stored {
			return a.tell(a.done(&row, *o), nil)
		}
		return a.tell(a.g.doneAnswer(a.caller, &row, a.own, a.repeats), nil)
	case InDoubt:
		return a.tell(unknown(&visit{Call: a.call}, &row), nil)
	case Running:
		return a.tell(inProgress(nil, &row), nil)
	case Free:
	}
	if o != nil { // free, or gone: the result is at least told
		row.Operation, row.Tool, row.DoneAt, row.Result, row.HasResult = a.row.Operation, a.row.Tool, time.Now(), o.res.Content, true
		return a.tell(a.done(&row, *o), nil)
	}
	return a.tell(a.call.Failed(a.row.Operation, errors.New("another process has settled this: it did not happen")), nil)
}

// explain says once per tool how to mend errors that leave the outcome unclear. It logs the error's type alone.
func (a *attempt) explain(err error) {
	err = bare(err)
	if _, seen := a.g.warned.LoadOrStore(a.call.Tool, true); seen {
		return
	}
	advice := "return registry.NoEffect(err) where surely nothing happened, refuse bad calls in Check"
	if !a.call.Info().HasLookup {
		advice += ", or give the tool a Lookup"
	}
	a.g.Logger.Warn("toolonce: the outcome of a tool is unclear: "+advice,
		"event", "outcome_unclear", "tool", a.call.Tool, "error_type", fmt.Sprintf("%T", err))
}
