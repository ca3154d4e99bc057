// Package crossing checks of every method of a store that it keeps tenants apart.
package crossing

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// Store is one tenant's.
type Store interface {
	ledger
	runs
	people
}

type ledger interface {
	middleware.Ledger
	middleware.Lister
	middleware.Inspector
	middleware.Pruner
	Within(context.Context, func(context.Context) (middleware.Transition, error)) (middleware.Row, error)
}

type runs interface {
	journal.Journal
	journal.Reader
	Verdicts(context.Context) (map[registry.Verdict]int, error)
}

type people interface {
	middleware.Approver
	middleware.Recorder
	middleware.Forgetter
}

// exempt are the methods that are about no tenant's rows, each with the reason why.
var exempt = map[string]string{
	"AllActs":     "one chain has the acts of all tenants, or the removal of one tenant's could not be seen; CheckActs needs all of it",
	"Close":       "it ends all views",
	"Commits":     "it counts what this process has written",
	"DeclareGone": "processes belong to no tenant",
	"Handlers":    "it is the record of this process",
	"Namespace":   "it makes the views",
	"Namespaces":  "it lists the views",
	"Sizes":       "it measures the whole store",
}

// Check calls all methods of a store in one namespace with the ids, tokens and hashes of another: nothing may be found, and
// nothing changed. tenant gives a view of an empty store. A method that is not known here fails the test.
func Check(t *testing.T, tenant func(namespace string) Store) {
	t.Helper()
	c := &crossing{T: t, mine: tenant("acme")}
	c.fill()
	before := c.everything()
	tried := c.tries()
	for m := range reflect.TypeOf(c.mine).Methods() {
		try, ok := tried[m.Name]
		if _, free := exempt[m.Name]; ok == free {
			t.Errorf("%s is tried: %v, exempt: %v: say here how it is kept from crossing namespaces, or why it need not be", m.Name, ok, free)
		}
		if !ok {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			c.T = t
			try(tenant("other " + m.Name))
			if diff := cmp.Diff(before, c.everything()); diff != "" {
				t.Errorf("another tenant's has changed: %s", diff)
			}
		})
		delete(tried, m.Name)
	}
	for name := range tried {
		t.Errorf("there is no method %s", name)
	}
}

// crossing is a test at work: what the first tenant has.
type crossing struct {
	*testing.T
	mine Store

	running, doubt, done, free middleware.Row
	pending, approved, denied  middleware.Approval
	run                        journal.Record // somebody is at it
	left                       journal.Start
}

func (c *crossing) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// lost wants what another tenant's id is worth.
func (c *crossing) lost(what string, found any, err error) {
	c.Helper()
	c.refused(what, found, err, middleware.ErrLost)
}

func (c *crossing) refused(what string, found any, err, wanted error) {
	c.Helper()
	if !errors.Is(err, wanted) {
		c.Errorf("%s: %v, want %v", what, err, wanted)
	}
	c.none(what, found, nil)
}

// none wants nothing found.
func (c *crossing) none(what string, found any, err error) {
	c.Helper()
	v := reflect.ValueOf(found)
	if empty := !v.IsValid() || v.IsZero() || (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0; err != nil || !empty {
		c.Errorf("%s: found %+v, %v", what, found, err)
	}
}

func claim(name string, turn int) middleware.Claim {
	return middleware.Claim{
		Identity: "identity of " + name, Token: "token of " + name, Conversation: "chat", Input: []byte(name),
		Call:     middleware.Alias{Run: "run", Turn: turn, Position: 1, CallID: name, Tool: "pay", Arguments: "arguments", Fingerprint: "fingerprint"},
		Resource: "resource of " + name, KeyWindow: time.Hour, Deadline: time.Nanosecond, Retain: time.Nanosecond,
	}
}

func (c *crossing) claimed(name string, turn int) middleware.Row {
	c.Helper()
	row, won, err := c.mine.Claim(c.Context(), claim(name, turn))
	if c.ok(err); !won {
		c.Fatalf("%s is lost", name)
	}
	return row
}

func (c *crossing) change(row middleware.Row, t middleware.Transition) middleware.Row {
	c.Helper()
	t.Operation, t.Token, t.Attempt = row.Operation, row.Token, row.Attempt
	row, err := c.mine.Change(c.Context(), t)
	c.ok(err)
	return row
}

func question(name string, turn int) middleware.Approval {
	c := claim(name, turn)
	return middleware.Approval{Call: c.Call, Identity: c.Identity, Conversation: c.Conversation, Input: c.Input}
}

func (c *crossing) decided(name string, turn int, approve bool) middleware.Approval {
	c.Helper()
	_, err := c.mine.Ask(c.Context(), question(name, turn), time.Hour)
	c.ok(err)
	a, err := c.mine.Decide(c.Context(), middleware.Decision{Run: "run", Turn: turn, Position: 1, Approve: approve, By: "ann"})
	c.ok(err)
	return a
}

// fill gives the first tenant something of everything.
func (c *crossing) fill() {
	c.running = c.claimed("running", 1)
	c.doubt = c.change(c.claimed("doubt", 2), middleware.Transition{Step: middleware.Doubt})
	c.done = c.change(c.claimed("done", 3), middleware.Transition{Step: middleware.Complete, Result: "result", HasResult: true})
	c.free = c.change(c.claimed("free", 4), middleware.Transition{Step: middleware.GiveBack})
	var err error
	c.pending, err = c.mine.Ask(c.Context(), question("pending", 5), time.Hour)
	c.ok(err)
	c.approved, c.denied = c.decided("approved", 6, true), c.decided("denied", 7, false)

	c.left = journal.Start{Run: registry.Run{ID: "left", Conversation: "chat"}, API: "chat", Input: []byte("digest")}
	r, err := c.mine.Begin(c.Context(), c.left)
	c.ok(err)
	_, err = c.mine.Append(c.Context(), journal.Entry{Run: "left", Token: r.Token, Turn: journal.Turn{Number: 1, Answer: []byte("{}")}})
	c.ok(err)
	c.ok(c.mine.Leave(c.Context(), journal.Leaving{Run: "left", Token: r.Token, Turn: 1, Outputs: []journal.Output{{Content: "told", Verdict: registry.Executed}}}))
	c.run, err = c.mine.Begin(c.Context(), journal.Start{Run: registry.Run{ID: "run", Conversation: "chat"}, API: "chat", Input: []byte("digest")})
	c.ok(err)
	_, err = c.mine.Append(c.Context(), journal.Entry{Run: "run", Token: c.run.Token, Turn: journal.Turn{Number: 1, Answer: []byte("{}")}})
	c.ok(err)
}

// everything is all that the first tenant sees.
func (c *crossing) everything() (all []any) {
	c.Helper()
	add := func(v any, err error) {
		c.Helper()
		c.ok(err)
		all = append(all, v)
	}
	ctx, s := c.Context(), c.mine
	rows, err := s.Page(ctx, "", 0)
	for i := range rows {
		calls, err := s.Calls(ctx, rows[i].Operation)
		rows[i].Now = time.Time{}
		add(calls, err)
	}
	add(rows, err)
	approvals, err := s.Approvals(ctx)
	for i := range approvals {
		approvals[i].Now = time.Time{}
	}
	add(approvals, err)
	runs, err := s.Runs(ctx, journal.RunsQuery{})
	for _, r := range runs {
		rec, _, err := s.Read(ctx, r.Run.ID)
		add(rec, err)
	}
	slices.SortFunc(runs, func(a, b journal.Summary) int { return a.Created.Compare(b.Created) })
	add(runs, err)
	acts, err := s.Acts(ctx)
	add(acts, err)
	return all
}
