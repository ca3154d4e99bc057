package journaltest

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/suite"
)

// forgetCases tell nothing where the System has no Forget.
func forgetCases() []Case {
	return []Case{
		{"forget/a run that was forgotten is begun by nobody", "13", check(forgetBegin)},
		{"forget/what was forgotten is not read", "13", check(forgetRead)},
		{"forget/not while somebody lives at the run", "13", check(forgetTaken)},
		{"forget/the input still counts as asked before", "13", check(forgetAsked)},
		{"forget/a token is worth nothing afterwards", "13", check(forgetToken)},
		{"race/of who begins a run and who has it forgotten one does", "13", check(forgetRace)},
		{"namespaces/forget does not cross", "11", check(namespaceForget)},
	}
}

func (p *probe) forgets(j journal.Journal, run string) error {
	if p.sys.Forget == nil {
		suite.None(fmt.Errorf("journaltest: forgetting a run: the system has no Forget: %w", errors.ErrUnsupported), "a case about forgetting")
	}
	return p.sys.Forget(j, run)
}

func (p *probe) forget(j journal.Journal, r journal.Record) {
	suite.None(p.forgets(j, r.Run.ID), "Forget")
}

func forgetBegin(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	finished, left, gone := p.finished(a), p.going(a), p.going(b)
	p.leave(a, left)
	p.sys.Kill(b)
	for _, r := range []journal.Record{finished, left, gone} {
		p.forget(a, r)
		for _, j := range []journal.Journal{a, p.sys.Open()} {
			p.refused(j, r.Start, journal.ErrForgotten)
			other := r.Start
			other.Input = []byte("another digest")
			p.refused(j, other, journal.ErrOtherInput)
		}
		p.forget(a, r)
		p.refused(a, r.Start, journal.ErrForgotten)
	}
	if p.forgets(a, "a run that nobody made") == nil {
		suite.Failf("a run that nobody made was forgotten")
	}
	p.begin(a, p.start())
}

func forgetRead(p *probe) {
	j := p.sys.Open()
	r := p.going(j)
	p.leave(j, r)
	p.forget(j, r)
	r.Finished, r.Turns = true, nil
	p.reads(j, "a run that was forgotten", r)
	got, _ := p.read(j, r.Run.ID)
	suite.Want("Forgotten of the run", got.Forgotten, true)
	all := p.runs(j, journal.RunsQuery{})
	suite.Want("runs listed", len(all), 1)
	suite.Want("Forgotten of the run listed", all[0].Forgotten, true)
	suite.Want("turns of the run listed", all[0].Turns, 0)
	suite.Want("unfinished runs", len(p.runs(j, journal.RunsQuery{Unfinished: true})), 0)
}

func forgetTaken(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	r := p.going(a)
	for _, j := range []journal.Journal{a, b} {
		p.is(p.forgets(j, r.Run.ID), journal.ErrRunTaken, "Forget of a run that somebody lives at")
	}
	p.put(a, &r, entry(&r, 1))
	p.unchanged(a, "a run that could not be forgotten", r)
}

func forgetAsked(p *probe) {
	j := p.sys.Open()
	first := p.begin(j, p.start())
	p.leave(j, first)
	p.forget(j, first)
	s := p.start()
	s.Run.Conversation, s.Input = first.Run.Conversation, first.Input
	if r := p.begin(j, s); !r.AskedBefore.Equal(first.Created) {
		suite.Failf("AskedBefore is %v, want when the run was made that was forgotten, %v", r.AskedBefore, first.Created)
	}
}

func forgetToken(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	r := p.going(a)
	p.sys.Kill(a)
	p.forget(b, r)
	p.lost(a, entry(&r, 1), "of a run that was forgotten")
	p.is(a.Leave(p.ctx, journal.Leaving{Run: r.Run.ID, Token: r.Token, Turn: 2, Outputs: entry(&r, 1).Outputs}), journal.ErrLost, "Leave of a run that was forgotten")
	r.Finished, r.Turns = true, nil
	p.reads(b, "a run that was forgotten", r)
}

func forgetRace(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	for n := range 20 {
		r := p.going(a)
		p.leave(a, r)
		try := func(i int) error {
			if i == 0 {
				return p.forgets(b, r.Run.ID)
			}
			_, err := a.Begin(p.ctx, r.Start)
			return err
		}
		var errs []error
		if n == 0 { // once in that order
			errs = []error{try(0), try(1)}
		} else {
			errs = race(2, try)
		}
		if (errs[0] == nil) == (errs[1] == nil) {
			suite.Failf("Forget gave the error %v, Begin %v, want one of them to win", errs[0], errs[1])
		}
		if errs[0] == nil {
			p.is(errs[1], journal.ErrForgotten, "Begin of a run that was forgotten")
		} else {
			p.is(errs[0], journal.ErrRunTaken, "Forget of a run that somebody has begun")
		}
	}
}

func namespaceForget(p *probe) {
	a, b := p.tenants()
	r := p.finished(a)
	if p.forgets(b, r.Run.ID) == nil {
		suite.Failf("another tenant's run was forgotten")
	}
	mine := p.begin(b, r.Start)
	p.leave(b, mine)
	p.forget(b, mine)
	p.saved(a, r)
}

// forgivesForgotten gives a run that was forgotten as one that has ended.
func forgivesForgotten() *fault {
	return &fault{begin: func(ctx context.Context, b *brokenJournal, s journal.Start) (journal.Record, error) {
		r, err := b.Journal.Begin(ctx, s)
		if errors.Is(err, journal.ErrForgotten) {
			return journal.Record{Start: s, Finished: true}, nil
		}
		return r, err
	}}
}
