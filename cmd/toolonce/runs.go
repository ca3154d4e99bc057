package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
)

// runSummary is a run as a list shows it.
type runSummary struct {
	Run          string `json:"run"`
	Namespace    string `json:"namespace,omitempty"`
	Conversation string `json:"conversation,omitempty"`
	API          string `json:"api"`
	Created      string `json:"created"`
	Turns        int    `json:"turns"`
	State        string `json:"state"` // finished, forgotten, going on, left, or owner unknown
}

func summaryOf(namespace string, s *journal.Summary) runSummary {
	state := "left"
	switch {
	case s.Forgotten:
		state = "forgotten"
	case s.Finished:
		state = "finished"
	case s.Taken:
		state = "going on"
	case s.OwnerUnknown:
		state = "owner unknown"
	}
	return runSummary{
		Run: s.Run.ID, Namespace: namespace, Conversation: s.Run.Conversation, API: s.API, Created: stamp(s.Created), Turns: s.Turns, State: state,
	}
}

func runsVerb(fs *flag.FlagSet) action {
	var q journal.RunsQuery
	fs.StringVar(&q.Conversation, "conversation", "", "only those of the `conversation`")
	fs.BoolVar(&q.Unfinished, "unfinished", false, "only those that have no answer yet")
	fs.IntVar(&q.Limit, "limit", 100, "at most `N` runs of a tenant; 0 for all")
	all := fs.Bool("all-namespaces", false, "of every tenant")
	return func(ctx context.Context, e *env, _ []string) error {
		if q.Limit < 0 {
			return usagef("runs: -limit %d: say how many, or 0 for all", q.Limit)
		}
		names, err := e.tenants(ctx, *all)
		if err != nil {
			return err
		}
		var found []runSummary
		q, limit, cut := q, q.Limit, false
		if limit > 0 {
			q.Limit++
		}
		for _, name := range names {
			more, err := e.tenant(name).Runs(ctx, q)
			if err != nil {
				return err
			}
			if limit > 0 && len(more) > limit {
				more, cut = more[:limit], true
			}
			for i := range more {
				found = append(found, summaryOf(name, &more[i]))
			}
		}
		if e.json {
			for _, r := range found {
				if err := e.printJSON(r); err != nil {
					return err
				}
			}
		} else {
			e.runs(found, *all)
		}
		if cut {
			e.beyond(1, true)
		}
		if e.json || *all {
			return nil
		}
		return e.hint(ctx)
	}
}

func (e *env) runs(found []runSummary, all bool) {
	if len(found) == 0 {
		e.printf("no runs\n")
		return
	}
	head := []string{"RUN", "CONVERSATION", "API", "TURNS", "STATE", "CREATED", "AGE"}
	if all {
		head = append([]string{"NAMESPACE"}, head...)
	}
	var rows [][]string
	for _, r := range found {
		created, _ := time.Parse(time.RFC3339, r.Created) // our own
		row := []string{r.Run, r.Conversation, r.API, fmt.Sprint(r.Turns), r.State, r.Created, age(time.Since(created))}
		if all {
			row = append([]string{r.Namespace}, row...)
		}
		rows = append(rows, row)
	}
	e.table(head, rows)
}
