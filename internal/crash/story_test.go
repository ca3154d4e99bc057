//go:build unix && cgo

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// cell is one way to kill a run.
type cell struct {
	setting
	point
	workers string
	random  int // number of a kill at a random time, 0 for one at a point
}

// Who else has the store open.
const (
	alone   = "one"        // nobody
	sameRun = "two on run" // a process that wants the same run, is refused, and takes it over when the first is dead
	sameKey = "two on key" // a process with another run that asks for the same refund
)

func (c cell) String() string {
	what := c.name()
	if c.random > 0 {
		what = fmt.Sprintf("random %d", c.random)
	}
	stream := "whole"
	if c.Stream {
		stream = "stream"
	}
	return fmt.Sprintf("%s/%s/%s/%s/%s/%s", c.Store, what, c.Kind, c.API, stream, c.workers)
}

// story is a cell as it happens once.
type story struct {
	cell
	*world
	slots  chan struct{}
	random *rand.Rand // nil for a kill at a point
	length length

	victim *process
	second *process // nil where there is none
	said   *report  // of the other run, nil before it has ended
	result result
}

// result is what came of a story.
type result struct {
	row          string // of the table
	kills        int
	wanted, seen int // effects when the run had ended
	verdict      registry.Verdict
	finished     bool
	settled      bool
	then         int // effects after that
}

var (
	errMissed = errors.New("the process had ended before it was to be killed")
	errSlow   = errors.New("the machine was slow: the time of a handler or a deadline was over too early")
)

// tell kills a process that does the run, goes on with the run in another, and checks what came of it.
func (s *story) tell(ctx context.Context) (err error) {
	if s.workers != alone { // it has the file open from before the kill on
		if s.second, err = s.opened(ctx); err != nil {
			return err
		}
	}
	kill := s.atPoint
	if s.random != nil {
		kill = s.atSomeTime
	}
	f, ph, err := kill(ctx)
	if err != nil {
		return err
	}
	d, err := demanded(ph, s.Kind)
	if err != nil {
		return err
	}
	var then *process
	want := d.behind
	if s.workers == sameKey {
		if err := s.check(other, *s.said, d.other); err != nil {
			return inTime(d.other, f, err)
		}
	} else {
		if then, f, d, err = s.killAgain(ctx, f, d); err != nil {
			return err
		}
		want = d.alone
	}
	if then == nil {
		if then, err = s.opened(ctx); err != nil {
			return err
		}
	}
	if err := s.goOn(ctx, then, f, want, d.effects); err != nil {
		return err
	}
	if s.at == landsLate {
		s.victim.land()
	}
	if want[0] == registry.OutcomeUnknown {
		if err := s.settle(ctx, then, f.deadline); err != nil {
			return err
		}
	}
	return s.end(ctx, want)
}

// goOn ends the run in a process, which asks the model for nothing that is stored.
func (s *story) goOn(ctx context.Context, p *process, f fact, want pair, effects int) error {
	before, requests := f, len(s.asked(p, first))
	said, err := p.do(first)
	if err != nil {
		return err
	}
	if err := inTime(want, f, nil); err != nil {
		return err
	}
	if f, err = s.look(ctx); err != nil {
		return err
	}
	r := &s.result
	r.wanted, r.seen, r.finished = effects, s.made(f), said.Text == answer
	if len(said.Verdicts) > 0 {
		r.verdict = said.Verdicts[0]
	}
	if err := s.check(first, said, want); err != nil {
		return err
	}
	if r.seen != effects {
		return fmt.Errorf("%d effects when the run had ended, want %d", r.seen, effects)
	}
	var turns []int
	for t := before.turns + 1; t <= len(want)+1; t++ {
		turns = append(turns, t)
	}
	if asked := s.asked(p, first)[requests:]; !slices.Equal(turns, asked) {
		return fmt.Errorf("the process that went on asked the model for turns %v, want %v", asked, turns)
	}
	state := middleware.Done
	if want[0] == registry.OutcomeUnknown {
		state = middleware.InDoubt
	}
	if !f.finished || f.operations != 1 || f.state != string(state) {
		err = fmt.Errorf("when the run had ended, %+v was stored, want it finished and one operation that is %s", f, state)
	}
	return err
}

