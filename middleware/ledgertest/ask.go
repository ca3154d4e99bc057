package ledgertest

import (
	"slices"
	"strings"
	"time"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func askCases() []Case {
	all := []Case{
		{"ask/stores a pending question", "Approver, 1", check(askStores)},
		{"ask/the same again, pending or approved, gives what is stored", "Approver, 1", check(askAgain)},
		{"ask/what it is not bound to makes no other question", "Approver, 1", check(askUnbound)},
		{"ask/50 at once store one", "Approver, 1", check(askRace)},
		{"ask/a denied one counts at every place of the run", "Approver, 1", check(askDenied)},
		{"ask/a denied one counts before an approved one", "Approver, 1", check(askDeniedFirst)},
		{"ask/a negative time stores nothing", "Approver, 1", check(askOnly)},
		{"ask/a denied one counts after its date", "Approver, 1", check(func(p *probe) {
			l := p.sys.Open()
			a := p.decidedAndOver(l, p.question(), false)
			p.sameApproval("asking again", a, p.ask(l, a, far))
		})},
		{"ask/what has expired is asked anew", "Approver, 1", check(askExpired)},
		{"ask/what is spent is asked anew", "Approver, 1", check(askSpent)},
		{"ask/the input is a copy", "Approver, 1", check(askInput)},
		{"namespaces/a question does not cross", "Approver, 1", check(askNamespace)},
	}
	for name, change := range bindings() {
		all = append(all, Case{"ask/another " + name + " makes another question", "Approver, 1", check(func(p *probe) {
			l := p.sys.Open()
			a := p.ask(l, p.question(), far)
			other := a
			change(&other)
			other = p.ask(l, other, far)
			p.otherApproval(a, other)
			p.approved(l, a)
			p.sameApproval("an answer to another question", other, p.approval(l, other.ID))
		})})
	}
	return sorted(all)
}

// bindings change what an approval is bound to, one thing each.
func bindings() map[string]func(*middleware.Approval) {
	return map[string]func(*middleware.Approval){
		"run":         func(a *middleware.Approval) { a.Call.Run = "another run" },
		"turn":        func(a *middleware.Approval) { a.Call.Turn += 1000 },
		"position":    func(a *middleware.Approval) { a.Call.Position++ },
		"tool":        func(a *middleware.Approval) { a.Call.Tool = "another tool" },
		"fingerprint": func(a *middleware.Approval) { a.Call.Fingerprint = hash("another fingerprint", 1) },
		"identity":    func(a *middleware.Approval) { a.Identity = hash("another identity", 1) },
		"generation":  func(a *middleware.Approval) { a.Generation++ },
		"input":       func(a *middleware.Approval) { a.Input = []byte(`{"another":"input"}`) },
	}
}

// sorted puts cases that come from a map in an order.
func sorted(all []Case) []Case {
	slices.SortStableFunc(all, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// question is one about a call of its own.
func (p *probe) question() middleware.Approval { return questionOf(p.claim()) }

// questionOf is the question whether a claim may be made.
func questionOf(c middleware.Claim) middleware.Approval {
	return middleware.Approval{
		Call: c.Call, Identity: c.Identity, Generation: c.Seen.Generation, Conversation: c.Conversation, Input: c.Input, RepeatOf: c.RepeatOf,
	}
}

func (p *probe) approver(l middleware.Ledger) middleware.Approver {
	a, err := approver(l)
	suite.None(err, "a case about approvals")
	return a
}

func (p *probe) ask(l middleware.Ledger, a middleware.Approval, expires time.Duration) middleware.Approval {
	got, err := p.approver(l).Ask(p.ctx, a, expires)
	suite.None(err, "Ask")
	return got
}

func (p *probe) approvals(l middleware.Ledger, states ...middleware.ApprovalState) []middleware.Approval {
	all, err := p.approver(l).Approvals(p.ctx, states...)
	suite.None(err, "Approvals")
	return all
}

// approval is the stored one.
func (p *probe) approval(l middleware.Ledger, id string) middleware.Approval {
	all := p.approvals(l)
	i := slices.IndexFunc(all, func(a middleware.Approval) bool { return a.ID == id })
	if i < 0 {
		suite.Failf("the approval %s is not listed", id)
	}
	return all[i]
}

func (p *probe) sameApproval(what string, a, b middleware.Approval) {
	if d := diff(a, b); len(d) > 0 {
		suite.Failf("%s: the approval should be the same, but %s", what, strings.Join(d, ", "))
	}
}

// otherApproval fails unless b is pending, and another than a.
func (p *probe) otherApproval(a, b middleware.Approval) {
	if b.ID == a.ID || b.State != middleware.Pending {
		suite.Failf("the question is %s, which is %s; want another than %s, and pending", b.ID, b.State, a.ID)
	}
}

// past waits until an approval has expired.
func (p *probe) past(l middleware.Ledger, a middleware.Approval) middleware.Approval {
	return p.until(l, a.ID, func(a middleware.Approval) bool { return !a.Now.Before(a.Expires) })
}

// later waits until the store's clock has moved.
func (p *probe) later(l middleware.Ledger, a middleware.Approval) {
	p.until(l, a.ID, func(b middleware.Approval) bool { return b.Now.After(a.Now) })
}

func askStores(p *probe) {
	l := p.sys.Open()
	a := p.question()
	a.RepeatOf = p.become(l, p.second(l), middleware.Done).Operation
	asked := a
	asked.ID, asked.State, asked.Operation, asked.By = "mine", middleware.Approved, "op", "me" // the ledger says these
	got := p.ask(l, asked, far)
	if got.ID == "" || got.ID == "mine" || got.Now.IsZero() {
		suite.Failf("ID is %q and Now %v, want a new one and the store's clock", got.ID, got.Now)
	}
	a.ID, a.State, a.Asked, a.Expires = got.ID, middleware.Pending, got.Now, got.Now.Add(far)
	p.sameApproval("what was asked", a, got)
	p.sameApproval("what was asked, seen by another process", got, p.approval(p.sys.Open(), got.ID))
}

func askAgain(p *probe) {
	l := p.sys.Open()
	q := p.question()
	a := p.ask(l, q, far)
	p.later(l, a)
	p.sameApproval("asking again", a, p.ask(l, q, 2*far))
	p.sameApproval("asking again in another process", a, p.ask(p.sys.Open(), q, far))
	a = p.approved(l, a)
	p.sameApproval("asking again what is approved", a, p.ask(p.sys.Open(), q, far))
	suite.Want("the number of questions stored", len(p.approvals(l)), 1)
}

func askUnbound(p *probe) {
	l := p.sys.Open()
	a := p.ask(l, p.question(), far)
	q := p.question()
	q.Call.Run, q.Call.Turn, q.Call.Position, q.Call.Tool, q.Call.Fingerprint = a.Call.Run, a.Call.Turn, a.Call.Position, a.Call.Tool, a.Call.Fingerprint
	q.Identity, q.Generation, q.Input = a.Identity, a.Generation, a.Input
	p.sameApproval("asking about the same call with another id", a, p.ask(l, q, far))
}

func askRace(p *probe) {
	ledgers := []middleware.Ledger{p.sys.Open(), p.sys.Open()}
	approvers := []middleware.Approver{p.approver(ledgers[0]), p.approver(ledgers[1])}
	q := p.question()
	var ids []string
	for _, a := range race(racers, func(i int) (a struct {
		id  string
		err error
	}) {
		got, err := approvers[i%2].Ask(p.ctx, q, far)
		a.id, a.err = got.ID, err
		return a
	}) {
		suite.None(a.err, "Ask")
		ids = append(ids, a.id)
	}
	suite.Want("the number of questions that 50 were told of", len(slices.Compact(slices.Sorted(slices.Values(ids)))), 1)
	suite.Want("the number of questions stored", len(p.approvals(ledgers[0])), 1)
}

func askDenied(p *probe) {
	l := p.sys.Open()
	a := p.denied(l, p.ask(l, p.question(), far))
	for name, change := range bindings() {
		q := a
		change(&q)
		got := p.ask(l, q, far)
		switch name {
		case "run", "tool", "fingerprint":
			p.otherApproval(a, got)
		default:
			p.sameApproval("asking at another "+name, a, got)
		}
	}
	p.sameApproval("asking again", a, p.ask(l, a, far))
}

func askOnly(p *probe) {
	l := p.sys.Open()
	q := p.question()
	a := p.ask(l, q, -1)
	suite.Want("the id of a question that was not stored", a.ID, "")
	suite.Want("the number of approvals", len(p.approvals(l)), 0)
	denied := p.denied(l, p.ask(l, q, far))
	p.sameApproval("asking only, what was denied", denied, p.ask(l, q, -1))
}

func askDeniedFirst(p *probe) {
	for _, first := range []bool{true, false} {
		l := p.sys.Open()
		q := p.question()
		other := q
		other.Call.Turn += 1000
		if first { // the one that is denied was asked first
			p.ask(l, other, far)
		}
		p.approved(l, p.ask(l, q, far))
		a := p.denied(l, p.ask(l, other, far))
		p.sameApproval("asking what was approved here and denied there", a, p.ask(l, q, far))
	}
}

func askExpired(p *probe) {
	l := p.sys.Open()
	q := p.question()
	a := p.past(l, p.ask(l, q, soon))
	p.otherApproval(a, p.ask(l, q, far))
	q = p.question()
	a = p.decidedAndOver(l, q, true)
	p.otherApproval(a, p.ask(l, q, far))
}

func askSpent(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	a := p.permit(l, &c)
	p.win(l, c)
	p.otherApproval(a, p.ask(l, questionOf(c), far))
}

func askInput(p *probe) {
	l := p.sys.Open()
	q := p.question()
	q.Input = []byte("abc")
	a := p.ask(l, q, far)
	copies := [][]byte{q.Input, a.Input, p.ask(l, q, far).Input, p.approval(l, a.ID).Input, p.approved(l, a).Input}
	for _, b := range copies {
		copy(b, "xyz")
		suite.Want("Input", string(p.approval(l, a.ID).Input), "abc")
	}
}

func askNamespace(p *probe) {
	a, b := p.tenants()
	q := p.question()
	first := p.ask(a, q, far)
	p.otherApproval(first, p.ask(b, q, far))
	suite.Want("the number of questions of a tenant", len(p.approvals(a)), 1)
	first = p.denied(a, first)
	q.Call.Turn += 1000
	p.otherApproval(first, p.ask(b, q, far))
}
