package ledgertest

import (
	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func resourceCases() []Case {
	return []Case{
		{"resource/finds what a tool has made of it, in every state but free", "16", check(resourceStates)},
		{"resource/done before running or in doubt before released", "16", check(resourceRank)},
		{"resource/the latest of one rank", "16", check(resourceLatest)},
		{"resource/is what the result said, else what the claim said", "4", check(resourceOfResult)},
	}
}

func (p *probe) onResource(l middleware.Ledger, resource string, s middleware.State) middleware.Row {
	c := p.claim()
	c.Resource, c.Deadline = resource, soon
	row := p.win(l, c)
	p.tick(l, row.Operation)
	return p.become(l, row, s)
}

func resourceStates(p *probe) {
	for _, s := range allStates {
		l := p.sys.Open()
		row := p.onResource(l, "resource "+string(s), s)
		q := middleware.Query{Tool: row.Tool, Resource: row.Resource}
		if s == middleware.Free {
			p.missing(l, q)
			continue
		}
		p.same("finding it by its resource", row, p.found(l, q, row.Operation))
		p.missing(l, middleware.Query{Tool: "another tool", Resource: row.Resource})
		p.missing(l, middleware.Query{Tool: row.Tool, Resource: "another resource"})
	}
}

func resourceRank(p *probe) {
	l := p.sys.Open()
	q := middleware.Query{Tool: p.claim().Call.Tool, Resource: "resource"}
	released := p.onResource(l, "resource", middleware.Released)
	p.found(l, q, released.Operation)
	running := p.onResource(l, "resource", middleware.Running)
	p.found(l, q, running.Operation)
	p.onResource(l, "resource", middleware.Released)
	p.found(l, q, running.Operation)
	done := p.onResource(l, "resource", middleware.Done)
	p.found(l, q, done.Operation)
	for _, s := range []middleware.State{middleware.Running, middleware.InDoubt, middleware.Free, middleware.Released} {
		p.onResource(l, "resource", s)
		p.found(l, q, done.Operation)
	}
	p.undo(l, done)
	if row, ok := p.find(l, q); !ok || row.State != middleware.InDoubt {
		suite.Failf("what is found on the resource is %s, want the latest that is running or in doubt", describe(&row))
	}
}

func resourceLatest(p *probe) {
	for _, s := range []middleware.State{middleware.Done, middleware.Running, middleware.InDoubt, middleware.Released} {
		l := p.sys.Open()
		for range 3 {
			row := p.onResource(l, "resource "+string(s), s)
			p.found(l, middleware.Query{Tool: row.Tool, Resource: row.Resource}, row.Operation)
		}
	}
	l := p.sys.Open()
	for _, s := range []middleware.State{middleware.InDoubt, middleware.Running, middleware.InDoubt} {
		row := p.onResource(l, "resource", s)
		p.found(l, middleware.Query{Tool: row.Tool, Resource: row.Resource}, row.Operation)
	}
}

func resourceOfResult(p *probe) {
	for _, s := range []middleware.Step{middleware.Complete, middleware.Found, middleware.Happened} {
		l := p.sys.Open()
		for _, said := range []string{"", "by the result of " + stepName(s)} {
			c := p.claim()
			c.Resource = "by the claim of " + stepName(s)
			row := p.do(l, p.win(l, c), middleware.Take)
			t := right(row, s)
			t.Resource = said
			got := p.step(l, t)
			if said == "" {
				said = c.Resource
			}
			suite.Want("Resource", got.Resource, said)
			p.found(l, middleware.Query{Tool: got.Tool, Resource: said}, got.Operation)
		}
	}
}
