package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/toolonce/toolonce/middleware"
)

func (e *env) find(ctx context.Context, id string) (middleware.Row, error) {
	row, ok, err := e.store.Find(ctx, middleware.Query{Operation: id})
	if err == nil && !ok {
		err = fmt.Errorf("there is no operation %q in namespace %q: toolonce ops lists them", id, e.namespace)
	}
	return row, err
}

// call is one that meant an operation.
type call struct {
	Run      string `json:"run"`
	Turn     int    `json:"turn"` // 0: its loop has no count
	Position int    `json:"position"`
	ID       string `json:"call_id,omitempty"`
	Tool     string `json:"tool"`
	Claimed  bool   `json:"claimed,omitempty"` // it is the one that claimed the operation
}

func showVerb(fs *flag.FlagSet) action {
	data := fs.Bool("show-data", false, "print arguments and result too: they may hold personal data")
	return func(ctx context.Context, e *env, args []string) error {
		row, err := e.find(ctx, args[0])
		if err != nil {
			return err
		}
		o := operationOf(&row, *data)
		o.Owner, o.Key = row.Owner, row.Key
		calls, err := e.store.Calls(ctx, row.Operation)
		if err != nil {
			return err
		}
		for _, c := range calls {
			o.Calls = append(o.Calls, call{
				Run: c.Run, Turn: c.Turn, Position: c.Position, ID: c.CallID, Tool: c.Tool,
				Claimed: c.Run == o.Run && c.Turn == o.Turn && c.Position == o.Position,
			})
		}
		if err := e.approved(ctx, &o); err != nil {
			return err
		}
		if e.json {
			return e.printJSON(o)
		}
		e.show(&row, o)
		return nil
	}
}

// approved adds who has approved an operation, where somebody had to.
func (e *env) approved(ctx context.Context, o *operation) error {
	spent, err := e.store.Approvals(ctx, middleware.Spent)
	for _, a := range spent {
		if a.Operation == o.Operation {
			o.ApprovedBy, o.ApprovedAt, o.Reason = a.By, stamp(a.Decided), a.Why
		}
	}
	return err
}

func (e *env) show(r *middleware.Row, o operation) {
	line := func(name, value string) {
		if value != "" {
			e.printf("%-15s %s\n", name, escape(value))
		}
	}
	line("operation", o.Operation)
	state := o.State
	if o.Orphan {
		state += " (orphan: its process has died)"
	}
	if o.Unknown {
		state += " (owner unknown: its lock file is missing, as after the file was copied)"
	}
	line("state", state)
	line("tool", o.Tool)
	line("call", fmt.Sprintf("run %s, turn %d, position %d", o.Run, o.Turn, o.Position))
	for _, c := range o.Calls {
		if !c.Claimed {
			line("meant by", fmt.Sprintf("run %s, turn %d, position %d: %s", c.Run, c.Turn, c.Position, c.Tool))
		}
	}
	line("attempt", fmt.Sprint(o.Attempt))
	line("owner", o.Owner)
	line("created", o.Created)
	line("since", o.Since)
	line("done", o.DoneAt)
	line("deadline", o.Deadline)
	line("undoes", o.Undoes)
	line("repeats", o.RepeatOf)
	line("approved by", o.ApprovedBy)
	line("approved", o.ApprovedAt)
	line("reason", o.Reason)
	line("settled by", o.By)
	line("because", o.Why)
	if o.Late {
		line("late result", "a result came that could not be stored: look at the provider for a second effect")
	}
	line("downstream key", o.Key)
	line("generation", fmt.Sprint(o.Generation))
	line("unreadable", o.Unreadable)
	line("arguments", orSize(o.Arguments, len(r.Input)))
	line("result", orSize(o.Result, len(r.Result)))
	e.mend(r, o)
}

// orSize is how long a text is where it is not shown.
func orSize(text string, bytes int) string {
	if text == "" && bytes > 0 {
		return fmt.Sprintf("(%d bytes: --show-data prints them)", bytes)
	}
	return text
}

// mend says how to settle an operation that needs it.
func (e *env) mend(r *middleware.Row, o operation) {
	if r.State != middleware.InDoubt && !o.Orphan && !o.Unknown {
		return
	}
	e.printf("\nLook at the provider, then say one of:\n")
	rest := fmt.Sprintf("--by NAME --why TEXT --shown %s %s%s", o.Shown, e.storeArgs(), e.namespaceFlag())
	if o.Unknown {
		rest += " --owner-is-gone"
	}
	e.printf("  toolonce resolve %s --happened %s\n", o.Operation, rest)
	e.printf("  toolonce resolve %s --did-not-happen %s\n", o.Operation, rest)
}

func (e *env) namespaceFlag() string {
	if e.namespace == "" {
		return ""
	}
	return " -namespace " + quote(e.namespace)
}
