package journaltest

import (
	"errors"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/suite"
)

const (
	racers = 50
	tries  = 10
)

func raceCases() []Case {
	return []Case{
		{"race/of 50 who begin an unknown run one makes it", "1", check(func(p *probe) {
			s := p.start()
			p.raceBegin([]journal.Journal{p.sys.Open(), p.sys.Open()}, journal.Record{Start: s})
		})},
		{"race/of 50 calls of one process one makes the run", "1", check(func(p *probe) {
			s := p.start()
			p.raceBegin([]journal.Journal{p.sys.Open()}, journal.Record{Start: s})
		})},
		{"race/of 50 who begin a run that was left one takes it", "2", check(func(p *probe) {
			j := p.sys.Open()
			r := p.going(j)
			p.leave(j, r)
			p.raceBegin([]journal.Journal{j, p.sys.Open()}, r)
		})},
		{"race/of 50 who begin a run whose owner is gone one takes it", "2", check(func(p *probe) {
			j := p.sys.Open()
			r := p.going(j)
			p.sys.Kill(j)
			p.raceBegin([]journal.Journal{p.sys.Open(), p.sys.Open()}, r)
		})},
		{"race/of 50 calls of the process that has failed one takes the run", "3", check(func(p *probe) {
			j := p.sys.Open()
			r := p.going(j)
			if _, err := j.Append(p.ctx, journal.Entry{Run: r.Run.ID, Token: r.Token, Turn: turn(9)}); err == nil {
				suite.Failf("a turn that does not follow was taken")
			}
			p.raceBegin([]journal.Journal{j}, r)
		})},
		{"race/of two turns the first stays, and both are told which", "7", check(raceTurns)},
		{"race/a slow process stores its turn before the run is taken, or not at all", "6", check(raceTaken)},
		{"race/runs do not wait for each other", "Journal", check(raceRuns)},
	}
}

type answer struct {
	r   journal.Record
	e   journal.Entry
	err error
}

// raceBegin has 50 calls begin one run.
func (p *probe) raceBegin(journals []journal.Journal, wanted journal.Record) {
	var winner journal.Record
	var of journal.Journal
	for i, a := range race(racers, func(i int) (a answer) {
		a.r, a.err = journals[i%len(journals)].Begin(p.ctx, wanted.Start)
		return a
	}) {
		switch {
		case a.err != nil:
			p.is(a.err, journal.ErrRunTaken, "Begin of who was second")
		case of != nil:
			suite.Failf("two have the run")
		default:
			winner, of = a.r, journals[i%len(journals)]
		}
	}
	if of == nil {
		suite.Failf("of %d none has the run", racers)
	}
	if wanted.Created.IsZero() {
		wanted.Created = winner.Created
	}
	p.same("the winner's", winner, wanted)
	p.put(of, &winner, entry(&winner, min(len(winner.Turns), 1)))
	p.unchanged(of, "the winner's", winner)
}

func raceTurns(p *probe) {
	j := p.sys.Open()
	for range tries {
		r := p.going(j)
		answers := race(2, func(i int) (a answer) {
			e := entry(&r, 1)
			e.Turn.Answer, e.Outputs[0].Content = []byte{'0' + byte(i)}, "of another"
			a.e, a.err = j.Append(p.ctx, e)
			return a
		})
		for _, a := range answers {
			suite.None(a.err, "Append")
			p.sameEntry("what the other was told", a.e, answers[0].e)
		}
		note(&r, answers[0].e)
		p.unchanged(j, "the run", r)
	}
}

// raceTaken has a slow process store a turn while its run is taken.
func raceTaken(p *probe) {
	b := p.sys.Open()
	for range tries {
		slow := p.sys.Open()
		r := p.going(slow)
		p.sys.Kill(slow)
		e := entry(&r, 1)
		answers := race(2, func(i int) (a answer) {
			if i == 0 {
				a.e, a.err = slow.Append(p.ctx, e)
			} else {
				a.r, a.err = b.Begin(p.ctx, r.Start)
			}
			return a
		})
		suite.None(answers[1].err, "Begin of a run whose owner is gone")
		switch err := answers[0].err; {
		case err == nil:
			note(&r, e)
		case !errors.Is(err, journal.ErrLost):
			suite.Failf("Append of a slow process: want ErrLost, got %w", err)
		}
		p.same("what was taken", answers[1].r, r)
		p.lost(slow, entry(&r, 1), "by a slow process, after the run was taken")
		r.Token = answers[1].r.Token
		p.unchanged(b, "what was taken", r)
	}
}

func raceRuns(p *probe) {
	journals := []journal.Journal{p.sys.Open(), p.sys.Open()}
	runs := make([]journal.Record, racers)
	for i := range runs {
		runs[i] = p.begin(journals[i%2], p.start())
	}
	for _, err := range race(racers, func(i int) error {
		for range 3 {
			e := entry(&runs[i], min(len(runs[i].Turns), 1))
			if _, err := journals[i%2].Append(p.ctx, e); err != nil {
				return err
			}
			note(&runs[i], e)
		}
		return nil
	}) {
		suite.None(err, "Append")
	}
	for i, r := range runs {
		p.unchanged(journals[i%2], "a run among others", r)
	}
}
