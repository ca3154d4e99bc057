package journaltest

import (
	"errors"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/suite"
)

func leaveCases() []Case {
	return []Case{
		{"leave/stores the outputs of the last turn, and gives the run up", "10", check(func(p *probe) {
			j := p.sys.Open()
			r := p.going(j)
			p.told(j, &r, output(2, 0), output(2, 1))
			p.again(p.sys.Open(), "a run that was left with outputs", r)
		})},
		{"leave/adds nothing where there is nothing to add", "10", check(func(p *probe) {
			a, b := p.sys.Open(), p.sys.Open()
			none, two := p.begin(a, p.start()), p.going(a)
			for _, r := range []journal.Record{none, two} {
				p.leave(a, r)
				r = p.again(b, "a run that was left", r)
				p.told(b, &r)
				p.again(a, "a run that was left with its last turn named", r)
			}
		})},
		{"leave/an output that is stored stays, and others join it", "10", check(func(p *probe) {
			j := p.sys.Open()
			r := p.going(j)
			p.told(j, &r, output(2, 1))
			r = p.again(j, "a run with one output", r)
			anew := output(2, 1)
			anew.Content, anew.Verdict, anew.Operation = "told anew", "", ""
			l := journal.Leaving{Run: r.Run.ID, Token: r.Token, Turn: 2, Outputs: []journal.Output{output(2, 0), anew, output(2, 2)}}
			suite.None(j.Leave(p.ctx, l), "Leave")
			r.Turns[1].Outputs = []journal.Output{output(2, 0), output(2, 1), output(2, 2)}
			p.again(j, "a run whose outputs came twice", r)
		})},
		{"leave/loses under a token that is not the run's, and stores nothing", "10", check(leaveOtherToken)},
		{"leave/loses where another process has taken the run, and stores nothing", "10", check(leaveTaken)},
		{"leave/loses where the run was left or is unknown, and stores nothing", "10", check(leaveLeft)},
		{"leave/loses where the run is finished, and stores nothing", "10", check(leaveFinished)},
		{"leave/at another turn than the last one stores nothing", "Leaving", check(leaveOtherTurn)},
	}
}

// told leaves a run with outputs of its last turn, and notes them in the record.
func (p *probe) told(j journal.Journal, r *journal.Record, outputs ...journal.Output) {
	n := len(r.Turns)
	suite.None(j.Leave(p.ctx, journal.Leaving{Run: r.Run.ID, Token: r.Token, Turn: n, Outputs: outputs}), "Leave")
	if n > 0 {
		r.Turns[n-1].Outputs = outputs
	}
}

// notLeft leaves a run in vain, with outputs and without.
func (p *probe) notLeft(j journal.Journal, run, token, doing string) {
	for _, l := range []journal.Leaving{{}, {Turn: 2, Outputs: []journal.Output{output(2, 0)}}} {
		l.Run, l.Token = run, token
		p.is(j.Leave(p.ctx, l), journal.ErrLost, "Leave "+doing)
	}
}

func leaveOtherToken(p *probe) {
	j := p.sys.Open()
	r, another := p.going(j), p.going(j)
	for _, token := range []string{another.Token, r.Token + "x", "", "%"} {
		p.notLeft(j, r.Run.ID, token, "under another token")
	}
	p.refused(j, r.Start, journal.ErrRunTaken)
	p.unchanged(j, "a run that another token wanted to leave", r)
}

func leaveTaken(p *probe) {
	slow, b, c := p.sys.Open(), p.sys.Open(), p.sys.Open()
	old := p.going(slow)
	p.sys.Kill(slow)
	r := p.again(b, "a run whose owner counts as gone", old)
	p.notLeft(slow, old.Run.ID, old.Token, "by a slow process")
	p.refused(c, r.Start, journal.ErrRunTaken)
	p.unchanged(b, "what a slow process wanted to store", r)
}

func leaveLeft(p *probe) {
	j := p.sys.Open()
	r := p.going(j)
	p.leave(j, r)
	p.notLeft(j, r.Run.ID, r.Token, "of a run that was left")
	r = p.again(j, "a run that was left", r)
	s := p.start()
	p.notLeft(j, s.Run.ID, r.Token, "of an unknown run")
	n := p.begin(j, s)
	p.same("an unknown run", n, journal.Record{Start: s, Created: n.Created})
}

func leaveFinished(p *probe) {
	j := p.sys.Open()
	r := p.going(j)
	e := entry(&r, 0)
	e.Final = true
	p.put(j, &r, e)
	p.notLeft(j, r.Run.ID, e.Token, "of a finished run")
	p.saved(j, r)
}

func leaveOtherTurn(p *probe) {
	for _, n := range []int{-1, 0, 1, 3} {
		j := p.sys.Open()
		r := p.going(j)
		err := j.Leave(p.ctx, journal.Leaving{Run: r.Run.ID, Token: r.Token, Turn: n, Outputs: []journal.Output{output(2, 5)}})
		if err == nil || errors.Is(err, journal.ErrLost) {
			suite.Failf("Leave at turn %d of 2: want an error that is not ErrLost, got %v", n, err)
		}
		p.refused(p.sys.Open(), r.Start, journal.ErrRunTaken)
		p.again(j, "a run left at another turn", r)
	}
}
