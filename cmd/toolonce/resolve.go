package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// verdict is what a person says of an operation.
type verdict struct {
	happened, didNotHappen, newKey, ownerIsGone bool
	result, by, why, shown                      string
}

func resolveVerb(fs *flag.FlagSet) action {
	var v verdict
	fs.BoolVar(&v.happened, "happened", false, "it happened: repeats are told that it is done")
	fs.BoolVar(&v.didNotHappen, "did-not-happen", false, "it surely did not: the next call may do it")
	fs.StringVar(&v.result, "result", "", "with --happened: what the tool would have returned, as `JSON`")
	fs.BoolVar(&v.newKey, "new-key", false, "with --did-not-happen: give the provider a new idempotency key next time; the old one stops a refund you overlooked")
	fs.BoolVar(&v.ownerIsGone, "owner-is-gone", false, "you know that the process which ran it has ended, though nothing shows it")
	fs.StringVar(&v.by, "by", "", "your `name`, kept until the operation is claimed again (required)")
	fs.StringVar(&v.why, "why", "", "what you saw, kept like the name: `text` (required)")
	fs.StringVar(&v.shown, "shown", "", "the `value` that toolonce show printed: the verdict is refused if the operation has moved on since")
	return func(ctx context.Context, e *env, args []string) error {
		if err := v.check(); err != nil {
			return err
		}
		return e.resolve(ctx, args[0], v)
	}
}

func (v verdict) check() error {
	switch {
	case v.happened == v.didNotHappen:
		return usagef("resolve: say one of --happened and --did-not-happen")
	case strings.TrimSpace(v.by) == "" || strings.TrimSpace(v.why) == "":
		return usagef("resolve: say who settles it and why: --by NAME --why TEXT")
	case v.result != "" && !v.happened:
		return usagef("resolve: --result goes with --happened: what did not happen has none")
	case v.newKey && !v.didNotHappen:
		return usagef("resolve: --new-key goes with --did-not-happen")
	case v.result != "" && !json.Valid([]byte(v.result)):
		return usagef("resolve: --result is not JSON: a text goes in double quotes, as in --result '\"re_1\"'")
	}
	return nil
}

func (e *env) resolve(ctx context.Context, id string, v verdict) error {
	row, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	if v.shown != "" && v.shown != row.Shown() {
		return fmt.Errorf("operation %s has moved on since %s was shown (it is %s, %s now): look again with toolonce show", id, v.shown, row.State, row.Shown())
	}
	if v.result != "" && row.Unreadable != nil {
		return fmt.Errorf("operation %s is sealed, and --result would be stored so that its programs cannot read it: set %s to the key that sealed it, or leave --result out: %s",
			id, keysEnv, operators(row.Unreadable.Error()))
	}
	unknown := row.State == middleware.Running && row.OwnerUnknown
	switch {
	case unknown && !v.ownerIsGone:
		return fmt.Errorf("operation %s is running and nothing shows whether its process lives: its lock file is missing, as after the file was copied; if you know that the process has ended, say --owner-is-gone", id)
	case row.State == middleware.Running && !row.OwnerGone && !unknown:
		return fmt.Errorf("operation %s is running and its process lives: wait for it, or stop that process first", id)
	case row.State == middleware.Running && v.didNotHappen && row.Now.Before(row.Deadline):
		return e.refused(id, &row, &middleware.EarlyError{Until: row.Deadline})
	case row.State == middleware.Running:
		if unknown {
			if err := e.store.DeclareGone(ctx, row.Owner); err != nil {
				return err
			}
		}
		if row, err = e.store.Change(ctx, middleware.Transition{
			Step: middleware.Doubt, Operation: id, Token: row.Token, Attempt: row.Attempt, Owner: row.Owner,
		}); err != nil {
			return e.refused(id, &row, err)
		}
	case row.State != middleware.InDoubt:
		return fmt.Errorf("operation %s is %s: there is nothing to settle", id, row.State)
	}
	t := middleware.Transition{Step: middleware.Happened, Operation: id, Token: row.Token, Attempt: row.Attempt, By: v.by, Why: v.why}
	if v.happened {
		t.Result, t.HasResult, t.Resource = v.result, v.result != "", registry.ResourceHash(row.ResourceOut, v.result)
	} else {
		t.Step, t.NewKey = middleware.NotHappened, v.newKey
	}
	if row, err = e.store.Change(ctx, t); err != nil {
		return e.refused(id, &row, err)
	}
	if e.json {
		return e.printJSON(operationOf(&row, false))
	}
	e.printf("%s is %s now, settled by %s\n", id, row.State, escape(v.by))
	return nil
}

// refused says what the row is now, or until when it is too early.
func (e *env) refused(id string, row *middleware.Row, err error) error {
	if early, ok := errors.AsType[*middleware.EarlyError](err); ok {
		if early.Until.IsZero() {
			return fmt.Errorf("operation %s: %w", id, err)
		}
		return fmt.Errorf("operation %s: too early to say that it did not happen: a request may still land until %s, in %s",
			id, stamp(early.Until), age(early.Until.Sub(row.Now)+time.Second))
	}
	if errors.Is(err, middleware.ErrLost) {
		return fmt.Errorf("operation %s has changed meanwhile (it is %s now): look again with toolonce show", id, row.State)
	}
	return err
}
