package journaltest

import (
	"context"
	"errors"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/suite"
)

func appendCases() []Case {
	return []Case{
		{"append/stores a turn, and the outputs of the turn before", "6", check(func(p *probe) {
			j := p.sys.Open()
			r := p.begin(j, p.start())
			for _, outputs := range []int{0, 1, 0, 3} {
				p.put(j, &r, entry(&r, outputs))
			}
			p.unchanged(j, "a run with four turns", r)
		})},
		{"append/the entry's own turn comes without outputs", "Entry", check(appendOwnOutputs)},
		{"append/loses under a token that is not the run's, and stores nothing", "6", check(appendOtherToken)},
		{"append/loses where another process has taken the run, and stores nothing", "6", check(appendTaken)},
		{"append/loses where the run was left or is unknown, and stores nothing", "6", check(appendLeft)},
		{"append/loses where the run is finished, and stores nothing", "6", check(appendFinished)},
		{"append/a turn that is stored stays, with the outputs before it", "7", check(appendStored)},
		{"append/an output that is stored stays, and others join it", "7", check(appendStoredOutput)},
		{"append/a turn that does not follow the last one stores nothing", "8", check(appendGap)},
		{"append/with Final finishes the run and gives it up", "9", check(appendFinal)},
		{"append/with Final needs no turn before it", "9", check(func(p *probe) {
			j := p.sys.Open()
			r := p.begin(j, p.start())
			e := entry(&r, 0)
			e.Final = true
			p.put(j, &r, e)
			p.saved(p.sys.Open(), r)
		})},
		{"append/is whole or absent where the caller has gone", "Journal", check(appendCanceled)},
	}
}

func appendOwnOutputs(p *probe) {
	j := p.sys.Open()
	r := p.going(j)
	e := entry(&r, 1)
	spoilt := e
	spoilt.Turn.Outputs = []journal.Output{output(3, 0)}
	_, err := j.Append(p.ctx, spoilt)
	suite.None(err, "Append")
	note(&r, e)
	p.unchanged(j, "a run whose turn came with outputs", r)
}

// lost appends what must be refused.
func (p *probe) lost(j journal.Journal, e journal.Entry, doing string) {
	got, err := j.Append(p.ctx, e)
	p.is(err, journal.ErrLost, "Append "+doing)
	p.sameEntry("what Append returned with ErrLost", got, journal.Entry{})
}

func appendOtherToken(p *probe) {
	j := p.sys.Open()
	r, another := p.going(j), p.going(j)
	for _, final := range []bool{false, true} {
		for _, token := range []string{another.Token, r.Token + "x", "", "%"} {
			e := entry(&r, 1)
			e.Token, e.Final = token, final
			p.lost(j, e, "under another token")
			e.Turn.Number = 2 // it is stored: all the same
			p.lost(j, e, "of a stored turn under another token")
		}
	}
	p.put(j, &r, entry(&r, 1)) // whose it was it still is, or stored is nothing
	p.unchanged(j, "a run that another token wanted to add to", r)
}

func appendTaken(p *probe) {
	slow, b := p.sys.Open(), p.sys.Open()
	old := p.going(slow)
	p.sys.Kill(slow)
	r := p.again(b, "a run whose owner counts as gone", old)
	for _, e := range []journal.Entry{entry(&old, 1), {Run: old.Run.ID, Token: old.Token, Turn: turn(2)}} {
		p.lost(slow, e, "by a slow process")
		e.Final = true
		p.lost(slow, e, "by a slow process that finishes")
	}
	p.put(b, &r, entry(&r, 2))
	p.lost(slow, entry(&old, 1), "by a slow process, of a turn that is stored by now")
	p.unchanged(b, "what a slow process wanted to store", r)
}

func appendLeft(p *probe) {
	j := p.sys.Open()
	r := p.going(j)
	p.leave(j, r)
	p.lost(j, entry(&r, 1), "to a run that was left")
	p.again(j, "a run that was left", r)

	s := p.start()
	p.lost(j, journal.Entry{Run: s.Run.ID, Token: r.Token, Turn: turn(1)}, "to an unknown run")
	p.lost(j, journal.Entry{Run: s.Run.ID, Turn: turn(1)}, "to an unknown run")
	n := p.begin(j, s)
	p.same("an unknown run", n, journal.Record{Start: s, Created: n.Created})
}

