package ledgertest

import (
	"errors"
	"strings"
	"time"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func completeCases() []Case {
	return []Case{
		{"complete/stores the result and changes nothing else", "4", check(completeRunning)},
		{"complete/a late result is taken from in doubt, and ends settling", "4", check(completeInDoubt)},
		{"complete/a late result is taken after a person freed the row", "4", check(completeFreed)},
		{"complete/a result is taken from any attempt", "4", check(completeAnyAttempt)},
		{"complete/a result is taken from a process that counts as gone", "4", check(completeGone)},
		{"complete/the first result stays: a second one loses and is marked late", "4", check(completeTwice)},
		{"complete/the same result again loses, but is not late", "4", check(completeEqual)},
		{"complete/the same result of another claim is late", "4", check(completeEqualOther)},
		{"complete/loses where the row has gone", "4", check(stepOnNothing)},
		{"complete/expires when the claim said", "4", check(completeExpires)},
		{"complete/a result that is not kept is done all the same", "4", check(completeWithoutResult)},
		{"complete/falsy results are kept exactly", "4", check(completeFalsy)},
		{"complete/any bytes are kept exactly", "4", check(completeBytes)},
		{"give back/frees the row and changes nothing else", "5", check(giveBackRunning)},
		{"give back/ends settling", "5", check(giveBackSettling)},
		{"give back/remembers that the attempt was unclear", "5", check(giveBackUnclear)},
	}
}

var doneFields = []string{"State", "Since", "Result", "HasResult", "DoneAt"}

// done fails unless the row is done with the result of right.
func (p *probe) done(row middleware.Row) {
	suite.Want("State", row.State, middleware.Done)
	suite.Want("Result", row.Result, "result")
	suite.Want("HasResult", row.HasResult, true)
	suite.Want("Settle", row.Settle, "")
	if row.DoneAt.IsZero() || !row.DoneAt.Equal(row.Since) {
		suite.Failf("DoneAt is %v and Since %v, want the time at which it was done", row.DoneAt, row.Since)
	}
}

func completeRunning(p *probe) {
	l := p.sys.Open()
	row := p.second(l)
	got := p.do(l, row, middleware.Complete)
	p.done(got)
	p.only("complete", row, got, doneFields...)
	if !got.Since.After(row.Since) {
		suite.Failf("Since is %v, want later than %v", got.Since, row.Since)
	}
}

func completeInDoubt(p *probe) {
	l := p.sys.Open()
	row := p.settling(p.sys.Open())
	got := p.do(l, row, middleware.Complete)
	p.done(got)
	p.only("complete", row, got, append(doneFields, "Settle", "SettleGone")...)
	for _, s := range []middleware.Step{middleware.Found, middleware.Absent, middleware.Unsure} {
		p.lost(l, right(row, s))
	}
}

func completeFreed(p *probe) {
	l := p.sys.Open()
	row := p.freed(l)
	got := p.do(l, row, middleware.Complete)
	p.done(got)
	suite.Want("ByPerson", got.ByPerson, false)
	p.only("complete", row, got, append(doneFields, "ByPerson", "SettledBy", "SettledWhy")...)
	c := p.claimAs(row.Identity)
	c.Seen = row
	p.refused(l, c)
}

func completeAnyAttempt(p *probe) {
	for _, n := range []int{1, 2, 3, 0} {
		l := p.sys.Open()
		t := right(p.second(l), middleware.Complete)
		t.Attempt = n
		p.done(p.step(l, t))
	}
	l := p.sys.Open()
	t := right(p.freed(l), middleware.Complete)
	t.Attempt = 1
	p.done(p.step(l, t))
}

func completeGone(p *probe) {
	l := p.sys.Open()
	row := p.second(l)
	p.sys.Kill(l)
	p.done(p.do(l, row, middleware.Complete))
}

func completeTwice(p *probe) {
	l := p.sys.Open()
	row := p.second(l)
	p.do(l, row, middleware.Complete)
	t := right(row, middleware.Complete)
	t.Result = "another result"
	p.lost(l, t)
	p.done(p.row(l, row.Operation))
}

// completeEqual is a complete whose commit succeeded while its answer got lost.
func completeEqual(p *probe) {
	for _, s := range []middleware.State{middleware.Done, middleware.Released} {
		l := p.sys.Open()
		row := p.second(l)
		before := p.become(l, row, s)
		got, err := l.Change(p.ctx, right(row, middleware.Complete))
		if !errors.Is(err, middleware.ErrLost) {
			suite.Failf("the same result again, on a row that is %s: want ErrLost, got %v", s, err)
		}
		p.same("the same result again, on a row that is "+string(s), before, got)
		p.same("the same result again, on a row that is "+string(s), before, p.row(l, row.Operation))
	}
}

func completeEqualOther(p *probe) {
	l := p.sys.Open()
	old, c := p.free(l)
	p.do(l, p.win(l, c), middleware.Complete)
	p.lost(l, right(old, middleware.Complete))
}

func stepOnNothing(p *probe) {
	l := p.sys.Open()
	for s, name := range stepNames {
		t := right(middleware.Row{Operation: "op_nothing", State: middleware.Running, Token: "token", Attempt: 1, Settle: "mark"}, s)
		row, err := l.Change(p.ctx, t)
		if !errors.Is(err, middleware.ErrLost) || row.Operation != "" {
			suite.Failf("%s of no row: want ErrLost and no row, got %v and %s", name, err, describe(&row))
		}
	}
}

func completeExpires(p *probe) {
	for _, keep := range []time.Duration{0, far} {
		l := p.sys.Open()
		c := p.claim()
		c.Keep = 2 * far
		row := p.do(l, p.win(l, c), middleware.GiveBack)
		c = p.claimAs(row.Identity)
		c.Seen, c.Keep = row, keep
		row = p.win(l, c)
		suite.Want("Expires before it is done is zero", row.Expires.IsZero(), true)
		row = p.do(l, row, middleware.Complete)
		if keep == 0 && !row.Expires.IsZero() || keep > 0 && !row.Expires.Equal(row.DoneAt.Add(keep)) {
			suite.Failf("done at %v and kept for %v, it expires at %v", row.DoneAt, keep, row.Expires)
		}
		suite.Want("Expired", row.Expired(), false)
	}
}

func completeWithoutResult(p *probe) {
	l := p.sys.Open()
	t := right(p.second(l), middleware.Complete)
	t.Result, t.HasResult = "", false
	row := p.step(l, t)
	suite.Want("State", row.State, middleware.Done)
	suite.Want("HasResult", row.HasResult, false)
	suite.Want("DoneAt is zero", row.DoneAt.IsZero(), false)
}

func completeFalsy(p *probe) {
	p.results("", "0", "false", "null", `""`, "[]", "{}", " ")
}

func completeBytes(p *probe) {
	p.results("a\x00b", "\xff\xfe", "\u2028 \U0001F600 e\u0301", `\u0000 %s ' " ; --`, strings.Repeat("0123456789abcdef", 1<<16))
}

// results has each result stored by each way in which an operation can be done.
func (p *probe) results(all ...string) {
	a, b := p.sys.Open(), p.sys.Open()
	for _, result := range all {
		for _, s := range []middleware.Step{middleware.Complete, middleware.Found, middleware.Happened} {
			t := right(p.settling(a), s)
			t.Result, t.HasResult = result, true
			p.step(a, t)
			row := p.row(b, t.Operation)
			if row.Result != result || !row.HasResult {
				suite.Failf("%s stored %.40q (%d bytes), and %.40q (%d bytes, HasResult %v) was kept",
					stepName(s), result, len(result), row.Result, len(row.Result), row.HasResult)
			}
		}
	}
}

func giveBackRunning(p *probe) {
	l := p.sys.Open()
	row := p.win(l, p.claim())
	got := p.do(l, row, middleware.GiveBack)
	suite.Want("State", got.State, middleware.Free)
	suite.Want("ByPerson", got.ByPerson, false)
	p.only("give back", row, got, "State", "Since")
	p.lost(l, right(row, middleware.Complete))
}

func giveBackSettling(p *probe) {
	l := p.sys.Open()
	row := p.settling(l)
	got := p.do(l, row, middleware.GiveBack)
	suite.Want("State", got.State, middleware.Free)
	suite.Want("Settle", got.Settle, "")
	p.only("give back", row, got, "State", "Since", "Settle")
}

func giveBackUnclear(p *probe) {
	l := p.sys.Open()
	t := right(p.win(l, p.claim()), middleware.GiveBack)
	t.Unclear = true
	row := p.step(l, t)
	suite.Want("Unclear after an attempt without proof", row.Unclear, true)
	c := p.claimAs(row.Identity)
	c.Seen = row
	row = p.win(l, c)
	suite.Want("Unclear under the next claim", row.Unclear, true)
	suite.Want("Unclear after an attempt with proof", p.do(l, row, middleware.GiveBack).Unclear, true)
}
