package ledgertest

import (
	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func undoCases() []Case {
	all := []Case{
		{"undo/two tools that cancel one booking: the new booking stays", "14", check(undoTwice)},
		{"undo/two tools do not cancel one booking at once", "1", check(undoOpen)},
		{"undo/an undo of a row that has expired leaves the new row alone", "14", check(undoExpired)},
		{"undo/a complete that loses releases nothing", "14", check(undoLost)},
		{"undo/an undo that is given back releases nothing", "14", check(undoGivenBack)},
		{"undo/a step that stores no result releases nothing", "14", check(undoOtherSteps)},
		{"undo/book, cancel, book, cancel are four operations", "14", check(undoBookCancel)},
		{"undo/an undo can be undone", "14", check(undoUndone)},
		{"trace/a late result undoes what it cancelled", "14", check(undoLate)},
	}
	for _, s := range []middleware.Step{middleware.Complete, middleware.Found, middleware.Happened} {
		all = append(all, Case{"undo/" + stepName(s) + " releases what is undone, at once", "14", check(func(p *probe) {
			l := p.sys.Open()
			target := p.become(l, p.second(l), middleware.Done)
			row := p.win(l, p.undoing(target))
			if s != middleware.Complete {
				row = p.do(l, row, middleware.Take)
			}
			p.same("an undo that is not done", target, p.row(l, target.Operation))
			p.do(p.sys.Open(), row, s)
			got := p.row(l, target.Operation)
			suite.Want("State of what is undone", got.State, middleware.Released)
			suite.Want("Since of what is released has moved", got.Since.After(target.Since), true)
			p.only("release", target, got, "State", "Since")
		})})
	}
	return all
}

func undoTwice(p *probe) {
	l := p.sys.Open()
	first := p.become(l, p.second(l), middleware.Done)
	one := p.freedUndo(l, first)
	c := p.undoing(first)
	c.Call.Tool = "cancel by another way"
	two := p.win(l, c)
	p.do(l, one, middleware.Complete)
	released := p.row(l, first.Operation)
	suite.Want("State of the first booking", released.State, middleware.Released)
	again := p.do(l, p.win(l, p.claimAs(first.Identity)), middleware.Complete)
	p.done(p.do(l, two, middleware.Complete))
	p.same("the second cancel and the new booking", again, p.row(l, again.Operation))
	p.same("the second cancel and the first booking", released, p.row(l, released.Operation))
}

func undoExpired(p *probe) {
	l := p.sys.Open()
	old := p.expired(l)
	undo := p.win(l, p.undoing(old))
	c := p.claimAs(old.Identity)
	c.Seen = old
	row := p.do(l, p.win(l, c), middleware.Complete)
	p.done(p.do(l, undo, middleware.Complete))
	p.same("an undo of a row that has gone", row, p.row(l, row.Operation))
}

func undoLost(p *probe) {
	for _, s := range []middleware.Step{middleware.Complete, middleware.Found, middleware.Happened} {
		l := p.sys.Open()
		target := p.become(l, p.second(l), middleware.Done)
		t := right(p.do(l, p.win(l, p.undoing(target)), middleware.Take), s)
		t.Token = "another token"
		p.lost(l, t)
		p.same("an undo that lost", target, p.row(l, target.Operation))
	}
}

func undoGivenBack(p *probe) {
	l := p.sys.Open()
	target := p.become(l, p.second(l), middleware.Done)
	p.do(l, p.win(l, p.undoing(target)), middleware.GiveBack)
	p.same("an undo that was given back", target, p.row(l, target.Operation))
}

func undoOtherSteps(p *probe) {
	l := p.sys.Open()
	target := p.become(l, p.second(l), middleware.Done)
	c := p.undoing(target)
	c.Deadline = soon
	row := p.win(l, c)
	t := right(row, middleware.Again)
	t.Deadline = soon
	row = p.step(l, t)
	p.tick(l, row.Operation)
	for _, s := range []middleware.Step{middleware.Take, middleware.Unsure, middleware.Take, middleware.Absent, middleware.Doubt} {
		row = p.do(l, row, s)
		p.same(stepName(s)+" of an undo", target, p.row(l, target.Operation))
	}
}

func undoBookCancel(p *probe) {
	l := p.sys.Open()
	ids := map[string]bool{}
	booking := p.win(l, p.claim())
	for i := range 4 {
		booking = p.do(l, booking, middleware.Complete)
		suite.Want("Generation of a booking", booking.Generation, i)
		undo := p.undo(l, booking)
		suite.Want("State of the booking", p.row(l, booking.Operation).State, middleware.Released)
		suite.Want("State of the cancel", p.row(l, undo.Operation).State, middleware.Done)
		ids[booking.Operation], ids[undo.Operation] = true, true
		p.refused(l, p.claimAs(undo.Identity))
		booking = p.win(l, p.claimAs(booking.Identity))
	}
	suite.Want("operations", len(ids), 8)
}

func undoUndone(p *probe) {
	l := p.sys.Open()
	booking := p.become(l, p.second(l), middleware.Done)
	cancel := p.undo(l, booking)
	released := p.row(l, booking.Operation)
	p.undo(l, cancel)
	suite.Want("State of the cancel", p.row(l, cancel.Operation).State, middleware.Released)
	p.same("the booking", released, p.row(l, booking.Operation))
}

// undoLate is an undo that a person freed, and whose result came after that.
func undoLate(p *probe) {
	l := p.sys.Open()
	target := p.become(l, p.second(l), middleware.Done)
	row := p.freedUndo(l, target)
	p.same("an undo that did not happen", target, p.row(l, target.Operation))
	p.do(l, row, middleware.Complete)
	suite.Want("State of what is undone", p.row(l, target.Operation).State, middleware.Released)
}

// freedUndo is an undo of which a person said that it did not happen.
func (p *probe) freedUndo(l middleware.Ledger, target middleware.Row) middleware.Row {
	c := p.undoing(target)
	c.Deadline = soon
	row := p.do(l, p.win(l, c), middleware.Doubt)
	p.tick(l, row.Operation)
	return p.do(l, row, middleware.NotHappened)
}

// undoOpen has one thing undone in two ways at once.
func undoOpen(p *probe) {
	for _, s := range []middleware.State{middleware.Running, middleware.InDoubt} {
		l := p.sys.Open()
		c := p.claim()
		c.Resource = "resource " + string(s)
		target := p.do(l, p.win(l, c), middleware.Complete)
		q := middleware.Query{Tool: target.Tool, Resource: c.Resource}
		suite.Want("UndoneBy before", p.found(l, q, target.Operation).UndoneBy, "")
		undo := p.win(l, p.undoing(target))
		if s == middleware.InDoubt {
			p.do(l, undo, middleware.Doubt)
		}
		suite.Want("UndoneBy of what is found on the resource", p.found(l, q, target.Operation).UndoneBy, undo.Operation)
		c = p.undoing(target)
		c.Call.Tool = "cancel by another way"
		p.refused(l, c)
		undo = p.do(l, undo, middleware.GiveBack)
		suite.Want("UndoneBy after it was given back", p.found(l, q, target.Operation).UndoneBy, "")
		p.win(l, c)
		c = p.claimAs(undo.Identity)
		c.Undoes, c.Seen = target.Operation, undo
		p.refused(l, c)
	}
}
