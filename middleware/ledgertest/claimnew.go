package ledgertest

import (
	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func claimNewCases() []Case {
	all := []Case{
		{"claim as new/wins what has never been claimed, as any claim", "1", check(claimNew)},
		{"claim as new/a done row that has expired is not won", "1", check(func(p *probe) {
			l := p.sys.Open()
			p.notNew(l, p.claimAs(p.expired(l).Identity))
		})},
		{"claim as new/is not won at a place that points to another operation", "1", check(claimNewTakenPlace)},
		{"claim as new/of what was done and undone is not won, and a claim that was looked for is", "1", check(claimNewReleased)},
	}
	for _, s := range allStates {
		all = append(all, Case{"claim as new/a row that is " + stateName(s) + " is not won", "1", check(func(p *probe) {
			l := p.sys.Open()
			row := p.become(l, p.second(l), s)
			p.notNew(p.sys.Open(), p.claimAs(row.Identity))
			p.same("a row that somebody claimed as new", row, p.row(l, row.Operation))
		})})
	}
	return all
}

// notNew makes a claim as new that must not be won, and tells nothing.
func (p *probe) notNew(l middleware.Ledger, c middleware.Claim) {
	c.New = true
	if row := p.refused(l, c); row.Operation != "" {
		suite.Failf("a claim as new was told of %s, want nothing", describe(&row))
	}
}

func claimNew(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	c.New = true
	row := p.win(l, c)
	suite.Want("State", row.State, middleware.Running)
	suite.Want("Generation", row.Generation, 0)
	p.same("the row of a claim as new", row, p.row(l, row.Operation))
	p.found(l, middleware.Query{Run: c.Call.Run, Identity: c.Identity}, row.Operation)
	suite.Want("the alias of a claim as new", p.alias(l, c.Call, row.Operation), c.Call)
	p.done(p.do(l, row, middleware.Complete))
}

func claimNewTakenPlace(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	p.win(l, c)
	other := p.claim()
	other.Call.Turn = c.Call.Turn
	p.notNew(l, other)
}

func claimNewReleased(p *probe) {
	l := p.sys.Open()
	row := p.become(l, p.second(l), middleware.Released)
	c := p.claimAs(row.Identity)
	p.notNew(l, c)
	p.generation(p.win(l, c), row.Generation+1)
}
