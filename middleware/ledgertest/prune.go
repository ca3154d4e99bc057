package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func pruneCases() []Case {
	return []Case{
		{"prune/input and result go when their time is over, and nothing else", "Pruner, 1", check(pruneContents)},
		{"prune/input and result stay before", "Pruner, 1", check(pruneYoung)},
		{"prune/a claim over a free row says anew how long", "Pruner, 1", check(pruneClaimedAgain)},
		{"prune/what was forgotten is still done", "Pruner, 1", check(pruneStillDone)},
		{"prune/a row without a keep stays for good", "Pruner, 2", check(func(p *probe) { p.keeps(0) })},
		{"prune/a row that is kept longer stays", "Pruner, 2", check(func(p *probe) { p.keeps(far) })},
		{"prune/an expired row goes with the calls that meant it", "Pruner, 2", check(pruneExpired)},
		{"prune/an expired row whose content stays, stays", "Pruner, 2", check(pruneExpiredYoung)},
		{"prune/an expired row stays while it is undone", "Pruner, 2", check(pruneUndoing)},
		{"prune/a free row goes", "Pruner, 2", check(pruneFree)},
		{"prune/a free row at its second key stays", "Pruner, 2", check(pruneFreeSecondKey)},
		{"prune/a free row stays before its deadline", "Pruner, 2", check(pruneFreeEarly)},
		{"prune/a free row stays that a person freed", "Pruner, 2", check(func(p *probe) { p.staysFree(middleware.NotHappened) })},
		{"prune/a free row stays that has ended unclear", "Pruner, 2", check(func(p *probe) { p.staysFree(middleware.GiveBack) })},
		{"prune/a late row stays", "Pruner, 2", check(pruneLate)},
		{"prune/a released row stays, and its generation counts", "Pruner, 3", check(pruneReleased)},
		{"prune/a row that is running or in doubt stays as it is", "Pruner, 4", check(pruneOpen)},
		{"prune/a row that has taken the place of another is not taken for it", "Pruner, 7", check(pruneByID)},
		{"prune/what is too young for the caller stays", "PruneOptions", check(pruneOlderThan)},
		{"prune/a dry run counts and changes nothing", "PruneOptions", check(pruneDry)},
		{"prune/progress is told what the report says", "PruneOptions", check(pruneProgress)},
		{"prune/the oldest content is what is left", "PruneReport", check(pruneOldest)},
		{"prune/a context that has ended forgets nothing", "Pruner, 7", check(pruneCancelled)},
		{"namespaces/prune does not cross", "Pruner", check(namespacePrune)},
	}
}

// pruner is how a ledger forgets.
func pruner(l middleware.Ledger) (middleware.Pruner, error) {
	if p, ok := l.(middleware.Pruner); ok {
		return p, nil
	}
	return nil, fmt.Errorf("ledgertest: pruning: a %T does not forget: %w", l, errors.ErrUnsupported)
}

// prune forgets what it can, which must be so much.
func (p *probe) prune(l middleware.Ledger, opts middleware.PruneOptions, contents, identities int) middleware.PruneReport {
	forgetful, err := pruner(l)
	suite.None(err, "a case about pruning")
	report, err := forgetful.Prune(p.ctx, opts)
	suite.None(err, "Prune")
	suite.Want("Contents", report.Contents, contents)
	suite.Want("Identities", report.Identities, identities)
	suite.Want("Approvals", report.Approvals, 0)
	suite.Want("Needed", report.Needed, 0)
	return report
}

// brief is a claim whose times are over at once.
func (p *probe) brief() middleware.Claim {
	c := p.claim()
	c.Retain, c.Deadline = soon, soon
	return c
}

// aged makes a claim and brings it to a state that lasts longer than it is kept.
func (p *probe) aged(l middleware.Ledger, c middleware.Claim, s middleware.State) middleware.Row {
	row := p.become(l, p.win(l, c), s)
	p.tick(l, row.Operation)
	return p.row(l, row.Operation)
}

