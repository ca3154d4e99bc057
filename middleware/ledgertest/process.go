package ledgertest

import (
	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func processCases() []Case {
	return []Case{
		{"handlers/are one record for all namespaces of a process", "Ledger", check(handlersShared)},
		{"handlers/are another process's own", "Ledger", check(handlersApart)},
		{"process/what one has written another reads", "Ledger", check(processReads)},
		{"trace/did not happen while a request is in flight, and then its result", "13", check(traceInFlight)},
	}
}

func handlersShared(p *probe) {
	l := p.sys.Open()
	a, b := p.sys.Namespace(l, "acme"), p.sys.Namespace(l, "globex")
	h := l.Handlers()
	if h == nil || h != l.Handlers() || h != a.Handlers() || h != b.Handlers() {
		suite.Failf("Handlers gives several records or none, want one")
	}
	held := a.Handlers().Open("op")
	defer held.End()
	held.Begin()
	suite.Want("Running as seen from another namespace", b.Handlers().Running("op"), true)
}

func handlersApart(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	if a.Handlers() == b.Handlers() {
		suite.Failf("two processes share a record of handlers")
	}
}

func processReads(p *probe) {
	a := p.sys.Open()
	for _, s := range allStates {
		row := p.become(a, p.second(a), s)
		p.same("reading it in another process", row, p.row(p.sys.Open(), row.Operation))
	}
	p.sys.Kill(a)
	row := p.become(a, p.second(a), middleware.Done)
	p.same("reading it after the process has gone", row, p.row(p.sys.Open(), row.Operation))
}

// traceInFlight: a person must wait until no request can land; what lands all the same is kept, and seen.
func traceInFlight(p *probe) {
	l := p.sys.Open()
	row := p.do(l, p.win(l, p.claim()), middleware.Doubt)
	p.early(p.sys.Open(), right(row, middleware.NotHappened), row.Deadline)
	row = p.freed(l)
	c := p.claimAs(row.Identity)
	c.Seen = row
	next := p.win(l, c)
	p.lost(l, right(row, middleware.Complete)) // of the claim before
	suite.Want("Late", p.row(l, row.Operation).Late, true)
	p.done(p.do(l, next, middleware.Complete))
}
