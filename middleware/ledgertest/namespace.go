package ledgertest

import (
	"fmt"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

func namespaceCases() []Case {
	return []Case{
		{"namespaces/one identity in two namespaces is two operations", "16", check(namespaceClaim)},
		{"namespaces/names and identities do not run together", "16", check(namespaceNames)},
		{"namespaces/keys differ", "16", check(namespaceKeys)},
		{"namespaces/find does not cross", "16", check(namespaceFind)},
		{"namespaces/change does not cross", "16", check(namespaceChange)},
		{"namespaces/note does not cross", "16", check(namespaceNote)},
		{"namespaces/claim does not cross by what it has seen", "16", check(namespaceSeen)},
		{"namespaces/undo does not cross", "16", check(namespaceUndo)},
		{"namespaces/list does not cross", "16", check(namespaceList)},
	}
}

// tenants are two views of one owner.
func (p *probe) tenants() (a, b middleware.Ledger) {
	l := p.sys.Open()
	return p.sys.Namespace(l, "acme"), p.sys.Namespace(l, "globex")
}

func namespaceClaim(p *probe) {
	a, b := p.tenants()
	c := p.claim()
	first := p.win(a, c)
	c.Token = "token of another tenant"
	second := p.win(b, c)
	if first.Operation == second.Operation {
		suite.Failf("two tenants share the operation %s", first.Operation)
	}
	suite.Want("Namespace", first.Namespace, "acme")
	suite.Want("Namespace", second.Namespace, "globex")
	p.same("another tenant's claim", first, p.row(a, first.Operation))
	first = p.do(a, first, middleware.Complete)
	p.same("another tenant's result", second, p.row(b, second.Operation))
	p.same("what stood in the way", first, p.refused(p.sys.Namespace(p.sys.Open(), "acme"), p.claimAs(c.Identity)))
}

func namespaceNames(p *probe) {
	l := p.sys.Open()
	seen := map[string]bool{}
	for _, n := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"abc", ""}, {"", "abc"}, {"a:b", "c"}, {"a", "b:c"}, {"A", "bc"}, {"a ", "bc"}, {"é", "bc"}, {"e\u0301", "bc"}} {
		c := p.claimAs(n[1] + "x")
		c.Call.Run, c.Call.Turn = n[1]+"x", 1
		row := p.win(p.sys.Namespace(l, n[0]), c)
		suite.Want("Namespace", row.Namespace, n[0])
		if seen[row.Key] || seen[row.Operation] {
			suite.Failf("namespace %q and identity %q are another pair's", n[0], n[1])
		}
		seen[row.Key], seen[row.Operation] = true, true
	}
}

func namespaceKeys(p *probe) {
	a, b := p.tenants()
	c := p.claim()
	first, second := p.win(a, c), p.win(b, c)
	suite.Want("Key", first.Key, registry.DownstreamKey("acme", c.Identity, 0))
	suite.Want("Key", second.Key, registry.DownstreamKey("globex", c.Identity, 0))
}

func namespaceFind(p *probe) {
	for _, s := range allStates {
		a, b := p.tenants()
		row := p.onResource(a, "resource "+string(s), s)
		for _, q := range []middleware.Query{
			{Operation: row.Operation}, place(row.Claimer), {Identity: row.Identity}, {Tool: row.Tool, Resource: row.Resource},
		} {
			p.missing(b, q)
		}
		p.row(a, row.Operation)
	}
}

func namespaceChange(p *probe) {
	for _, r := range rules() {
		a, b := p.tenants()
		t := r.ready(p, a, r.from[0])
		before := p.row(a, t.Operation)
		got, err := b.Change(p.ctx, t)
		if !isLost(err) || got.Operation != "" {
			suite.Failf("%s from another namespace: want ErrLost and no row, got %v and %s", r.name(), err, describe(&got))
		}
		p.same(r.name()+" from another namespace", before, p.row(a, t.Operation))
		p.step(a, t)
	}
}

func namespaceNote(p *probe) {
	a, b := p.tenants()
	c := p.claim()
	first, second := p.win(a, c), p.win(b, c)
	call := p.claim().Call
	if _, err := b.Note(p.ctx, first.Operation, call); !isLost(err) {
		suite.Failf("Note of an operation of another namespace: want ErrLost, got %v", err)
	}
	p.missing(a, place(call))
	p.missing(b, place(call))
	p.note(a, first.Operation, call, 1)
	p.repeats(b, "run", second.Operation, 0)
	p.note(b, second.Operation, call, 1)
	p.note(b, second.Operation, p.claim().Call, 2)
	p.repeats(a, "run", first.Operation, 1)
}

func namespaceSeen(p *probe) {
	for _, row := range []func(l middleware.Ledger) middleware.Row{
		func(l middleware.Ledger) middleware.Row { row, _ := p.free(l); return row },
		p.expired,
	} {
		a, b := p.tenants()
		seen := row(a)
		c := p.claimAs(seen.Identity)
		c.Seen = seen
		if got := p.refused(b, c); got.Operation != "" {
			suite.Failf("in the way stood %s of another namespace", describe(&got))
		}
		p.same("a claim from another namespace", seen, p.row(a, seen.Operation))
		c = p.claim()
		c.SeenAlias = seen.Operation
		c.Call = seen.Claimer
		p.refused(b, c)
	}
	a, b := p.tenants()
	row := p.become(a, p.second(a), middleware.Released)
	p.generation(p.win(b, p.claimAs(row.Identity)), 0)
}

func namespaceUndo(p *probe) {
	a, b := p.tenants()
	target := p.become(a, p.second(a), middleware.Done)
	p.refused(b, p.undoing(target))
	p.same("an undo from another namespace", target, p.row(a, target.Operation))
}

func namespaceList(p *probe) {
	a, b := p.tenants()
	for i, l := range []middleware.Ledger{a, b} {
		for range i + 1 {
			p.win(l, p.claim())
		}
	}
	for i, l := range []middleware.Ledger{a, b} {
		if lister, ok := l.(middleware.Lister); ok {
			rows, err := lister.List(p.ctx, nil, 0)
			suite.None(err, "List")
			suite.Want(fmt.Sprintf("the number of rows of tenant %d", i+1), len(rows), i+1)
		}
	}
}