// bare fails unless a row is as it was, but for its content.
func (p *probe) bare(what string, before middleware.Row, l middleware.Ledger) {
	row := p.row(l, before.Operation)
	suite.Want("HasResult "+what, row.HasResult, false)
	suite.Want("Result "+what, row.Result, "")
	suite.Want("bytes of Input "+what, len(row.Input), 0)
	p.only("pruning "+what, before, row, "Input", "Result", "HasResult")
}

func pruneContents(p *probe) {
	l := p.sys.Open()
	done, released := p.aged(l, p.brief(), middleware.Done), p.aged(l, p.brief(), middleware.Released)
	c := p.brief()
	c.Deadline = far
	free := p.aged(l, c, middleware.Free)
	p.prune(p.sys.Open(), middleware.PruneOptions{}, 3, 0)
	p.bare("of a done row", done, l)
	p.bare("of a released row", released, l)
	p.bare("of a free row", free, l)
	p.prune(l, middleware.PruneOptions{}, 0, 0)
}

func pruneYoung(p *probe) {
	l := p.sys.Open()
	for _, s := range []middleware.State{middleware.Done, middleware.Released, middleware.Free} {
		for _, retain := range []time.Duration{0, far} { // 0 is 90 days
			c := p.brief()
			c.Retain, c.Keep = retain, soon
			row := p.aged(l, c, s)
			p.prune(l, middleware.PruneOptions{}, 0, 0)
			p.same("pruning", row, p.row(l, row.Operation))
		}
	}
}

func pruneClaimedAgain(p *probe) {
	l := p.sys.Open()
	free := p.aged(l, p.claim(), middleware.Free)
	c := p.claimAs(free.Identity)
	c.Seen, c.Retain = free, soon
	row := p.do(l, p.win(l, c), middleware.Complete)
	p.tick(l, row.Operation)
	p.prune(l, middleware.PruneOptions{}, 1, 0)
	p.bare("of a row that was claimed again", row, l)
}

// keeps has the content of a done row forgotten, and not the row.
func (p *probe) keeps(keep time.Duration) {
	l := p.sys.Open()
	c := p.brief()
	c.Keep = keep
	row := p.aged(l, c, middleware.Done)
	p.note(l, row.Operation, p.claim().Call, 1)
	p.prune(l, middleware.PruneOptions{}, 1, 0)
	p.bare("of a row that is kept", row, l)
	p.prune(l, middleware.PruneOptions{}, 0, 0)
	p.repeats(l, "run", row.Operation, 1)
}

func pruneStillDone(p *probe) {
	l := p.sys.Open()
	row := p.aged(l, p.brief(), middleware.Done)
	p.prune(l, middleware.PruneOptions{}, 1, 0)
	suite.Want("the operation in the way", p.refused(l, p.claimAs(row.Identity)).Operation, row.Operation)
	p.found(l, place(row.Claimer), row.Operation)
	undo := p.undo(l, row)
	suite.Want("State of what is undone", p.row(l, row.Operation).State, middleware.Released)
	p.done(undo)
}

func pruneExpired(p *probe) {
	l := p.sys.Open()
	c := p.brief()
	c.Keep = soon
	row := p.aged(l, c, middleware.Done)
	repeat := p.claim().Call
	p.note(l, row.Operation, repeat, 1)
	other := p.win(l, p.claim())
	p.prune(l, middleware.PruneOptions{}, 0, 1)
	p.missing(l, middleware.Query{Operation: row.Operation})
	p.missing(l, middleware.Query{Identity: row.Identity})
	p.missing(l, place(row.Claimer))
	p.missing(l, place(repeat))
	p.same("pruning", other, p.row(l, other.Operation))
	c = p.claimAs(row.Identity)
	c.Call.Turn = repeat.Turn
	again := p.win(l, c)
	p.repeats(l, "run", again.Operation, 0)
	p.found(l, place(c.Call), again.Operation)
}

func pruneExpiredYoung(p *probe) {
	l := p.sys.Open()
	row := p.expired(l)
	p.prune(l, middleware.PruneOptions{}, 0, 0)
	p.same("pruning", row, p.row(l, row.Operation))
}

