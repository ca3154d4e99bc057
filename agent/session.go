package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// wire is one of the two APIs, for one run: it makes the requests, reads the answers, and keeps the history that the next
// request sends.
type wire interface {
	// start checks the params, and begins the history with theirs. private is what they say.
	start(ctx context.Context) (s journal.Start, private []string, err error)
	// ask gives the model's next answer, as JSON. watch is nil where no stream is wanted.
	ask(ctx context.Context, turn int, watch func(delta) bool) (json.RawMessage, error)
	// read takes an answer apart. It is an error if nothing of it may be used.
	read(turn int, raw json.RawMessage) (*answer, error)
	// add puts an answer and the results of its calls behind the history.
	add(a *answer, results []registry.Result)
}

// answer is one answer of the model.
type answer struct {
	raw   json.RawMessage
	text  string
	aside aside
	calls []toolCall // each once, with ids for the wire
	final bool       // it ends the run
	usage Usage
	// what goes into the history: a ChatCompletionMessageParamUnion, or the items of a response
	history any
}

// aside is what a model says beside its answer.
type aside struct{ refusal, reasoning string }

// ending is what a run has come to.
type ending struct {
	answer json.RawMessage // nil: none
	turn   int             // the one that could not be ended
	report Report
}

// decoded is the answer as the SDK's own type. An error of the run is given the history that stands behind it.
func decoded[T any](end ending, err error, history func(*RunError)) (*T, error) {
	if e, ok := errors.AsType[*RunError](err); ok {
		history(e)
	}
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(end.answer, v); err != nil {
		return nil, fmt.Errorf("agent: run %q: reading its answer: %w", end.report.Run.ID, err)
	}
	return v, nil
}

// session is one attempt at a run.
type session struct {
	*Loop
	wire   wire
	rec    journal.Record
	report Report
	emit   func(Event) bool // nil: nobody watches
	leave  context.CancelCauseFunc

	began   time.Time
	turn    int               // the last one that is stored
	open    *answer           // of that turn, where its calls are not answered
	told    []registry.Result // of its first calls, which were answered before the run paused
	outputs []journal.Output  // of that turn, not yet stored
	calls   int               // of all turns
	silent  int               // answers in a row, of this attempt, that said nothing
	bad     int               // calls in a row that have failed or were refused
	limit   *LimitError       // that was reached
	private []string          // what error texts must not carry
}

// errAdopt says that another answer is stored for a turn than the one just given.
var errAdopt = errors.New("another answer was stored for the turn")

// errBroken is what a trace is told of a panic.
var errBroken = errors.New("the run broke down")

// do begins a run or goes on with it. Errors before the run is this call's are plain, all others are those of end.
func (l *Loop) do(ctx context.Context, run Run, w wire, emit func(Event) bool) (end ending, err error) {
	ctx, ended := l.traced(ctx, run, 0)
	err = errBroken
	defer func() { ended(err) }()
	for tries := 1; ; tries++ {
		end, err := l.attempt(ctx, run, w, emit)
		if !errors.Is(err, errAdopt) || tries == 3 {
			return end, err
		}
	}
}

