package ledgertest

import (
	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

const racers = 50

func raceCases() []Case {
	return []Case{
		{"race/of 50 claimers of one identity one wins", "1", check(raceClaims)},
		{"race/claimers of different identities all win", "1", check(raceIdentities)},
		{"race/of 50 claimers of one place one wins", "1", check(racePlace)},
		{"race/of 50 claimers of a free row one wins", "2", check(func(p *probe) {
			l := p.sys.Open()
			row, _ := p.free(l)
			p.raceSeen(row)
		})},
		{"race/of 50 claimers of an expired row one wins", "3", check(func(p *probe) { p.raceSeen(p.expired(p.sys.Open())) })},
		{"race/of two results the first stays, and the second is late", "4", check(raceResults)},
		{"race/of two processes one takes an orphan for settling", "8", check(func(p *probe) { p.raceOrphan(middleware.Take) })},
		{"race/of two processes one runs an orphan again", "7", check(func(p *probe) { p.raceOrphan(middleware.Again) })},
		{"race/of two processes one settles what is in doubt", "8", check(raceSettle)},
		{"race/of a result and a person one wins", "12", check(racePerson)},
		{"race/of two undos at once one wins", "1", check(raceUndoClaims)},
		{"race/of two undos one releases, and the other leaves the new row alone", "14", check(raceUndo)},
		{"race/repeats are all counted", "15", check(raceNotes)},
	}
}

// answer is what a call gave to one of several goroutines.
type answer struct {
	row middleware.Row
	won bool
	err error
}

// claims has two owners claim at once and returns the one that won.
func (p *probe) claims(all []middleware.Claim) middleware.Row {
	ledgers := []middleware.Ledger{p.sys.Open(), p.sys.Open()}
	var winner *middleware.Row
	answers := race(len(all), func(i int) (a answer) {
		a.row, a.won, a.err = ledgers[i%2].Claim(p.ctx, all[i])
		return a
	})
	for i, a := range answers {
		suite.None(a.err, "Claim")
		if a.won && winner != nil {
			suite.Failf("two claimers have won: %s and %s", describe(winner), describe(&a.row))
		}
		if a.won {
			winner = &a.row
			suite.Want("Token of the winner", a.row.Token, all[i].Token)
		}
	}
	if winner == nil {
		suite.Failf("of %d claimers none has won", len(all))
	}
	for i, a := range answers {
		if !a.won {
			suite.Want("Operation in the way of who lost", a.row.Operation, winner.Operation)
			if all[i].Call.Turn != winner.Claimer.Turn {
				p.missing(ledgers[0], place(all[i].Call))
			}
		}
	}
	return *winner
}

func raceClaims(p *probe) {
	for range 4 { // a ledger that looks before it writes is lucky now and then
		c := p.claim()
		var all []middleware.Claim
		for range racers {
			all = append(all, p.claimAs(c.Identity))
		}
		row := p.claims(all)
		p.same("the race", row, p.found(p.sys.Open(), middleware.Query{Identity: c.Identity}, row.Operation))
	}
}

func raceIdentities(p *probe) {
	ledgers := []middleware.Ledger{p.sys.Open(), p.sys.Open()}
	var all []middleware.Claim
	for range racers {
		all = append(all, p.claim())
	}
	for _, a := range race(len(all), func(i int) (a answer) {
		a.row, a.won, a.err = ledgers[i%2].Claim(p.ctx, all[i])
		return a
	}) {
		suite.None(a.err, "Claim")
		suite.Want("a claim of an identity of its own was won", a.won, true)
	}
}

func racePlace(p *probe) {
	var all []middleware.Claim
	for range racers {
		c := p.claim()
		c.Call.Turn = 1
		all = append(all, c)
	}
	row := p.claims(all)
	p.found(p.sys.Open(), place(row.Claimer), row.Operation)
	for _, c := range all {
		if c.Identity != row.Identity {
			p.missing(p.sys.Open(), middleware.Query{Identity: c.Identity})
		}
	}
}

// raceSeen has all claimers see the same row.
func (p *probe) raceSeen(seen middleware.Row) {
	var all []middleware.Claim
	for range racers {
		c := p.claimAs(seen.Identity)
		c.Seen = seen
		all = append(all, c)
	}
	suite.Want("Attempt", p.claims(all).Attempt, 1)
}

// changes has ledgers make transitions at once, of which one must win. It returns which.
func (p *probe) changes(ledgers []middleware.Ledger, all []middleware.Transition) (winner int) {
	winner = -1
	answers := race(len(all), func(i int) (a answer) {
		a.row, a.err = ledgers[i].Change(p.ctx, all[i])
		return a
	})
	for i, a := range answers {
		switch {
		case a.err == nil && winner >= 0:
			suite.Failf("both have won: %s and %s", stepName(all[winner].Step), stepName(all[i].Step))
		case a.err == nil:
			winner = i
		case !isLost(a.err):
			suite.Failf("%s that was second: want ErrLost, got %w", stepName(all[i].Step), a.err)
		}
	}
	if winner < 0 {
		suite.Failf("none has won")
	}
	loser := answers[1-winner].row
	loser.Late, answers[winner].row.Late = false, false
	p.same("what the loser was told", answers[winner].row, loser)
	return winner
}

const tries = 10

func raceResults(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	for range tries {
		row := p.second(a)
		t, u := right(row, middleware.Complete), right(row, middleware.Complete)
		t.Result, u.Result = "0", "1"
		i := p.changes([]middleware.Ledger{a, b}, []middleware.Transition{t, u})
		got := p.row(a, row.Operation)
		suite.Want("Result", got.Result, []string{"0", "1"}[i])
		suite.Want("Late", got.Late, true)
	}
}

func (p *probe) raceOrphan(s middleware.Step) {
	for range tries {
		_, b, t := p.orphan(s)
		c := p.sys.Open()
		u := t
		t.Mark, u.Mark = "0", "1"
		i := p.changes([]middleware.Ledger{b, c}, []middleware.Transition{t, u})
		got := p.row(b, t.Operation)
		if s == middleware.Take {
			suite.Want("Settle", got.Settle, []string{"0", "1"}[i])
		} else {
			suite.Want("Attempt", got.Attempt, t.Attempt+1)
			p.do([]middleware.Ledger{b, c}[i], got, middleware.Doubt) // as its owner
		}
	}
}

func raceSettle(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	for range tries {
		t := right(p.do(a, p.second(a), middleware.Doubt), middleware.Take)
		u := t
		t.Mark, u.Mark = "0", "1"
		i := p.changes([]middleware.Ledger{a, b}, []middleware.Transition{t, u})
		suite.Want("Settle", p.row(a, t.Operation).Settle, []string{"0", "1"}[i])
	}
}

func racePerson(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	for range tries {
		row := p.settling(a)
		p.changes([]middleware.Ledger{a, b}, []middleware.Transition{right(row, middleware.Found), right(row, middleware.NotHappened)})
	}
}

func raceUndoClaims(p *probe) {
	ledgers := []middleware.Ledger{p.sys.Open(), p.sys.Open()}
	for range tries {
		target := p.become(ledgers[0], p.second(ledgers[0]), middleware.Done)
		claims := []middleware.Claim{p.undoing(target), p.undoing(target)}
		won := 0
		for _, r := range race(2, func(i int) (r answer) {
			r.row, r.won, r.err = ledgers[i].Claim(p.ctx, claims[i])
			return r
		}) {
			suite.None(r.err, "Claim")
			if r.won {
				won++
			}
		}
		suite.Want("undos that won", won, 1)
	}
}

func raceUndo(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	for range tries {
		target := p.become(a, p.second(a), middleware.Done)
		undos := []middleware.Row{p.freedUndo(a, target), p.win(b, p.undoing(target))}
		for _, r := range race(2, func(i int) (r answer) {
			r.row, r.err = []middleware.Ledger{a, b}[i].Change(p.ctx, right(undos[i], middleware.Complete))
			if r.err == nil && i == 0 {
				c := middleware.Claim{Identity: target.Identity, Call: target.Claimer, SeenAlias: target.Operation, Token: "new"}
				r.row, r.won, r.err = a.Claim(p.ctx, c)
				if r.won {
					r.row, r.err = a.Change(p.ctx, right(r.row, middleware.Complete))
				}
			}
			return r
		}) {
			suite.None(r.err, "completing an undo, and booking again")
			suite.Want("State of what was completed", r.row.State, middleware.Done)
		}
		got, _ := p.find(a, middleware.Query{Identity: target.Identity})
		suite.Want("State of the new booking", got.State, middleware.Done)
		suite.Want("State of the old booking", p.row(a, target.Operation).State, middleware.Released)
	}
}

func raceNotes(p *probe) {
	ledgers := []middleware.Ledger{p.sys.Open(), p.sys.Open()}
	row := p.win(ledgers[0], p.claim())
	var calls []middleware.Alias
	for range racers {
		calls = append(calls, p.claim().Call)
	}
	for _, err := range race(2*racers, func(i int) error { // each place twice
		_, err := ledgers[i%2].Note(p.ctx, row.Operation, calls[i/2])
		return err
	}) {
		suite.None(err, "Note")
	}
	p.repeats(ledgers[0], "run", row.Operation, racers)
}
