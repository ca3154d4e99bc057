package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/registry"
)

// probe is a case at work. Its methods end the case where the journal breaks its word.
type probe struct {
	ctx context.Context
	sys System
	n   int // runs made
}

// check makes a Check of f.
func check(f func(*probe)) func(context.Context, System) error {
	return func(ctx context.Context, sys System) error {
		return suite.Catch(func() { f(&probe{ctx: ctx, sys: sys}) })
	}
}

// is fails unless err is the sentinel wanted.
func (p *probe) is(err, wanted error, doing string) {
	if !errors.Is(err, wanted) {
		suite.Failf("%s: want the error %q, got %v", doing, wanted, err)
	}
}

// start is a run that is not there yet.
func (p *probe) start() journal.Start {
	p.n++
	return journal.Start{
		Run: registry.Run{ID: fmt.Sprintf("run-%d", p.n), Conversation: fmt.Sprintf("chat-%d", p.n)},
		API: "chat", Input: fmt.Appendf(nil, "digest %d", p.n),
	}
}

// begin begins a run that must be this caller's then.
func (p *probe) begin(j journal.Journal, s journal.Start) journal.Record {
	r, err := j.Begin(p.ctx, s)
	suite.None(err, "Begin")
	if r.Token == "" || r.Finished {
		suite.Failf("Begin gave token %q and finished %v, want a token and a run that is not finished", r.Token, r.Finished)
	}
	return r
}

// refused begins a run in vain.
func (p *probe) refused(j journal.Journal, s journal.Start, wanted error) {
	r, err := j.Begin(p.ctx, s)
	p.is(err, wanted, "Begin")
	if r.Token != "" || len(r.Turns) > 0 {
		suite.Failf("Begin that was refused gave %s", describe(&r))
	}
}

// turn is a turn with an answer of its own.
func turn(n int) journal.Turn {
	return journal.Turn{Number: n, Answer: fmt.Appendf(nil, `{"answer":%d}`, n)}
}

// output is what the call at a position of a turn was told.
func output(turn, position int) journal.Output {
	return journal.Output{
		Position: position, Content: fmt.Sprintf("output %d of turn %d", position, turn),
		Verdict: registry.Executed, Operation: fmt.Sprintf("op_%d_%d", turn, position),
	}
}

// entry is the next turn of a run, with as many outputs of the turn before.
func entry(r *journal.Record, outputs int) journal.Entry {
	e := journal.Entry{Run: r.Run.ID, Token: r.Token, Turn: turn(len(r.Turns) + 1)}
	for i := range outputs {
		e.Outputs = append(e.Outputs, output(len(r.Turns), i))
	}
	return e
}

// put appends an entry that must be stored as it is, and notes it in the record.
func (p *probe) put(j journal.Journal, r *journal.Record, e journal.Entry) {
	got, err := j.Append(p.ctx, e)
	suite.None(err, "Append")
	p.sameEntry("what Append returned", got, e)
	note(r, e)
}

// note makes a record what it is with an entry.
func note(r *journal.Record, e journal.Entry) {
	if n := len(r.Turns); n > 0 {
		r.Turns[n-1].Outputs = e.Outputs
	}
	r.Turns = append(r.Turns, e.Turn)
	if e.Final {
		r.Finished, r.Token = true, ""
	}
}

// going is a run with two turns, of which the first has its outputs.
func (p *probe) going(j journal.Journal) journal.Record {
	r := p.begin(j, p.start())
	p.put(j, &r, entry(&r, 0))
	p.put(j, &r, entry(&r, 2))
	return r
}

// finished is a run with its answer.
func (p *probe) finished(j journal.Journal) journal.Record {
	r := p.going(j)
	e := entry(&r, 1)
	e.Final = true
	p.put(j, &r, e)
	return r
}

func (p *probe) leave(j journal.Journal, r journal.Record) {
	suite.None(j.Leave(p.ctx, journal.Leaving{Run: r.Run.ID, Token: r.Token}), "Leave")
}

// again begins a run of j that must be as the record says. It returns the record with the new token.
func (p *probe) again(j journal.Journal, what string, r journal.Record) journal.Record {
	got := p.begin(j, r.Start)
	if got.Token == r.Token {
		suite.Failf("%s: Begin gave the token of before", what)
	}
	p.same(what, got, r)
	return got
}

// unchanged leaves a run and takes it again.
func (p *probe) unchanged(j journal.Journal, what string, r journal.Record) journal.Record {
	p.leave(j, r)
	return p.again(j, what, r)
}

// same compares records but for their tokens.
func (p *probe) same(what string, got, wanted journal.Record) {
	if !got.Created.Equal(wanted.Created) {
		suite.Failf("%s: Created is %v, want %v", what, got.Created, wanted.Created)
	}
	if !sameStart(got.Start, wanted.Start) || got.Finished != wanted.Finished || !slices.EqualFunc(got.Turns, wanted.Turns, sameTurn) {
		suite.Failf("%s: the run is %s, want %s", what, describe(&got), describe(&wanted))
	}
}

func (p *probe) sameEntry(what string, got, wanted journal.Entry) {
	if got.Run != wanted.Run || got.Token != wanted.Token || got.Final != wanted.Final || !bytes.Equal(got.Turn.Answer, wanted.Turn.Answer) ||
		got.Turn.Number != wanted.Turn.Number || !slices.Equal(got.Outputs, wanted.Outputs) {
		suite.Failf("%s is %.1000q, want %.1000q", what, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", wanted))
	}
}

func sameStart(a, b journal.Start) bool {
	return a.Run == b.Run && a.API == b.API && bytes.Equal(a.Input, b.Input)
}

func sameTurn(a, b journal.Turn) bool {
	return a.Number == b.Number && bytes.Equal(a.Answer, b.Answer) && slices.Equal(a.Outputs, b.Outputs)
}

func describe(r *journal.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v of API %q with input %q, finished %v", r.Run, r.API, r.Input, r.Finished)
	for _, t := range r.Turns {
		fmt.Fprintf(&b, "; turn %d %.200q %.500q", t.Number, t.Answer, fmt.Sprint(t.Outputs))
	}
	return b.String()
}

// race calls f n times at once.
func race[T any](n int, f func(i int) T) []T {
	all := make([]T, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			all[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	return all
}
