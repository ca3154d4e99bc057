package journaltest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/suite"
)

// readCases are about what a journal need not offer: where it is no journal.Reader, they tell nothing.
func readCases() []Case {
	return []Case{
		{"read/a run is given whole, whoever has it, without its token", "Reader 2", check(readWhole)},
		{"read/a run that nobody made is none, and is not made", "Reader 2", check(readNone)},
		{"read/a run of another namespace is none", "Reader 2", check(readTenants)},
		{"read/takes nothing", "Reader", check(readTakesNothing)},
		{"read/what is returned is the caller's alone", "Reader", check(readAlone)},
		{"runs/are listed from the last one made, so many as are wanted", "Reader 1", check(runsLimit)},
		{"runs/of a conversation, and those without an answer, are told apart", "Reader 1", check(runsFilters)},
		{"runs/tell who has them", "Summary", check(runsTaken)},
		{"runs/of another namespace are not listed", "Reader 1", check(runsTenants)},
	}
}

// reader is the journal as a Reader. The error matches errors.ErrUnsupported.
func reader(j journal.Journal) (journal.Reader, error) {
	if r, ok := j.(journal.Reader); ok {
		return r, nil
	}
	return nil, fmt.Errorf("journaltest: reading runs: a %T does not show them: %w", j, errors.ErrUnsupported)
}

func (p *probe) read(j journal.Journal, run string) (journal.Record, bool) {
	from, err := reader(j)
	suite.None(err, "reader")
	r, ok, err := from.Read(p.ctx, run)
	suite.None(err, "Read")
	return r, ok
}

func (p *probe) runs(j journal.Journal, q journal.RunsQuery) []journal.Summary {
	from, err := reader(j)
	suite.None(err, "reader")
	all, err := from.Runs(p.ctx, q)
	suite.None(err, "Runs")
	return all
}

// reads wants a run to be what the record says.
func (p *probe) reads(j journal.Journal, what string, wanted journal.Record) {
	got, ok := p.read(j, wanted.Run.ID)
	if !ok || got.Token != "" {
		suite.Failf("%s: Read gave %v with token %q, want the run without its token", what, ok, got.Token)
	}
	p.same(what, got, wanted)
}

// lists wants just these runs, in this order.
func (p *probe) lists(j journal.Journal, what string, q journal.RunsQuery, wanted ...journal.Summary) {
	got := p.runs(j, q)
	if !slices.EqualFunc(got, wanted, func(a, b journal.Summary) bool {
		same := a.Created.Equal(b.Created)
		a.Created = b.Created
		return same && a == b
	}) {
		suite.Failf("%s: %+v lists %+v, want %+v", what, q, got, wanted)
	}
}

// summary is a run as a list should tell it.
func summary(r journal.Record, taken bool) journal.Summary {
	return journal.Summary{Run: r.Run, API: r.API, Created: r.Created, Turns: len(r.Turns), Finished: r.Finished, Taken: taken}
}

func readWhole(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	none, going, left, finished := p.begin(a, p.start()), p.going(a), p.going(a), p.finished(a)
	p.told(a, &left, output(2, 0), output(2, 1))
	for _, j := range []journal.Journal{a, b} {
		p.reads(j, "a run without a turn", none)
		p.reads(j, "a run that is going on", going)
		p.reads(j, "a run that was left", left)
		p.reads(j, "a run that is finished", finished)
	}
	s := p.start()
	s.API, s.Run.Conversation, s.Input = "responses", "", nil
	p.reads(b, "a run with little to tell", p.begin(a, s))
}

func readNone(p *probe) {
	j := p.sys.Open()
	s := p.start()
	for _, run := range []string{s.Run.ID, "", "%", "run-%"} {
		if r, ok := p.read(j, run); ok || r.Run.ID != "" {
			suite.Failf("Read of %q, which nobody made, gave %v, %s", run, ok, describe(&r))
		}
	}
	p.lists(j, "no runs", journal.RunsQuery{})
	r := p.begin(j, s)
	p.same("a run that was looked for before", r, journal.Record{Start: s, Created: r.Created})
}

func readTenants(p *probe) {
	a, b := p.tenants()
	r := p.going(a)
	if got, ok := p.read(b, r.Run.ID); ok {
		suite.Failf("another tenant reads %s", describe(&got))
	}
	other := r.Start
	other.Input = []byte("another digest")
	mine := p.begin(b, other)
	p.put(b, &mine, entry(&mine, 0))
	p.reads(b, "another tenant's run of the same id", mine)
	p.reads(a, "a run with another tenant's of the same id", r)
}

