package ledgertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

// Time passes in a case without waiting: what takes soon is over at the clock's next tick, what takes far is not over.
const (
	soon = time.Nanosecond
	far  = time.Hour
)

// probe is a case at work. Its methods end the case where the ledger breaks its word.
type probe struct {
	ctx context.Context
	sys System
	n   int // claims and marks made
}

// check makes a Check of f.
func check(f func(*probe)) func(context.Context, System) error {
	return func(ctx context.Context, sys System) error {
		return suite.Catch(func() { f(&probe{ctx: ctx, sys: sys}) })
	}
}

// claim is a claim that can be won, of an identity and at a place of its own.
func (p *probe) claim() middleware.Claim {
	p.n++
	return middleware.Claim{
		Identity: hash("identity", p.n),
		Call: middleware.Alias{
			Run: "run", Turn: p.n, Position: 1, CallID: fmt.Sprintf("call-%d", p.n), Tool: "book",
			Arguments: hash("arguments", p.n), Fingerprint: hash("fingerprint", p.n),
		},
		Conversation: fmt.Sprintf("chat-%d", p.n),
		Input:        fmt.Appendf(nil, `{"n":%d}`, p.n),
		Token:        fmt.Sprintf("token-%d", p.n),
		Deadline:     far,
		KeyWindow:    far,
	}
}

// hash has the form of the hashes that a guard makes.
func hash(what string, n int) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s %d", what, n))
	return hex.EncodeToString(h[:])
}

// claimAs is another call's claim of the same identity.
func (p *probe) claimAs(identity string) middleware.Claim {
	c := p.claim()
	c.Identity = identity
	return c
}

// win makes a claim that must be won.
func (p *probe) win(l middleware.Ledger, c middleware.Claim) middleware.Row {
	row, won, err := l.Claim(p.ctx, c)
	suite.None(err, "Claim")
	if !won {
		suite.Failf("Claim of %s was not won; in the way: %s", c.Identity, describe(&row))
	}
	return row
}

// refused makes a claim that must not be won and must leave nothing behind. It returns what stood in the way.
func (p *probe) refused(l middleware.Ledger, c middleware.Claim) middleware.Row {
	queries := []middleware.Query{
		{Run: c.Call.Run, Identity: c.Identity},
		{Run: c.Call.Run, Turn: c.Call.Turn, Position: c.Call.Position},
	}
	type answer struct {
		row middleware.Row
		ok  bool
	}
	look := func() (all []answer) {
		for _, q := range queries {
			row, ok := p.find(l, q)
			all = append(all, answer{row, ok})
		}
		return all
	}
	before := look()
	row, won, err := l.Claim(p.ctx, c)
	suite.None(err, "Claim")
	if won {
		suite.Failf("Claim of %s was won, want not won", c.Identity)
	}
	for i, after := range look() {
		suite.Want("after a claim that was not won: row found", after.ok, before[i].ok)
		p.same("a claim that was not won", before[i].row, after.row)
		suite.Want("after a claim that was not won: repeats", after.row.Repeats, before[i].row.Repeats)
	}
	return row
}

// right is the transition that succeeds where the process of the row makes it from the row's state.
func right(row middleware.Row, s middleware.Step) middleware.Transition {
	t := middleware.Transition{Step: s, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, Mark: row.Settle}
	switch s {
	case middleware.Complete, middleware.Found:
		t.Result, t.HasResult = "result", true
	case middleware.Happened:
		t.Result, t.HasResult, t.By, t.Why = "result", true, "Ann", "seen at the provider"
	case middleware.NotHappened:
		t.By, t.Why = "Bob", "not seen at the provider"
	case middleware.Take:
		t.State, t.Mark = row.State, "mark of "+row.Token
	case middleware.Again, middleware.Absent:
		t.Deadline = far
	default: // GiveBack, Doubt and Unsure say no more
	}
	return t
}

// step makes a transition that must succeed.
func (p *probe) step(l middleware.Ledger, t middleware.Transition) middleware.Row {
	got, err := l.Change(p.ctx, t)
	if err != nil {
		suite.Failf("%s: want success, got %w; the row is %s", stepName(t.Step), err, describe(&got))
	}
	p.same(stepName(t.Step)+" and Find after it", got, p.row(l, t.Operation))
	return got
}

// do makes the right transition.
func (p *probe) do(l middleware.Ledger, row middleware.Row, s middleware.Step) middleware.Row {
	return p.step(l, right(row, s))
}

// lost makes a transition that must lose, change nothing and return the row as it is.
func (p *probe) lost(l middleware.Ledger, t middleware.Transition) {
	before := p.row(l, t.Operation)
	got, err := l.Change(p.ctx, t)
	if !errors.Is(err, middleware.ErrLost) {
		suite.Failf("%s: want ErrLost, got error %v; the row is %s", stepName(t.Step), err, describe(&got))
	}
	if t.Step == middleware.Complete {
		suite.Want("Late after a complete that lost", got.Late, true)
		before.Late = true
	}
	p.same(stepName(t.Step)+" that lost: the row returned", before, got)
	p.same(stepName(t.Step)+" that lost", before, p.row(l, t.Operation))
}

