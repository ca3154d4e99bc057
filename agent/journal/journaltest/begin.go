package journaltest

import (
	"slices"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/suite"
)

func beginCases() []Case {
	return []Case{
		{"begin/an unknown run is made: as it was asked for, without turns", "1", check(beginNew)},
		{"begin/tokens are random", "1", check(beginTokens)},
		{"begin/a run with an answer is given whole, to anybody and as often as asked", "4", check(beginFinished)},
		{"begin/a run with an answer is not taken by who sees it", "4", check(beginFinishedToken)},
		{"begin/another input is another run", "5", check(func(p *probe) {
			p.other(func(s *journal.Start) { s.Input = []byte("another digest") })
			p.other(func(s *journal.Start) { s.Input = nil })
		})},
		{"begin/another conversation is another run", "5", check(func(p *probe) {
			p.other(func(s *journal.Start) { s.Run.Conversation = "another chat" })
			p.other(func(s *journal.Start) { s.Run.Conversation = "" })
		})},
		{"begin/an input that the conversation has had is told by its date", "12", check(beginAskedBefore)},
		{"begin/another API is another run", "5", check(func(p *probe) { p.other(func(s *journal.Start) { s.API = "responses" }) })},
	}
}

func beginNew(p *probe) {
	j := p.sys.Open()
	for _, api := range []string{"chat", "responses"} {
		s := p.start()
		s.API = api
		r := p.begin(j, s)
		if r.Created.IsZero() {
			suite.Failf("Created is zero, want the store's clock")
		}
		p.same("a run that is made", r, journal.Record{Start: s, Created: r.Created})
		p.unchanged(j, "and read back", r)
	}
	s := p.start()
	s.Run.Conversation, s.Input = "", nil
	r := p.begin(j, s)
	p.same("a run that says little", r, journal.Record{Start: s, Created: r.Created})
	p.unchanged(j, "and read back", r)
}

func beginAskedBefore(p *probe) {
	j := p.sys.Open()
	chat := func(change func(*journal.Start)) journal.Start {
		s := p.start()
		s.Run.Conversation, s.Input, s.API = "a chat", []byte("do it"), "chat"
		change(&s)
		return s
	}
	asked := func(what string, s journal.Start, want time.Time) journal.Record {
		r := p.begin(j, s)
		if !r.AskedBefore.Equal(want) {
			suite.Failf("%s: AskedBefore is %v, want %v", what, r.AskedBefore, want)
		}
		return r
	}
	never := time.Time{}
	first := asked("the first run", chat(func(*journal.Start) {}), never)
	second := asked("the same input again", chat(func(*journal.Start) {}), first.Created)
	asked("a third time", chat(func(*journal.Start) {}), first.Created)
	for what, change := range map[string]func(*journal.Start){
		"another input":        func(s *journal.Start) { s.Input = []byte("do it, do it") },
		"another conversation": func(s *journal.Start) { s.Run.Conversation = "another chat" },
		"another API":          func(s *journal.Start) { s.API = "responses" },
		"no conversation":      func(s *journal.Start) { s.Run.Conversation = "" },
	} {
		asked(what, chat(change), never)
	}
	if asked("no conversation, again", chat(func(s *journal.Start) { s.Run.Conversation = "" }), never); second.Run.ID == first.Run.ID {
		suite.Failf("the runs of the case have one id")
	}
	p.leave(j, first)
	p.leave(j, second)
	asked("the first run, taken again", first.Start, never)
	asked("the second run, taken again", second.Start, first.Created)
}

func beginTokens(p *probe) {
	j := p.sys.Open()
	seen := map[string]bool{}
	for range 10 {
		r := p.begin(j, p.start())
		for range 3 {
			if seen[r.Token] {
				suite.Failf("the token %q came twice", r.Token)
			}
			seen[r.Token] = true
			r = p.unchanged(j, "a run that was left", r)
		}
	}
}

// saved is a run with its answer, as all must be given it.
func (p *probe) saved(j journal.Journal, r journal.Record) {
	for range 2 {
		got, err := j.Begin(p.ctx, r.Start)
		suite.None(err, "Begin of a finished run")
		suite.Want("the token of a finished run", got.Token, "")
		p.same("a finished run", got, r)
	}
}

func beginFinished(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	r := p.finished(a)
	p.saved(a, r)
	p.saved(b, r)
	p.sys.Kill(a)
	p.saved(b, r)
	p.saved(p.sys.Open(), r)
}

func beginFinishedToken(p *probe) {
	j := p.sys.Open()
	r := p.finished(j)
	p.saved(j, r)
	_, err := j.Append(p.ctx, entry(&r, 1))
	p.is(err, journal.ErrLost, "Append without a token to a finished run")
	p.is(j.Leave(p.ctx, journal.Leaving{Run: r.Run.ID}), journal.ErrLost, "Leave without a token of a finished run")
	p.saved(j, r)
}

