package journaltest

import (
	"github.com/toolonce/toolonce/agent/journal"
)

func namespaceCases() []Case {
	return []Case{
		{"namespaces/runs of one are unknown in another", "11", check(namespaceBegin)},
		{"namespaces/names and ids do not run together", "11", check(namespaceNames)},
		{"namespaces/a token is worth nothing in another", "11", check(namespaceTokens)},
		{"namespaces/of one process share who has a run", "3", check(namespaceShared)},
	}
}

// tenants are two views of one owner.
func (p *probe) tenants() (a, b journal.Journal) {
	j := p.sys.Open()
	return p.sys.Namespace(j, "acme"), p.sys.Namespace(j, "globex")
}

func namespaceBegin(p *probe) {
	a, b := p.tenants()
	r := p.going(a)
	other := r.Start
	other.Input, other.API, other.Run.Conversation = []byte("another digest"), "responses", ""
	mine := p.begin(b, other)
	p.same("another tenant's run", mine, journal.Record{Start: other, Created: mine.Created})
	p.put(b, &mine, entry(&mine, 0))
	p.put(a, &r, entry(&r, 1))
	p.unchanged(a, "a run with another tenant's of the same id", r)
	p.unchanged(b, "another tenant's run", mine)
}

func namespaceNames(p *probe) {
	j := p.sys.Open()
	for _, n := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"abc", ""}, {"", "abc"}, {"a:b", "c"}, {"a", "b:c"}, {"A", "bc"}, {"a ", "bc"}, {"é", "bc"}, {"e\u0301", "bc"}} {
		s := p.start()
		s.Run.ID = n[1]
		view := p.sys.Namespace(j, n[0])
		r := p.begin(view, s)
		p.same("a new run", r, journal.Record{Start: s, Created: r.Created})
		p.put(view, &r, entry(&r, 0))
	}
}

func namespaceTokens(p *probe) {
	a, b := p.tenants()
	r := p.going(a)
	mine := p.begin(b, r.Start)
	p.lost(b, entry(&r, 1), "in another namespace")
	p.is(b.Leave(p.ctx, journal.Leaving{Run: r.Run.ID, Token: r.Token}), journal.ErrLost, "Leave in another namespace")
	p.refused(a, r.Start, journal.ErrRunTaken)
	p.unchanged(b, "another tenant's run", mine)
	p.unchanged(a, "a run whose token was used in another namespace", r)
}

func namespaceShared(p *probe) {
	j := p.sys.Open()
	a := p.sys.Namespace(j, "acme")
	r := p.going(a)
	for _, view := range []journal.Journal{a, p.sys.Namespace(j, "acme"), p.sys.Namespace(p.sys.Namespace(j, "globex"), "acme")} {
		p.refused(view, r.Start, journal.ErrRunTaken)
	}
	p.refused(p.sys.Namespace(p.sys.Open(), "acme"), r.Start, journal.ErrRunTaken)
	p.leave(p.sys.Namespace(j, "acme"), r)
	r = p.again(p.sys.Namespace(j, "acme"), "a run that another view has left", r)
	p.put(a, &r, entry(&r, 1))
}
