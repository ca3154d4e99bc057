package middleware

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
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
	row     *Row            // as the last step of this attempt left it; never changed
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
	told  chan struct{} // has one when res and err are set, or handed is
	res   registry.Result
	err   error

	waits  context.Context // the caller's, nil where it is not to save anything
	saver  atomic.Int32    // who saves the outcome
	handed outcome         // to the caller

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

func (g *guard) attempt(ctx context.Context, c *registry.Call, row Row, own bool, held *Held) *attempt {
	return &attempt{
		g: g, ctx: context.WithoutCancel(ctx), call: c, caller: c, row: &row, own: own,
		held: held, told: make(chan struct{}, 1),
	}
}

// open records work on a row's operation.
func (g *guard) open(row *Row) *Held { return g.ledger.Handlers().Open(row.Operation) }

// start goes through the stages in the background.
func (a *attempt) start(s stage) { go a.run(s) }

func (a *attempt) run(s stage) {
	for s != nil {
		s = s()
	}
	if a.saver.Load() != theCaller {
		a.over()
	}
}

// over is for when the outcome is stored, or never will be.
func (a *attempt) over() {
	a.held.End()
	a.tellParts()
}

// tell answers the caller, once, and wakes all others who wait for the operation.
func (a *attempt) tell(res registry.Result, err error) stage {
	a.tellParts()
	a.once.Do(func() {
		a.res, a.err = res, err
		if err == nil {
			a.err = a.stop
		}
		a.saver.CompareAndSwap(anyone, theAttempt) // the caller leaves
		a.told <- struct{}{}
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
	watch := watched(b, time.Until(end), min(graceTime, a.g.Margin), a.timedOut)
	spent := time.Duration(math.MaxInt64) // by a handler that has returned
	after := func(o outcome) stage {
		inTime := watch.stop()
		b.end(context.Canceled)
		if !inTime && (ran(o) || unreadable(o.err)) { // stored at once, whoever asks Lookup meanwhile
			late := a.g.attempt(a.ctx, call, *row, false, a.g.open(row))
			late.run(func() stage { return late.keep(Complete, o) })
		}
		if !inTime {
			watch.over.Wait() // until here the handler counts as running, so that nothing starts another
		}
		a.held.Returned()
		switch {
		case !inTime:
			return a.late(o)
		case spent <= quick && ran(o) && a.hand(o):
			return nil
		default:
			return a.returned(o)
		}
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
	spent = time.Since(began)
	a.timed(call, "run", spent, bare(o.err))
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
