// Package inspected checks what stores tell operators of what they have.
package inspected

import (
	"context"
	"fmt"
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
	middleware.Ledger
	middleware.Inspector
	journal.Journal
	Verdicts(context.Context) (map[registry.Verdict]int, error)
	Namespaces(context.Context) ([]string, error)
}

// inspected is a test at work.
type inspected struct {
	*testing.T
	n int
}

// Check runs all checks on an empty store. tenant gives a view of it; "" is the default one.
func Check(t *testing.T, tenant func(namespace string) Store) {
	t.Helper()
	i := &inspected{T: t}
	s, other := tenant(""), tenant("acme")
	pay, note, free, running := i.done(s, "pay", "run-1"), i.done(s, "note", "run-1"), i.claimed(s, "pay", "run-2"), i.claimed(s, "pay", "run-3")
	i.change(s, middleware.Transition{Step: middleware.GiveBack, Operation: free.Operation, Token: free.Token, Attempt: 1})
	foreign := i.done(other, "pay", "run-1")
	_, err := s.Note(t.Context(), pay.Operation, middleware.Alias{Run: "run-9", Turn: 4, Position: 2, CallID: "again", Tool: "pay", Arguments: "0a", Fingerprint: "0b"})
	i.ok(err)

	i.selections(s, pay.Operation, note.Operation, free.Operation, running.Operation)
	i.pages(s, pay.Operation, note.Operation, free.Operation, running.Operation)
	i.calls(s, other, pay, foreign)
	i.counts(s)
	i.runs(s, tenant)
}

func (i *inspected) ok(err error) {
	i.Helper()
	if err != nil {
		i.Fatal(err)
	}
}

func (i *inspected) same(what string, got, want any) {
	i.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		i.Errorf("%s: %s", what, diff)
	}
}

// claimed is a new operation.
func (i *inspected) claimed(s Store, tool, run string) middleware.Row {
	i.Helper()
	i.n++
	row, won, err := s.Claim(i.Context(), middleware.Claim{
		Identity: fmt.Sprintf("%02x", i.n), Token: fmt.Sprint("t", i.n), KeyWindow: time.Hour, Deadline: time.Minute,
		Call: middleware.Alias{Run: run, Turn: i.n, Position: 1, CallID: fmt.Sprint("call-", i.n), Tool: tool, Arguments: "0c", Fingerprint: "0d"},
	})
	if i.ok(err); !won {
		i.Fatal("lost")
	}
	return row
}

func (i *inspected) change(s Store, t middleware.Transition) {
	i.Helper()
	_, err := s.Change(i.Context(), t)
	i.ok(err)
}

func (i *inspected) done(s Store, tool, run string) middleware.Row {
	i.Helper()
	row := i.claimed(s, tool, run)
	i.change(s, middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token})
	return row
}

func operations(rows []middleware.Row) (ids []string) {
	for _, r := range rows {
		ids = append(ids, r.Operation)
	}
	return ids
}

func (i *inspected) selections(s Store, pay, note, free, running string) {
	for _, c := range []struct {
		what string
		sel  middleware.Selection
		want []string
	}{
		{"all", middleware.Selection{}, []string{free, running, note, pay}},
		{"the last two", middleware.Selection{Limit: 2}, []string{free, running}},
		{"of a tool", middleware.Selection{Tool: "pay"}, []string{free, running, pay}},
		{"of a tool that is none", middleware.Selection{Tool: "p%"}, nil},
		{"of a run", middleware.Selection{Run: "run-1"}, []string{note, pay}},
		{"of a run that has only repeated", middleware.Selection{Run: "run-9"}, []string{pay}},
		{"of a run and a tool", middleware.Selection{Run: "run-1", Tool: "note"}, []string{note}},
		{"done", middleware.Selection{States: []middleware.State{middleware.Done}}, []string{note, pay}},
		{"running or in doubt", middleware.Selection{States: []middleware.State{middleware.InDoubt, middleware.Running}}, []string{running}},
		{"done by a run, the last", middleware.Selection{States: []middleware.State{middleware.Done, middleware.Free}, Run: "run-1", Limit: 1}, []string{note}},
		{"old", middleware.Selection{Older: time.Hour}, nil},
		{"not so old", middleware.Selection{Older: 1}, []string{free, running, note, pay}},
	} {
		rows, err := s.Select(i.Context(), c.sel)
		i.ok(err)
		i.same(c.what, operations(rows), c.want)
	}
	rows, err := s.Select(i.Context(), middleware.Selection{States: []middleware.State{middleware.Running}})
	if i.ok(err); !rows[0].OwnerMine || rows[0].Now.IsZero() || rows[0].Claimer.Run != "run-3" {
		i.Errorf("%+v", rows[0])
	}
}

