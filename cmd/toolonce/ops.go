package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

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
	Owner      string `json:"owner,omitempty"`
	Generation int    `json:"generation"`
	Key        string `json:"downstream_key,omitempty"` // whoever has it can make the provider repeat its answer
	Shown      string `json:"shown"`                    // what a verdict is bound to
	Undoes     string `json:"undoes,omitempty"`
	RepeatOf   string `json:"repeat_of,omitempty"` // that it repeats on purpose
	By         string `json:"settled_by,omitempty"`
	Why        string `json:"settled_why,omitempty"`
	ApprovedBy string `json:"approved_by,omitempty"`
	ApprovedAt string `json:"approved_at,omitempty"`
	Reason     string `json:"approved_why,omitempty"`
	Unreadable string `json:"unreadable,omitempty"` // why arguments and result could not be opened
	Arguments  string `json:"arguments,omitempty"`
	Result     string `json:"result,omitempty"`

	Calls []call `json:"calls,omitempty"` // that meant it
}

func operationOf(r *middleware.Row, data bool) operation {
	o := operation{
		Operation: r.Operation, State: string(r.State), Namespace: r.Namespace, Late: r.Late,
		Orphan: r.State == middleware.Running && r.OwnerGone, Unknown: r.State == middleware.Running && r.OwnerUnknown,
		Tool: r.Tool, Run: r.Claimer.Run, Turn: r.Claimer.Turn, Position: r.Claimer.Position, Attempt: r.Attempt,
		Since: stamp(r.Since), Created: stamp(r.Created), DoneAt: stamp(r.DoneAt), Deadline: stamp(r.Deadline),
		Generation: r.Generation, Shown: r.Shown(), Undoes: r.Undoes, RepeatOf: r.RepeatOf, By: r.SettledBy, Why: r.SettledWhy,
	}
	if r.Unreadable != nil {
		o.Unreadable = closed(r.Unreadable)
	}
	if data {
		o.Arguments, o.Result = string(r.Input), r.Result
	}
	return o
}

// listing is what ops is asked for.
type listing struct {
	middleware.Selection
	inDoubt, all bool
	states       string
}

func opsVerb(fs *flag.FlagSet) action {
	var l listing
	fs.BoolVar(&l.inDoubt, "in-doubt", false, "only those that need somebody: in doubt, or left by a process that died")
	fs.StringVar(&l.states, "state", "", "only those in these `states`, such as done,free")
	fs.StringVar(&l.Tool, "tool", "", "only those of the tool of this `name`")
	fs.StringVar(&l.Run, "run", "", "only those that a call of the `run` means")
	fs.DurationVar(&l.Older, "older", 0, "only those that have not changed their state for so long, such as 24h")
	fs.BoolVar(&l.all, "all-namespaces", false, "of every tenant")
	fs.IntVar(&l.Limit, "limit", 100, "at most `N` operations; 0 for all")
	return func(ctx context.Context, e *env, _ []string) error {
		if err := l.check(); err != nil {
			return err
		}
		return e.ops(ctx, l)
	}
}

var states = []middleware.State{middleware.InDoubt, middleware.Running, middleware.Done, middleware.Free, middleware.Released}

func (l *listing) check() error {
	switch {
	case l.Limit < 0:
		return usagef("ops: -limit %d: say how many, or 0 for all", l.Limit)
	case l.Older < 0:
		return usagef("ops: -older %v: say how long, such as 24h", l.Older)
	case l.inDoubt && l.states != "":
		return usagef("ops: -in-doubt and -state: give one of them")
	case l.states == "":
		l.States = states
		return nil
	}
	for name := range strings.SplitSeq(l.states, ",") {
		s := middleware.State(strings.TrimSpace(name))
		if !slices.Contains(states, s) {
			return usagef("ops: there is no state %q: say in_doubt, running, done, free or released", name)
		}
		l.States = append(l.States, s)
	}
	return nil
}

