package ledgertest

import (
	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func repeatCases() []Case {
	all := []Case{
		{"repeat/is won, by whatever way, and leaves what it repeats alone", "1", check(repeatWon)},
		{"repeat/of nothing is not won", "1", check(func(p *probe) {
			for _, id := range noOperations {
				p.notRepeated(p.sys.Open(), id)
			}
		})},
		{"repeat/of a row that has expired is not won", "1", check(func(p *probe) {
			l := p.sys.Open()
			p.notRepeated(l, p.expired(l).Operation)
		})},
		{"repeat/of the expired row whose place it takes is not won", "3", check(repeatExpired)},
		{"repeat/is counted by its claim, though nothing else has meant its identity", "15", check(repeatCounted)},
		{"namespaces/a repeat on purpose does not cross", "16", check(repeatNamespace)},
	}
	for _, s := range allStates {
		if s != middleware.Done {
			all = append(all, Case{"repeat/of a row that is " + stateName(s) + " is not won", "1", check(func(p *probe) {
				l := p.sys.Open()
				p.notRepeated(l, p.become(l, p.second(l), s).Operation)
			})})
		}
	}
	return all
}

// noOperations are ids that no ledger gives, whatever form its own have.
var noOperations = []string{"op_nothing", "nothing", "0", " "}

// ways are claims that can be won, one of each way in which that is done. Seen has what
// stands in the way where one is not, and the generation that it gets where it is.
func (p *probe) ways(l middleware.Ledger) map[string]middleware.Claim {
	counted, nowhere := p.claim(), p.claim()
	counted.Repeat, nowhere.Call.Turn = true, 0
	_, again := p.free(l)
	old := p.expired(l)
	over := p.claimAs(old.Identity)
	over.Seen = old
	moved := p.claim()
	at := p.win(l, p.claim())
	moved.Call.Turn, moved.SeenAlias = at.Claimer.Turn, at.Operation
	anew := p.claimAs(p.become(l, p.second(l), middleware.Released).Identity)
	anew.Seen.Generation = 1
	return map[string]middleware.Claim{
		"a first claim": p.claim(), "a repeat": counted, "a call without a place": nowhere, "a claim of a free row": again,
		"a claim over an expired row": over, "a call that moves its place": moved, "a claim of what was undone": anew,
	}
}

func repeatWon(p *probe) {
	l := p.sys.Open()
	target := p.become(l, p.second(l), middleware.Done)
	for way, c := range p.ways(l) {
		c.RepeatOf = target.Operation
		row := p.win(l, c)
		suite.Want("RepeatOf of "+way, row.RepeatOf, target.Operation)
		p.same("Claim and Find after it", row, p.row(l, row.Operation))
		suite.Want("RepeatOf of what is done", p.do(l, row, middleware.Complete).RepeatOf, target.Operation)
		p.same("a repeat on purpose", target, p.row(l, target.Operation))
	}
	_, c := p.free(l)
	c.RepeatOf = target.Operation
	row := p.do(l, p.win(l, c), middleware.GiveBack)
	c = p.claimAs(row.Identity)
	c.Seen = row
	suite.Want("RepeatOf of a claim that repeats nothing, after one that did", p.win(l, c).RepeatOf, "")
}

// notRepeated tries to repeat an operation.
func (p *probe) notRepeated(l middleware.Ledger, operation string) {
	for way, c := range p.ways(l) {
		c.RepeatOf = operation
		suite.Want("what stood in the way of "+way, p.refused(l, c).Operation, c.Seen.Operation)
		c.RepeatOf = ""
		p.win(l, c)
	}
}

func repeatExpired(p *probe) {
	l := p.sys.Open()
	row := p.expired(l)
	c := p.claimAs(row.Identity)
	c.Seen, c.RepeatOf = row, row.Operation
	p.same("what stood in the way", row, p.refused(l, c))
}

func repeatCounted(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	c.RepeatOf = p.become(l, p.second(l), middleware.Done).Operation
	c.Repeat = true
	row := p.win(l, c)
	suite.Want("Repeats of a claim that repeats", row.Repeats, 1)
	p.repeats(l, "run", row.Operation, 1)
	p.repeats(l, "another run", row.Operation, 0)
	suite.Want("Repeats by the place of the call", p.found(l, place(c.Call), row.Operation).Repeats, 1)
	p.note(l, row.Operation, p.claim().Call, 2)
}

func repeatNamespace(p *probe) {
	a, b := p.tenants()
	target := p.become(a, p.second(a), middleware.Done)
	c := p.claim()
	c.RepeatOf = target.Operation
	p.refused(b, c)
	p.win(a, c)
}
