package ledgertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func forgetCases() []Case {
	return []Case{
		{"forget/input and result of what the run has claimed go, and nothing else", "Forgetter, 1", check(forgetContents)},
		{"forget/what was forgotten is still done", "Forgetter, 1", check(forgetStillDone)},
		{"forget/what another run has claimed since stays", "Forgetter, 1", check(forgetOthers)},
		{"forget/what no call leads to any more goes too", "Forgetter, 1", check(forgetUnplaced)},
		{"forget/approvals lose their input, and those that wait expire", "Forgetter, 2", check(forgetApprovals)},
		{"forget/it is an act of the run, and nobody's is refused", "Forgetter, 4", check(forgetActs)},
		{"forget/not while an operation is running or in doubt", "Forgetter, 5", check(forgetUnsettled)},
		{"forget/not what nobody knows", "Forgetter, 5", check(forgetUnknown)},
		{"forget/again changes nothing, but for what has come since", "Forgetter, 6", check(forgetAgain)},
		{"forget/what it would do is told, and not done", "Forgetter, 7", check(forgettable)},
		{"namespaces/forget does not cross", "Forgetter", check(namespaceForget)},
	}
}

// forgetter is how a ledger forgets a run.
func forgetter(l middleware.Ledger) (middleware.Forgetter, error) {
	if f, ok := l.(middleware.Forgetter); ok {
		return f, nil
	}
	return nil, fmt.Errorf("ledgertest: forgetting a run: a %T does not: %w", l, errors.ErrUnsupported)
}

func (p *probe) forgetter(l middleware.Ledger) middleware.Forgetter {
	f, err := forgetter(l)
	suite.None(err, "a case about forgetting")
	return f
}

// forget forgets a run, which must erase so much. The same must have been told before.
func (p *probe) forget(l middleware.Ledger, run string, operations, approvals int) {
	want := middleware.ForgetReport{Operations: operations, Approvals: approvals}
	told, err := p.forgetter(l).Forgettable(p.ctx, run)
	suite.None(err, "Forgettable")
	suite.Want("what would be forgotten", told, want)
	got, err := p.forgetter(l).Forget(p.ctx, run, middleware.Act{By: "Ann", Why: "she asked"})
	suite.None(err, "Forget")
	suite.Want("what was forgotten", got, want)
}

// unforgotten wants a refusal, by Forgettable too.
func (p *probe) unforgotten(l middleware.Ledger, run string, wanted error) {
	before := p.acts(l)
	_, err := p.forgetter(l).Forget(p.ctx, run, middleware.Act{By: "Ann"})
	_, told := p.forgetter(l).Forgettable(p.ctx, run)
	if !errors.Is(err, wanted) || !errors.Is(told, wanted) {
		suite.Failf("Forget gave the error %v, Forgettable %v, want %v", err, told, wanted)
	}
	p.acted(l, before)
}

// of is a claim of a run.
func (p *probe) of(run string) middleware.Claim {
	c := p.claim()
	c.Call.Run = run
	return c
}

// settled is an operation that a run has brought to a state.
func (p *probe) settled(l middleware.Ledger, run string, s middleware.State) middleware.Row {
	row := p.become(l, p.win(l, p.of(run)), s)
	return p.row(l, row.Operation)
}

func forgetContents(p *probe) {
	l := p.sys.Open()
	var rows []middleware.Row
	for _, s := range []middleware.State{middleware.Done, middleware.Free, middleware.Released} {
		rows = append(rows, p.settled(l, "theirs", s))
	}
	other := p.settled(l, "another run", middleware.Done)
	p.note(l, other.Operation, p.of("theirs").Call, 1)
	uncounted := p.of("theirs")
	uncounted.Call.Turn = 0
	rows = append(rows, p.do(l, p.win(l, uncounted), middleware.Complete))
	p.forget(l, "theirs", len(rows), 0)
	for _, row := range rows {
		p.bare("of a run that was forgotten", row, l)
		if row.Claimer.Turn > 0 {
			p.found(l, place(row.Claimer), row.Operation)
		}
	}
	p.same("forgetting a run that has repeated it", other, p.row(l, other.Operation))
}

