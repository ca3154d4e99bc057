package ledgertest

import (
	"runtime"
	"time"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func decideCases() []Case {
	return []Case{
		{"decide/answers the pending question", "Approver, 2", check(decideAnswers)},
		{"decide/answers the question that ID names", "Approver, 2", check(decideByID)},
		{"decide/is lost where it has been answered", "Approver, 2", check(decideTwice)},
		{"decide/is lost on another question than ID", "Approver, 2", check(decideOther)},
		{"decide/is lost where the question has expired", "Approver, 2", check(decideExpired)},
		{"decide/is lost where nothing was asked", "Approver, 2", check(decideNothing)},
		{"decide/is lost without ID where several questions are pending", "Approver, 2", check(decideSeveral)},
		{"decide/is lost where the operation runs or is done by now", "Approver, 2", check(decideMoot)},
		{"decide/of 50 at once one answers", "Approver, 2", check(decideRace)},
		{"approvals/are listed by state, oldest first", "Approver, 4", check(approvalsListed)},
		{"approvals/a pending one that has expired is listed", "Approver, 4", check(func(p *probe) {
			l := p.sys.Open()
			a := p.past(l, p.ask(l, p.question(), soon))
			all := p.approvals(l, middleware.Pending)
			suite.Want("the number of pending approvals", len(all), 1)
			p.sameApproval("the one that has expired", a, all[0])
		})},
		{"namespaces/a decision does not cross", "Approver, 2", check(decideNamespace)},
	}
}

func decision(a middleware.Approval, approve bool) middleware.Decision {
	return middleware.Decision{Run: a.Call.Run, Turn: a.Call.Turn, Position: a.Call.Position, ID: a.ID, Approve: approve, By: "Ann", Why: "she asked"}
}

// decide answers a pending question.
func (p *probe) decide(l middleware.Ledger, d middleware.Decision) middleware.Approval {
	got, err := p.approver(l).Decide(p.ctx, d)
	suite.None(err, "Decide")
	p.sameApproval("Decide and Approvals after it", got, p.approval(l, got.ID))
	return got
}

func (p *probe) approved(l middleware.Ledger, a middleware.Approval) middleware.Approval {
	return p.decide(l, decision(a, true))
}

func (p *probe) denied(l middleware.Ledger, a middleware.Approval) middleware.Approval {
	return p.decide(l, decision(a, false))
}

// undecided makes a decision that must be lost, change nothing and return what is stored at the place.
func (p *probe) undecided(l middleware.Ledger, d middleware.Decision, stored middleware.Approval) {
	before := p.approvals(l)
	got, err := p.approver(l).Decide(p.ctx, d)
	if !isLost(err) {
		suite.Failf("Decide: want ErrLost, got error %v; the approval is %s", err, got.State)
	}
	p.sameApproval("a decision that was lost: what it was told", stored, got)
	for i, a := range p.approvals(l) {
		p.sameApproval("a decision that was lost", before[i], a)
	}
}

func decideMoot(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	a := p.ask(l, questionOf(c), far)
	row := p.win(l, c)
	moot := func(what string) {
		_, err := p.approver(l).Decide(p.ctx, decision(a, true))
		suite.Want("whether a decision is lost while it is "+what, isLost(err), true)
		suite.Want("the number of questions while it is "+what, len(p.approvals(l, middleware.Pending)), 0)
	}
	moot("running")
	p.step(l, middleware.Transition{Step: middleware.Doubt, Operation: row.Operation, Token: row.Token, Attempt: 1})
	moot("in doubt")
	p.step(l, middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1, HasResult: true})
	moot("done")
	c = p.claim()
	a = p.ask(l, questionOf(c), far)
	row = p.win(l, c)
	p.step(l, middleware.Transition{Step: middleware.GiveBack, Operation: row.Operation, Token: row.Token, Attempt: 1})
	p.approved(l, a) // it may be done again
}

// until waits until an approval is so.
func (p *probe) until(l middleware.Ledger, id string, so func(middleware.Approval) bool) middleware.Approval {
	for {
		a := p.approval(l, id)
		if so(a) {
			return a
		}
		suite.None(p.ctx.Err(), "waiting for the store's clock to move")
		runtime.Gosched()
	}
}

// decidedAndOver is an approval that was decided in time, and then has expired.
func (p *probe) decidedAndOver(l middleware.Ledger, q middleware.Approval, approve bool) middleware.Approval {
	for d := time.Millisecond; ; d *= 2 {
		a, err := p.approver(l).Decide(p.ctx, decision(p.ask(l, q, d), approve))
		if err == nil {
			return p.past(l, a)
		}
		if !isLost(err) { // too late
			suite.None(err, "Decide")
		}
		suite.None(p.ctx.Err(), "deciding before the question has expired")
	}
}

func decideAnswers(p *probe) {
	for _, approve := range []bool{true, false} {
		l := p.sys.Open()
		q := p.question()
		if approve {
			q.Call.Turn = 0
		}
		a := p.ask(l, q, far)
		p.later(l, a)
		d := decision(a, approve)
		d.ID = ""
		got := p.decide(p.sys.Open(), d)
		if !got.Decided.After(a.Now) || got.Decided.After(got.Now) {
			suite.Failf("Decided is %v, want after %v and not after %v", got.Decided, a.Now, got.Now)
		}
		a.State, a.Decided, a.By, a.Why = middleware.Denied, got.Decided, d.By, d.Why
		if approve {
			a.State = middleware.Approved
		}
		p.sameApproval("the answer", a, got)
	}
}