func (i *inspected) pages(s Store, all ...string) {
	slices.Sort(all) // ids are as long as each other, and begin with their time
	for _, size := range []int{0, 1, 3, 4, 9} {
		var read []string
		for after := ""; ; after = read[len(read)-1] {
			rows, err := s.Page(i.Context(), after, size)
			i.ok(err)
			if len(rows) == 0 {
				break
			}
			if read = append(read, operations(rows)...); size > 0 && len(rows) > size || len(read) > len(all) {
				i.Fatalf("pages of %d: %v", size, read)
			}
		}
		i.same(fmt.Sprint("pages of ", size), read, all)
	}
}

func (i *inspected) calls(s, other Store, pay, foreign middleware.Row) {
	calls, err := s.Calls(i.Context(), pay.Operation)
	i.ok(err)
	i.same("calls", calls, []middleware.Alias{
		{Run: "run-1", Turn: 1, Position: 1, CallID: "call-1", Tool: "pay", Arguments: "0c", Fingerprint: "0d"},
		{Run: "run-9", Turn: 4, Position: 2, CallID: "again", Tool: "pay", Arguments: "0a", Fingerprint: "0b"},
	})
	for _, id := range []string{foreign.Operation, "op_none", ""} {
		if calls, err = s.Calls(i.Context(), id); err != nil || len(calls) > 0 {
			i.Errorf("%q has the calls %v, %v", id, calls, err)
		}
	}
	if calls, err = other.Calls(i.Context(), foreign.Operation); err != nil || len(calls) != 1 {
		i.Errorf("another tenant's has the calls %v, %v", calls, err)
	}
}

func (i *inspected) counts(s Store) {
	counts, err := s.Counts(i.Context())
	i.ok(err)
	for k, c := range counts {
		if c.Oldest.IsZero() || time.Since(c.Oldest).Abs() > time.Hour {
			i.Error(c)
		}
		counts[k].Oldest = time.Time{}
	}
	i.same("counts", counts, []middleware.Count{
		{Tool: "note", State: middleware.Done, N: 1}, {Tool: "pay", State: middleware.Done, N: 1},
		{Tool: "pay", State: middleware.Free, N: 1}, {Tool: "pay", State: middleware.Running, N: 1},
	})
}

// runs looks at what the journal adds: verdicts, and a tenant that has nothing but a run.
func (i *inspected) runs(s Store, tenant func(string) Store) {
	for _, name := range []string{"", "reader"} {
		l := tenant(name)
		r, err := l.Begin(i.Context(), journal.Start{Run: registry.Run{ID: "run"}, API: "chat"})
		i.ok(err)
		_, err = l.Append(i.Context(), journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 1, Answer: []byte("{}")}})
		i.ok(err)
		i.ok(l.Leave(i.Context(), journal.Leaving{Run: "run", Token: r.Token, Turn: 1, Outputs: []journal.Output{
			{Position: 0, Verdict: registry.Executed}, {Position: 1, Verdict: registry.Refused}, {Position: 2, Verdict: registry.Executed},
		}}))
	}
	verdicts, err := s.Verdicts(i.Context())
	i.ok(err)
	i.same("verdicts", verdicts, map[registry.Verdict]int{registry.Executed: 2, registry.Refused: 1})
	names, err := s.Namespaces(i.Context())
	i.ok(err)
	i.same("namespaces", names, []string{"", "acme", "reader"})
}