// other changes what a run is begun with, which must be refused whatever its state and left as it is.
func (p *probe) other(change func(*journal.Start)) {
	a, b := p.sys.Open(), p.sys.Open()
	refused := func(r journal.Record) {
		s := r.Start
		s.Input = slices.Clone(s.Input)
		change(&s)
		for _, j := range []journal.Journal{a, b} {
			p.refused(j, s, journal.ErrOtherInput)
		}
	}
	going, left, finished := p.going(a), p.going(a), p.finished(a)
	p.leave(a, left)
	for _, r := range []journal.Record{going, left, finished} {
		refused(r)
	}
	p.put(a, &going, entry(&going, 1)) // whose it was it still is
	left = p.again(a, "a run that was left, and asked for with another input", left)
	p.saved(b, finished)
	p.sys.Kill(a)
	refused(going)
	p.again(b, "a run whose owner is gone, and asked for with another input", going)
	p.again(b, "a run whose owner is gone, and asked for with another input", left)
}

func takeCases() []Case {
	return []Case{
		{"take/a run that was left, with all its turns and outputs", "2", check(func(p *probe) {
			a, b := p.sys.Open(), p.sys.Open()
			r := p.going(a)
			p.leave(a, r)
			r = p.again(a, "by the process that left it", r)
			p.leave(a, r)
			r = p.again(b, "by another process", r)
			p.put(b, &r, entry(&r, 1))
			p.leave(b, r)
			p.again(p.sys.Open(), "by a third one", r)
		})},
		{"take/a run whose owner is gone, with all its turns and outputs", "2", check(takeGone)},
		{"take/a run that has no turn yet", "2", check(func(p *probe) {
			a, b := p.sys.Open(), p.sys.Open()
			r := p.begin(a, p.start())
			p.sys.Kill(a)
			r = p.again(b, "by another process", r)
			p.put(b, &r, entry(&r, 0))
		})},
		{"take/not while the owner lives", "3", check(takeAlive)},
		{"take/not while another call of this process has it", "3", check(func(p *probe) {
			j := p.sys.Open()
			r := p.going(j)
			p.refused(j, r.Start, journal.ErrRunTaken)
			p.put(j, &r, entry(&r, 1))
			p.refused(j, r.Start, journal.ErrRunTaken)
			r = p.unchanged(j, "after it was refused", r)
			p.refused(j, r.Start, journal.ErrRunTaken)
		})},
		{"take/a run of this process whose Append has failed", "3", check(func(p *probe) {
			p.failed(func(j journal.Journal, r journal.Record) error {
				_, err := j.Append(p.ctx, journal.Entry{Run: r.Run.ID, Token: r.Token, Turn: turn(len(r.Turns) + 2)})
				return err
			})
		})},
		{"take/a run of this process whose Leave has failed", "3", check(func(p *probe) {
			p.failed(func(j journal.Journal, r journal.Record) error {
				return j.Leave(p.ctx, journal.Leaving{Run: r.Run.ID, Token: r.Token, Turn: len(r.Turns) + 1})
			})
		})},
		{"take/what failed under an earlier token leaves the run with who has it", "3", check(func(p *probe) {
			j := p.sys.Open()
			old := p.going(j)
			r := p.unchanged(j, "a run that was left", old)
			_, err := j.Append(p.ctx, entry(&old, 1))
			p.is(err, journal.ErrLost, "Append under an earlier token")
			p.is(j.Leave(p.ctx, journal.Leaving{Run: old.Run.ID, Token: old.Token}), journal.ErrLost, "Leave under an earlier token")
			p.refused(j, r.Start, journal.ErrRunTaken)
			p.put(j, &r, entry(&r, 1))
		})},
	}
}

func takeGone(p *probe) {
	a, b, c := p.sys.Open(), p.sys.Open(), p.sys.Open()
	r := p.going(a)
	p.sys.Kill(a)
	r = p.again(b, "by another process", r)
	p.put(b, &r, entry(&r, 2))
	p.refused(c, r.Start, journal.ErrRunTaken)
	p.refused(p.sys.Open(), r.Start, journal.ErrRunTaken)
	p.sys.Kill(b)
	r = p.again(c, "when that one is gone too", r)
	p.refused(p.sys.Open(), r.Start, journal.ErrRunTaken)
}

func takeAlive(p *probe) {
	a, b, c := p.sys.Open(), p.sys.Open(), p.sys.Open()
	first, second := p.begin(a, p.start()), p.going(a)
	p.begin(c, p.start())
	p.sys.Kill(c)
	for _, r := range []journal.Record{first, second} {
		p.refused(b, r.Start, journal.ErrRunTaken)
		p.refused(p.sys.Open(), r.Start, journal.ErrRunTaken)
		p.put(a, &r, entry(&r, 0))
		p.unchanged(a, "a run that others asked for", r)
	}
}

// failed has a call that has a run fail: it is left for its own process, and for no other.
func (p *probe) failed(fail func(journal.Journal, journal.Record) error) {
	j := p.sys.Open()
	r := p.going(j)
	if fail(j, r) == nil {
		suite.Failf("what cannot be stored was taken")
	}
	p.refused(p.sys.Open(), r.Start, journal.ErrRunTaken)
	r = p.again(j, "by the process whose call has failed", r)
	p.refused(j, r.Start, journal.ErrRunTaken)
	p.put(j, &r, entry(&r, 1))
}