func appendFinished(p *probe) {
	j := p.sys.Open()
	r := p.going(j)
	e := entry(&r, 1)
	e.Final = true
	token := r.Token
	p.put(j, &r, e)
	next := entry(&r, 1)
	next.Token = token
	p.lost(j, next, "to a finished run")
	p.lost(j, e, "of its answer to a finished run")
	p.saved(j, r)
}

func appendStored(p *probe) {
	j := p.sys.Open()
	r := p.going(j)
	p.put(j, &r, entry(&r, 2))
	for n := 1; n <= 3; n++ {
		e := journal.Entry{
			Run: r.Run.ID, Token: r.Token, Final: true,
			Turn: journal.Turn{Number: n, Answer: []byte(`"another"`)}, Outputs: []journal.Output{output(7, 0), output(7, 5)},
		}
		if n == 1 {
			e.Outputs = nil
		}
		got, err := j.Append(p.ctx, e)
		suite.None(err, "Append of a stored turn")
		wanted := journal.Entry{Run: r.Run.ID, Token: r.Token, Turn: r.Turns[n-1]}
		if n > 1 {
			wanted.Outputs = r.Turns[n-2].Outputs
		}
		p.sameEntry("what Append of a stored turn returned", got, wanted)
	}
	r = p.unchanged(j, "a run whose turns were stored again", r)
	p.put(j, &r, entry(&r, 1))
}

func appendStoredOutput(p *probe) {
	j := p.sys.Open()
	r := p.going(j)
	r.Turns[1].Outputs = []journal.Output{output(2, 1), output(2, 3)}
	suite.None(j.Leave(p.ctx, journal.Leaving{Run: r.Run.ID, Token: r.Token, Turn: 2, Outputs: r.Turns[1].Outputs}), "Leave")
	r = p.again(j, "a run with some outputs", r)
	e := entry(&r, 0)
	for i := range 5 {
		o := output(2, i)
		o.Content += ", told anew"
		e.Outputs = append(e.Outputs, o)
	}
	got, err := j.Append(p.ctx, e)
	suite.None(err, "Append")
	e.Outputs[1], e.Outputs[3] = output(2, 1), output(2, 3)
	p.sameEntry("what Append returned", got, e)
	note(&r, e)
	p.unchanged(j, "a run whose outputs came twice", r)
}

func appendGap(p *probe) {
	for _, n := range []int{-1, 0, 4, 5, 1000} {
		j := p.sys.Open()
		r := p.going(j)
		e := entry(&r, 1)
		e.Turn.Number, e.Final = n, n == 4
		got, err := j.Append(p.ctx, e)
		if err == nil || errors.Is(err, journal.ErrLost) {
			suite.Failf("Append of turn %d after turn 2: want an error that is not ErrLost, got %v", n, err)
		}
		p.sameEntry("what Append returned with an error", got, journal.Entry{})
		r = p.again(j, "after a turn that does not follow", r)
		p.put(j, &r, entry(&r, 1))
	}
}

func appendFinal(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	r := p.finished(a)
	p.saved(a, r)
	p.saved(b, r)
}

// appendCanceled stores for callers who do not wait.
func appendCanceled(p *probe) {
	ctx, cancel := context.WithCancel(p.ctx)
	cancel()
	j := p.sys.Open()
	for range 10 {
		r := p.going(j)
		e := entry(&r, 2)
		if _, err := j.Append(ctx, e); err == nil {
			note(&r, e)
			p.leave(j, r)
		}
		r = p.again(j, "a turn of a caller who has gone", r)
		l := journal.Leaving{Run: r.Run.ID, Token: r.Token, Turn: len(r.Turns), Outputs: []journal.Output{output(9, 9)}}
		if err := j.Leave(ctx, l); err == nil {
			last := &r.Turns[len(r.Turns)-1]
			last.Outputs = append(last.Outputs, l.Outputs...)
		}
		p.again(j, "the outputs of a caller who has gone", r)
	}
}
