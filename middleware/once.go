package middleware

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// ErrNoTurn says that a tool identified by its call was called without a turn: set Call.Turn, from 1.
// agent.ChatTurn derives it from the history.
var ErrNoTurn = errors.New("middleware: this tool is identified by its call, which needs Call.Turn: count the model's answers from 1")

// ErrNoRun says that a call that must be recorded has no run: without Run.ID the same call of two customers would be
// one.
var ErrNoRun = errors.New("middleware: this call is recorded under its run, which has no id: set Call.Run.ID, the same on every attempt at the task")

var errTwice = errors.New("middleware: Once is in the chain twice: a call is guarded once, by the innermost")

type withinKey struct{}

// marked marks what runs under a claim for the call, so that a second Once does not wait for the first.
func marked(ctx context.Context, c *registry.Call) context.Context {
	return context.WithValue(ctx, withinKey{}, c)
}

func alreadyWithin(ctx context.Context, c *registry.Call) bool {
	outer, _ := ctx.Value(withinKey{}).(*registry.Call)
	return outer == c
}

// RepeatError ends a run whose model keeps repeating an operation. It comes together with a Result: the call is
// answered.
type RepeatError struct {
	Tool, Operation string
	Repeats         int // of this operation by this run, the last one included
}

func (e *RepeatError) Error() string {
	return fmt.Sprintf("middleware: the model has asked for %s operation %s again %d times in this run: end it, or allow more by OnceOptions.Repeats", e.Tool, e.Operation, e.Repeats)
}

// OnceOptions adjust Once. nil and the zero value work.
type OnceOptions struct {
	// Wait is how long a call waits for another's running attempt before it is told in_progress. 0: 30 s.
	Wait time.Duration
	// Margin is added to a tool's Timeout for the deadline before which nothing counts as not happened, and taken off
	// the provider's key window. It must exceed the time a request may be under way. 0: 30 s.
	Margin time.Duration
	// Repeats is how many calls of one run may repeat one operation before the run ends with a *RepeatError. 0: 3,
	// negative: no limit.
	Repeats int
	// MaxResult is how many bytes of a result the model reads, head and tail. The ledger keeps it whole, up to 10 MiB; of
	// a longer one it keeps that it was done. 0: 40,000.
	MaxResult int
	// Redact says what is kept of a result and told to the model in its place, of Lookup's too: so what it leaves out reaches
	// no store, no envelope and no page. It may be called by several goroutines at once. nil: results are kept as they are.
	Redact func(c *registry.Call, result string) string
	// Admit is asked after the ledger (what is done needs no approval) and before the claim: approval, rate limits. A
	// Result is told to the model instead of running the tool, an error ends the run; neither leaves a row.
	Admit func(context.Context, *registry.Call) (*registry.Result, error)
	// OnError is told the errors of tools and of their Lookups as they are, and panics as a *PanicError with value and
	// stack; of a Lookup not the NoEffect that is its answer, and of a call without a record nothing that comes after its
	// timeout. The guard itself never logs their texts, which may hold data of users: to log them is the program's choice.
	// It may be called by several goroutines at once. nil: nobody is told.
	OnError func(context.Context, *registry.Call, error)
	// Timed is told how long each part of a call took: "claim" (the ledger's Claim), "run" (the handler, of a Read too),
	// "save" (a step that stores what an attempt came to, each try at it), "wait" (for another's attempt). The error is
	// what the part ended with: a tool's, a ledger's, ErrLost. It is for measuring, as package otel does: it is called when
	// the outcome is stored or cannot be, by several goroutines at once; the call waits for it. nil: nobody is told.
	Timed func(ctx context.Context, c *registry.Call, part string, took time.Duration, err error)
	// Logger is told how to mend a tool whose errors leave outcomes unclear, and of what could not be kept: outcomes
	// that are not stored yet, results that came too late or are too long, repeats that could not be noted. It never sees
	// arguments or results. nil: slog.Default().
	Logger *slog.Logger
}

