package ledgertest

import (
	"time"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

func claimCases() []Case {
	all := []Case{
		{"claim/two claimers of one identity: one wins", "1", check(claimTwice)},
		{"claim/another fingerprint of one identity is not won and sees the first", "1", check(claimOtherFingerprint)},
		{"claim/the row is as claimed", "1", check(claimRow)},
		{"claim/a running row whose deadline is over is not won", "1", check(claimRunningOverdue)},
		{"claim/a row in doubt whose deadline is over is not won", "1", check(claimInDoubtOverdue)},
		{"claim/a done row that has expired is not won unseen", "1", check(claimExpiredUnseen)},
		{"claim/the alias of the call is in its commit", "1", check(claimAlias)},
		{"claim/is not won at a place that points to another operation", "1", check(claimTakenPlace)},
		{"claim/is not won at a place that points to another operation than seen", "1", check(claimMovedPlace)},
		{"claim/is not won at a place that points to nothing any more", "1", check(claimEmptyPlace)},
		{"claim/wins a place that points to what was seen, and moves it", "1", check(claimSeenPlace)},
		{"claim/calls without a turn have no place", "1", check(claimWithoutTurn)},
		{"claim/is not won by an undo of nothing", "1", check(undoOfNothing)},
		{"claim/ids are new and differ", "1", check(claimIDs)},
	}
	for _, s := range allStates {
		if s != middleware.Released {
			all = append(all, Case{"claim/a row that is " + stateName(s) + " is not won unseen", "1", check(func(p *probe) {
				l := p.sys.Open()
				row := p.become(l, p.second(l), s)
				p.same("what stood in the way", row, p.refused(p.sys.Open(), p.claimAs(row.Identity)))
			})})
		}
		if s != middleware.Done {
			all = append(all, Case{"claim/is not won by an undo of a row that is " + stateName(s), "1", check(func(p *probe) {
				l := p.sys.Open()
				p.refused(l, p.undoing(p.become(l, p.second(l), s)))
			})})
		}
	}
	return all
}

func claimTwice(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	first := p.win(a, p.claim())
	p.same("what stood in the way", first, p.refused(b, p.claimAs(first.Identity)))
	p.same("what stood in the way", first, p.refused(a, p.claimAs(first.Identity)))
}

func claimOtherFingerprint(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	c.Call.Fingerprint = "100 cents"
	first := p.win(l, c)
	suite.Want("Fingerprint", first.Fingerprint, "100 cents")
	c2 := p.claimAs(c.Identity)
	c2.Call.Fingerprint = "125 cents"
	suite.Want("Fingerprint of what stood in the way", p.refused(l, c2).Fingerprint, "100 cents")
	p.note(l, first.Operation, c2.Call, 1)
	suite.Want("Fingerprint of the row", p.row(l, first.Operation).Fingerprint, "100 cents")
	suite.Want("Fingerprint of the repeat's alias", p.alias(l, c2.Call, first.Operation).Fingerprint, "125 cents")
}

func claimRow(p *probe) {
	l := p.sys.Open()
	target := p.become(l, p.second(l), middleware.Done)
	c := p.claim()
	c.Undoes, c.RepeatOf, c.Resource, c.ResourceOut = target.Operation, target.Operation, "resource", "id"
	got := p.win(l, c)
	p.same("Claim and Find after it", got, p.row(l, got.Operation))
	wanted := middleware.Row{
		Operation: got.Operation, Owner: got.Owner, Namespace: target.Namespace, // as they come
		Identity: c.Identity, Fingerprint: c.Call.Fingerprint, Canonical: registry.CanonicalVersion, Tool: c.Call.Tool,
		State: middleware.Running, Token: c.Token, Attempt: 1,
		Key:    registry.DownstreamKey(target.Namespace, c.Identity, 0),
		Undoes: c.Undoes, RepeatOf: c.RepeatOf, Resource: c.Resource, ResourceOut: c.ResourceOut, Input: c.Input,
		Claimer: c.Call, Conversation: c.Conversation,
		Deadline: got.Deadline, KeySince: got.KeySince, Created: got.Created, Since: got.Since, // looked at below
	}
	p.same("the claim and its row", wanted, got)
	if got.Operation == "" || got.Owner == "" {
		suite.Failf("Operation is %q and Owner %q, want both", got.Operation, got.Owner)
	}
	for name, at := range map[string]time.Time{"Created": got.Created, "Since": got.Since, "KeySince": got.KeySince, "Deadline less what was asked for": got.Deadline.Add(-c.Deadline)} {
		if at.Before(target.Now.Add(-time.Millisecond)) || at.After(got.Now.Add(time.Millisecond)) { // a store may round
			suite.Failf("%s is %v, want the time of the claim, between %v and %v", name, at, target.Now, got.Now)
		}
	}
}

func claimRunningOverdue(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	row := p.second(a)
	c := p.claimAs(row.Identity)
	p.same("what stood in the way", row, p.refused(b, c))
	c.Seen = row
	p.refused(b, c)
	p.sys.Kill(a)
	c.Seen = p.row(b, row.Operation)
	p.refused(b, c)
	c.Seen = middleware.Row{}
	p.refused(b, c)
}

func claimInDoubtOverdue(p *probe) {
	l := p.sys.Open()
	row := p.do(l, p.second(l), middleware.Doubt)
	c := p.claimAs(row.Identity)
	p.same("what stood in the way", row, p.refused(l, c))
	c.Seen = row
	p.refused(l, c)
}

func claimExpiredUnseen(p *probe) {
	l := p.sys.Open()
	row := p.expired(l)
	p.same("what stood in the way", row, p.refused(l, p.claimAs(row.Identity)))
}

func claimAlias(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	p.missing(l, place(c.Call))
	row := p.win(l, c)
	suite.Want("the call found at its place", p.alias(p.sys.Open(), c.Call, row.Operation), c.Call)
	suite.Want("Repeats of a first call", p.found(l, place(c.Call), row.Operation).Repeats, 0)
}

func claimTakenPlace(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	first := p.win(l, c)
	c2 := p.claim()
	c2.Call.Turn = c.Call.Turn
	p.same("what stood in the way", first, p.refused(l, c2))
	c2.Call.Position++
	p.win(l, c2)
}

func claimMovedPlace(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	first := p.win(l, c)
	c2 := p.claim()
	c2.Call.Turn, c2.SeenAlias = c.Call.Turn, p.win(l, p.claim()).Operation
	p.same("what stood in the way", first, p.refused(l, c2))
}

func claimEmptyPlace(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	c.SeenAlias = p.win(l, p.claim()).Operation
	if row := p.refused(l, c); row.Operation != "" {
		suite.Failf("in the way stood %s, want none", describe(&row))
	}
}

func claimSeenPlace(p *probe) {
	for _, s := range allStates {
		l := p.sys.Open()
		row := p.become(l, p.second(l), s)
		c := p.claim()
		c.Call.Turn, c.Call.Position, c.SeenAlias = row.Claimer.Turn, row.Claimer.Position, row.Operation
		got := p.win(l, c)
		suite.Want("what the place points to", p.alias(l, c.Call, got.Operation), c.Call)
		p.same("moving the place", row, p.row(l, row.Operation))
	}
}

func claimWithoutTurn(p *probe) {
	l := p.sys.Open()
	for range 3 {
		c := p.claim()
		c.Call.Turn = 0
		row := p.win(l, c)
		suite.Want("the claimer", p.row(l, row.Operation).Claimer, c.Call)
		p.missing(l, place(c.Call))
	}
}

func undoOfNothing(p *probe) {
	l := p.sys.Open()
	for _, id := range noOperations {
		c := p.claim()
		c.Undoes = id
		p.refused(l, c)
	}
}

func claimIDs(p *probe) {
	seen := map[string]bool{}
	for range 3 {
		l := p.sys.Open()
		for range 3 {
			row := p.win(l, p.claim())
			if seen[row.Operation] {
				suite.Failf("the id %s was given twice", row.Operation)
			}
			seen[row.Operation] = true
		}
		row := p.win(l, p.claim())
		row = p.become(l, row, middleware.Released)
		if again := p.win(l, p.claimAs(row.Identity)); again.Operation == row.Operation {
			suite.Failf("the id %s was given again after release", row.Operation)
		}
	}
}

// expired is a done operation that is past its date.
func (p *probe) expired(l middleware.Ledger) middleware.Row {
	c := p.claim()
	c.Keep = soon
	row := p.do(l, p.win(l, c), middleware.Complete)
	p.tick(l, row.Operation)
	row = p.row(l, row.Operation)
	if !row.Expired() {
		suite.Failf("a row done at %v and kept for %v is not expired at %v: it expires at %v", row.DoneAt, soon, row.Now, row.Expires)
	}
	return row
}
