//go:build unix && cgo

package crash_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// atPoint kills the run at a point.
func (s *story) atPoint(ctx context.Context) (f fact, ph phase, err error) {
	begin := s.opened
	if s.at == inMaking {
		begin = s.start
	}
	p, err := begin(ctx)
	if err != nil {
		return f, "", err
	}
	s.victim, s.result.row, ph = p, s.label(), s.phase
	began := time.Now()
	p.tell(command{Run: first, At: s.at})
	if _, err = p.await("here"); err != nil {
		return f, ph, err
	}
	acts := s.workers != alone && !s.locks() // while the first lives
	switch {
	case acts && s.workers == sameKey:
		if f, _, err = s.came(ctx, s.atStop()); err == nil {
			err = s.otherActs()
		}
	case acts && s.begun():
		err = s.isRefused()
	case acts:
		ph = finished
		err = s.takesAll()
	}
	if err != nil {
		return f, ph, err
	}
	if err := s.dies(ctx, p); err != nil {
		return f, ph, err
	}
	if time.Since(began) > timeout-margin {
		return f, ph, errSlow
	}
	if !acts || s.workers != sameKey {
		f, ph, err = s.came(ctx, ph)
	}
	if err == nil && s.workers == sameKey {
		err = s.otherEnds(!acts)
	}
	return f, ph, err
}

// dies kills a process.
func (s *story) dies(ctx context.Context, p *process) error {
	killed, err := p.kill(ctx)
	switch {
	case err != nil:
		return err
	case !killed:
		return errMissed
	}
	s.result.kills++
	return nil
}

// came checks how far the run has come.
func (s *story) came(ctx context.Context, want phase) (f fact, got phase, err error) {
	f, err = s.look(ctx)
	if got = f.phase(s.effects("")); err == nil && got != want && (s.or == "" || got != s.or) {
		err = fmt.Errorf("killed in phase %q, want %q", got, want)
	}
	return f, got, err
}

// otherActs has the other run ask for the same refund. It waits if, and only if, the first one's handler runs.
func (s *story) otherActs() error {
	s.second.tell(command{Run: other})
	e, err := s.second.await("waits", "next")
	if err != nil {
		return err
	}
	if e.what == "next" {
		s.said = &e.said
	}
	stop := s.atStop()
	if waits := e.what == "waits"; waits != (stop == claimed || stop == effected) {
		return fmt.Errorf("that the other run waits is %t", waits)
	}
	return nil
}

// otherEnds waits for the end of the other run, and begins it where it was to wait for the kill.
func (s *story) otherEnds(begin bool) error {
	if s.said != nil {
		return nil
	}
	if begin {
		s.second.tell(command{Run: other})
	}
	e, err := s.second.await("next")
	s.said = &e.said
	return err
}

// isRefused has the second process ask for the run that the first one is at. Of one that is finished it gets the answer.
func (s *story) isRefused() error {
	said, err := s.second.do(first)
	switch n := len(s.asked(s.second, first)); {
	case err != nil:
		return err
	case n > 0 || said.Taken != (s.phase != finished):
		return fmt.Errorf("the second process got %+v after %d requests, while the first has the run in phase %q", said, n, s.phase)
	case s.phase == finished:
		return s.check(first, said, doneHere)
	}
	return nil
}

// takesAll has the second process do the run that the first one has not yet begun.
func (s *story) takesAll() error {
	said, err := s.second.do(first)
	if err == nil {
		err = s.check(first, said, doneHere)
	}
	if asked := s.asked(s.second, first); err == nil && !slices.Equal(asked, []int{1, 2, 3}) {
		err = fmt.Errorf("the process that did it all asked the model for turns %v", asked)
	}
	return err
}