func pruneUndoing(p *probe) {
	l := p.sys.Open()
	c := p.brief()
	c.Keep = soon
	row := p.aged(l, c, middleware.Done)
	undo := p.win(l, p.undoing(row))
	p.prune(l, middleware.PruneOptions{}, 1, 0)
	undo = p.do(l, undo, middleware.Doubt)
	p.prune(l, middleware.PruneOptions{}, 0, 0)
	p.do(l, undo, middleware.Complete)
	suite.Want("State of what is undone", p.row(l, row.Operation).State, middleware.Released)
	p.prune(l, middleware.PruneOptions{}, 0, 0)
}

func pruneFree(p *probe) {
	l := p.sys.Open()
	row := p.aged(l, p.brief(), middleware.Free)
	p.prune(l, middleware.PruneOptions{}, 0, 1)
	p.missing(l, middleware.Query{Operation: row.Operation})
	p.missing(l, place(row.Claimer))
	p.generation(p.win(l, p.claimAs(row.Identity)), 0)
}

// pruneFreeSecondKey has a provider that answers the first key as it did, for longer than the row is kept.
func pruneFreeSecondKey(p *probe) {
	l := p.sys.Open()
	t := right(p.win(l, p.brief()), middleware.GiveBack)
	t.NewKey = true
	row := p.step(l, t)
	p.tick(l, row.Operation)
	p.prune(l, middleware.PruneOptions{}, 1, 0)
	c := p.claimAs(row.Identity)
	c.Seen = p.row(l, row.Operation)
	p.generation(p.win(l, c), 1)
}

func pruneFreeEarly(p *probe) {
	l := p.sys.Open()
	c := p.brief()
	c.Deadline = far
	row := p.aged(l, c, middleware.Free)
	p.prune(l, middleware.PruneOptions{}, 1, 0)
	p.bare("before the deadline", row, l)
}

// staysFree frees a row in a way that a later claim must know of.
func (p *probe) staysFree(s middleware.Step) {
	l := p.sys.Open()
	row := p.do(l, p.win(l, p.brief()), middleware.Doubt) // which is unclear
	p.tick(l, row.Operation)
	t := right(row, s)
	t.NewKey = s == middleware.NotHappened // which clears that, and the person's mark counts alone
	row = p.step(l, t)
	p.tick(l, row.Operation)
	p.prune(l, middleware.PruneOptions{}, 1, 0)
	p.bare("of a free row", row, l)
	p.prune(l, middleware.PruneOptions{}, 0, 0)
}

func pruneLate(p *probe) {
	l := p.sys.Open()
	for _, s := range []middleware.State{middleware.Done, middleware.Free} {
		c := p.brief()
		c.Keep = soon
		row := p.aged(l, c, s)
		t := right(row, middleware.Complete)
		t.Result = "another result"
		p.lost(l, t)
		row = p.row(l, row.Operation)
		p.prune(l, middleware.PruneOptions{}, 1, 0)
		p.bare("of a late row", row, l)
	}
}

func pruneReleased(p *probe) {
	l := p.sys.Open()
	c := p.brief()
	c.Keep = soon
	row := p.aged(l, c, middleware.Released)
	p.prune(l, middleware.PruneOptions{}, 1, 0)
	p.bare("of a released row", row, l)
	c = p.claimAs(row.Identity)
	c.Retain, c.Keep = soon, soon
	next := p.aged(l, c, middleware.Done)
	p.generation(next, 1)
	p.prune(l, middleware.PruneOptions{}, 0, 1)
	p.generation(p.win(l, p.claimAs(row.Identity)), 1)
}

func pruneOpen(p *probe) {
	l := p.sys.Open()
	for _, s := range []middleware.State{middleware.Running, middleware.InDoubt} {
		c := p.brief()
		c.Keep = soon
		row := p.aged(l, c, s)
		p.prune(l, middleware.PruneOptions{}, 0, 0)
		p.same("pruning", row, p.row(l, row.Operation))
	}
}