const (
	defaultWait      = 30 * time.Second
	defaultMargin    = 30 * time.Second
	defaultRepeats   = 3
	defaultMaxResult = 40_000
	maxStored        = 10 << 20    // bytes of a result that a ledger keeps
	graceTime        = time.Second // for a handler to return after its context has ended
	maxAttempts      = 3
	maxDecisions     = 16                    // times that one call may lose and decide anew
	firstPause       = 50 * time.Millisecond // between tries while a store does not answer
	longestPause     = 5 * time.Second
)

// Once makes a tool's side effect happen once. Every call of a NonIdempotentWrite is claimed in the ledger before its
// handler starts, and an IdempotentWrite too where the loop counts turns; calls that mean the same operation are
// answered from the ledger. Reads pass through, with their timeout. It panics on a nil ledger. Keep it the innermost
// middleware.
//
// A caller whose context ends waits no more; its handler goes on, and what that returns is stored. Only a claim, and the
// result of a handler that took no longer than a processor needs to wake up, are stored while the caller stays.
func Once(l Ledger, opts *OnceOptions) registry.Middleware {
	g := newGuard(l, opts)
	return func(next registry.Handler) registry.Handler {
		n := *g
		n.next = next
		return n.handle
	}
}

type guard struct {
	OnceOptions
	ledger  Ledger
	next    registry.Handler
	warned  *sync.Map // names of tools whose plain error was explained
	janitor *janitor
	wary    *atomic.Int32
}

