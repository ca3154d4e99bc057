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
	Namespace  string `json:"namespace,omitempty"`
	Orphan     bool   `json:"orphan,omitempty"`        // running, and its owner is gone
	Unknown    bool   `json:"owner_unknown,omitempty"` // running, and nothing shows whether its owner lives
	Late       bool   `json:"late,omitempty"`          // a result came that could not be stored
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
	ApprovedBy string `json:"approved_by,omitempty"`
	ApprovedAt string `json:"approved_at,omitempty"`
	Reason     string `json:"approved_why,omitempty"`
	Arguments  string `json:"arguments,omitempty"`
	Result     string `json:"result,omitempty"`
}

func operationOf(r *middleware.Row, data bool) operation {
	o := operation{
		Operation: r.Operation, State: string(r.State), Namespace: r.Namespace, Late: r.Late,
		Orphan: r.State == middleware.Running && r.OwnerGone, Unknown: r.State == middleware.Running && r.OwnerUnknown,
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
	inDoubt := fs.Bool("in-doubt", false, "only those that need somebody: in doubt, or left by a process that died")
	all := fs.Bool("all-namespaces", false, "of every tenant")
	limit := fs.Int("limit", 100, "at most `N` operations; 0 for all")
	return func(ctx context.Context, e *env, _ []string) error {
		if *limit < 0 {
			return usagef("ops: -limit %d: say how many, or 0 for all", *limit)
		}
		names, err := e.store.Namespaces(ctx)
		if err != nil {
			return err
		}
		if !*all {
			names = []string{e.namespace}
		}
		var rows []middleware.Row
		for _, name := range names {
			more, err := list(ctx, e.tenant(name), *inDoubt, *limit)
			if err != nil {
				return err
			}
			rows = append(rows, more...)
		}
		slices.SortStableFunc(rows, func(a, b middleware.Row) int {
			return cmp.Or(cmp.Compare(urgency(&a), urgency(&b)), b.Since.Compare(a.Since))
		})
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
		if err := e.table(rows, *inDoubt, *all); err != nil || *all {
			return err
		}
		return e.hint(ctx)
	}
}

// list reads the operations of one tenant: all that need somebody, and of the others so many.
func list(ctx context.Context, s store, inDoubt bool, limit int) ([]middleware.Row, error) {
	rows, err := s.List(ctx, []middleware.State{middleware.InDoubt, middleware.Running}, 0)
	if err != nil {
		return nil, err
	}
	if inDoubt { // orphans are told apart after reading
		return slices.DeleteFunc(rows, func(r middleware.Row) bool { return urgency(&r) > 1 }), nil
	}
	more, err := s.List(ctx, []middleware.State{middleware.Done, middleware.Free, middleware.Released}, limit)
	return append(rows, more...), err
}

// hint says where else there are operations, so that an empty list is not taken for an empty store.
func (e *env) hint(ctx context.Context) error {
	names, err := e.store.Namespaces(ctx)
	if others := slices.DeleteFunc(names, func(n string) bool { return n == e.namespace }); len(others) > 0 {
		e.printf("(in namespace %q; the store has %d more: -all-namespaces)\n", e.namespace, len(others))
	}
	return err
}

// urgency puts what needs somebody first.
func urgency(r *middleware.Row) int {
	switch {
	case r.State == middleware.InDoubt:
		return 0
	case r.State == middleware.Running && (r.OwnerGone || r.OwnerUnknown), r.Late:
		return 1
	default:
		return 2
	}
}

func (e *env) table(rows []middleware.Row, inDoubt, all bool) error {
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
	if all {
		tab.printf("NAMESPACE\t")
	}
	tab.printf("OPERATION\tSTATE\tTOOL\tRUN\tTURN\tAGE\tNOTE\n")
	for i := range rows {
		r := &rows[i]
		if all {
			tab.printf("%s\t", escape(r.Namespace))
		}
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
	if r.State == middleware.Running && r.OwnerUnknown {
		notes = append(notes, "owner unknown: its lock file is missing")
	}
	if r.Late {
		notes = append(notes, "a late result could not be stored")
	}
	if r.SettledBy != "" {
		notes = append(notes, "settled by "+escape(r.SettledBy))
	}
	return strings.Join(notes, "; ")
}