func (e *env) ops(ctx context.Context, l listing) error {
	names, err := e.tenants(ctx, l.all)
	if err != nil {
		return err
	}
	var rows []middleware.Row
	cut := false // there are more than were read
	for _, name := range names {
		more, some, err := list(ctx, e.tenant(name), l)
		if err != nil {
			return err
		}
		rows, cut = append(rows, more...), cut || some
	}
	slices.SortStableFunc(rows, func(a, b middleware.Row) int {
		newest := b.Since.Compare(a.Since)
		if urgency(&a) < calm { // who waits for longest is first
			newest = -newest
		}
		return cmp.Or(cmp.Compare(urgency(&a), urgency(&b)), newest)
	})
	hidden := 0
	if l.Limit > 0 && len(rows) > l.Limit {
		rows, hidden = rows[:l.Limit], len(rows)-l.Limit
	}
	if e.json {
		for i := range rows {
			if err := e.printJSON(operationOf(&rows[i], false)); err != nil {
				return err
			}
		}
		e.beyond(hidden, cut)
		return nil
	}
	e.operations(rows, l)
	e.beyond(hidden, cut)
	if l.all {
		return nil
	}
	return e.hint(ctx)
}

// beyond says how many are not listed, with JSON beside the output.
func (e *env) beyond(hidden int, cut bool) {
	if hidden == 0 {
		return
	}
	what := fmt.Sprintf("%d more: -limit 0", hidden)
	if cut {
		what = "at least " + what
	}
	if e.json {
		e.complain(what)
		return
	}
	e.printf("(%s)\n", what)
}

// list reads the operations of one tenant: all that need somebody, and of the others one more than are asked for. cut says
// that there may be still more.
func list(ctx context.Context, s store, l listing) (rows []middleware.Row, cut bool, err error) {
	urgent, rest := l.Selection, l.Selection
	open := func(s middleware.State) bool { return s == middleware.InDoubt || s == middleware.Running }
	urgent.States = slices.DeleteFunc(slices.Clone(l.States), func(s middleware.State) bool { return !open(s) })
	rest.States = slices.DeleteFunc(slices.Clone(l.States), open)
	if urgent.Limit = 0; len(urgent.States) > 0 {
		if rows, err = s.Select(ctx, urgent); err != nil {
			return nil, false, err
		}
	}
	if l.inDoubt { // orphans are told apart after reading
		return slices.DeleteFunc(rows, func(r middleware.Row) bool { return urgency(&r) == calm }), false, nil
	}
	if len(rest.States) == 0 {
		return rows, false, nil
	}
	if l.Limit > 0 {
		rest.Limit++
	}
	more, err := s.Select(ctx, rest)
	return append(rows, more...), l.Limit > 0 && len(more) > l.Limit, err
}

func moreNamespaces(n int) string {
	if n == 1 {
		return "1 more namespace"
	}
	return fmt.Sprintf("%d more namespaces", n)
}

// hint says where else there are operations, so that an empty list is not taken for an empty store.
func (e *env) hint(ctx context.Context) error {
	names, err := e.store.Namespaces(ctx)
	if others := slices.DeleteFunc(names, func(n string) bool { return n == e.namespace }); len(others) > 0 {
		e.printf("(in namespace %q; the store has %s: -all-namespaces)\n", e.namespace, moreNamespaces(len(others)))
	}
	return err
}

// calm is the urgency of what needs nobody.
const calm = 2

// urgency puts what needs somebody first.
func urgency(r *middleware.Row) int {
	switch {
	case r.State == middleware.InDoubt:
		return 0
	case r.State == middleware.Running && (r.OwnerGone || r.OwnerUnknown), r.Late:
		return 1
	default:
		return calm
	}
}

func (e *env) operations(rows []middleware.Row, l listing) {
	if len(rows) == 0 {
		what := "no operations"
		if l.inDoubt {
			what = "nothing is in doubt"
		}
		e.printf("%s\n", what)
		return
	}
	head := []string{"OPERATION", "STATE", "TOOL", "RUN", "TURN", "AGE", "NOTE"}
	if l.all {
		head = append([]string{"NAMESPACE"}, head...)
	}
	var cells [][]string
	for i := range rows {
		r := &rows[i]
		line := []string{r.Operation, string(r.State), r.Tool, r.Claimer.Run, place(r.Claimer.Turn, r.Claimer.Position), age(r.Now.Sub(r.Since)), note(r)}
		if l.all {
			line = append([]string{r.Namespace}, line...)
		}
		cells = append(cells, line)
	}
	e.table(head, cells)
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
		notes = append(notes, "settled by "+r.SettledBy)
	}
	return strings.Join(notes, "; ")
}
