package middleware_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// move is one step of a scenario. All is drawn before the scenario runs, so that rapid can shrink it.
type move struct {
	kind string
	pick int // of what there is: an earlier call, an operation in doubt
	wait time.Duration
	request
}

func (m move) String() string {
	switch m.kind {
	case "wait":
		return fmt.Sprint("wait ", m.wait)
	case "call", "again", "both":
		return fmt.Sprintf("%s #%d: %s(%s, %d) of run %s, %s, dies %q, unsure %v", m.kind, m.pick, m.tool, m.name, m.cents, m.run, m.ends, m.dies, m.unsure)
	}
	return fmt.Sprintf("%s #%d", m.kind, m.pick)
}

// drawMoves draws a scenario of all tools or, so that they meet more often, of few.
func drawMoves(t *rapid.T) []move {
	tools := rapid.SampledFrom([][]string{
		{"refund", "pay", "note", "look", "rerun", "set", "reserve", "give_up"}, {"refund", "pay"}, {"look"}, {"rerun"}, {"set", "note"}, {"reserve", "give_up"},
	}).Draw(t, "tools")
	one := rapid.Custom(func(t *rapid.T) move { return drawMove(t, tools) })
	var moves []move
	for range 4 { // rapid makes slices of about five
		moves = append(moves, rapid.SliceOfN(one, 0, 10).Draw(t, "moves")...)
	}
	return moves
}

func drawMove(t *rapid.T, tools []string) move {
	m := move{kind: rapid.SampledFrom([]string{"call", "call", "call", "both", "again", "again", "wait", "person", "recover", "crash"}).Draw(t, "kind")}
	m.pick = rapid.IntRange(0, 7).Draw(t, "pick")
	switch m.kind {
	case "wait":
		m.wait = rapid.SampledFrom([]time.Duration{time.Second, 20 * time.Second, 10 * time.Minute}).Draw(t, "wait")
	case "call", "again", "both":
		m.tool = rapid.SampledFrom(tools).Draw(t, "tool")
		m.name = rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "name")
		m.cents = rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "cents")
		m.run = rapid.SampledFrom([]string{"r1", "r2"}).Draw(t, "run")
		m.ends, m.dies = succeeds, alive
		if rapid.IntRange(0, 3).Draw(t, "fails") == 3 {
			m.ends = rapid.SampledFrom([]ending{refuses, failsBefore, failsAfter, panicsBefore, panicsAfter, comesLate}).Draw(t, "ends")
		}
		if rapid.IntRange(0, 5).Draw(t, "dies") == 5 {
			m.dies = rapid.SampledFrom([]point{beforeClaim, afterClaim, beforeEffect, afterEffect, beforeStoring, afterStoring}).Draw(t, "where")
		}
		m.unsure = rapid.IntRange(0, 4).Draw(t, "unsure") == 4
		if m.tool == "reserve" || m.tool == "give_up" {
			m.cents = 1 // their input is the seat alone
		}
	}
	return m
}

// scenario runs the guard and the reference side by side.
type scenario struct {
	ctx   context.Context
	p     *process
	ref   *reference
	calls []request
}

func (s *scenario) restart() {
	s.ref.settle(time.Now())
	s.ref.crash()
	s.p = start(s.p.Peer(), s.p.provider, s.p.end)
}

func (s *scenario) move(m move) error {
	time.Sleep(time.Millisecond) // so that no two things happen at one time
	synctest.Wait()
	s.ref.settle(time.Now())
	switch m.kind {
	case "wait":
		time.Sleep(m.wait)
		synctest.Wait()
		s.ref.settle(time.Now())
	case "crash":
		s.p.die()
		s.restart()
	case "recover":
		return s.recoverAll()
	case "person":
		return s.person(m.pick)
	case "again":
		if len(s.calls) == 0 {
			return nil
		}
		r := s.calls[m.pick%len(s.calls)]
		r.ends, r.dies, r.unsure = m.ends, m.dies, m.unsure
		return s.call(r)
	case "call", "both":
		m.turn = len(s.calls) + 1
		s.calls = append(s.calls, m.request)
		if m.kind == "both" {
			return s.both(m.request)
		}
		return s.call(m.request)
	}
	return nil
}