func (l *Loop) attempt(ctx context.Context, run Run, w wire, emit func(Event) bool) (ending, error) {
	end := ending{report: Report{Run: run}}
	if err := checkPlace(run, 1); err != nil {
		return end, fmt.Errorf("agent: %w", err)
	}
	start, private, err := w.start(ctx)
	if err != nil {
		return end, fmt.Errorf("agent: run %q: %w", run.ID, err)
	}
	rec, err := l.store.Begin(ctx, start)
	if err != nil {
		return end, fmt.Errorf("agent: beginning run %q: %w", run.ID, err)
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	s := &session{Loop: l, wire: w, rec: rec, report: end.report, emit: emit, leave: leave, began: time.Now(), private: private}
	final, err := s.run(ctx)
	end.report, end.turn = s.report, s.turn+1
	if s.open != nil {
		end.turn = s.turn
	}
	switch {
	case err != nil:
		return end, &RunError{Turn: end.turn, Err: err, Report: end.report}
	default:
		end.answer = final
		return end, nil
	}
}

// run goes on behind the stored turns until there is an answer.
func (s *session) run(ctx context.Context) (final json.RawMessage, err error) {
	finished := s.rec.Finished
	defer func() { // in a panic too: another attempt must not find the run taken
		if finished {
			return
		}
		if left := s.giveUp(ctx); left != nil {
			err = errors.Join(err, left)
		}
	}()
	if err := s.replay(); err != nil {
		return nil, err
	}
	if finished {
		final = s.rec.Turns[len(s.rec.Turns)-1].Answer
		return final, nil
	}
	s.silent = 0
	for {
		if s.open != nil {
			if err := s.answerCalls(ctx); err != nil {
				return nil, err
			}
		}
		if over := s.over(); over != nil {
			return nil, over
		}
		if s.silent >= maxSilent {
			return nil, errNoEnd
		}
		a, err := s.next(ctx)
		if err != nil {
			return nil, err
		}
		if a.final {
			finished = true
			return a.raw, nil
		}
	}
}

// giveUp lets others go on with the run.
func (s *session) giveUp(ctx context.Context) error {
	l := journal.Leaving{Run: s.rec.Run.ID, Token: s.rec.Token}
	if len(s.outputs) > 0 {
		l.Turn, l.Outputs = s.turn, s.outputs
	}
	err := s.store.Leave(context.WithoutCancel(ctx), l)
	if err != nil && l.Turn > 0 && !errors.Is(err, journal.ErrLost) { // they may be stored, with a turn whose commit seemed to fail
		l.Turn, l.Outputs = 0, nil
		err = s.store.Leave(context.WithoutCancel(ctx), l)
	}
	if err == nil || errors.Is(err, journal.ErrLost) {
		return nil
	}
	return fmt.Errorf("leaving the run, which others find taken until this process goes on with it, closes its store or ends: %w", err)
}

// replay rebuilds the history from what is stored.
func (s *session) replay() error {
	s.report.Resumed = len(s.rec.Turns) > 0
	for i, t := range s.rec.Turns {
		a, err := s.wire.read(t.Number, t.Answer)
		if err != nil {
			return fmt.Errorf("reading stored turn %d: %w", t.Number, err)
		}
		s.seen(a)
		s.turn = t.Number
		last := i == len(s.rec.Turns)-1
		results := stored(a, t.Outputs)
		open := last && !s.rec.Finished && len(results) < len(a.calls)
		for !open && len(results) < len(a.calls) {
			results = append(results, cutOff(a.calls[len(results)].name))
		}
		for p, r := range results {
			s.note(p, a.calls[p], r)
		}
		if open {
			s.open, s.told = a, results
			s.announce(a)
			return nil
		}
		s.wire.add(a, results)
		if a.final && last {
			s.announce(a)
		}
	}
	return nil
}

// stored are the results of the calls from the first on whose outputs are stored.
func stored(a *answer, outputs []journal.Output) []registry.Result {
	var results []registry.Result
	for _, o := range outputs {
		if o.Position != len(results) || o.Position >= len(a.calls) {
			break
		}
		results = append(results, registry.Result{Content: o.Content, Verdict: o.Verdict, Operation: o.Operation})
	}
	return results
}

// seen counts an answer.
func (s *session) seen(a *answer) {
	s.report.Usage = append(s.report.Usage, a.usage)
	s.private = append(s.private, a.text, a.aside.refusal, a.aside.reasoning)
	for _, c := range a.calls {
		s.private = append(s.private, c.arguments)
	}
	s.calls += len(a.calls)
	s.silent++
	if len(a.calls) > 0 {
		s.silent = 0
	}
}

// note reports a call that is answered.
func (s *session) note(position int, c toolCall, r registry.Result) {
	s.private = append(s.private, r.Content)
	s.inARow(r)
	s.report.Calls = append(s.report.Calls, CallReport{
		Turn: s.turn, Position: position, CallID: c.id, Tool: c.name, Verdict: r.Verdict, Operation: r.Operation,
	})
}

// ask asks for the next answer.
func (s *session) ask(ctx context.Context, turn int) (json.RawMessage, error) {
	if s.opts.MaxTime > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadlineCause(ctx, s.began.Add(s.opts.MaxTime), &LimitError{Limit: limitTime, Max: int64(s.opts.MaxTime)})
		defer stop()
	}
	var watch func(delta) bool
	if s.emit != nil {
		watch = func(d delta) bool { return s.send(eventOf(d, turn)) && ctx.Err() == nil }
	}
	ctx, ended := s.traced(ctx, s.rec.Run, turn)
	raw, err := s.wire.ask(ctx, turn, watch)
	ended(err)
	if err == nil {
		return raw, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(err, errStopped) { // whoever has stopped it
			err = ctx.Err()
		}
		if !errors.Is(err, cause) {
			err = errors.Join(err, cause)
		}
	}
	return nil, err
}

