package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// stats is what a tenant has, or, without Tools, what the store takes.
type stats struct {
	Namespace  string                              `json:"namespace"`
	States     map[middleware.State]int            `json:"operations"`
	Tools      map[string]map[middleware.State]int `json:"tools"`
	Verdicts   map[registry.Verdict]int            `json:"verdicts"` // of the calls of stored runs
	Runs       int                                 `json:"runs"`
	Unfinished int                                 `json:"unfinished"`
	Pending    int                                 `json:"approvals_pending"`
	Oldest     string                              `json:"oldest_in_doubt,omitempty"`
	Age        float64                             `json:"oldest_in_doubt_s,omitempty"`

	oldest time.Duration
}

// sized is what the store takes, of all tenants.
type sized struct {
	Bytes map[string]int64 `json:"bytes"`
}

func statsVerb(fs *flag.FlagSet) action {
	all := fs.Bool("all-namespaces", false, "of every tenant")
	return func(ctx context.Context, e *env, _ []string) error {
		names, err := e.tenants(ctx, *all)
		if err != nil {
			return err
		}
		for _, name := range names {
			s, err := statsOf(ctx, name, e.tenant(name))
			if err != nil {
				return err
			}
			if !e.json {
				e.stats(s)
			} else if err := e.printJSON(s); err != nil {
				return err
			}
		}
		bytes, err := e.store.Sizes(ctx)
		if err != nil {
			return err
		}
		if e.json {
			return e.printJSON(sized{bytes})
		}
		var rows [][]string
		for _, name := range slices.Sorted(maps.Keys(bytes)) {
			rows = append(rows, []string{name, fmt.Sprint(bytes[name])})
		}
		e.table([]string{"ROOM", "BYTES"}, rows)
		return nil
	}
}

func statsOf(ctx context.Context, name string, s store) (*stats, error) {
	st := &stats{Namespace: name, States: map[middleware.State]int{}, Tools: map[string]map[middleware.State]int{}}
	counts, err := s.Counts(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range counts {
		if st.Tools[c.Tool] == nil {
			st.Tools[c.Tool] = map[middleware.State]int{}
		}
		st.States[c.State] += c.N
		st.Tools[c.Tool][c.State] += c.N
	}
	doubts, err := s.Select(ctx, middleware.Selection{States: []middleware.State{middleware.InDoubt}})
	if err != nil {
		return nil, err
	}
	if n := len(doubts); n > 0 { // the newest change is first
		r := &doubts[n-1]
		st.Oldest, st.oldest = stamp(r.Since), r.Now.Sub(r.Since)
		st.Age = st.oldest.Seconds()
	}
	if st.Verdicts, err = s.Verdicts(ctx); err != nil {
		return nil, err
	}
	runs, err := s.Runs(ctx, journal.RunsQuery{})
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		st.Runs++
		if !r.Finished {
			st.Unfinished++
		}
	}
	pending, err := s.Approvals(ctx, middleware.Pending)
	for i := range pending {
		if open(&pending[i]) {
			st.Pending++
		}
	}
	return st, err
}

func (e *env) stats(s *stats) {
	e.printf("namespace %q: %d runs, %d of them not finished; %d calls wait for a person\n", s.Namespace, s.Runs, s.Unfinished, s.Pending)
	if s.Oldest != "" {
		e.printf("the oldest operation in doubt is so since %s, for %s\n", s.Oldest, age(s.oldest))
	}
	head := []string{"TOOL"}
	for _, state := range states {
		head = append(head, string(state))
	}
	line := func(name string, counts map[middleware.State]int) []string {
		row := []string{name}
		for _, state := range states {
			row = append(row, fmt.Sprint(counts[state]))
		}
		return row
	}
	var rows [][]string
	for _, tool := range slices.Sorted(maps.Keys(s.Tools)) {
		rows = append(rows, line(tool, s.Tools[tool]))
	}
	e.table(head, append(rows, line("all", s.States)))
	rows = nil
	for _, v := range slices.Sorted(maps.Keys(s.Verdicts)) {
		rows = append(rows, []string{string(v), fmt.Sprint(s.Verdicts[v])})
	}
	if e.printf("\n"); len(rows) > 0 {
		e.table([]string{"VERDICT", "CALLS"}, rows)
		e.printf("\n")
	}
}