// killAgain kills the process that goes on with the run, where it is to be killed too. What is stored by then, and what is
// demanded, may be more than before. then is nil where another process must go on.
func (s *story) killAgain(ctx context.Context, f fact, d demand) (then *process, _ fact, _ demand, err error) {
	var p *process
	switch {
	case s.then != "":
		if p = s.second; p == nil {
			if p, err = s.opened(ctx); err != nil {
				return nil, f, d, err
			}
		}
		p.tell(command{Run: first, At: s.then})
		if _, err = p.await("here"); err == nil {
			err = s.dies(ctx, p)
		}
	case s.random != nil && s.workers == alone && s.random.IntN(2) == 0:
		if p, err = s.start(ctx); err == nil {
			err = s.loose(ctx, p, time.Now(), s.length.life, command{}, command{Run: first}, command{})
		}
		if errors.Is(err, errMissed) { // then it has ended the run
			err = nil
		}
	default:
		return s.second, f, d, nil
	}
	if err == nil {
		f, err = s.look(ctx)
	}
	if err == nil {
		d, err = s.more(ctx, f, d)
	}
	return nil, f, d, err
}

// more is what is demanded after the second kill, by what was demanded after the first.
func (s *story) more(ctx context.Context, f fact, d demand) (demand, error) {
	ph := f.phase(s.effects(""))
	if s.then != "" && ph != s.thenPhase {
		return d, fmt.Errorf("killed again in phase %q, want %q", ph, s.thenPhase)
	}
	if ph == told || ph == finished {
		return d, nil
	}
	if s.then != "" && s.Kind == "plain" && ph == effected { // the same run goes on with what a person has seen
		if err := s.person(ctx, true, time.Time{}); err != nil {
			return d, err
		}
		ph = saved
	}
	return demanded(ph, s.Kind)
}

// atSomeTime kills the run, or what comes before and behind it, at a random time.
func (s *story) atSomeTime(ctx context.Context) (f fact, ph phase, err error) {
	within := s.length.work
	commands := []command{{}}
	switch s.workers {
	case alone:
		if s.victim, err = s.start(ctx); err != nil {
			return f, "", err
		}
		within, commands = s.length.life, []command{{}, {Run: first}, {}}
	default:
		if s.victim, err = s.opened(ctx); err != nil {
			return f, "", err
		}
		s.victim.tell(command{Run: first})
	}
	begun := time.Now()
	if s.workers == sameRun {
		if _, err := s.victim.await("begun"); err != nil {
			return f, "", err
		}
		said, err := s.second.do(first)
		if err != nil {
			return f, "", err
		}
		if !said.Taken { // the first has ended the run already
			return f, "", errMissed
		}
	}
	if s.workers == sameKey {
		s.second.tell(command{Run: other})
	}
	if err := s.loose(ctx, s.victim, begun, within, commands...); err != nil {
		return f, "", err
	}
	if s.workers == sameKey {
		if err := s.otherEnds(false); err != nil {
			return f, "", err
		}
	}
	f, err = s.look(ctx)
	ph = f.phase(s.effects(s.victim.name))
	s.result.row = atRandom(ph)
	return f, ph, err
}

// loose lets a process do what it is told and kills it when a part of its time is over, whole microseconds.
func (s *story) loose(ctx context.Context, p *process, begun time.Time, within time.Duration, commands ...command) error {
	part := time.Duration(s.random.Int64N(within.Microseconds()+1)) * time.Microsecond
	timer := time.NewTimer(time.Until(begun.Add(part)))
	defer timer.Stop()
	next := func() {
		if len(commands) > 0 {
			p.tell(commands[0])
			commands = commands[1:]
		}
	}
	if s.workers == alone { // it waits for the first one
		next()
	}
	for {
		select {
		case e := <-p.events:
			if e.what == "next" {
				next()
			}
		case <-timer.C:
			return s.dies(ctx, p)
		case <-p.ended: // it was faster than the one that was measured
			s.length = length{min(s.length.life, time.Since(begun)), min(s.length.work, time.Since(begun))}
			return s.dies(ctx, p)
		}
	}
}

// atRandom is the row of the table for a phase that was met at random.
func atRandom(ph phase) string { return "random: " + string(ph) }
