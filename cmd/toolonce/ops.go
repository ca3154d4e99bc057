package main

import (
	"cmp"
	"context"
	"flag"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/toolonce/toolonce/middleware"
)

// operation is a row as it is printed. Arguments and result are data of users and are left out unless asked for.
type operation struct {
	Operation  string `json:"operation"`
	State      string `json:"state"`
	Orphan     bool   `json:"orphan,omitempty"` // running, and its owner is gone
	Late       bool   `json:"late,omitempty"`   // a result came that could not be stored
	Tool       string `json:"tool"`
	Run        string `json:"run"`
	Turn       int    `json:"turn"`
	Position   int    `json:"position"`
	Attempt    int    `json:"attempt"`
	Since      string `json:"since"`
	Created    string `json:"created"`
	DoneAt     string `json:"done_at,omitempty"`
	Deadline   string `json:"deadline"`
	Generation int    `json:"generation"`
	Key        string `json:"downstream_key,omitempty"`
	Shown      string `json:"shown"` // what a verdict is bound to
	Undoes     string `json:"undoes,omitempty"`
	By         string `json:"settled_by,omitempty"`
	Why        string `json:"settled_why,omitempty"`
	Arguments  string `json:"arguments,omitempty"`
	Result     string `json:"result,omitempty"`
}

func operationOf(r *middleware.Row, data bool) operation {
	o := operation{
		Operation: r.Operation, State: string(r.State), Orphan: r.State == middleware.Running && r.OwnerGone, Late: r.Late,
		Tool: r.Tool, Run: r.Claimer.Run, Turn: r.Claimer.Turn, Position: r.Claimer.Position, Attempt: r.Attempt,
		Since: stamp(r.Since), Created: stamp(r.Created), DoneAt: stamp(r.DoneAt), Deadline: stamp(r.Deadline),
		Generation: r.Generation, Shown: shown(r), Undoes: r.Undoes, By: r.SettledBy, Why: r.SettledWhy,
	}
	if data {
		o.Key, o.Arguments, o.Result = r.Key, string(r.Input), r.Result
	}
	return o
}

func opsVerb(fs *flag.FlagSet) action {
	inDoubt := fs.Bool("in-doubt", false, "only those that need somebody: in doubt, or orphaned by a process that died")
	limit := fs.Int("limit", 100, "at most so `many`; 0 for all")
	return func(ctx context.Context, e *env, _ []string) error {
		var states []middleware.State
		ask := *limit
		if *inDoubt {
			states, ask = []middleware.State{middleware.InDoubt, middleware.Running}, 0 // orphans are told apart after reading
		}
		rows, err := e.store.List(ctx, states, ask)
		if err != nil {
			return err
		}
		if *inDoubt {
			rows = slices.DeleteFunc(rows, func(r middleware.Row) bool { return r.State == middleware.Running && !r.OwnerGone })
		}
		slices.SortStableFunc(rows, func(a, b middleware.Row) int { return cmp.Compare(urgency(&a), urgency(&b)) })
		if *limit > 0 && len(rows) > *limit {
			rows = rows[:*limit]
		}
		if e.json {
			for i := range rows {
				if err := e.printJSON(operationOf(&rows[i], false)); err != nil {
					return err
				}
			}
			return nil
		}
		return e.table(rows, *inDoubt)
	}
}

// urgency puts what needs somebody first.
func urgency(r *middleware.Row) int {
	switch {
	case r.State == middleware.InDoubt:
		return 0
	case r.State == middleware.Running && r.OwnerGone, r.Late:
		return 1
	default:
		return 2
	}
}

func (e *env) table(rows []middleware.Row, inDoubt bool) error {
	if len(rows) == 0 {
		what := "no operations"
		if inDoubt {
			what = "nothing is in doubt"
		}
		e.printf("%s\n", what)
		return nil
	}
	w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	tab := &env{out: w}
	tab.printf("OPERATION\tSTATE\tTOOL\tRUN\tTURN\tAGE\tNOTE\n")
	for i := range rows {
		r := &rows[i]
		tab.printf("%s\t%s\t%s\t%s\t%d.%d\t%s\t%s\n", r.Operation, r.State, escape(r.Tool), escape(r.Claimer.Run),
			r.Claimer.Turn, r.Claimer.Position, age(r.Now.Sub(r.Since)), note(r))
	}
	return w.Flush()
}

func note(r *middleware.Row) string {
	var notes []string
	if r.State == middleware.Running && r.OwnerGone {
		notes = append(notes, "orphan: its process has died")
	}
	if r.Late {
		notes = append(notes, "a late result could not be stored")
	}
	if r.SettledBy != "" {
		notes = append(notes, "settled by "+escape(r.SettledBy))
	}
	return strings.Join(notes, "; ")
}