func newGuard(l Ledger, opts *OnceOptions) *guard {
	if l == nil {
		panic("middleware: Once needs a ledger: sqlitestore.Open for production, middleware.Memory for trials")
	}
	g := &guard{ledger: l, warned: &sync.Map{}, janitor: &janitor{}, wary: &atomic.Int32{}}
	if opts != nil {
		g.OnceOptions = *opts
	}
	if g.Wait < 0 || g.Margin < 0 || g.MaxResult < 0 {
		panic(fmt.Sprintf("middleware: OnceOptions: Wait %v, Margin %v, MaxResult %d: none may be negative; 0 is the default", g.Wait, g.Margin, g.MaxResult))
	}
	setDefault(&g.Wait, defaultWait)
	setDefault(&g.Margin, defaultMargin)
	setDefault(&g.Repeats, defaultRepeats)
	setDefault(&g.MaxResult, defaultMaxResult)
	if g.Logger == nil {
		g.Logger = slog.Default()
	}
	return g
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

func (g *guard) handle(ctx context.Context, c *registry.Call) (registry.Result, error) {
	if err := ctx.Err(); err != nil {
		return registry.Result{}, err
	}
	info := c.Info()
	switch {
	case info == nil && c.Turn == 0:
		return g.next(ctx, c)
	case info != nil && !info.Guarded(c.Turn):
		if c.OnlyAsk {
			return registry.Result{}, nil
		}
		return g.unguarded(ctx, c)
	case info != nil && c.Refusal() == nil && c.Run.ID == "":
		return registry.Result{}, ErrNoRun
	case alreadyWithin(ctx, c):
		return registry.Result{}, registry.NoEffect(errTwice)
	case info != nil && c.Turn == 0 && info.Identity == registry.ByCall && c.Refusal() == nil:
		return registry.Result{}, ErrNoTurn
	case info != nil && info.Local && !g.transacts():
		return registry.Result{}, fmt.Errorf("middleware: tool %s is Local, and the ledger runs no tool in a transaction: use one that does, as sqlitestore and pgstore", c.Tool)
	case info != nil && reruns(info) && info.KeyWindow <= g.Margin:
		return registry.Result{}, fmt.Errorf("middleware: tool %s: its KeyWindow %v is not longer than OnceOptions.Margin %v: nothing could be sent inside it", c.Tool, info.KeyWindow, g.Margin)
	}
	v := &visit{Call: c}
	for range maxDecisions {
		res, again, err := g.decide(ctx, v)
		if !again {
			return res, err
		}
	}
	return registry.Result{}, fmt.Errorf("middleware: deciding a call of %s: its operation changed %d times while it was looked at", c.Tool, maxDecisions)
}

// reruns reports whether an unclear outcome of a tool is settled by running it again with the same key.
func reruns(i *registry.Info) bool {
	return i.Effect == registry.NonIdempotentWrite && i.Recovery == registry.Rerun && !i.HasLookup
}

// visit is a call on its way, across all decisions about it.
type visit struct {
	*registry.Call
	noted    string // the operation that it is noted as a repeat of
	repeats  int    // by its run, as they were counted then
	asked    bool   // Lookup has been asked for it
	hoped    bool   // it was claimed as new
	won      bool   // it has claimed its operation
	admitted bool
}

// decide answers a call from what the ledger says now, or claims it. again: it was overtaken and must look anew.
func (g *guard) decide(ctx context.Context, v *visit) (res registry.Result, again bool, err error) {
	if g.hopes(v) {
		return g.hope(ctx, v)
	}
	c := v.Call
	identity, _ := c.Operation()
	undoes, repeats := c.Refusal() == nil && c.Info().Undoes != "", c.RepeatOf() != ""
	q := Query{Run: c.Run.ID, Turn: c.Turn, Position: c.Position, Identity: identity}
	if undoes || repeats {
		q.Identity = "" // it depends on what is undone or repeated
	}
	row, _, err := g.find(ctx, c, q)
	if err != nil {
		return registry.Result{}, false, err
	}
	var target Row
	seenAlias, known := "", row.Found == nil && q.Identity != ""
	if row.Found != nil {
		seenAlias = row.Operation
		switch same := sameCall(row.Found, c); {
		case !same && c.Journaled:
			return occupied(c, &row), false, nil
		case same && row.State != Free:
			return g.meet(ctx, v, row, true)
		}
	}
	if err := g.check(ctx, c); err != nil {
		if ctx.Err() != nil {
			return registry.Result{}, false, ctx.Err()
		}
		return c.Refused(err), false, nil
	}
	switch {
	case undoes:
		identity, target, err = g.undo(ctx, c)
	case repeats:
		var no error
		if identity, no, err = g.repeat(ctx, c); err == nil && no != nil {
			return c.Refused(no), false, nil
		}
	}
	if err != nil {
		return registry.Result{}, false, err
	}
	if !known {
		if row, _, err = g.find(ctx, c, Query{Run: c.Run.ID, Identity: identity}); err != nil {
			return registry.Result{}, false, err
		}
	}
	switch row.State {
	case Running, InDoubt:
		return g.meet(ctx, v, row, false)
	case Done:
		if !row.Expired() {
			return g.meet(ctx, v, row, false)
		}
	case Free, Released:
	}
	if target.Operation != "" && (target.State != Done || target.UndoneBy != "") {
		return notUndoable(c, target), false, nil
	}
	return g.begin(ctx, v, Claim{Identity: identity, Undoes: target.Operation, RepeatOf: c.RepeatOf(), Seen: row, SeenAlias: seenAlias})
}

// begin claims an operation that is not, or no more, unless a limit or Admit is in the way.
func (g *guard) begin(ctx context.Context, v *visit, claim Claim) (registry.Result, bool, error) {
	c, row := v.Call, claim.Seen
	claim.Repeat = claim.RepeatOf != "" // the budget counts it
	generation := row.Generation
	if row.State == Released {
		claim.Seen = Row{}
		generation++
		claim.Repeat = claim.Repeat || row.Claimer.Run == c.Run.ID
		if claim.Repeat && g.Repeats >= 0 && row.Repeats >= g.Repeats {
			return tooOften(c), false, &RepeatError{Tool: c.Tool, Operation: row.Operation, Repeats: row.Repeats + 1}
		}
	}
	if g.Admit != nil && !v.admitted && !c.OnlyAsk {
		if res, err := g.Admit(ctx, c); err != nil || res != nil {
			return deref(res), false, err
		}
		v.admitted = true
	}
	res, err := g.approve(ctx, c, &claim, generation)
	if _, waits := errors.AsType[*PausedError](err); waits && !c.OnlyAsk {
		now, _, ferr := g.find(ctx, c, Query{Run: c.Run.ID, Identity: claim.Identity})
		if ferr != nil || now.Operation != row.Operation || now.State != row.State { // it was claimed meanwhile
			return registry.Result{}, ferr == nil, ferr
		}
	}
	if err != nil || res != nil || c.OnlyAsk {
		return deref(res), false, err
	}
	return g.claim(ctx, v, claim)
}

func deref(r *registry.Result) registry.Result {
	if r == nil {
		return registry.Result{}
	}
	return *r
}

// find is the row that q says, zero for none.
func (g *guard) find(ctx context.Context, c *registry.Call, q Query) (Row, bool, error) {
	row, ok, err := g.ledger.Find(ctx, q)
	if err != nil {
		return Row{}, false, fmt.Errorf("middleware: looking up the operation of a call of %s: %w", c.Tool, err)
	}
	return row, ok, readable(c.Tool, &row)
}

// sameCall reports whether the call at a place is the one that was seen there before.
func sameCall(a *Alias, c *registry.Call) bool {
	if a == nil || a.Tool != c.Tool {
		return false
	}
	_, fp := c.Operation()
	return a.Arguments == c.ArgumentsHash() || fp != "" && a.Fingerprint == fp
}

// undo gives the identity of an undo and the operation that it undoes: its id is part of the identity, so that book,
// cancel, book, cancel are four operations. Where there is more on the resource, the same call again means what it has
// undone, and not the next thing that was there already.
func (g *guard) undo(ctx context.Context, c *registry.Call) (identity string, target Row, err error) {
	base, fingerprint := c.Operation()
	target, ok, err := g.find(ctx, c, Query{Tool: c.Info().Undoes, Resource: c.Resource()})
	if err != nil || !ok { // none: it was made elsewhere, and this is an operation like any other
		return base, Row{}, err
	}
	last, ok, err := g.find(ctx, c, Query{Tool: c.Tool, Resource: c.Resource()})
	if err != nil {
		return "", Row{}, err
	}
	if ok && last.State != Released && last.Undoes != "" && last.Undoes != target.Operation && last.Fingerprint == fingerprint &&
		last.Identity == undoIdentity(base, last.Undoes) && target.Created.Before(last.Created) {
		target, _, err = g.find(ctx, c, Query{Operation: last.Undoes})
		return last.Identity, target, err
	}
	return undoIdentity(base, target.Operation), target, nil
}

// claim is the last step before the handler.
func (g *guard) claim(ctx context.Context, v *visit, claim Claim) (registry.Result, bool, error) {
	c, info := v.Call, v.Info()
	claim.Call, claim.Conversation, claim.Input, claim.Token = aliasOf(c), c.Run.Conversation, c.Input(), cmp.Or(claim.Token, rand.Text())
	claim.Resource, claim.ResourceOut = c.Resource(), info.ResourceOut
	claim.Deadline, claim.KeyWindow, claim.Keep = info.Timeout+g.Margin, info.KeyWindow, info.Keep
	claim.Retain = info.Retain
	// Whoever waits for the handlers of this process waits from before the claim on, and a claim whose commit is in doubt
	// keeps it waiting too.
	held := g.ledger.Handlers().Open(claim.Token)
	began := time.Now()
	// The caller's cancel must not leave a claim that nobody runs.
	row, won, err := g.ledger.Claim(context.WithoutCancel(ctx), claim)
	took := time.Since(began)
	if err != nil {
		if registry.HasNoEffect(err) {
			held.End()
		} else {
			g.dropClaim(context.WithoutCancel(ctx), claim, held)
		}
		g.timed(ctx, c, "claim", began, err)
		return registry.Result{}, false, fmt.Errorf("middleware: claiming an operation of %s: %w: this call has not run the tool", c.Tool, err)
	}
	if !won {
		held.End()
		g.timed(ctx, c, "claim", began, nil)
		if err := readable(c.Tool, &row); err != nil {
			return registry.Result{}, false, err
		}
		if seen := &claim.Seen; seen.State == Done && row.Operation == seen.Operation && row.Token == seen.Token {
			return g.meet(ctx, v, row, false) // it has expired, but the call of a run that is not finished still needs it
		}
		return registry.Result{}, true, nil
	}
	v.won = true
	c.Approved()
	held.become(row.Operation)
	a := g.attempt(ctx, c, row, true, held)
	a.began = began
	a.timed(c, "claim", took, nil)
	if err := ctx.Err(); err != nil {
		a.start(a.unused)
		return registry.Result{}, false, err
	}
	res, err := a.startAndWait(ctx)
	return res, false, err
}