// answer is what a call came to.
type answer struct {
	res registry.Result
	err error
}

var errNone = errors.New("none")

func (a answer) is(wanted registry.Verdict) error {
	if a.err != nil || a.res.Verdict != wanted {
		return fmt.Errorf("verdict %q, want %q; %s; error: %w", a.res.Verdict, wanted, a.res.Content, cmp.Or(a.err, errNone))
	}
	return nil
}

// send makes a call in the background.
func (s *scenario) send(r request) <-chan answer {
	arguments := fmt.Sprintf(`{"name":%q,"cents":%d}`, r.name, r.cents)
	if r.tool == "reserve" || r.tool == "give_up" {
		arguments = fmt.Sprintf(`{"seat":%q}`, r.name)
	}
	told, p := make(chan answer, 1), s.p
	go func() {
		res, err := p.handle(s.ctx, in(r.run, at(r.turn, 0, r.tool, arguments)))
		told <- answer{res, err}
	}()
	return told
}

// both makes two calls of one operation at once: the second comes while the handler of the first runs, if it has one. That
// makes no difference.
func (s *scenario) both(first request) error {
	first.dies = alive
	if first.tool == "set" && first.ends == comesLate {
		first.ends = succeeds
	}
	second := first
	second.turn, second.ends = len(s.calls)+1, succeeds // its handler is the second of the process, if there are two
	s.calls = append(s.calls, second)
	now := time.Now()
	wanted := []registry.Verdict{s.ref.call(&first, now), s.ref.call(&second, now)}
	gate := make(chan struct{})
	s.p.expect(first, gate)
	one := s.send(first)
	synctest.Wait()
	two := s.send(second)
	synctest.Wait()
	close(gate)
	return errors.Join((<-one).is(wanted[0]), (<-two).is(wanted[1]))
}

func (s *scenario) call(r request) error {
	if r.tool == "set" && r.ends == comesLate {
		r.ends = succeeds
	}
	if inHandler := r.dies == beforeEffect || r.dies == afterEffect; !inHandler && !s.ref.claims(&r) {
		r.dies = alive
	}
	wanted := s.ref.call(&r, time.Now())
	s.p.expect(r, nil)
	p := s.p
	told := s.send(r)
	select {
	case <-p.dead:
		if wanted != "" {
			return fmt.Errorf("the process died, want verdict %s", wanted)
		}
		s.restart()
	case a := <-told:
		if err := a.is(wanted); err != nil {
			return err
		}
	}
	if o := s.ref.meant[r.place]; o != nil && s.p.key != "" {
		row, _, err := s.p.MemoryLedger.Find(s.ctx, middleware.Query{Run: r.run, Turn: r.turn})
		if want := registry.DownstreamKey("", row.Identity, o.ran); err != nil || s.p.key != want {
			return fmt.Errorf("the handler got another key than that of generation %d: %w", o.ran, cmp.Or(err, errNone))
		}
	}
	return nil
}

func (s *scenario) recoverAll() error {
	s.p.expect(request{ends: succeeds}, nil)
	s.ref.recoverAll(time.Now())
	_, err := middleware.Recover(s.ctx, s.p.tools, s.p, options())
	return err
}

