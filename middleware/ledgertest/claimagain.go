package ledgertest

import (
	"time"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

func claimAgainCases() []Case {
	return []Case{
		{"claim again/takes the free row that was seen", "2", check(claimAgain)},
		{"claim again/wins at the place of the claim before", "2", check(claimAgainSamePlace)},
		{"claim again/takes a row that a person freed", "2", check(claimAgainByPerson)},
		{"claim again/is not won with another token", "2", check(func(p *probe) {
			p.notAgain(func(c *middleware.Claim) { c.Seen.Token = "another token" })
		})},
		{"claim again/is not won with another id", "2", check(func(p *probe) {
			p.notAgain(func(c *middleware.Claim) { c.Seen.Operation = "op_another" })
		})},
		{"claim again/is not won with another state", "2", check(func(p *probe) {
			for _, s := range allStates {
				if s != middleware.Free {
					p.notAgain(func(c *middleware.Claim) { c.Seen.State = s })
				}
			}
		})},
		{"claim again/is not won where the row is not free any more", "2", check(claimNotFree)},
		{"claim again/is not won over a row that was seen as it is, but is not free", "2", check(claimSeenLive)},
		{"claim again/is not won at a place that points to another operation", "2", check(func(p *probe) {
			p.notAgain(func(c *middleware.Claim) { c.Call = p.win(p.sys.Open(), p.claim()).Claimer })
		})},
		{"claim again/is not won by an undo of what is undone", "2", check(claimAgainUndone)},
		{"claim again/the deadlines of all claims count", "2", check(claimAgainDeadline)},
		{"claim again/the token of the claim before is worth nothing", "2", check(claimAgainOldToken)},
	}
}

// free is a free row at its first attempt, and a claim that takes it.
func (p *probe) free(l middleware.Ledger) (middleware.Row, middleware.Claim) {
	row := p.do(l, p.win(l, p.claim()), middleware.GiveBack)
	c := p.claimAs(row.Identity)
	c.Seen = row
	return row, c
}

// notAgain changes one thing of a claim that would take a free row.
func (p *probe) notAgain(spoil func(*middleware.Claim)) {
	l := p.sys.Open()
	row, c := p.free(l)
	spoil(&c)
	p.inTheWay(l, c, row)
}

// inTheWay makes a claim that must not be won: because of what its place points to, else because of a row.
func (p *probe) inTheWay(l middleware.Ledger, c middleware.Claim, row middleware.Row) {
	if at, ok := p.find(l, place(c.Call)); ok {
		row = at
	}
	p.same("what stood in the way", row, p.refused(l, c))
}

// claimAgainSamePlace is a call that is made again after it failed without effect.
func claimAgainSamePlace(p *probe) {
	l := p.sys.Open()
	row, c := p.free(l)
	c.Call, c.SeenAlias = row.Claimer, row.Operation
	got := p.win(l, c)
	suite.Want("Operation", got.Operation, row.Operation)
	suite.Want("the call found at its place", p.alias(l, c.Call, row.Operation), c.Call)
}

func claimAgain(p *probe) {
	l := p.sys.Open()
	before, c := p.free(p.sys.Open())
	c.Resource, c.ResourceOut = "resource", "id"
	got := p.win(l, c)
	p.same("Claim and Find after it", got, p.row(l, got.Operation))
	p.only("a claim of a free row", before, got, "State", "Since", "Token", "Deadline", "Owner", "Fingerprint", "Input",
		"Claimer", "Conversation", "Resource", "ResourceOut")
	wanted := before
	wanted.State, wanted.Token, wanted.Fingerprint, wanted.Input = middleware.Running, c.Token, c.Call.Fingerprint, c.Input
	wanted.Claimer, wanted.Conversation, wanted.Resource, wanted.ResourceOut = c.Call, c.Conversation, c.Resource, c.ResourceOut
	wanted.Since, wanted.Deadline, wanted.Owner = got.Since, got.Deadline, got.Owner
	p.same("a claim of a free row", wanted, got)
	if got.Owner == before.Owner {
		suite.Failf("Owner is still %s, want that of who claimed", got.Owner)
	}
	p.found(l, place(c.Call), before.Operation)
	p.found(l, place(before.Claimer), before.Operation)
}

func claimAgainByPerson(p *probe) {
	l := p.sys.Open()
	row := p.freed(l)
	suite.Want("ByPerson", row.ByPerson, true)
	c := p.claimAs(row.Identity)
	c.Seen = row
	got := p.win(l, c)
	suite.Want("Attempt", got.Attempt, 1)
	suite.Want("ByPerson of a new claim", got.ByPerson, false)
	suite.Want("SettledBy of a new claim", got.SettledBy, "")
	suite.Want("SettledWhy of a new claim", got.SettledWhy, "")
	p.lost(l, right(row, middleware.Complete))
}

// freed is a row that a person freed after its second attempt.
func (p *probe) freed(l middleware.Ledger) middleware.Row {
	return p.do(l, p.do(l, p.second(l), middleware.Doubt), middleware.NotHappened)
}

func claimNotFree(p *probe) {
	for _, s := range allStates {
		if s == middleware.Free || s == middleware.Released {
			continue
		}
		l := p.sys.Open()
		row := p.become(l, p.second(l), s)
		c := p.claimAs(row.Identity)
		c.Seen = row
		c.Seen.State = middleware.Free // as though it had been seen so, under the same token
		p.same("what stood in the way", row, p.refused(l, c))
	}
}

func claimSeenLive(p *probe) {
	for _, s := range []middleware.State{middleware.Running, middleware.InDoubt, middleware.Done} {
		l := p.sys.Open()
		row := p.become(l, p.second(l), s)
		c := p.claimAs(row.Identity)
		c.Seen = row
		p.same("what stood in the way", row, p.refused(l, c))
	}
}

func claimAgainUndone(p *probe) {
	l := p.sys.Open()
	target := p.become(l, p.second(l), middleware.Done)
	undo := p.do(l, p.win(l, p.undoing(target)), middleware.GiveBack)
	p.undo(l, target)
	c := p.claimAs(undo.Identity)
	c.Undoes, c.Seen = target.Operation, undo
	p.refused(l, c)
}

func claimAgainDeadline(p *probe) {
	l := p.sys.Open()
	row, c := p.free(l)
	c.Deadline = soon
	got := p.win(l, c)
	if !got.Deadline.Equal(row.Deadline) {
		suite.Failf("Deadline is %v, want %v, that of the claim before", got.Deadline, row.Deadline)
	}
	p.early(l, right(p.do(l, got, middleware.Doubt), middleware.NotHappened), row.Deadline)
}

func claimAgainOldToken(p *probe) {
	l := p.sys.Open()
	row, c := p.free(l)
	p.win(l, c)
	for _, s := range []middleware.Step{middleware.Complete, middleware.GiveBack, middleware.Doubt, middleware.Again} {
		p.lost(l, right(row, s))
	}
}

func claimExpiredCases() []Case {
	return []Case{
		{"claim expired/takes the place of the row that was seen", "3", check(claimExpired)},
		{"claim expired/wins at the place of the row that goes", "3", check(claimExpiredSamePlace)},
		{"claim expired/the places of the row that goes point to nothing", "3", check(claimExpiredPlaces)},
		{"claim expired/the aliases of other operations stay", "3", check(claimExpiredAliases)},
		{"claim expired/is not won before the date", "3", check(func(p *probe) { p.notExpired(far) })},
		{"claim expired/is not won over a row that is kept for ever", "3", check(func(p *probe) { p.notExpired(0) })},
		{"claim expired/is not won with another token", "3", check(func(p *probe) {
			p.notOver(func(c *middleware.Claim) { c.Seen.Token = "another token" })
		})},
		{"claim expired/is not won with another id", "3", check(func(p *probe) {
			p.notOver(func(c *middleware.Claim) { c.Seen.Operation = "op_another" })
		})},
		{"claim expired/is not won with another state", "3", check(func(p *probe) {
			for _, s := range allStates {
				if s != middleware.Done {
					p.notOver(func(c *middleware.Claim) { c.Seen.State = s })
				}
			}
		})},
		{"claim expired/is not won at a place that points to another operation", "3", check(func(p *probe) {
			p.notOver(func(c *middleware.Claim) { c.Call = p.win(p.sys.Open(), p.claim()).Claimer })
		})},
		{"claim expired/is not won over a row whose place another has taken", "3", check(claimExpiredTwice)},
		{"claim expired/a row that was not seen stays, whatever its identity", "3", check(claimExpiredByID)},
	}
}

func claimExpired(p *probe) {
	l := p.sys.Open()
	old := p.expired(p.sys.Open())
	c := p.claimAs(old.Identity)
	c.Seen = old
	got := p.win(l, c)
	p.same("Claim and Find after it", got, p.row(l, got.Operation))
	if got.Operation == old.Operation {
		suite.Failf("the id is %s as before, want a new one", got.Operation)
	}
	p.missing(l, middleware.Query{Operation: old.Operation})
	p.missing(l, place(old.Claimer))
	p.found(l, place(c.Call), got.Operation)
	p.found(l, middleware.Query{Identity: old.Identity}, got.Operation)
	suite.Want("State", got.State, middleware.Running)
	suite.Want("Token", got.Token, c.Token)
	suite.Want("Attempt", got.Attempt, 1)
	suite.Want("Generation", got.Generation, old.Generation)
	suite.Want("Key", got.Key, registry.DownstreamKey(old.Namespace, old.Identity, old.Generation))
	suite.Want("Result of a new operation", got.Result, "")
	suite.Want("HasResult of a new operation", got.HasResult, false)
	suite.Want("DoneAt of a new operation is zero", got.DoneAt.IsZero(), true)
	suite.Want("Expires of a new operation is zero", got.Expires.IsZero(), true)
	if _, err := l.Change(p.ctx, right(old, middleware.Complete)); err == nil {
		suite.Failf("a result of the row that has gone was taken")
	}
	p.same("a result of the row that has gone", got, p.row(l, got.Operation))
}

func claimExpiredSamePlace(p *probe) {
	l := p.sys.Open()
	old := p.expired(l)
	c := p.claimAs(old.Identity)
	c.Call.Turn, c.Seen, c.SeenAlias = old.Claimer.Turn, old, old.Operation
	got := p.win(l, c)
	suite.Want("the call found at its place", p.alias(l, c.Call, got.Operation), c.Call)
}

func claimExpiredPlaces(p *probe) {
	l := p.sys.Open()
	old := p.expired(l)
	call := p.claim().Call
	p.note(l, old.Operation, call, 1)
	c := p.claimAs(old.Identity)
	c.Seen = old
	got := p.win(l, c)
	q := place(call)
	q.Identity = old.Identity
	if row := p.found(l, q, got.Operation); row.Found != nil {
		suite.Failf("Found is %+v, want none: that place pointed to what has gone", row.Found)
	}
	c = p.claim()
	c.Call.Turn = call.Turn
	next := p.win(l, c)
	p.found(l, place(call), next.Operation)
}

func claimExpiredAliases(p *probe) {
	l := p.sys.Open()
	others := []middleware.Row{p.win(l, p.claim())}
	old := p.expired(l)
	p.note(l, old.Operation, p.claim().Call, 1)
	for range 3 {
		others = append(others, p.win(l, p.claim()))
	}
	c := p.claimAs(old.Identity) // the call of another operation, now with this one's arguments
	c.Call.Turn, c.SeenAlias, c.Seen = others[2].Claimer.Turn, others[2].Operation, old
	got := p.win(l, c)
	for i, o := range others {
		if i == 2 {
			o = got
		}
		p.found(l, place(o.Claimer), o.Operation)
	}
	old = p.do(l, got, middleware.GiveBack)
	c = p.claimAs(old.Identity)
	c.Seen = old
	p.win(l, c)
}

// notExpired tries to claim over a done row that is kept for some time more.
func (p *probe) notExpired(keep time.Duration) {
	l := p.sys.Open()
	c := p.claim()
	c.Keep = keep
	row := p.do(l, p.win(l, c), middleware.Complete)
	p.tick(l, row.Operation)
	c = p.claimAs(row.Identity)
	c.Seen = row
	p.same("what stood in the way", row, p.refused(l, c))
}

// notOver changes one thing of a claim that would take the place of an expired row.
func (p *probe) notOver(spoil func(*middleware.Claim)) {
	l := p.sys.Open()
	row := p.expired(l)
	c := p.claimAs(row.Identity)
	c.Seen = row
	spoil(&c)
	p.inTheWay(l, c, row)
}

func claimExpiredTwice(p *probe) {
	l := p.sys.Open()
	old := p.expired(l)
	c, c2 := p.claimAs(old.Identity), p.claimAs(old.Identity)
	c.Seen, c2.Seen = old, old
	p.same("what stood in the way", p.win(l, c), p.refused(l, c2))
}

func claimExpiredByID(p *probe) {
	l := p.sys.Open()
	old := p.expired(l)
	c, c2 := p.claimAs(old.Identity), p.claimAs(old.Identity)
	c.Seen, c.Keep, c2.Seen = old, soon, old
	row := p.do(l, p.win(l, c), middleware.Complete)
	p.tick(l, row.Operation)
	p.same("what stood in the way", row, p.refused(l, c2)) // expired too, and of the same identity
}
