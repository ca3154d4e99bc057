package ledgertest

import (
	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func noteCases() []Case {
	return []Case{
		{"note/counts the repeats of a run", "15", check(noteCounts)},
		{"note/the same place again counts nothing", "15", check(noteSamePlace)},
		{"note/the claiming call is no repeat", "15", check(noteClaimer)},
		{"note/leaves a place alone that points elsewhere", "15", check(noteElsewhere)},
		{"note/calls without a turn are counted and never found", "15", check(noteWithoutTurn)},
		{"note/counts on through undo, and a claim that repeats counts too", "15", check(noteThroughUndo)},
		{"note/is taken in every state and changes nothing else", "15", check(noteStates)},
		{"note/is lost where the operation has gone", "15", check(noteNothing)},
	}
}

func (p *probe) repeats(l middleware.Ledger, run, operation string, n int) {
	row := p.found(l, middleware.Query{Operation: operation, Run: run}, operation)
	suite.Want("Repeats by "+run, row.Repeats, n)
}

func noteCounts(p *probe) {
	l := p.sys.Open()
	row, other := p.win(l, p.claim()), p.win(l, p.claim())
	a, b, c := p.claim().Call, p.claim().Call, p.claim().Call
	c.Run = "another run"
	p.note(l, row.Operation, a, 1)
	p.note(p.sys.Open(), row.Operation, b, 2)
	p.note(l, row.Operation, c, 1)
	p.note(l, other.Operation, p.claim().Call, 1)
	p.repeats(l, "run", row.Operation, 2)
	p.repeats(l, "another run", row.Operation, 1)
	p.repeats(l, "a third run", row.Operation, 0)
	suite.Want("Repeats by Identity", p.found(l, middleware.Query{Run: "run", Identity: row.Identity}, row.Operation).Repeats, 2)
	for _, call := range []middleware.Alias{row.Claimer, a, b, c} {
		suite.Want("the call found at its place", p.alias(l, call, row.Operation), call)
		suite.Want("the claimer", p.found(l, place(call), row.Operation).Claimer, row.Claimer)
	}
	suite.Want("Repeats by the place of a call", p.found(l, place(c), row.Operation).Repeats, 1)
	suite.Want("Repeats by the place of a call", p.found(l, place(a), row.Operation).Repeats, 2)
}

func noteSamePlace(p *probe) {
	l := p.sys.Open()
	row := p.win(l, p.claim())
	call := p.claim().Call
	for range 3 {
		p.note(l, row.Operation, call, 1)
	}
	p.repeats(l, "run", row.Operation, 1)
}

func noteClaimer(p *probe) {
	l := p.sys.Open()
	row := p.win(l, p.claim())
	p.note(l, row.Operation, row.Claimer, 0)
	p.repeats(l, "run", row.Operation, 0)
}

func noteElsewhere(p *probe) {
	l := p.sys.Open()
	first, second := p.win(l, p.claim()), p.win(l, p.claim())
	_, err := l.Note(p.ctx, second.Operation, first.Claimer)
	suite.None(err, "Note")
	suite.Want("the call found at its place", p.alias(l, first.Claimer, first.Operation), first.Claimer)
	p.repeats(l, "run", first.Operation, 0)
}

func noteWithoutTurn(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	c.Call.Turn = 0
	row := p.win(l, c)
	p.repeats(l, "run", row.Operation, 0)
	other := p.win(l, p.claim())
	for i := range 3 {
		p.note(l, row.Operation, c.Call, i+1)
	}
	p.note(l, other.Operation, c.Call, 1)
	p.repeats(l, "run", row.Operation, 3)
	p.missing(l, place(c.Call))
}

func noteThroughUndo(p *probe) {
	l := p.sys.Open()
	row := p.win(l, p.claim())
	for i := range 3 {
		n := 2 * i
		p.note(l, row.Operation, p.claim().Call, n+1)
		p.become(l, row, middleware.Released)
		p.repeats(l, "run", row.Operation, n+1)
		c := p.claimAs(row.Identity)
		c.Repeat = true
		row = p.win(l, c)
		suite.Want("Repeats of a claim that repeats", row.Repeats, n+2)
		p.repeats(l, "another run", row.Operation, 0)
	}
	p.become(l, row, middleware.Released)
	suite.Want("Repeats of a claim that does not", p.win(l, p.claimAs(row.Identity)).Repeats, 6)
}

func noteStates(p *probe) {
	for _, s := range allStates {
		l := p.sys.Open()
		row := p.become(l, p.second(l), s)
		call := p.claim().Call
		p.note(l, row.Operation, call, 1)
		suite.Want("the call found at its place", p.alias(l, call, row.Operation), call)
		p.same("Note", row, p.row(l, row.Operation))
	}
}

func noteNothing(p *probe) {
	l := p.sys.Open()
	call := p.claim().Call
	if _, err := l.Note(p.ctx, "op_nothing", call); !isLost(err) {
		suite.Failf("Note of no operation: want ErrLost, got %v", err)
	}
	p.missing(l, place(call))
}

func findCases() []Case {
	return []Case{
		{"find/finds nothing where there is nothing", "16", check(findNothing)},
		{"find/by the place of a call, in every state", "16", check(findPlace)},
		{"find/a place is a run, a turn and a position", "16", check(findPlaces)},
		{"find/by the place of a call before identity", "16", check(findOrder)},
		{"find/by identity, in every state", "16", check(findIdentity)},
		{"find/by identity the live row before released ones", "16", check(findLive)},
		{"find/by identity the last released row where none is live", "16", check(findReleased)},
		{"list/gives the rows of the states asked for, newest change first", "Lister", check(list)},
	}
}

func findNothing(p *probe) {
	l := p.sys.Open()
	c := p.win(l, p.claim())
	for _, q := range []middleware.Query{
		{}, {Operation: "op_nothing"}, {Identity: "nothing"}, {Run: c.Claimer.Run}, {Run: "nothing", Turn: c.Claimer.Turn, Position: 1},
		{Tool: c.Tool}, {Tool: c.Tool, Resource: "nothing"},
	} {
		p.missing(l, q)
	}
}

func findPlace(p *probe) {
	for _, s := range allStates {
		l := p.sys.Open()
		row := p.become(l, p.second(l), s)
		suite.Want("the call found at its place", p.alias(p.sys.Open(), row.Claimer, row.Operation), row.Claimer)
		p.same("finding it by its place", row, p.found(l, place(row.Claimer), row.Operation))
		if got := p.row(l, row.Operation); got.Found != nil {
			suite.Failf("Found is set on a row that was found by its id")
		}
	}
}

func findPlaces(p *probe) {
	l := p.sys.Open()
	want := map[middleware.Query]string{}
	for _, run := range []string{"run", "run1", "run 1", "RUN", "run:1"} {
		for turn := 1; turn <= 12; turn += 10 {
			for _, position := range []int{0, 1, 11} {
				c := p.claim()
				c.Call.Run, c.Call.Turn, c.Call.Position = run, turn, position
				want[place(c.Call)] = p.win(l, c).Operation
			}
		}
	}
	for q, operation := range want {
		p.found(l, q, operation)
	}
}

func findOrder(p *probe) {
	l := p.sys.Open()
	first, second := p.win(l, p.claim()), p.win(l, p.claim())
	q := place(first.Claimer)
	q.Identity = second.Identity
	p.found(l, q, first.Operation)
	q.Turn += 1000
	if got := p.found(l, q, second.Operation); got.Found != nil {
		suite.Failf("Found is set on a row that was found by its identity")
	}
	q.Turn = 0
	p.found(l, q, second.Operation)
	q.Operation = first.Operation
	p.found(l, q, first.Operation)
}

func findIdentity(p *probe) {
	for _, s := range allStates {
		l := p.sys.Open()
		row := p.become(l, p.second(l), s)
		got := p.found(p.sys.Open(), middleware.Query{Identity: row.Identity}, row.Operation)
		p.same("finding it by its identity", row, got)
		if got.Found != nil {
			suite.Failf("Found is set on a row that was found by its identity")
		}
	}
}

func findLive(p *probe) {
	for _, s := range allStates {
		if s == middleware.Released {
			continue
		}
		l := p.sys.Open()
		c := p.claimAs(p.become(l, p.second(l), middleware.Released).Identity)
		c.Deadline = soon
		row := p.win(l, c)
		p.tick(l, row.Operation)
		p.become(l, row, s)
		p.found(l, middleware.Query{Identity: row.Identity}, row.Operation)
	}
}

func findReleased(p *probe) {
	l := p.sys.Open()
	row := p.become(l, p.second(l), middleware.Released)
	for i := range 3 {
		row = p.become(l, p.win(l, p.claimAs(row.Identity)), middleware.Released)
		got := p.found(l, middleware.Query{Identity: row.Identity}, row.Operation)
		suite.Want("Generation of the last released row", got.Generation, i+1)
	}
}

func list(p *probe) {
	l := p.sys.Open()
	lister, ok := l.(middleware.Lister)
	if !ok {
		return // not every ledger can be looked through
	}
	var ids []string
	add := func(row middleware.Row) {
		ids = append([]string{row.Operation}, ids...)
		p.tick(l, row.Operation)
	}
	first := p.win(l, p.claim())
	add(first)
	add(p.win(l, p.claim()))
	add(p.do(l, p.second(l), middleware.Doubt))
	add(p.do(l, p.second(l), middleware.Complete))
	ids = ids[:3]
	add(p.do(l, first, middleware.GiveBack)) // its change is the newest now
	p.listed(lister, ids, 0)
	p.listed(lister, ids[:2], 2)
	p.listed(lister, ids, 10)
	p.listed(lister, ids[1:2], 0, middleware.Done)
	p.listed(lister, []string{ids[0], ids[2], ids[3]}, 0, middleware.Running, middleware.InDoubt, middleware.Free)
	p.listed(lister, ids[2:], 0, middleware.Running, middleware.InDoubt)
	p.listed(lister, nil, 0, middleware.Released)
}

func (p *probe) listed(l middleware.Lister, ids []string, limit int, states ...middleware.State) {
	rows, err := l.List(p.ctx, states, limit)
	suite.None(err, "List")
	if len(rows) != len(ids) {
		suite.Failf("List of %v, at most %d: %d rows, want %d", states, limit, len(rows), len(ids))
	}
	for i, row := range rows {
		suite.Want("operation in the list", row.Operation, ids[i])
		p.same("List", row, p.row(p.sys.Open(), row.Operation))
	}
}