func forgetStillDone(p *probe) {
	l := p.sys.Open()
	row := p.settled(l, "theirs", middleware.Done)
	p.forget(l, "theirs", 1, 0)
	suite.Want("the operation in the way", p.refused(l, p.claimAs(row.Identity)).Operation, row.Operation)
	p.note(l, row.Operation, p.of("theirs").Call, 1)
	undo := p.undo(l, p.row(l, row.Operation))
	suite.Want("State of what is undone", p.row(l, row.Operation).State, middleware.Released)
	p.done(undo)
}

func forgetOthers(p *probe) {
	l := p.sys.Open()
	free := p.settled(l, "theirs", middleware.Free)
	c := p.of("another run")
	c.Identity, c.Seen = free.Identity, free
	row := p.do(l, p.win(l, c), middleware.Complete)
	p.forget(l, "theirs", 0, 0)
	p.same("forgetting the run that has claimed it before", row, p.row(l, row.Operation))
}

// forgetUnplaced has the place of a call mean another operation by now.
func forgetUnplaced(p *probe) {
	l := p.sys.Open()
	first := p.settled(l, "theirs", middleware.Done)
	c := p.of("theirs")
	c.Call.Turn, c.SeenAlias = first.Claimer.Turn, first.Operation
	second := p.do(l, p.win(l, c), middleware.Complete)
	p.forget(l, "theirs", 2, 0)
	p.bare("of a run that was forgotten", first, l)
	p.bare("of a run that was forgotten", second, l)
}

func forgetApprovals(p *probe) {
	l := p.sys.Open()
	question := func() middleware.Approval { return questionOf(p.of("theirs")) }
	var asked []middleware.Approval
	for range 4 {
		asked = append(asked, p.ask(l, question(), far))
	}
	denied, approved, spent := p.denied(l, asked[0]), p.approved(l, asked[1]), p.approved(l, asked[2])
	other := p.ask(l, p.question(), far)
	c := middleware.Claim{
		Identity: spent.Identity, Call: spent.Call, Conversation: spent.Conversation, Input: spent.Input, Token: "token", Deadline: far, KeyWindow: far,
		Approval: spent.ID,
	}
	p.do(l, p.win(l, c), middleware.Complete)
	p.forget(l, "theirs", 1, 4)
	for _, a := range asked {
		now := p.approval(l, a.ID)
		suite.Want("bytes of an approval's input", len(now.Input), 0)
		suite.Want("an approval that can still be used", now.State != middleware.Denied && now.State != middleware.Spent && now.Now.Before(now.Expires), false)
	}
	again := denied
	again.Call.Turn += 1000
	p.sameApproval("asking again what was denied", p.approval(l, denied.ID), p.ask(l, again, far))
	p.otherApproval(approved, p.ask(l, approved, far))
	p.sameApproval("a question of another run", other, p.approval(l, other.ID))
	p.forget(l, "theirs", 0, 1) // of what was asked since
}

func forgetActs(p *probe) {
	l := p.sys.Open()
	row := p.settled(l, "theirs", middleware.Done)
	before := p.acts(l)
	if _, err := p.forgetter(l).Forget(p.ctx, "theirs", middleware.Act{Why: "she asked"}); err == nil {
		suite.Failf("nobody had a run forgotten")
	}
	p.same("an act of nobody", row, p.row(l, row.Operation))
	p.acted(l, before)
	p.forget(l, "theirs", 1, 0)
	p.settled(l, "", middleware.Done)
	p.forget(l, "", 1, 0) // an id like any other
	p.acted(l, before, [4]string{middleware.ActForgot, "theirs", "Ann", "she asked"}, [4]string{middleware.ActForgot, "", "Ann", "she asked"})
}

func forgetUnsettled(p *probe) {
	l := p.sys.Open()
	done := p.settled(l, "theirs", middleware.Done)
	row := p.win(l, p.of("theirs"))
	p.unforgotten(l, "theirs", middleware.ErrUnsettled)
	row = p.do(l, row, middleware.Doubt)
	p.unforgotten(l, "theirs", middleware.ErrUnsettled)
	p.same("forgetting that was refused", done, p.row(l, done.Operation))
	p.same("forgetting that was refused", row, p.row(l, row.Operation))
	p.do(l, row, middleware.Happened)
	p.forget(l, "theirs", 2, 0)
}

