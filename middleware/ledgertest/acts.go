package ledgertest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func actCases() []Case {
	return []Case{
		{"acts/a verdict is one, and who loses has done nothing", "Recorder, 1", check(actVerdicts)},
		{"acts/an answer to an approval is one, and who loses has done nothing", "Recorder, 1", check(actDecisions)},
		{"acts/what is recorded is listed, in one chain", "Recorder, 2 and 3", check(actChain)},
		{"acts/nobody's act is refused", "Recorder, 2", check(actNobody)},
		{"namespaces/acts do not cross", "Recorder, 3", check(namespaceActs)},
	}
}

// recorder is how a ledger remembers acts.
func recorder(l middleware.Ledger) (middleware.Recorder, error) {
	if r, ok := l.(middleware.Recorder); ok {
		return r, nil
	}
	return nil, fmt.Errorf("ledgertest: looking for acts: a %T remembers none: %w", l, errors.ErrUnsupported)
}

func (p *probe) recorder(l middleware.Ledger) middleware.Recorder {
	r, err := recorder(l)
	suite.None(err, "a case about acts")
	return r
}

// acts are those of the namespace, of a chain that is whole.
func (p *probe) acts(l middleware.Ledger) []middleware.Act {
	all, err := p.recorder(l).AllActs(p.ctx)
	suite.None(err, "AllActs")
	suite.None(middleware.CheckActs(all), "CheckActs")
	mine, err := p.recorder(l).Acts(p.ctx)
	suite.None(err, "Acts")
	return mine
}

// acted fails unless these acts, as kind, target, person and reason, came after those before.
func (p *probe) acted(l middleware.Ledger, before []middleware.Act, want ...[4]string) {
	all := p.acts(l)
	suite.Want("acts", len(all)-len(before), len(want))
	for i, w := range want {
		a := all[len(before)+i]
		suite.Want("act", [4]string{a.Kind, a.Target, a.By, a.Why}, w)
		suite.Want("act at some time", a.At.IsZero(), false)
	}
}

func actVerdicts(p *probe) {
	l := p.sys.Open()
	row := p.do(l, p.second(l), middleware.Doubt)
	before := p.acts(l)
	p.do(l, row, middleware.Happened)
	p.lost(l, right(row, middleware.Happened))
	p.acted(l, before, [4]string{middleware.ActHappened, row.Operation, "Ann", "seen at the provider"})

	row = p.do(l, p.second(l), middleware.Doubt)
	before = p.acts(l)
	p.do(l, row, middleware.NotHappened)
	p.lost(l, right(row, middleware.NotHappened))
	p.acted(l, before, [4]string{middleware.ActNotHappened, row.Operation, "Bob", "not seen at the provider"})

	before = p.acts(l)
	p.do(l, p.win(l, p.claim()), middleware.Complete)
	p.acted(l, before)
}

func actDecisions(p *probe) {
	l := p.sys.Open()
	a, b := p.ask(l, p.question(), far), p.ask(l, p.question(), far)
	before := p.acts(l)
	p.undecided(l, decision(a, false), p.approved(l, a))
	p.denied(l, b)
	p.acted(l, before, [4]string{middleware.ActApproved, a.ID, "Ann", "she asked"}, [4]string{middleware.ActDenied, b.ID, "Ann", "she asked"})
}

func actChain(p *probe) {
	l := p.sys.Open()
	before := p.acts(l)
	var want [][4]string
	for target, why := range []string{"", "1:2", "ä\"\n"} {
		a := middleware.Act{Kind: middleware.ActForgot, Target: strings.Repeat("x", target), By: "Ann", Why: why, Detail: "3 turns"} // or none
		got, err := p.recorder(l).Record(p.ctx, a)
		suite.None(err, "Record")
		want = append(want, [4]string{a.Kind, a.Target, a.By, a.Why})
		all := p.acts(l)
		suite.Want("the act that Record gives", got, all[len(all)-1])
		suite.Want("Detail", got.Detail, "3 turns")
	}
	p.acted(p.sys.Open(), before, want...)
}

func actNobody(p *probe) {
	l := p.sys.Open()
	before := p.acts(l)
	if _, err := p.recorder(l).Record(p.ctx, middleware.Act{Kind: middleware.ActForgot, Target: "run-1"}); err == nil {
		suite.Failf("an act of nobody was recorded")
	}
	p.acted(l, before)
}

func namespaceActs(p *probe) {
	l := p.sys.Open()
	other := p.sys.Namespace(l, "other")
	mine, others := p.acts(l), p.acts(other)
	_, err := p.recorder(other).Record(p.ctx, middleware.Act{Kind: middleware.ActForgot, Target: "run-1", By: "Ann"})
	suite.None(err, "Record")
	p.acted(l, mine)
	p.acted(other, others, [4]string{middleware.ActForgot, "run-1", "Ann", ""})
}
