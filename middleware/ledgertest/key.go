package ledgertest

import (
	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

func keyCases() []Case {
	return []Case{
		{"key/grows where a row is given back with a new key", "5", check(keyGivenBack)},
		{"key/stays where a row is given back without", "5", check(keyStays)},
		{"key/grows with each new key, by whatever way", "Row", check(keyGrows)},
		{"key/grows on release, from the last generation", "1", check(keyReleased)},
		{"key/grows on not happened with a new key", "13", check(func(p *probe) { p.keyNotHappened(true) })},
		{"key/stays on not happened without", "13", check(func(p *probe) { p.keyNotHappened(false) })},
		{"key/stays on again and absent", "7", check(keyAttempts)},
		{"key/goes on from the generation of an expired row", "3", check(keyExpired)},
		{"key/its window begins with its first claim", "2", check(keySince)},
		{"key/a new key begins a new window", "2", check(keySinceNew)},
		{"key/a row older than the window begins a new one", "2", check(keySinceOld)},
		{"key/unclear stays with the key", "Row", check(keyUnclear)},
		{"key/unclear goes with the key", "Row", check(keyClear)},
	}
}

// reclaim claims a free row, at a generation.
func (p *probe) reclaim(l middleware.Ledger, free middleware.Row, generation int) middleware.Row {
	c := p.claimAs(free.Identity)
	c.Seen = free
	row := p.win(l, c)
	p.generation(row, generation)
	return row
}

// generation is what a row that was claimed must say.
func (p *probe) generation(row middleware.Row, n int) {
	suite.Want("Generation", row.Generation, n)
	suite.Want("Key", row.Key, registry.DownstreamKey(row.Namespace, row.Identity, n))
}

func (p *probe) newKey(l middleware.Ledger, row middleware.Row, s middleware.Step) middleware.Row {
	t := right(row, s)
	t.NewKey = true
	return p.step(l, t)
}

func keyGivenBack(p *probe) {
	l := p.sys.Open()
	row := p.win(l, p.claim())
	p.generation(row, 0)
	free := p.newKey(l, row, middleware.GiveBack)
	suite.Want("Operation", free.Operation, row.Operation)
	suite.Want("State", free.State, middleware.Free)
	suite.Want("Generation", free.Generation, 1)
	p.only("give back with a new key", row, free, "State", "Since", "Generation", "Key", "KeySince")
	p.reclaim(p.sys.Open(), free, 1)
}

func keyStays(p *probe) {
	l := p.sys.Open()
	row := p.win(l, p.claim())
	for range 3 {
		row = p.reclaim(l, p.do(l, row, middleware.GiveBack), 0)
	}
}

func keyGrows(p *probe) {
	l := p.sys.Open()
	row := p.reclaim(l, p.newKey(l, p.win(l, p.claim()), middleware.GiveBack), 1)
	row = p.reclaim(l, p.newKey(l, row, middleware.GiveBack), 2)
	row = p.reclaim(l, p.do(l, row, middleware.GiveBack), 2)
	p.become(l, row, middleware.Released)
	row = p.win(l, p.claimAs(row.Identity))
	p.generation(row, 3)
	p.reclaim(l, p.newKey(l, row, middleware.GiveBack), 4)
}

func keyReleased(p *probe) {
	l := p.sys.Open()
	row := p.win(l, p.claim())
	for i := range 4 {
		p.generation(row, i)
		since := row.KeySince
		p.become(l, row, middleware.Released)
		row = p.win(l, p.claimAs(row.Identity))
		suite.Want("KeySince of a new key is later", row.KeySince.After(since), true)
	}
}

func (p *probe) keyNotHappened(grow bool) {
	l := p.sys.Open()
	t := right(p.do(l, p.second(l), middleware.Doubt), middleware.NotHappened)
	t.NewKey = grow
	row := p.step(l, t)
	suite.Want("Unclear", row.Unclear, !grow)
	n := 0
	if grow {
		n = 1
	}
	suite.Want("Generation", row.Generation, n)
	suite.Want("ByPerson", row.ByPerson, true)
	p.reclaim(l, row, n)
}

func keyAttempts(p *probe) {
	l := p.sys.Open()
	row := p.settling(l)
	p.generation(row, 0)
	row = p.do(l, row, middleware.Absent)
	p.generation(row, 0)
	p.generation(p.do(l, row, middleware.Again), 0)
}

func keyExpired(p *probe) {
	l := p.sys.Open()
	row := p.reclaim(l, p.newKey(l, p.win(l, p.claim()), middleware.GiveBack), 1)
	c := p.claimAs(row.Identity)
	c.Keep, c.Seen = soon, p.do(l, row, middleware.GiveBack)
	row = p.do(l, p.win(l, c), middleware.Complete)
	p.tick(l, row.Operation)
	c = p.claimAs(row.Identity)
	c.Seen = p.row(l, row.Operation)
	p.generation(p.win(l, c), 1)
}

func keySince(p *probe) {
	l := p.sys.Open()
	row, c := p.free(l)
	p.tick(l, row.Operation)
	if got := p.win(l, c); !got.KeySince.Equal(row.KeySince) {
		suite.Failf("KeySince is %v, want %v, the first claim with the key", got.KeySince, row.KeySince)
	}
}

func keySinceNew(p *probe) {
	l := p.sys.Open()
	row := p.win(l, p.claim())
	free := p.newKey(l, row, middleware.GiveBack)
	p.tick(l, row.Operation)
	suite.Want("KeySince of a new key is later", p.reclaim(l, free, 1).KeySince.After(row.KeySince), true)
}

func keySinceOld(p *probe) {
	l := p.sys.Open()
	row, c := p.free(l)
	p.tick(l, row.Operation)
	c.KeyWindow = soon
	got := p.win(l, c)
	suite.Want("KeySince of a new window is later", got.KeySince.After(row.KeySince), true)
	p.generation(got, 0)
}

func keyUnclear(p *probe) {
	l := p.sys.Open()
	row := p.reclaim(l, p.do(l, p.second(l), middleware.GiveBack), 0)
	suite.Want("Unclear after a claim with a second attempt", row.Unclear, true)
	row = p.do(l, row, middleware.Complete)
	suite.Want("Unclear of a row that is done", row.Unclear, true)
}

func keyClear(p *probe) {
	for _, s := range []middleware.Step{middleware.GiveBack, middleware.NotHappened} {
		l := p.sys.Open()
		row := p.do(l, p.second(l), middleware.Doubt)
		suite.Want("Unclear", row.Unclear, true)
		row = p.newKey(l, row, s)
		suite.Want("Unclear with a new key", row.Unclear, false)
		suite.Want("Unclear of a claim with a new key", p.reclaim(l, row, 1).Unclear, false)
	}
	l := p.sys.Open()
	row := p.become(l, p.second(l), middleware.Released)
	suite.Want("Unclear of a claim after release", p.win(l, p.claimAs(row.Identity)).Unclear, false)
}
