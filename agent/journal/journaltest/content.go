package journaltest

import (
	"fmt"
	"strings"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/registry"
)

func contentCases() []Case {
	return []Case{
		{"content/answers are kept byte for byte", "Turn", check(contentAnswers)},
		{"content/outputs are kept byte for byte", "Output", check(contentOutputs)},
		{"content/outputs come in the order of their positions", "Turn", check(contentOrder)},
		{"content/ids and digests are kept exactly", "Start", check(contentStarts)},
		{"content/what is returned is the caller's alone", "Journal", check(contentShared)},
	}
}

// texts are what a store might be tempted to tidy up. Not all are JSON or UTF-8: a journal keeps those too.
func texts() []string {
	return []string{
		"", " ", "null", `""`, "{}", "{ \"b\" : 1,\n\t\"a\":2 , \"b\":3}\r\n", `[12345678901234567890,1.0,1e2,-0]`,
		`"\u00e9\/\ud83d\ude00"`, "\"é\u2028😀\u0301\"", "\ufeff{}", "\x00", "a\x00b", "\xff\xfe", "\xed\xa0\x80", "'\\'';--", "%s %[1]d",
		strings.Repeat("x", 1<<20),
	}
}

func contentAnswers(p *probe) {
	j := p.sys.Open()
	r := p.begin(j, p.start())
	for _, text := range texts() {
		e := entry(&r, 1)
		e.Turn.Answer = []byte(text)
		if len(r.Turns) == 0 {
			e.Outputs = nil
		}
		p.put(j, &r, e)
	}
	p.unchanged(j, "a run of unlike answers", r)
}

func contentOutputs(p *probe) {
	j := p.sys.Open()
	r := p.going(j)
	var outputs []journal.Output
	for i, text := range texts() {
		outputs = append(outputs, journal.Output{Position: i, Content: text, Verdict: registry.Verdict("verdict " + text[:min(len(text), 3)]), Operation: text[:min(len(text), 30)]})
	}
	e := entry(&r, 0)
	e.Outputs = outputs
	p.put(j, &r, e)
	p.told(j, &r, outputs...)
	p.again(j, "a run of unlike outputs", r)
}

func contentOrder(p *probe) {
	j := p.sys.Open()
	r := p.begin(j, p.start())
	p.put(j, &r, entry(&r, 0))
	for range 12 { // more than 9, should names be sorted
		e := entry(&r, 12)
		e.Outputs[0], e.Outputs[11] = e.Outputs[11], e.Outputs[0]
		got, err := j.Append(p.ctx, e)
		suite.None(err, "Append")
		e.Outputs[0], e.Outputs[11] = e.Outputs[11], e.Outputs[0]
		p.sameEntry("what Append returned", got, e)
		note(&r, e)
	}
	p.unchanged(j, "a run of 13 turns", r)
}

func contentStarts(p *probe) {
	j := p.sys.Open()
	var all []journal.Record
	for i, id := range []string{"", "a", "A", "a ", " a", "é", "e\u0301", "a%", "a_", "0", "00", strings.Repeat("long", 100)} {
		s := p.start()
		s.Run = registry.Run{ID: id, Conversation: id}
		s.Input = []byte{0, byte(i), 0xff}
		r := p.begin(j, s)
		p.same("a new run", r, journal.Record{Start: s, Created: r.Created})
		p.put(j, &r, entry(&r, 0))
		all = append(all, r)
	}
	for _, r := range all {
		p.unchanged(j, fmt.Sprintf("run %q", r.Run.ID), r)
	}
}

// contentShared writes over all that was given to a journal and all that came from it.
func contentShared(p *probe) {
	j := p.sys.Open()
	s := p.start()
	wanted := p.begin(j, s)
	wanted.Input = append([]byte(nil), s.Input...)
	s.Input[0]++
	for range 2 {
		p.put(j, &wanted, entry(&wanted, min(len(wanted.Turns), 1)))
	}
	given := entry(&wanted, 1)
	got, err := j.Append(p.ctx, given)
	suite.None(err, "Append")
	spoil := func(answer []byte, outputs []journal.Output) {
		if len(answer) > 0 {
			answer[0]++
		}
		if len(outputs) > 0 {
			outputs[0] = journal.Output{}
		}
	}
	spoil(got.Turn.Answer, got.Outputs)
	e := entry(&wanted, 1)
	note(&wanted, e)
	stored, err := j.Append(p.ctx, journal.Entry{Run: e.Run, Token: e.Token, Turn: turn(3)})
	suite.None(err, "Append of a stored turn")
	p.sameEntry("what is stored", stored, e)
	spoil(stored.Turn.Answer, stored.Outputs)
	spoil(given.Turn.Answer, given.Outputs)
	p.leave(j, wanted)
	read := p.again(j, "a run whose callers have written over what they had", wanted)
	for i := range read.Turns {
		spoil(read.Turns[i].Answer, read.Turns[i].Outputs)
	}
	read.Input[0]++
	wanted.Token = read.Token
	p.unchanged(j, "a run whose callers have written over what they had", wanted)
}