// next asks for the next turn and stores it.
func (s *session) next(ctx context.Context) (*answer, error) {
	n := s.turn + 1
	raw, err := s.ask(ctx, n)
	if err != nil {
		return nil, asked(err, s.private)
	}
	a, err := s.wire.read(n, raw)
	if err != nil {
		return nil, asked(err, s.private)
	}
	kept, err := s.store.Append(ctx, journal.Entry{
		Run: s.rec.Run.ID, Token: s.rec.Token, Turn: journal.Turn{Number: n, Answer: raw}, Outputs: s.outputs, Final: a.final,
	})
	if err != nil {
		return nil, fmt.Errorf("storing the turn, of which nothing was run: %w", err)
	}
	if !bytes.Equal(kept.Turn.Answer, raw) {
		return nil, errAdopt
	}
	s.turn, s.outputs = n, nil
	s.seen(a)
	if s.emit == nil {
		s.announce(a)
	}
	if len(a.calls) > 0 {
		s.open = a
		return a, nil
	}
	s.wire.add(a, nil)
	s.send(Event{Kind: TurnEnded, Turn: n, Usage: a.usage})
	return a, nil
}

// answerCalls answers the calls of the open turn.
func (s *session) answerCalls(ctx context.Context) error {
	a := s.open
	s.limit = s.over()
	ctx = refusing(ctx, s.refuses)
	w := &answering{
		naming: naming{run: s.rec.Run, turn: s.turn, maxName: maxResponseName}, handle: s.handle, calls: a.calls, journaled: true, resumed: s.report.Resumed,
		asked: s.asked(), together: s.opts.Reads, read: func(tool string) bool { return s.reads[tool] }, told: s.tell, results: s.told,
		each: s.each, undoes: s.undoes,
	}
	err := w.all(ctx)
	for i, r := range w.results {
		s.outputs = append(s.outputs, journal.Output{Position: i, Content: r.Content, Verdict: r.Verdict, Operation: r.Operation})
	}
	if len(w.results) < len(a.calls) {
		if paused, ok := errors.AsType[*middleware.PausedError](err); ok {
			others := errors.Join(w.errs.others()...)
			paused = w.pause(ctx, paused)
			s.pause(paused.Waiting, w.calls)
			if err = paused; others != nil {
				err = errors.Join(others, err)
			}
			s.wire.add(a, closed(w, "not executed: a person has not approved it yet"))
			return err
		}
		s.outputs = nil // the ledger has them, and the model may be told better later
		why := "not executed: the run was stopped before this call"
		if !w.cancelled { // one has been begun
			w.results = append(w.results, cutOff(w.name(a.calls[len(w.results)].name)))
		}
		s.wire.add(a, closed(w, why))
		return err
	}
	s.wire.add(a, w.results)
	s.open, s.told = nil, nil
	s.send(Event{Kind: TurnEnded, Turn: s.turn, Usage: a.usage})
	return err
}

// asked is when the user's latest message came: with this run, or before, where the conversation has had the same already.
func (s *session) asked() time.Time {
	if t := s.rec.AskedBefore; !t.IsZero() {
		return t
	}
	return s.rec.Created
}

// pause tells what waits for a person.
func (s *session) pause(waiting []middleware.Approval, calls []toolCall) {
	for _, a := range waiting {
		if a.Call.Position < 0 || a.Call.Position >= len(calls) { // a middleware of the user's has asked for something else
			continue
		}
		c := calls[a.Call.Position]
		s.send(Event{Kind: ApprovalAsked, Turn: s.turn, Position: a.Call.Position, CallID: c.id, Tool: c.name, Approval: &a})
	}
}

// closed answers the rest of a turn that is not answered, for a history that is gone on with elsewhere.
func closed(w *answering, why string) []registry.Result {
	results := w.results
	for _, c := range w.calls[len(results):] {
		results = append(results, notExecuted(w.name(c.name), why))
	}
	return results
}
