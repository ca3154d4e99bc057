package ledgertest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

var stepNames = map[middleware.Step]string{
	middleware.Complete:    "complete",
	middleware.GiveBack:    "give back",
	middleware.Doubt:       "doubt",
	middleware.Again:       "again",
	middleware.Take:        "take",
	middleware.Found:       "found",
	middleware.Absent:      "absent",
	middleware.Unsure:      "unsure",
	middleware.Happened:    "happened",
	middleware.NotHappened: "not happened",
}

func stepName(s middleware.Step) string { return stepNames[s] }

func stateName(s middleware.State) string { return strings.ReplaceAll(string(s), "_", " ") }

var allStates = []middleware.State{middleware.Running, middleware.InDoubt, middleware.Done, middleware.Free, middleware.Released}

// second is an operation of l that runs at its second attempt. The deadlines of both are over.
func (p *probe) second(l middleware.Ledger) middleware.Row {
	c := p.claim()
	c.Deadline = soon
	t := right(p.win(l, c), middleware.Again)
	t.Deadline = soon
	row := p.step(l, t)
	p.tick(l, row.Operation)
	return row
}

// settling is an operation in doubt, at its second attempt, that l settles.
func (p *probe) settling(l middleware.Ledger) middleware.Row {
	return p.do(l, p.second(l), middleware.Take)
}

// become brings an operation that runs or is in doubt to a state.
func (p *probe) become(l middleware.Ledger, row middleware.Row, s middleware.State) middleware.Row {
	switch {
	case row.State == s:
		return row
	case s == middleware.Running:
		return p.do(l, row, middleware.Absent)
	case s == middleware.InDoubt:
		return p.do(l, row, middleware.Doubt)
	case s == middleware.Free:
		return p.do(l, row, middleware.GiveBack)
	}
	row = p.do(l, row, middleware.Complete)
	if s == middleware.Released {
		p.undo(l, row)
		row = p.row(l, row.Operation)
	}
	suite.Want("the state", row.State, s)
	return row
}

// undo undoes a done operation by another one.
func (p *probe) undo(l middleware.Ledger, row middleware.Row) middleware.Row {
	return p.do(l, p.win(l, p.undoing(row)), middleware.Complete)
}

// undoing is a claim that undoes an operation.
func (p *probe) undoing(row middleware.Row) middleware.Claim {
	c := p.claim()
	c.Call.Tool, c.Undoes = "cancel", row.Operation
	return c
}

// rule is what the contract says of a step that all steps have in common.
type rule struct {
	step middleware.Step
	from []middleware.State
	seen middleware.State // Take: the state seen
	// start is a row from which the step may be made after become.
	start func(*probe, middleware.Ledger) middleware.Row
}

func rules() []rule {
	running, inDoubt := middleware.Running, middleware.InDoubt
	plain, settling := (*probe).second, (*probe).settling
	states := func(s ...middleware.State) []middleware.State { return s }
	return []rule{
		{middleware.Complete, states(running, inDoubt), "", plain},
		{middleware.GiveBack, states(running, inDoubt), "", plain},
		{middleware.Doubt, states(running), "", plain},
		{middleware.Again, states(running), "", plain},
		{middleware.Take, states(running), running, plain},
		{middleware.Take, states(inDoubt), inDoubt, plain},
		{middleware.Found, states(inDoubt), "", settling},
		{middleware.Absent, states(inDoubt), "", settling},
		{middleware.Unsure, states(inDoubt), "", settling},
		{middleware.Happened, states(inDoubt), "", plain},
		{middleware.NotHappened, states(inDoubt), "", plain},
	}
}

func (r *rule) name() string {
	if r.step == middleware.Take {
		return "take " + stateName(r.seen)
	}
	return stepName(r.step)
}

// ready is a row in a state, and the transition that suits it but for that state.
func (r *rule) ready(p *probe, l middleware.Ledger, s middleware.State) middleware.Transition {
	row := r.start(p, l)
	mark := row.Settle
	t := right(p.become(l, row, s), r.step)
	if mark != "" {
		t.Mark = mark
	}
	t.State = r.seen
	if r.step == middleware.Complete {
		t.Result = "late result" // the same again would not be late
	}
	return t
}

// stepCases are the conditions that the steps have in common: the state, the token and the attempt seen. Of each
// transition that must lose, one thing alone is wrong.
func stepCases() []Case {
	var all []Case
	for _, r := range rules() {
		n := fmt.Sprint(int(r.step))
		for _, s := range allStates {
			if slices.Contains(r.from, s) {
				all = append(all, Case{r.name() + "/succeeds on a row that is " + stateName(s), n, check(func(p *probe) {
					l := p.sys.Open()
					p.step(l, r.ready(p, l, s))
				})})
				continue
			}
			all = append(all, Case{r.name() + "/loses on a row that is " + stateName(s), n, check(func(p *probe) {
				l := p.sys.Open()
				p.lost(l, r.ready(p, l, s))
			})})
		}
		for _, s := range r.from {
			all = append(all, Case{r.name() + "/loses on a row that is " + stateName(s) + " with another token", n, check(func(p *probe) {
				l := p.sys.Open()
				t := r.ready(p, l, s)
				t.Token = "another token"
				p.lost(l, t)
			})})
			if r.step == middleware.Complete {
				continue
			}
			all = append(all, Case{r.name() + "/loses on a row that is " + stateName(s) + " with an earlier attempt", n, check(func(p *probe) {
				l := p.sys.Open()
				t := r.ready(p, l, s)
				t.Attempt--
				p.lost(l, t)
			})})
		}
	}
	return append(all, Case{"take/loses with a state that is not to be settled", "8", check(takeOddState)})
}

func takeOddState(p *probe) {
	for _, s := range []middleware.State{middleware.Done, middleware.Free, middleware.Released} {
		l := p.sys.Open()
		t := right(p.become(l, p.second(l), s), middleware.Take)
		suite.Want("the state seen", t.State, s)
		p.lost(l, t)
	}
}
