package ledgertest

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

func contentCases() []Case {
	return []Case{
		{"content/the input is a copy of the claim's", "Claim", check(inputCopied)},
		{"content/the input of a row is a copy of the ledger's", "Row", check(inputOfRow)},
		{"content/the input is kept exactly", "Claim", check(inputExact)},
		{"content/hashes are kept exactly, whatever their form", "Row", check(hashesExact)},
		{"context/a claim is whole or absent", "Ledger", check(cancelledClaim)},
		{"context/a change is whole or absent", "Ledger", check(cancelledChange)},
		{"context/a note is whole or absent", "Ledger", check(cancelledNote)},
	}
}

func (p *probe) input(l middleware.Ledger, operation, wanted string) {
	suite.Want("Input", string(p.row(l, operation).Input), wanted)
}

func inputCopied(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	c.Input = []byte("abc")
	row := p.win(l, c)
	copy(c.Input, "xyz")
	suite.Want("Input of the row that was claimed", string(row.Input), "abc")
	p.input(l, row.Operation, "abc")
	free := p.do(l, row, middleware.GiveBack)
	c = p.claimAs(row.Identity)
	c.Seen, c.Input = free, []byte("def")
	p.win(l, c)
	copy(c.Input, "xyz")
	p.input(l, row.Operation, "def")
}

func inputOfRow(p *probe) {
	l := p.sys.Open()
	c := p.claim()
	c.Input = []byte("abc")
	row := p.win(l, c)
	copy(row.Input, "xyz")
	p.input(l, row.Operation, "abc")
	copy(p.row(l, row.Operation).Input, "xyz")
	p.input(l, row.Operation, "abc")
	copy(p.refused(l, p.claimAs(row.Identity)).Input, "xyz")
	p.input(l, row.Operation, "abc")
	copy(p.do(l, row, middleware.Doubt).Input, "xyz")
	p.input(l, row.Operation, "abc")
}

func inputExact(p *probe) {
	l := p.sys.Open()
	for _, in := range []string{"{}", `""`, "null", "\x00\xff", "\u2028"} {
		c := p.claim()
		c.Input = []byte(in)
		p.input(p.sys.Open(), p.win(l, c).Operation, in)
	}
}

func hashesExact(p *probe) {
	l := p.sys.Open()
	hex := hash("identity", 1)
	ids := map[string]string{}
	for _, h := range []string{hex, strings.ToUpper(hex), "ab12", "AB12", `\xab12`, "x'ab12'", "ab1", "0", "00", "1", "1.0", "1e0", "order 7"} {
		c := p.claimAs(h)
		c.Call.Fingerprint, c.Call.Arguments, c.Resource = h, h, h
		p.missing(l, middleware.Query{Identity: h})
		row := p.win(l, c)
		ids[h] = row.Operation
		got := p.row(p.sys.Open(), row.Operation)
		suite.Want("Identity", got.Identity, h)
		suite.Want("Fingerprint", got.Fingerprint, h)
		suite.Want("Resource", got.Resource, h)
		suite.Want("Claimer", got.Claimer, c.Call)
		suite.Want("the call found at its place", p.alias(l, c.Call, row.Operation), c.Call)
	}
	for h, operation := range ids {
		p.found(l, middleware.Query{Identity: h}, operation)
		p.found(l, middleware.Query{Tool: p.claim().Call.Tool, Resource: h}, operation)
	}
}

// cancelled calls f with contexts that end before, and while, it runs.
func (p *probe) cancelled(f func(ctx context.Context, doing string)) {
	for i := range 20 {
		ctx, cancel := context.WithCancel(p.ctx)
		if i%2 == 0 {
			cancel()
		} else {
			go cancel()
		}
		f(ctx, fmt.Sprintf("under a context that was cancelled (try %d)", i+1))
		cancel()
	}
}

func cancelledClaim(p *probe) {
	l := p.sys.Open()
	p.cancelled(func(ctx context.Context, doing string) {
		target := p.become(l, p.win(l, p.claim()), middleware.Done)
		c := p.undoing(target)
		row, won, err := l.Claim(ctx, c)
		got, ok := p.find(l, middleware.Query{Identity: c.Identity})
		_, alias := p.find(l, place(c.Call))
		switch {
		case ok != alias:
			suite.Failf("a claim %s left half of itself: its row %v, its alias %v", doing, ok, alias)
		case err == nil && !won:
			suite.Failf("a claim %s was not won, want won or an error; in the way: %s", doing, describe(&row))
		case won && !ok:
			suite.Failf("a claim %s was won, but there is no row", doing)
		case ok && got.Token != c.Token:
			suite.Failf("a claim %s left %s", doing, describe(&got))
		}
	})
}

func cancelledChange(p *probe) {
	l := p.sys.Open()
	p.cancelled(func(ctx context.Context, doing string) {
		target := p.become(l, p.win(l, p.claim()), middleware.Done)
		row := p.win(l, p.undoing(target))
		_, err := l.Change(ctx, right(row, middleware.Complete))
		done := p.row(l, row.Operation).State == middleware.Done
		released := p.row(l, target.Operation).State == middleware.Released
		if done != released || err == nil && !done || isLost(err) {
			suite.Failf("a complete %s, with error %v, left half of itself: undo done %v, target released %v", doing, err, done, released)
		}
	})
}

func cancelledNote(p *probe) {
	l := p.sys.Open()
	row := p.win(l, p.claim())
	noted := 0
	p.cancelled(func(ctx context.Context, doing string) {
		call := p.claim().Call
		n, err := l.Note(ctx, row.Operation, call)
		if _, ok := p.find(l, place(call)); ok {
			noted++
		}
		if err == nil && n != noted {
			suite.Failf("a note %s counted %d repeats, want %d", doing, n, noted)
		}
		p.repeats(l, "run", row.Operation, noted)
	})
}
