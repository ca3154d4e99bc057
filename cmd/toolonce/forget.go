package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/toolonce/toolonce/middleware"
)

// forgotten is what was erased of a run, or would be.
type forgotten struct {
	Run        string `json:"run"`
	Namespace  string `json:"namespace,omitempty"`
	DryRun     bool   `json:"dry_run"`
	Turns      int    `json:"turns"`
	Outputs    int    `json:"outputs"`
	Operations int    `json:"operations"`
	Approvals  int    `json:"approvals"`
	Ended      bool   `json:"ended"` // it was not finished
}

func forgetVerb(fs *flag.FlagSet) action {
	run := fs.String("run", "", "the `id` of the run (required)")
	yes := fs.Bool("yes", false, "do it: without, nothing is changed and only what would go is printed")
	who := personFlags(fs)
	return func(ctx context.Context, e *env, _ []string) error {
		if *run == "" {
			return usagef("forget: say which run: --run ID; toolonce runs lists them")
		}
		var act middleware.Act
		if *yes {
			var err error
			if act, err = who.act("forget"); err != nil {
				return err
			}
		}
		r, err := e.store.Forgettable(ctx, *run)
		if err == nil && *yes {
			act.Detail = countForgotten(r)
			r, err = e.store.Forget(ctx, *run, act)
		}
		if r == (middleware.ForgetReport{}) && err != nil {
			return e.notForgotten(*run, err)
		}
		return errors.Join(e.forgotten(*run, r, !*yes), err) // what was erased is told though something went wrong after it
	}
}

// notForgotten says what to do.
func (e *env) notForgotten(run string, err error) error {
	switch {
	case errors.Is(err, middleware.ErrUnsettled):
		return fmt.Errorf("nothing was changed: %w: toolonce ops -run %s%s lists them", err, quote(run), e.namespaceFlag())
	case errors.Is(err, middleware.ErrUnknownRun):
		return fmt.Errorf("there is no run %q in namespace %q: toolonce runs -all-namespaces lists them", run, e.namespace)
	}
	return err
}

func countForgotten(r middleware.ForgetReport) string {
	return fmt.Sprintf("%d turns, %d outputs of calls, input and result of %d operations, %d approvals", r.Turns, r.Outputs, r.Operations, r.Approvals)
}

func (e *env) forgotten(run string, r middleware.ForgetReport, dry bool) error {
	if e.json {
		return e.printJSON(forgotten{
			Run: run, Namespace: e.namespace, DryRun: dry, Turns: r.Turns, Outputs: r.Outputs, Operations: r.Operations, Approvals: r.Approvals, Ended: r.Ended,
		})
	}
	verb, ended := "forgotten", "the run was not finished, and nobody can go on with it any more"
	if dry {
		verb, ended = "would be forgotten", "the run is not finished: nobody could go on with it any more"
	}
	e.printf("%s: %s\n", verb, countForgotten(r))
	if r.Ended {
		e.printf("%s\n", ended)
	}
	if r.Operations > 0 {
		e.printf("kept: what became of the operations, so that none that was done is done again\n")
	}
	if dry {
		e.printf("nothing was changed: say -yes to do it; it cannot be undone\n")
	}
	return nil
}