func (s *scenario) person(pick int) error {
	var doubts []*thing
	for _, o := range s.ref.things {
		if o.state == middleware.InDoubt {
			doubts = append(doubts, o)
		}
	}
	if len(doubts) == 0 {
		return nil
	}
	o := doubts[pick%len(doubts)]
	row, _, err := s.p.Find(s.ctx, middleware.Query{Run: o.claimer.run, Turn: o.claimer.turn})
	if err != nil {
		return err
	}
	step, early := s.ref.person(o, time.Now())
	_, err = s.p.MemoryLedger.Change(s.ctx, middleware.Transition{
		Step: step, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, Result: "seen", HasResult: true, By: "Ann", Why: "seen",
	})
	if _, is := errors.AsType[*middleware.EarlyError](err); is != early || !early && err != nil {
		return fmt.Errorf("a person's verdict, want early %v: %w", early, cmp.Or(err, errNone))
	}
	return nil
}

// same compares the world and the rows with the reference.
func (s *scenario) same() error {
	synctest.Wait()
	s.ref.settle(time.Now())
	effects := map[string]int{}
	for _, o := range s.ref.things {
		effects[o.tool] += o.done
		if o.done > 1 && o.tool != "set" {
			return fmt.Errorf("%s was done %d times", o.identity, o.done)
		}
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	for tool, n := range effects {
		if s.p.count[tool] != n {
			return fmt.Errorf("%s was done %d times, want %d", tool, s.p.count[tool], n)
		}
	}
	for at, o := range s.ref.meant {
		row, ok, err := s.p.MemoryLedger.Find(s.ctx, middleware.Query{Run: at.run, Turn: at.turn})
		got := fmt.Sprint(ok, err, row.State, row.Attempt, row.Generation, row.Unclear)
		if want := fmt.Sprint(true, nil, o.state, o.attempt, o.generation, o.unclear); got != want {
			return fmt.Errorf("the row of %s (found, error, state, attempt, generation, unclear) is %s, want %s", o.identity, got, want)
		}
	}
	return nil
}

// settleAll shows that nothing is stuck: once its time is over, all is settled by its tool, or by a person.
func (s *scenario) settleAll() error {
	s.p.die()
	s.restart()
	time.Sleep(10 * time.Minute)
	if err := s.recoverAll(); err != nil {
		return err
	}
	for range s.ref.things {
		if err := s.person(0); err != nil {
			return err
		}
	}
	for _, o := range s.ref.things {
		if o.state == middleware.Running || o.state == middleware.InDoubt {
			return fmt.Errorf("%s is %s for ever", o.identity, o.state)
		}
	}
	return s.same()
}

// play runs a scenario in a bubble of its own. Its error tells the first move after which guard and reference differ.
func play(t *testing.T, moves []move) (err error) {
	bubble(t, func(t *testing.T) {
		end := make(chan struct{})
		defer func() {
			close(end)
			time.Sleep(time.Hour) // until the dead have done what they were at
		}()
		world := &provider{count: map[string]int{}, facts: map[string]bool{}}
		s := &scenario{
			ctx: t.Context(), p: start(middleware.Memory(), world, end),
			ref: &reference{meant: map[place]*thing{}, timeout: timeout, margin: options().Margin},
		}
		for i, m := range moves {
			if err = s.move(m); err == nil {
				err = s.same()
			}
			if err != nil {
				var b strings.Builder
				for _, m := range moves[:i+1] {
					fmt.Fprintf(&b, "\n\t%v", m)
				}
				err = fmt.Errorf("%w, after%s", err, b.String())
				return
			}
		}
		if err = s.settleAll(); err != nil {
			err = fmt.Errorf("%w, at the end of %v", err, moves)
		}
	})
	return err
}

// TestRandomScenariosEndAsTheReferenceSays takes -rapid.checks=N for more, and -rapid.seed=N to see a failure again.
func TestRandomScenariosEndAsTheReferenceSays(t *testing.T) {
	rounds := 5
	if testing.Short() {
		rounds = 1
	}
	for i := range rounds {
		t.Run(fmt.Sprint(i), rapid.MakeCheck(func(r *rapid.T) {
			if err := play(t, drawMoves(r)); err != nil {
				r.Fatal(err)
			}
		}))
	}
}
