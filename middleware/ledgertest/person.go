package ledgertest

import (
	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func personCases() []Case {
	return []Case{
		{"happened/stores the verdict and changes nothing else", "12", check(happenedRow)},
		{"happened/ends settling, whoever settles", "12", check(func(p *probe) { p.whileSettled(middleware.Happened) })},
		{"happened/is not too early before the deadlines", "12", check(happenedSoon)},
		{"happened/loses where another person was first", "12", check(happenedTwice)},
		{"not happened/frees the row and changes nothing else", "13", check(notHappenedRow)},
		{"not happened/ends settling, whoever settles", "13", check(func(p *probe) { p.whileSettled(middleware.NotHappened) })},
		{"not happened/is too early before the deadlines of all attempts are over", "13", check(notHappenedDeadline)},
		{"not happened/is too early while a handler of this process runs", "13", check(func(p *probe) { p.whileRunning(middleware.NotHappened) })},
		{"not happened/loses where another person was first", "13", check(notHappenedTwice)},
	}
}

func happenedRow(p *probe) {
	l := p.sys.Open()
	row := p.do(l, p.second(l), middleware.Doubt)
	got := p.do(p.sys.Open(), row, middleware.Happened)
	p.done(got)
	suite.Want("SettledBy", got.SettledBy, "Ann")
	suite.Want("SettledWhy", got.SettledWhy, "seen at the provider")
	p.only("happened", row, got, append(doneFields, "SettledBy", "SettledWhy")...)
}

func notHappenedRow(p *probe) {
	l := p.sys.Open()
	row := p.do(l, p.second(l), middleware.Doubt)
	got := p.do(p.sys.Open(), row, middleware.NotHappened)
	suite.Want("State", got.State, middleware.Free)
	suite.Want("ByPerson", got.ByPerson, true)
	suite.Want("SettledBy", got.SettledBy, "Bob")
	suite.Want("SettledWhy", got.SettledWhy, "not seen at the provider")
	p.only("not happened", row, got, "State", "Since", "ByPerson", "SettledBy", "SettledWhy")
}

// whileSettled has a person settle what a process is asking Lookup about.
func (p *probe) whileSettled(s middleware.Step) {
	a, b := p.sys.Open(), p.sys.Open()
	row := p.settling(a)
	t := right(row, s)
	t.Mark = ""
	suite.Want("Settle", p.step(b, t).Settle, "")
	for _, s := range settleSteps {
		p.lost(a, right(row, s))
	}
}

func happenedSoon(p *probe) {
	l := p.sys.Open()
	row := p.do(l, p.win(l, p.claim()), middleware.Doubt)
	held := l.Handlers().Open(row.Operation)
	defer held.End()
	held.Begin()
	p.done(p.do(l, row, middleware.Happened))
}

func happenedTwice(p *probe) {
	l := p.sys.Open()
	row := p.do(l, p.second(l), middleware.Doubt)
	p.do(l, row, middleware.Happened)
	t := right(row, middleware.Happened)
	t.By = "Eve"
	p.lost(l, t)
	p.lost(l, right(row, middleware.NotHappened))
}

func notHappenedTwice(p *probe) {
	l := p.sys.Open()
	row := p.do(l, p.second(l), middleware.Doubt)
	p.do(l, row, middleware.NotHappened)
	p.lost(l, right(row, middleware.NotHappened))
	p.lost(l, right(row, middleware.Happened))
}

func notHappenedDeadline(p *probe) {
	l := p.sys.Open()
	row := p.do(l, p.win(l, p.claim()), middleware.Doubt)
	p.early(l, right(row, middleware.NotHappened), row.Deadline)
}
