package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/toolonce/toolonce/middleware"
)

// callArgs are the two ways to say which call is meant.
const callArgs = "APPROVAL | RUN TURN.POSITION"

func place(turn, position int) string { return fmt.Sprintf("%d.%d", turn, position) }

// decideVerb makes approve and deny.
func decideVerb(name string) func(*flag.FlagSet) action {
	return func(fs *flag.FlagSet) action {
		d := middleware.Decision{Approve: name == "approve"}
		fs.StringVar(&d.By, "by", "", "your `name`, which is kept (required)")
		fs.StringVar(&d.Why, "why", "", "the reason, which is kept; of a denial the model is told it: `text` (required)")
		return func(ctx context.Context, e *env, args []string) error {
			if strings.TrimSpace(d.By) == "" || strings.TrimSpace(d.Why) == "" {
				return usagef("%s: say who decides it and why: --by NAME --why TEXT", name)
			}
			return e.decide(ctx, args, d)
		}
	}
}

func (e *env) decide(ctx context.Context, args []string, d middleware.Decision) error {
	a, err := e.asked(ctx, args)
	if err != nil {
		return err
	}
	if d.Approve && a.Unreadable != nil {
		return fmt.Errorf("approval %s: nobody can see what would be approved: %s; deny it, or approve it with its key", a.ID, closed(a.Unreadable))
	}
	d.Run, d.Turn, d.Position, d.ID = a.Call.Run, a.Call.Turn, a.Call.Position, a.ID
	a, err = e.store.Decide(ctx, d)
	switch {
	case errors.Is(err, middleware.ErrLost) && a.ID == d.ID:
		return fmt.Errorf("approval %s: %s", d.ID, escape(a.Closed()))
	case errors.Is(err, middleware.ErrLost):
		return fmt.Errorf("approval %s is replaced by a later question: look again with toolonce pending", d.ID)
	case err != nil:
		return err
	case e.json:
		return e.printJSON(questionOf(e.namespace, &a, false))
	}
	e.printf("%s, %s of run %s, is %s by %s: start the run again\n", a.ID, escape(a.Call.Tool), escape(a.Call.Run), a.State, escape(a.By))
	return nil
}

// asked is the question that the arguments mean, if it can be answered.
func (e *env) asked(ctx context.Context, args []string) (middleware.Approval, error) {
	all, err := e.store.Approvals(ctx)
	if err != nil {
		return middleware.Approval{}, err
	}
	all = slices.DeleteFunc(all, func(a middleware.Approval) bool {
		if len(args) == 1 {
			return a.ID != args[0]
		}
		return a.Call.Run != args[0] || place(a.Call.Turn, a.Call.Position) != args[1]
	})
	if len(all) == 0 {
		return middleware.Approval{}, fmt.Errorf("nothing was asked about %q in namespace %q: toolonce pending lists what waits", strings.Join(args, " "), e.namespace)
	}
	last := all[len(all)-1]
	all = slices.DeleteFunc(all, func(a middleware.Approval) bool { return !open(&a) })
	switch len(all) {
	case 0:
		return last, fmt.Errorf("approval %s: %s", last.ID, escape(last.Closed()))
	case 1:
		return all[0], nil
	default: // a loop without a journal has asked again, and got another call there
		return all[0], fmt.Errorf("%d questions wait at %s of run %s: name one by its approval, as toolonce pending lists it", len(all), args[1], args[0])
	}
}