// pruneByID has what could be pruned claimed again before it is.
func pruneByID(p *probe) {
	l := p.sys.Open()
	c := p.brief()
	c.Keep = soon
	old := p.aged(l, c, middleware.Done)
	c = p.claimAs(old.Identity)
	c.Seen, c.Retain, c.Keep = old, soon, soon
	row := p.win(l, c)
	free := p.aged(l, p.brief(), middleware.Free)
	c = p.claimAs(free.Identity)
	c.Seen, c.Retain = free, soon
	again := p.win(l, c)
	p.prune(l, middleware.PruneOptions{}, 0, 0)
	p.same("pruning", row, p.row(l, row.Operation))
	p.same("pruning", again, p.row(l, again.Operation))
	p.found(l, place(row.Claimer), row.Operation)
}

func pruneOlderThan(p *probe) {
	l := p.sys.Open()
	c := p.brief()
	c.Keep = soon
	row := p.aged(l, c, middleware.Done)
	p.prune(l, middleware.PruneOptions{OlderThan: far}, 0, 0)
	p.same("pruning what is old", row, p.row(l, row.Operation))
	c = p.brief()
	c.Retain = far
	young := p.aged(l, c, middleware.Done)
	p.prune(l, middleware.PruneOptions{OlderThan: soon}, 0, 1)
	p.same("pruning", young, p.row(l, young.Operation))
}

func pruneDry(p *probe) {
	l := p.sys.Open()
	c := p.brief()
	c.Keep = soon
	rows := []middleware.Row{p.aged(l, p.brief(), middleware.Done), p.aged(l, c, middleware.Done)}
	p.prune(l, middleware.PruneOptions{DryRun: true}, 1, 1)
	for _, row := range rows {
		p.same("a dry run", row, p.row(l, row.Operation))
		p.found(l, place(row.Claimer), row.Operation)
	}
	p.prune(l, middleware.PruneOptions{}, 1, 1)
}

func pruneProgress(p *probe) {
	l := p.sys.Open()
	p.aged(l, p.brief(), middleware.Done)
	p.aged(l, p.brief(), middleware.Free)
	var last middleware.PruneReport
	got := p.prune(l, middleware.PruneOptions{Progress: func(r middleware.PruneReport) { last = r }}, 1, 1)
	suite.Want("Contents that Progress was told", last.Contents, got.Contents)
	suite.Want("Identities that Progress was told", last.Identities, got.Identities)
}

func pruneOldest(p *probe) {
	l := p.sys.Open()
	suite.Want("Oldest of nothing", p.prune(l, middleware.PruneOptions{}, 0, 0).Oldest.IsZero(), true)
	p.aged(l, p.brief(), middleware.Done)
	kept := p.aged(l, p.claim(), middleware.Done)
	p.aged(l, p.claim(), middleware.Running)
	for _, dry := range []bool{true, false} {
		if got := p.prune(l, middleware.PruneOptions{DryRun: dry}, 1, 0).Oldest; !got.Equal(kept.Created) {
			suite.Failf("Oldest is %v, want %v", got, kept.Created)
		}
	}
}

func pruneCancelled(p *probe) {
	l := p.sys.Open()
	forgetful, err := pruner(l)
	suite.None(err, "a case about pruning")
	row := p.aged(l, p.brief(), middleware.Done)
	ctx, cancel := context.WithCancel(p.ctx)
	cancel()
	if _, err := forgetful.Prune(ctx, middleware.PruneOptions{}); !errors.Is(err, context.Canceled) {
		suite.Failf("Prune under a context that was cancelled: %v", err)
	}
	p.same("pruning", row, p.row(l, row.Operation))
}

func namespacePrune(p *probe) {
	a, b := p.tenants()
	mine, theirs := p.aged(a, p.brief(), middleware.Done), p.aged(b, p.brief(), middleware.Done)
	p.prune(a, middleware.PruneOptions{DryRun: true}, 1, 0)
	p.prune(a, middleware.PruneOptions{}, 1, 0)
	p.bare("of one tenant", mine, a)
	p.same("pruning of another tenant", theirs, p.row(b, theirs.Operation))
	p.prune(b, middleware.PruneOptions{}, 1, 0)
}