// several are two questions at one place.
func (p *probe) several(l middleware.Ledger) (first, second middleware.Approval) {
	q := p.question()
	first = p.ask(l, q, far)
	q.Identity, q.Call.Fingerprint = hash("another identity", 1), hash("another fingerprint", 1)
	return first, p.ask(l, q, far)
}

func decideByID(p *probe) {
	l := p.sys.Open()
	first, second := p.several(l)
	suite.Want("the question decided", p.approved(l, first).ID, first.ID)
	p.sameApproval("an answer to another question", second, p.approval(l, second.ID))
	d := decision(second, true)
	d.ID = "" // it is the only one left
	suite.Want("the question decided", p.decide(l, d).ID, second.ID)
}

func decideTwice(p *probe) {
	for _, approve := range []bool{true, false} {
		l := p.sys.Open()
		a := p.decide(l, decision(p.ask(l, p.question(), far), approve))
		for _, id := range []string{a.ID, ""} {
			d := decision(a, !approve)
			d.ID = id
			p.undecided(p.sys.Open(), d, a)
		}
	}
	l := p.sys.Open()
	c := p.claim()
	a := p.permit(l, &c)
	p.win(l, c)
	p.undecided(l, decision(a, false), p.approval(l, a.ID))
}

func decideOther(p *probe) {
	l := p.sys.Open()
	a, elsewhere := p.ask(l, p.question(), far), p.ask(l, p.question(), far)
	for _, id := range []string{"another", elsewhere.ID} {
		d := decision(a, true)
		d.ID = id
		p.undecided(l, d, a)
	}
	p.approved(l, a)
}

func decideExpired(p *probe) {
	l := p.sys.Open()
	q := p.question()
	a := p.past(l, p.ask(l, q, soon))
	p.undecided(l, decision(a, true), a)
	b := p.ask(l, q, far)
	p.undecided(l, decision(a, true), b)
	d := decision(b, true)
	d.ID = ""
	suite.Want("the question decided", p.decide(l, d).ID, b.ID)
}

func decideNothing(p *probe) {
	l := p.sys.Open()
	a := p.ask(l, p.question(), far)
	for _, name := range []string{"run", "turn", "position"} {
		other := a
		bindings()[name](&other)
		for _, id := range []string{a.ID, ""} {
			other.ID = id
			p.undecided(l, decision(other, true), middleware.Approval{})
		}
	}
	p.approved(l, a)
}

func decideSeveral(p *probe) {
	l := p.sys.Open()
	_, second := p.several(l)
	d := decision(second, true)
	d.ID = ""
	p.undecided(l, d, second)
}

func decideRace(p *probe) {
	approvers := []middleware.Approver{p.approver(p.sys.Open()), p.approver(p.sys.Open())}
	l := p.sys.Open()
	a := p.ask(l, p.question(), far)
	var told []middleware.Approval
	won := 0
	for _, r := range race(racers, func(i int) (r struct {
		a   middleware.Approval
		err error
	}) {
		r.a, r.err = approvers[i%2].Decide(p.ctx, decision(a, i%3 == 0))
		return r
	}) {
		if r.err == nil {
			won++
		} else if !isLost(r.err) {
			suite.None(r.err, "Decide")
		}
		told = append(told, r.a)
	}
	suite.Want("the number of answers", won, 1)
	for _, got := range told {
		p.sameApproval("what all were told", p.approval(l, a.ID), got)
	}
}

func approvalsListed(p *probe) {
	l := p.sys.Open()
	suite.Want("the number of approvals of an empty ledger", len(p.approvals(l)), 0)
	byState := map[middleware.ApprovalState][]string{}
	var all []string
	for range 3 {
		for _, s := range []middleware.ApprovalState{middleware.Pending, middleware.Approved, middleware.Denied, middleware.Spent} {
			c := p.claim()
			a := p.ask(l, questionOf(c), far)
			switch s {
			case middleware.Approved:
				p.approved(l, a)
			case middleware.Denied:
				p.denied(l, a)
			case middleware.Spent:
				c.Approval = p.approved(l, a).ID
				p.win(l, c)
			default: // Pending
			}
			byState[s], all = append(byState[s], a.ID), append(all, a.ID)
			p.later(l, a)
		}
	}
	l = p.sys.Open()
	for s, ids := range byState {
		p.approvalsAre(l, ids, s)
	}
	p.approvalsAre(l, all)
	p.approvalsAre(l, all, middleware.Spent, middleware.Denied, middleware.Pending, middleware.Approved)
	p.approvalsAre(l, nil, "no state")
	two := []string{all[0], all[2], all[4], all[6], all[8], all[10]}
	p.approvalsAre(l, two, middleware.Denied, middleware.Pending)
}

// approvalsAre fails unless these approvals are listed, in this order.
func (p *probe) approvalsAre(l middleware.Ledger, ids []string, states ...middleware.ApprovalState) {
	all := p.approvals(l, states...)
	suite.Want("the number of approvals listed", len(all), len(ids))
	for i, a := range all {
		suite.Want("an approval listed", a.ID, ids[i])
	}
}

func decideNamespace(p *probe) {
	a, b := p.tenants()
	asked := p.ask(a, p.question(), far)
	p.undecided(b, decision(asked, true), middleware.Approval{})
	p.sameApproval("a decision from another namespace", asked, p.approval(a, asked.ID))
	p.approved(a, asked)
}
