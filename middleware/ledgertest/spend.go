package ledgertest

import (
	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func spendCases() []Case {
	all := []Case{
		{"approval/is spent by the claim that it serves, by whatever way", "Approver, 3", check(spent)},
		{"approval/serves the call under another id", "Approver, 3", check(spentUnderAnotherID)},
		{"approval/serves one claim", "Approver, 3", check(spentOnce)},
		{"approval/of 50 claimers with one approval one wins", "Approver, 3", check(spentRace)},
		{"approval/stays approved where the claim is not won", "Approver, 3", check(spentByNobody)},
		{"approval/is not spent where there is none", "Approver, 3", check(func(p *probe) {
			p.notSpent(func(_ middleware.Ledger, c *middleware.Claim) { c.Approval = "none" })
		})},
		{"approval/is not spent while it is pending", "Approver, 3", check(func(p *probe) {
			p.notSpent(func(l middleware.Ledger, c *middleware.Claim) { c.Approval = p.ask(l, questionOf(*c), far).ID })
		})},
		{"approval/is not spent where it is denied", "Approver, 3", check(func(p *probe) {
			p.notSpent(func(l middleware.Ledger, c *middleware.Claim) {
				c.Approval = p.denied(l, p.ask(l, questionOf(*c), far)).ID
			})
		})},
		{"approval/is not spent where it has expired", "Approver, 3", check(func(p *probe) {
			p.notSpent(func(l middleware.Ledger, c *middleware.Claim) {
				c.Approval = p.decidedAndOver(l, questionOf(*c), true).ID
			})
		})},
		{"namespaces/an approval does not cross", "Approver, 3", check(spentNamespace)},
	}
	for name, change := range bindings() {
		all = append(all, Case{"approval/is not spent on another " + name, "Approver, 3", check(func(p *probe) {
			p.notSpent(func(l middleware.Ledger, c *middleware.Claim) {
				q := questionOf(*c)
				change(&q)
				c.Approval = p.approved(l, p.ask(l, q, far)).ID
			})
		})})
	}
	return sorted(all)
}

// permit has a claim approved.
func (p *probe) permit(l middleware.Ledger, c *middleware.Claim) middleware.Approval {
	a := p.approved(l, p.ask(l, questionOf(*c), far))
	c.Approval = a.ID
	return a
}

// notSpent tries to claim with an approval that does not serve.
func (p *probe) notSpent(give func(middleware.Ledger, *middleware.Claim)) {
	l := p.sys.Open()
	for way, c := range p.ways(l) {
		give(l, &c)
		p.unserved(l, way, c)
		c.Approval = ""
		p.win(l, c)
	}
}

// unserved makes a claim that must not be won and must leave the approvals as they are.
func (p *probe) unserved(l middleware.Ledger, way string, c middleware.Claim) {
	before := p.approvals(l)
	suite.Want("what stood in the way of "+way, p.refused(l, c).Operation, c.Seen.Operation)
	for i, a := range p.approvals(l) {
		p.sameApproval("a claim that was not won", before[i], a)
	}
}

func spent(p *probe) {
	l := p.sys.Open()
	for way, c := range p.ways(l) {
		a := p.permit(l, &c)
		row := p.win(p.sys.Open(), c)
		a.State, a.Operation = middleware.Spent, row.Operation
		p.sameApproval(way, a, p.approval(l, a.ID))
	}
}

func spentUnderAnotherID(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	p.permit(l, &c)
	c.Call.CallID, c.Call.Arguments, c.Conversation = "another id", hash("arguments worded anew", 1), "another chat"
	p.win(l, c)
}

func spentOnce(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	a := p.permit(l, &c)
	row := p.win(l, c)
	a.State, a.Operation = middleware.Spent, row.Operation
	c.Seen, c.SeenAlias, c.Token = p.do(l, row, middleware.GiveBack), row.Operation, "the next token"
	p.unserved(l, "the same call with the same approval", c)
	p.sameApproval("a claim with a spent approval", a, p.approval(l, a.ID))
	p.permit(l, &c)
	p.win(l, c)
}

func spentRace(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	a := p.permit(l, &c)
	var all []middleware.Claim
	for range racers {
		c.Token = p.claim().Token
		all = append(all, c)
	}
	row := p.claims(all)
	suite.Want("what the approval was spent on", p.approval(l, a.ID).Operation, row.Operation)
}

// spentByNobody puts something in the way of a claim that is approved.
func spentByNobody(p *probe) {
	for what, hinder := range map[string]func(l middleware.Ledger, c *middleware.Claim){
		"an operation that runs": func(l middleware.Ledger, c *middleware.Claim) { p.win(l, p.claimAs(c.Identity)) },
		"a place taken": func(l middleware.Ledger, c *middleware.Claim) {
			other := p.claim()
			other.Call.Turn = c.Call.Turn
			p.win(l, other)
		},
		"a place that means nothing any more": func(_ middleware.Ledger, c *middleware.Claim) { c.SeenAlias = "op_another" },
		"a row seen that is not there":        func(_ middleware.Ledger, c *middleware.Claim) { c.Seen.Operation = "op_another" },
		"an undo of nothing":                  func(_ middleware.Ledger, c *middleware.Claim) { c.Undoes = "op_nothing" },
		"an undo of what runs":                func(l middleware.Ledger, c *middleware.Claim) { c.Undoes = p.win(l, p.claim()).Operation },
		"a repeat of nothing":                 func(_ middleware.Ledger, c *middleware.Claim) { c.RepeatOf = "op_nothing" },
		"a repeat of what runs":               func(l middleware.Ledger, c *middleware.Claim) { c.RepeatOf = p.win(l, p.claim()).Operation },
	} {
		l := p.sys.Open()
		c := p.claim()
		a := p.permit(l, &c)
		hinder(l, &c)
		p.refused(l, c)
		p.sameApproval("a claim that lost to "+what, a, p.approval(l, a.ID))
	}
}

func spentNamespace(p *probe) {
	a, b := p.tenants()
	c := p.claim()
	asked := p.permit(a, &c)
	p.refused(b, c)
	p.sameApproval("a claim from another namespace", asked, p.approval(a, asked.ID))
	p.win(a, c)
}
