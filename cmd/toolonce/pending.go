package main

import (
	"context"
	"flag"
	"slices"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

// question is a call that waits for a person, as it is printed. Its arguments are data of users and are left out unless
// asked for.
type question struct {
	Approval  string `json:"approval"`
	State     string `json:"state"`
	Namespace string `json:"namespace,omitempty"`
	Tool      string `json:"tool"`
	Run       string `json:"run"`
	Turn      int    `json:"turn"`
	Position  int    `json:"position"`
	Asked     string `json:"asked"`
	Expires   string `json:"expires"`
	By        string `json:"decided_by,omitempty"`
	Why       string `json:"decided_why,omitempty"`
	Operation string `json:"operation,omitempty"` // that it was spent on
	Repeats   string `json:"repeats,omitempty"`   // the operation that it would make once more
	Arguments string `json:"arguments,omitempty"`

	Unreadable string `json:"unreadable,omitempty"` // why the arguments could not be opened

	age, left time.Duration
}

func questionOf(namespace string, a *middleware.Approval, data bool) question {
	q := question{
		Approval: a.ID, State: string(a.State), Namespace: namespace, Tool: a.Call.Tool, Run: a.Call.Run, Turn: a.Call.Turn,
		Position: a.Call.Position, Asked: stamp(a.Asked), Expires: stamp(a.Expires), By: a.By, Why: a.Why, Operation: a.Operation,
		age: a.Now.Sub(a.Asked), left: a.Expires.Sub(a.Now),
	}
	if a.Unreadable != nil {
		q.Unreadable = closed(a.Unreadable)
	}
	if data {
		q.Repeats, q.Arguments = a.RepeatOf, string(a.Input)
	}
	return q
}

// open reports whether a question can be answered.
func open(a *middleware.Approval) bool {
	return a.State == middleware.Pending && a.Now.Before(a.Expires)
}

func pendingVerb(fs *flag.FlagSet) action {
	data := fs.Bool("show-data", false, "print arguments too, and which operation would be repeated: they may hold personal data")
	all := fs.Bool("all-namespaces", false, "of every tenant")
	return func(ctx context.Context, e *env, _ []string) error {
		names, err := e.tenants(ctx, *all)
		if err != nil {
			return err
		}
		var questions []question
		for _, name := range names {
			pending, err := e.tenant(name).Approvals(ctx, middleware.Pending)
			if err != nil {
				return err
			}
			pending = slices.DeleteFunc(pending, func(a middleware.Approval) bool { return !open(&a) })
			for i := range pending {
				questions = append(questions, questionOf(name, &pending[i], *data))
			}
		}
		if e.json {
			for _, q := range questions {
				if err := e.printJSON(q); err != nil {
					return err
				}
			}
			return nil
		}
		if e.questions(questions, *data, *all); *all {
			return nil
		}
		return e.hint(ctx)
	}
}

func (e *env) questions(questions []question, data, all bool) {
	if len(questions) == 0 {
		e.printf("nothing waits for a person\n")
		return
	}
	row := func(namespace, repeats, arguments string, rest ...string) []string {
		if all {
			rest = append([]string{namespace}, rest...)
		}
		if data {
			rest = append(rest, repeats, arguments)
		}
		return rest
	}
	var cells [][]string
	for _, q := range questions {
		if q.Unreadable != "" {
			q.Arguments = "(" + q.Unreadable + ")"
		}
		cells = append(cells, row(q.Namespace, q.Repeats, q.Arguments, q.Approval, q.Tool, q.Run, place(q.Turn, q.Position), age(q.age), "in "+age(q.left)))
	}
	e.table(row("NAMESPACE", "REPEATS", "ARGUMENTS", "APPROVAL", "TOOL", "RUN", "TURN", "AGE", "EXPIRES"), cells)
}