// made are the refunds, those at the provider or those that are Local.
func (s *story) made(f fact) int {
	if s.Kind == local {
		return f.refunds
	}
	return s.effects("")
}

// inTime is errSlow where a doubt was to be met before its deadline, and was not.
func inTime(want pair, f fact, err error) error {
	if want[0] == registry.OutcomeUnknown && time.Now().UnixNano() > f.deadline {
		return errSlow
	}
	return err
}

// check compares what a run has come to.
func (s *story) check(run string, said report, want pair) error {
	if said.Err != "" || said.Text != answer {
		return fmt.Errorf("%s ended with %q, %s", run, said.Text, said.Err)
	}
	if diff := cmp.Diff(want[:], said.Verdicts); diff != "" {
		return fmt.Errorf("verdicts of %s (-want +got):\n%s", run, diff)
	}
	return s.read(run, want)
}

// settle ends a doubt: by Lookup once absence counts, or by a person. A later run is told what came of it.
func (s *story) settle(ctx context.Context, p *process, deadline int64) (err error) {
	want, over, absent := doneByOthers, time.Unix(0, deadline), s.effects("") == 0
	if s.Kind == "plain" && absent { // what was sent may still arrive
		want = doneHere
		err = s.person(ctx, false, over)
	}
	if err == nil && absent {
		s.wait(over)
	}
	if err == nil && s.Kind == "plain" {
		err = s.person(ctx, !absent, time.Time{})
	}
	if err != nil {
		return err
	}
	said, err := p.do(last)
	if err == nil {
		err = s.check(last, said, want)
	}
	s.result.settled, s.result.then = true, s.effects("")
	return err
}

// wait waits without keeping others from their kills.
func (s *story) wait(until time.Time) {
	<-s.slots
	time.Sleep(time.Until(until))
	s.slots <- struct{}{}
}

// person settles the operation as the command does. early is when this must be allowed at the earliest, zero for now.
func (s *story) person(ctx context.Context, happened bool, early time.Time) (err error) {
	store, err := s.db.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	rows, err := store.List(ctx, []middleware.State{middleware.Running, middleware.InDoubt}, 0)
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		return fmt.Errorf("%d operations to settle, want 1", len(rows))
	}
	row := rows[0]
	t := middleware.Transition{Step: middleware.Doubt, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, Owner: row.Owner}
	if row.State == middleware.Running {
		if _, err := store.Change(ctx, t); err != nil {
			return err
		}
	}
	t.Step, t.By, t.Why = middleware.NotHappened, "ann", "seen at the provider"
	if happened {
		t.Step, t.Result, t.HasResult = middleware.Happened, `{"id":"re_1"}`, true
	}
	_, err = store.Change(ctx, t)
	var until time.Time
	if e, ok := errors.AsType[*middleware.EarlyError](err); ok {
		until, err = e.Until, nil
	}
	if err == nil && !until.Equal(early) {
		err = fmt.Errorf("a person may settle it from %s on, want %s", until, early)
	}
	return err
}

// end ends all processes and looks at what has come of everything.
func (s *story) end(ctx context.Context, want pair) error {
	for _, p := range s.processes {
		select {
		case <-p.ended:
		default:
			if err := p.leave(); err != nil {
				return err
			}
		}
	}
	f, err := s.look(ctx)
	switch n := s.made(f); {
	case err != nil:
		return err
	case n != 1:
		return fmt.Errorf("%d effects in the end, want 1", n)
	case s.Kind != local && (len(s.keys) != 1 || s.keys[""]):
		return fmt.Errorf("refunds came with %d keys, want one that is not empty", len(s.keys))
	case !f.finished || f.operations != 1 || f.state != string(middleware.Done):
		return fmt.Errorf("stored in the end: %+v", f)
	}
	return s.read(first, want)
}
