package ledgertest

import (
	"time"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

var settleSteps = []middleware.Step{middleware.Found, middleware.Absent, middleware.Unsure}

func settleCases() []Case {
	all := []Case{
		{"take in doubt/marks the row and changes nothing else", "8", check(takeInDoubt)},
		{"take in doubt/loses while another process settles", "8", check(func(p *probe) { p.takeSettled(p.sys.Open(), p.sys.Open()) })},
		{"take in doubt/loses while this process settles", "8", check(func(p *probe) {
			l := p.sys.Open()
			p.takeSettled(l, l)
		})},
		{"take in doubt/loses while who settles lives, though the owner is gone", "8", check(takeOwnerGone)},
		{"take in doubt/succeeds where who settles is gone, and its mark is worth nothing", "8", check(takeSettleGone)},
		{"take running/loses on a row seen in doubt", "8", check(takeSeenOther)},
		{"found/stores the result and changes nothing else", "9", check(foundRow)},
		{"absent/begins the next attempt and changes nothing else", "10", check(absentRow)},
		{"absent/is too early before the deadlines of all attempts are over", "10", check(absentDeadline)},
		{"absent/is too early before AbsentAfter is over", "10", check(absentAfter)},
		{"absent/is too early while a handler of this process runs", "10", check(func(p *probe) { p.whileRunning(middleware.Absent) })},
		{"absent/succeeds below the bound, and without one", "10", check(absentBelow)},
		{"absent/loses at the bound", "10", check(absentBound)},
		{"absent/the next attempt is that of who settled", "10", check(absentOwner)},
		{"unsure/ends settling and changes nothing else", "11", check(unsureRow)},
	}
	for _, s := range settleSteps {
		rule := map[middleware.Step]string{middleware.Found: "9", middleware.Absent: "10", middleware.Unsure: "11"}[s]
		all = append(all,
			Case{stepName(s) + "/loses with another mark", rule, check(func(p *probe) {
				l := p.sys.Open()
				t := right(p.settling(l), s)
				t.Mark = "another mark"
				p.lost(l, t)
				t.Mark = ""
				p.lost(l, t)
			})},
			Case{stepName(s) + "/loses where nobody settles", rule, check(func(p *probe) {
				l := p.sys.Open()
				t := right(p.do(l, p.settling(l), middleware.Unsure), s)
				p.lost(l, t)
				t.Mark = "a mark"
				p.lost(l, t)
			})},
			Case{stepName(s) + "/succeeds by who settles, though it counts as gone", rule, check(func(p *probe) {
				l := p.sys.Open()
				row := p.settling(l)
				p.sys.Kill(l)
				p.do(l, row, s)
			})},
		)
	}
	return all
}

func takeInDoubt(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	row := p.do(a, p.second(a), middleware.Doubt)
	t := right(row, middleware.Take)
	t.Mark = "my mark"
	got := p.step(b, t)
	suite.Want("Settle", got.Settle, "my mark")
	p.only("take", row, got, "Settle")
	got = p.do(b, got, middleware.Unsure)
	p.step(a, t)
}

func (p *probe) takeSettled(who, other middleware.Ledger) {
	t := right(p.settling(who), middleware.Take)
	t.Mark = "my mark"
	p.lost(other, t)
}

func takeOwnerGone(p *probe) {
	a, b, c := p.sys.Open(), p.sys.Open(), p.sys.Open()
	row := p.do(b, p.do(a, p.second(a), middleware.Doubt), middleware.Take)
	p.sys.Kill(a)
	t := right(p.row(c, row.Operation), middleware.Take)
	t.Mark = "my mark"
	p.lost(c, t)
}

func takeSettleGone(p *probe) {
	a, b, c := p.sys.Open(), p.sys.Open(), p.sys.Open()
	old := p.do(b, p.do(a, p.second(a), middleware.Doubt), middleware.Take)
	p.sys.Kill(b)
	t := right(p.row(c, old.Operation), middleware.Take)
	t.Mark = "my mark"
	row := p.step(c, t)
	suite.Want("Settle", row.Settle, "my mark")
	suite.Want("SettleGone", row.SettleGone, false)
	for _, s := range settleSteps {
		p.lost(b, right(old, s))
	}
	p.do(c, row, middleware.Absent)
}

// takeSeenOther has one process decide on a row that is running, and another put it in doubt first.
func takeSeenOther(p *probe) {
	l := p.sys.Open()
	row := p.second(l)
	t := right(row, middleware.Take)
	p.do(l, row, middleware.Doubt)
	p.lost(l, t)
	t.State = ""
	p.lost(l, t)
}

func foundRow(p *probe) {
	l := p.sys.Open()
	row := p.settling(l)
	got := p.do(l, row, middleware.Found)
	p.done(got)
	p.only("found", row, got, append(doneFields, "Settle")...)
}

func unsureRow(p *probe) {
	l := p.sys.Open()
	row := p.settling(l)
	got := p.do(l, row, middleware.Unsure)
	suite.Want("Settle", got.Settle, "")
	p.only("unsure", row, got, "Settle")
}

func absentRow(p *probe) {
	l := p.sys.Open()
	row := p.settling(l)
	got := p.do(l, row, middleware.Absent)
	suite.Want("State", got.State, middleware.Running)
	suite.Want("Attempt", got.Attempt, row.Attempt+1)
	suite.Want("Settle", got.Settle, "")
	suite.Want("Unclear", got.Unclear, true)
	p.deadline(row, got)
	p.only("absent", row, got, "State", "Since", "Attempt", "Settle", "Deadline")
}

// absentDeadline has each attempt in turn be the one whose deadline is not over.
func absentDeadline(p *probe) {
	for _, d := range [][2]time.Duration{{far, soon}, {soon, far}} {
		l := p.sys.Open()
		c := p.claim()
		c.Deadline = d[0]
		t := right(p.win(l, c), middleware.Again)
		t.Deadline = d[1]
		row := p.do(l, p.step(l, t), middleware.Take)
		p.tick(l, row.Operation)
		p.early(l, right(row, middleware.Absent), row.Deadline)
	}
}

func absentAfter(p *probe) {
	l := p.sys.Open()
	row := p.settling(l)
	t := right(row, middleware.Absent)
	t.AbsentAfter = far
	p.early(l, t, row.Deadline.Add(far))
	t.AbsentAfter = soon
	p.tick(l, row.Operation)
	p.step(l, t)
}

// whileRunning makes a step that says "did not happen", from in doubt, while a handler runs.
func (p *probe) whileRunning(s middleware.Step) {
	l := p.sys.Open()
	t := right(p.settling(l), s)
	held, more, other := l.Handlers().Open(t.Operation), l.Handlers().Open(t.Operation), p.sys.Open().Handlers().Open(t.Operation)
	defer held.End()
	defer more.End()
	defer other.End()
	other.Begin() // in another process: its deadline is what counts
	held.Begin()
	p.early(l, t, time.Time{})
	more.Begin()
	held.End()
	p.early(l, t, time.Time{})
	more.Returned()
	p.step(l, t)
}

func absentBelow(p *probe) {
	for _, bound := range []int{3, 0} {
		l := p.sys.Open()
		t := right(p.settling(l), middleware.Absent)
		t.MaxAttempts = bound
		suite.Want("Attempt", p.step(l, t).Attempt, 3)
	}
}

func absentBound(p *probe) {
	for _, bound := range []int{1, 2} {
		l := p.sys.Open()
		t := right(p.settling(l), middleware.Absent)
		t.MaxAttempts = bound
		p.lost(l, t)
	}
}

func absentOwner(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	row := p.do(a, p.second(a), middleware.Doubt)
	p.sys.Kill(a)
	row = p.do(b, p.row(b, row.Operation), middleware.Take)
	got := p.do(b, row, middleware.Absent)
	suite.Want("OwnerGone", got.OwnerGone, false)
	suite.Want("Owner has changed", got.Owner != row.Owner, true)
	p.do(b, got, middleware.Doubt) // as its owner
}
