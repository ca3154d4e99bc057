package ledgertest

import (
	"time"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

// ownerCases are about who may make a step from running: the owner, or anybody where the owner is gone by evidence.
func ownerCases() []Case {
	all := []Case{
		{"doubt/marks the row and changes nothing else", "6", check(doubtRow)},
		{"take running/marks the row and changes nothing else", "8", check(takeRunning)},
		{"again/begins the next attempt and changes nothing else", "7", check(againRow)},
		{"owner/is gone once killed, and not before", "Row", check(ownerGone)},
		{"owner/who settles is another's concern than who owns", "Row", check(settleGone)},
	}
	for _, o := range []struct {
		step middleware.Step
		rule string
	}{{middleware.Doubt, "6"}, {middleware.Again, "7"}, {middleware.Take, "8"}} {
		name := stepName(o.step)
		if o.step == middleware.Take {
			name += " running"
		}
		all = append(all,
			Case{name + "/succeeds where the owner seen is gone", o.rule, check(func(p *probe) {
				_, b, t := p.orphan(o.step)
				row := p.step(b, t)
				if (o.step == middleware.Again) != (row.Owner != t.Owner) || row.OwnerGone != (o.step != middleware.Again) {
					suite.Failf("after %s Owner is %s (gone: %v), and was %s", stepName(o.step), row.Owner, row.OwnerGone, t.Owner)
				}
			})},
			Case{name + "/succeeds by the owner, though it counts as gone", o.rule, check(func(p *probe) {
				a, _, t := p.orphan(o.step)
				t.Owner = ""
				p.step(a, t)
			})},
			Case{name + "/loses where the owner is gone, but was not seen", o.rule, check(func(p *probe) {
				_, b, t := p.orphan(o.step)
				t.Owner = ""
				p.lost(b, t)
			})},
			Case{name + "/loses where another owner was seen gone", o.rule, check(func(p *probe) {
				_, b, t := p.orphan(o.step)
				c := p.sys.Open()
				t.Owner = p.win(c, p.claim()).Owner
				p.sys.Kill(c)
				p.lost(b, t)
			})},
			Case{name + "/loses where the owner lives and another is gone", o.rule, check(func(p *probe) {
				a, b, c := p.sys.Open(), p.sys.Open(), p.sys.Open()
				t := right(p.second(a), o.step)
				t.Owner = p.win(c, p.claim()).Owner
				p.sys.Kill(c)
				p.lost(b, t)
				p.lost(a, t)
			})},
			Case{name + "/loses where the owner lives", o.rule, check(func(p *probe) {
				a, b := p.sys.Open(), p.sys.Open()
				row := p.second(a)
				t := right(row, o.step)
				p.lost(b, t)
				t.Owner = row.Owner
				p.lost(b, t)
				p.lost(a, t)
			})},
		)
	}
	return all
}

// orphan is an operation whose owner a is gone, and a step that b may make.
func (p *probe) orphan(s middleware.Step) (a, b middleware.Ledger, t middleware.Transition) {
	a, b = p.sys.Open(), p.sys.Open()
	row := p.second(a)
	p.sys.Kill(a)
	row = p.row(b, row.Operation)
	t = right(row, s)
	t.Owner = row.Owner
	return a, b, t
}

func ownerGone(p *probe) {
	a, b, c := p.sys.Open(), p.sys.Open(), p.sys.Open()
	mine, others := p.second(a), p.second(b)
	suite.Want("OwnerGone of the row of a living process", p.row(c, mine.Operation).OwnerGone, false)
	suite.Want("OwnerMine of its own row", p.row(a, mine.Operation).OwnerMine, true)
	suite.Want("OwnerMine of a row of another process", p.row(c, mine.Operation).OwnerMine, false)
	settled := p.do(a, p.second(a), middleware.Take)
	suite.Want("SettleGone of a row that a living process settles", settled.SettleGone, false)
	p.sys.Kill(a)
	for _, l := range []middleware.Ledger{b, c, p.sys.Open()} {
		suite.Want("OwnerGone of the killed one's row", p.row(l, mine.Operation).OwnerGone, true)
		suite.Want("OwnerGone of a living one's row", p.row(l, others.Operation).OwnerGone, false)
		suite.Want("SettleGone of what the killed one settles", p.row(l, settled.Operation).SettleGone, true)
		suite.Want("SettleGone of what nobody settles", p.row(l, mine.Operation).SettleGone, false)
	}
	if mine.Owner == others.Owner {
		suite.Failf("two processes have the same owner %s", mine.Owner)
	}
}

func settleGone(p *probe) {
	a, b, c := p.sys.Open(), p.sys.Open(), p.sys.Open()
	one := p.do(b, p.do(a, p.second(a), middleware.Doubt), middleware.Take)
	two := p.do(b, p.do(b, p.do(a, p.second(a), middleware.Doubt), middleware.Take), middleware.Unsure)
	p.sys.Kill(a)
	got := p.row(c, one.Operation)
	suite.Want("OwnerGone where the owner is gone", got.OwnerGone, true)
	suite.Want("SettleGone where the owner is gone, and who settles lives", got.SettleGone, false)
	p.sys.Kill(b)
	suite.Want("SettleGone where who settles is gone", p.row(c, one.Operation).SettleGone, true)
	suite.Want("SettleGone where who has settled is gone", p.row(c, two.Operation).SettleGone, false)
}

func doubtRow(p *probe) {
	l := p.sys.Open()
	row := p.win(l, p.claim())
	got := p.do(l, row, middleware.Doubt)
	suite.Want("State", got.State, middleware.InDoubt)
	suite.Want("Unclear", got.Unclear, true)
	p.only("doubt", row, got, "State", "Since", "Unclear")
}

func takeRunning(p *probe) {
	l := p.sys.Open()
	row := p.win(l, p.claim())
	t := right(row, middleware.Take)
	t.Mark = "my mark"
	got := p.step(l, t)
	suite.Want("State", got.State, middleware.InDoubt)
	suite.Want("Settle", got.Settle, "my mark")
	suite.Want("Unclear", got.Unclear, true)
	p.only("take", row, got, "State", "Since", "Unclear", "Settle")
}

func againRow(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	c.Deadline = soon
	row := p.win(l, c)
	got := p.do(l, row, middleware.Again)
	suite.Want("Attempt", got.Attempt, 2)
	suite.Want("Unclear", got.Unclear, true)
	p.deadline(row, got)
	p.only("again", row, got, "Attempt", "Unclear", "Deadline")
}

// deadline fails unless an attempt that began between two readings of the row has far as its deadline.
func (p *probe) deadline(before, after middleware.Row) {
	at := after.Deadline.Add(-far)
	if at.Before(before.Now.Add(-time.Millisecond)) || at.After(after.Now.Add(time.Millisecond)) { // a store may round
		suite.Failf("Deadline is %v, want %v after a time between %v and %v", after.Deadline, far, before.Now, after.Now)
	}
}

func againCases() []Case {
	return []Case{
		{"again/succeeds below the bound, and without one", "7", check(func(p *probe) {
			for _, bound := range []int{3, 4, 0} {
				l := p.sys.Open()
				t := right(p.second(l), middleware.Again)
				t.MaxAttempts = bound
				suite.Want("Attempt", p.step(l, t).Attempt, 3)
			}
		})},
		{"again/loses at the bound", "7", check(func(p *probe) {
			for _, bound := range []int{1, 2} {
				l := p.sys.Open()
				t := right(p.second(l), middleware.Again)
				t.MaxAttempts = bound
				p.lost(l, t)
			}
		})},
		{"again/succeeds inside the key window", "7", check(func(p *probe) {
			l := p.sys.Open()
			t := right(p.second(l), middleware.Again)
			t.KeyWindow = far
			p.step(l, t)
		})},
		{"again/loses where the key window is over", "7", check(func(p *probe) {
			l := p.sys.Open()
			t := right(p.second(l), middleware.Again)
			t.KeyWindow = soon
			p.lost(l, t)
		})},
		{"again/loses where the key window is over, though the claim is new", "7", check(againOldKey)},
		{"again/loses while the owner's handler runs", "7", check(againWhileRunning)},
		{"again/keeps the latest deadline", "7", check(againDeadline)},
		{"trace/a verdict on an earlier attempt is worth nothing", "12", check(oldVerdict)},
	}
}

// againOldKey has a window that is over for the key, and only just begun for the claim.
func againOldKey(p *probe) {
	l := p.sys.Open()
	free, c := p.free(l)
	for range 100 {
		p.tick(l, free.Operation)
	}
	row := p.win(l, c)
	t := right(row, middleware.Again)
	t.KeyWindow = row.Since.Sub(row.KeySince)
	p.lost(l, t)
}

func againWhileRunning(p *probe) {
	l := p.sys.Open()
	t := right(p.second(l), middleware.Again)
	held, other := l.Handlers().Open(t.Operation), p.sys.Open().Handlers().Open(t.Operation)
	defer held.End()
	defer other.End()
	other.Begin() // in another process: it decides nothing here
	held.Begin()
	p.lost(l, t)
	held.Returned()
	t.Attempt = p.step(l, t).Attempt
	held.Begin()
	p.lost(l, t)
	held.End()
	p.step(l, t)

	_, taker, t := p.orphan(middleware.Again) // its own earlier attempt still runs, though the row is another's by now
	held = taker.Handlers().Open(t.Operation)
	defer held.End()
	held.Begin()
	p.lost(taker, t)
	held.Returned()
	p.step(taker, t)
}

func againDeadline(p *probe) {
	l := p.sys.Open()
	row := p.win(l, p.claim())
	t := right(row, middleware.Again)
	t.Deadline = soon
	got := p.step(l, t)
	if !got.Deadline.Equal(row.Deadline) {
		suite.Failf("Deadline is %v, want %v, the latest of all attempts", got.Deadline, row.Deadline)
	}
	p.early(l, right(p.do(l, got, middleware.Doubt), middleware.NotHappened), row.Deadline)
}

// oldVerdict is a person who answers what was shown before the operation was tried again.
func oldVerdict(p *probe) {
	for _, s := range []middleware.Step{middleware.Happened, middleware.NotHappened} {
		l := p.sys.Open()
		shown := p.settling(l)
		t := right(shown, middleware.Absent)
		t.Deadline = soon
		row := p.do(l, p.step(l, t), middleware.Doubt)
		p.tick(l, row.Operation)
		p.lost(l, right(shown, s))
		p.do(l, row, s)
	}
}