// early makes a transition that must be told that it is too early, change nothing and return the row as it is.
func (p *probe) early(l middleware.Ledger, t middleware.Transition, until time.Time) {
	before := p.row(l, t.Operation)
	got, err := l.Change(p.ctx, t)
	e, ok := errors.AsType[*middleware.EarlyError](err)
	if !ok {
		suite.Failf("%s: want *EarlyError, got error %v; the row is %s", stepName(t.Step), err, describe(&got))
	}
	if !e.Until.Equal(until) {
		suite.Failf("%s: EarlyError.Until is %v, want %v", stepName(t.Step), e.Until, until)
	}
	p.same(stepName(t.Step)+" that was too early: the row returned", before, got)
	p.same(stepName(t.Step)+" that was too early", before, p.row(l, t.Operation))
}

func (p *probe) find(l middleware.Ledger, q middleware.Query) (middleware.Row, bool) {
	row, ok, err := l.Find(p.ctx, q)
	suite.None(err, "Find")
	if !ok && row.Operation != "" {
		suite.Failf("Find found nothing, but returned %s", describe(&row))
	}
	return row, ok
}

// found must find an operation.
func (p *probe) found(l middleware.Ledger, q middleware.Query, operation string) middleware.Row {
	row, ok := p.find(l, q)
	if !ok || row.Operation != operation {
		suite.Failf("Find of %+v: want operation %s, got %s", q, operation, describe(&row))
	}
	return row
}

// missing must find nothing.
func (p *probe) missing(l middleware.Ledger, q middleware.Query) {
	if row, ok := p.find(l, q); ok {
		suite.Failf("Find of %+v: want nothing, got %s", q, describe(&row))
	}
}

// alias is the alias at the place of a call, which must point to an operation.
func (p *probe) alias(l middleware.Ledger, at middleware.Alias, operation string) middleware.Alias {
	row := p.found(l, place(at), operation)
	if row.Found == nil {
		suite.Failf("Found is nil on a row that was found by the place of a call")
	}
	return *row.Found
}

func (p *probe) row(l middleware.Ledger, operation string) middleware.Row {
	return p.found(l, middleware.Query{Operation: operation}, operation)
}

func isLost(err error) bool { return errors.Is(err, middleware.ErrLost) }

func place(a middleware.Alias) middleware.Query {
	return middleware.Query{Run: a.Run, Turn: a.Turn, Position: a.Position}
}

// note notes a call and must count as many repeats.
func (p *probe) note(l middleware.Ledger, operation string, a middleware.Alias, repeats int) {
	n, err := l.Note(p.ctx, operation, a)
	suite.None(err, "Note")
	suite.Want("repeats that Note counted", n, repeats)
}

// tick waits until the store's clock has moved, so that what takes soon is over.
func (p *probe) tick(l middleware.Ledger, operation string) {
	start := p.row(l, operation).Now
	if start.IsZero() {
		suite.Failf("Now of a row is zero, want the store's clock")
	}
	for !p.row(l, operation).Now.After(start) {
		suite.None(p.ctx.Err(), "waiting for the store's clock to move")
		runtime.Gosched()
	}
}

// same fails where two readings of a row differ in more than the clock and what depends on the query.
func (p *probe) same(what string, a, b middleware.Row) {
	if d := diff(a, b); len(d) > 0 {
		suite.Failf("%s: the row should be the same, but %s", what, strings.Join(d, ", "))
	}
}

// only fails where a row has changed in other fields than the named.
func (p *probe) only(what string, before, after middleware.Row, fields ...string) {
	d := slices.DeleteFunc(diff(before, after), func(s string) bool {
		name, _, _ := strings.Cut(s, " ")
		return slices.Contains(fields, name)
	})
	if len(d) > 0 {
		suite.Failf("%s should leave the rest of the row alone, but %s", what, strings.Join(d, ", "))
	}
}

// diff compares two rows, or two approvals.
func diff[T any](a, b T) (d []string) {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range va.NumField() {
		name, x, y := va.Type().Field(i).Name, va.Field(i).Interface(), vb.Field(i).Interface()
		same := reflect.DeepEqual(x, y)
		switch name {
		case "Now", "Found", "Repeats", "OwnerMine":
			continue
		}
		if t, ok := x.(time.Time); ok {
			same = t.Equal(vb.Field(i).Interface().(time.Time))
		}
		if !same {
			d = append(d, fmt.Sprintf("%s was %s and is %s", name, short(x), short(y)))
		}
	}
	return d
}

func short(v any) string {
	s := fmt.Sprint(v)
	if b, ok := v.([]byte); ok {
		s = string(b)
	}
	if len(s) > 100 {
		s = s[:100] + "..."
	}
	return strconv.Quote(s)
}

func describe(r *middleware.Row) string {
	if r.Operation == "" {
		return "none"
	}
	return fmt.Sprintf("%s of %s (%s, token %s, attempt %d, settle %q)", r.Operation, short(r.Identity), r.State, r.Token, r.Attempt, r.Settle)
}

// race calls f n times at once.
func race[T any](n int, f func(i int) T) []T {
	all := make([]T, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			all[i] = f(i)
		})
	}
	close(start)
	wg.Wait()
	return all
}