func readTakesNothing(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	r, left := p.going(a), p.going(a)
	p.leave(a, left)
	for _, j := range []journal.Journal{a, b} {
		p.reads(j, "a run that is going on", r)
		p.reads(j, "a run that was left", left)
		p.runs(j, journal.RunsQuery{})
	}
	p.refused(b, r.Start, journal.ErrRunTaken)
	p.put(a, &r, entry(&r, 2)) // under the token of before
	p.again(b, "a run that was looked at", left)
}

func readAlone(p *probe) {
	j := p.sys.Open()
	r := p.going(j)
	got, _ := p.read(j, r.Run.ID)
	for _, b := range [][]byte{got.Input, got.Turns[0].Answer} {
		for i := range b {
			b[i] = 'x'
		}
	}
	got.Turns[0].Outputs[0].Content, got.Turns[1].Number = "x", 9
	p.reads(j, "a run of which a copy was changed", r)
}

func runsLimit(p *probe) {
	j := p.sys.Open()
	var all []journal.Summary
	for range 4 {
		all = append([]journal.Summary{summary(p.going(j), true)}, all...)
	}
	for _, n := range []int{0, 1, 3, 4, 5} {
		wanted := all
		if n > 0 {
			wanted = all[:min(n, len(all))]
		}
		p.lists(j, "four runs", journal.RunsQuery{Limit: n}, wanted...)
	}
}

func runsFilters(p *probe) {
	j := p.sys.Open()
	s := p.start()
	s.Run.Conversation = "a chat"
	first := p.begin(j, s)
	done := p.finished(j)
	s = p.start()
	s.Run.Conversation = ""
	alone := p.begin(j, s)
	s = p.start()
	s.Run.Conversation = "a chat"
	last := p.begin(j, s)
	p.lists(j, "all", journal.RunsQuery{}, summary(last, true), summary(alone, true), summary(done, false), summary(first, true))
	p.lists(j, "of a chat", journal.RunsQuery{Conversation: "a chat"}, summary(last, true), summary(first, true))
	p.lists(j, "the last of a chat", journal.RunsQuery{Conversation: "a chat", Limit: 1}, summary(last, true))
	p.lists(j, "of a chat that is none", journal.RunsQuery{Conversation: "a %"})
	p.lists(j, "unfinished", journal.RunsQuery{Unfinished: true}, summary(last, true), summary(alone, true), summary(first, true))
	p.lists(j, "unfinished of a chat that has ended", journal.RunsQuery{Conversation: done.Run.Conversation, Unfinished: true})
}

func runsTaken(p *probe) {
	a, b := p.sys.Open(), p.sys.Open()
	r, left, failed := p.going(a), p.going(a), p.going(a)
	p.leave(a, left)
	_, err := a.Append(p.ctx, journal.Entry{Run: failed.Run.ID, Token: failed.Token, Turn: turn(7)})
	if err == nil {
		suite.Failf("Append of turn 7 of 3 is stored")
	}
	p.lists(b, "as another process sees them", journal.RunsQuery{}, summary(failed, true), summary(left, false), summary(r, true))
	p.lists(a, "as the process sees them whose call has failed", journal.RunsQuery{}, summary(failed, false), summary(left, false), summary(r, true))
	p.sys.Kill(a)
	p.lists(b, "once their process is gone", journal.RunsQuery{}, summary(failed, false), summary(left, false), summary(r, false))
	r = p.again(b, "a run whose owner is gone", r)
	p.lists(p.sys.Open(), "once one is taken again", journal.RunsQuery{}, summary(failed, false), summary(left, false), summary(r, true))
}

func runsTenants(p *probe) {
	a, b := p.tenants()
	s := p.start()
	r := p.begin(a, s)
	p.lists(b, "another tenant's", journal.RunsQuery{})
	p.lists(b, "another tenant's of a chat", journal.RunsQuery{Conversation: s.Run.Conversation, Unfinished: true, Limit: 9})
	mine := p.begin(b, s)
	p.put(b, &mine, entry(&mine, 0))
	p.lists(a, "with another tenant's of the same id", journal.RunsQuery{}, summary(r, true))
	p.lists(b, "another tenant's of the same id", journal.RunsQuery{}, summary(mine, true))
}