func forgetUnknown(p *probe) {
	l := p.sys.Open()
	row := p.settled(l, "theirs", middleware.Done)
	p.unforgotten(l, "their", middleware.ErrUnknownRun)
	p.note(l, row.Operation, p.of("one that only repeats").Call, 1)
	p.ask(l, questionOf(p.of("one that only asks")), far)
	before := p.acts(l)
	p.forget(l, "one that only repeats", 0, 0)
	p.acted(l, before)
	p.forget(l, "one that only asks", 0, 1)
	p.same("forgetting of others", row, p.row(l, row.Operation))
}

func forgetAgain(p *probe) {
	l := p.sys.Open()
	row := p.do(l, p.win(l, p.of("theirs")), middleware.Complete)
	short := p.of("theirs")
	short.Deadline = soon
	doubt := p.do(l, p.win(l, short), middleware.Doubt)
	p.tick(l, doubt.Operation)
	p.do(l, doubt, middleware.NotHappened)
	p.forget(l, "theirs", 2, 0)
	before := p.acts(l)
	p.forget(l, "theirs", 0, 0)
	p.acted(l, before)
	p.do(l, doubt, middleware.Complete) // late, after a person has said that it did not happen
	p.forget(l, "theirs", 1, 0)
	p.acted(l, before, [4]string{middleware.ActForgot, "theirs", "Ann", "she asked"})
	p.bare("of a run that was forgotten", row, l)
	suite.Want("the operation in the way", p.refused(l, p.claimAs(doubt.Identity)).Operation, doubt.Operation)
}

func forgettable(p *probe) {
	l := p.sys.Open()
	row, a := p.settled(l, "theirs", middleware.Done), p.ask(l, questionOf(p.of("theirs")), far)
	before := p.acts(l)
	got, err := p.forgetter(l).Forgettable(p.ctx, "theirs")
	suite.None(err, "Forgettable")
	suite.Want("what would be forgotten", got, middleware.ForgetReport{Operations: 1, Approvals: 1})
	p.same("what would be forgotten", row, p.row(l, row.Operation))
	p.sameApproval("what would be forgotten", a, p.approval(l, a.ID))
	p.acted(l, before)
}

func namespaceForget(p *probe) {
	a, b := p.tenants()
	row, question := p.settled(a, "theirs", middleware.Done), p.ask(a, questionOf(p.of("theirs")), far)
	p.unforgotten(b, "theirs", middleware.ErrUnknownRun)
	p.settled(b, "theirs", middleware.Done)
	p.forget(b, "theirs", 1, 0)
	p.same("forgetting of another tenant", row, p.row(a, row.Operation))
	p.sameApproval("forgetting of another tenant", question, p.approval(a, question.ID))
}

func brokenForgetting() []BrokenLedger {
	return []BrokenLedger{{
		Name: "what is in doubt is forgotten too", Wrap: faulty(forgetsDoubt),
		Fails: "forget/not while an operation is running or in doubt",
	}}
}

// forgetsDoubt does not look at the states.
func forgetsDoubt() *fault {
	return &fault{forget: func(err error) error {
		if errors.Is(err, middleware.ErrUnsettled) {
			return nil
		}
		return err
	}}
}

// Forget implements middleware.Forgetter.
func (b *brokenLedger) Forget(ctx context.Context, run string, a middleware.Act) (middleware.ForgetReport, error) {
	f, err := forgetter(b.Ledger)
	if err != nil {
		return middleware.ForgetReport{}, err
	}
	report, err := f.Forget(ctx, run, a)
	if b.forget != nil {
		err = b.forget(err)
	}
	return report, err
}

// Forgettable implements middleware.Forgetter.
func (b *brokenLedger) Forgettable(ctx context.Context, run string) (middleware.ForgetReport, error) {
	f, err := forgetter(b.Ledger)
	if err != nil {
		return middleware.ForgetReport{}, err
	}
	return f.Forgettable(ctx, run)
}
