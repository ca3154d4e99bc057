package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

// pruned is what was forgotten of one tenant, or would be.
type pruned struct {
	Namespace  string `json:"namespace,omitempty"`
	DryRun     bool   `json:"dry_run"`
	Contents   int    `json:"contents"`
	Identities int    `json:"identities"`
	Approvals  int    `json:"approvals"`
	Runs       int    `json:"runs"`
	Needed     int    `json:"needed"`
	Oldest     string `json:"oldest_content,omitempty"`
}

func pruneVerb(fs *flag.FlagSet) action {
	yes := fs.Bool("yes", false, "do it: without, nothing is changed and only the counts are printed")
	all := fs.Bool("all-namespaces", false, "of every tenant")
	who := personFlags(fs)
	older := fs.Duration("older-than", 0, "keep what is younger, such as 8760h, even where the tool keeps it for less")
	return func(ctx context.Context, e *env, _ []string) error {
		if *older < 0 {
			return usagef("prune: -older-than %v: say how long, such as 8760h, or leave it out", *older)
		}
		var act middleware.Act
		if *yes {
			var err error
			if act, err = who.act("prune"); err != nil {
				return err
			}
			if act.Kind = middleware.ActPruned; *older > 0 {
				act.Detail = "-older-than " + older.String()
			}
		}
		names, err := e.tenants(ctx, *all)
		if err != nil {
			return err
		}
		for _, name := range names {
			if *yes {
				if _, err := e.tenant(name).Record(ctx, act); err != nil {
					return err
				}
			}
			if err := e.prune(ctx, name, *all, middleware.PruneOptions{DryRun: !*yes, OlderThan: *older}); err != nil {
				return err
			}
		}
		if !*yes && !e.json {
			e.printf("nothing was changed: say -yes to do it\n")
		}
		return nil
	}
}

// prune forgets what one tenant need not keep. What was forgotten before an error is printed too.
func (e *env) prune(ctx context.Context, namespace string, label bool, opts middleware.PruneOptions) error {
	wipe := func() {}
	if e.tty && !e.json {
		opts.Progress = func(r middleware.PruneReport) {
			e.printf("\r%d contents, %d operations, %d approvals, %d runs …", r.Contents, r.Identities, r.Approvals, r.Runs)
		}
		wipe = func() { e.printf("\r%80s\r", "") }
	}
	r, err := e.tenant(namespace).Prune(ctx, opts)
	wipe()
	if e.json {
		return errors.Join(err, e.printJSON(pruned{
			Namespace: namespace, DryRun: opts.DryRun, Contents: r.Contents, Identities: r.Identities, Approvals: r.Approvals, Runs: r.Runs,
			Needed: r.Needed, Oldest: stamp(r.Oldest),
		}))
	}
	if label {
		e.printf("namespace %q: ", namespace)
	}
	verb := "forgotten"
	if opts.DryRun {
		verb = "would be forgotten"
	}
	e.printf("%s: input and result of %d operations, %d operations altogether, %d approvals, the words of %d runs\n",
		verb, r.Contents, r.Identities, r.Approvals, r.Runs)
	if r.Needed > 0 {
		e.printf("kept: %d operations whose time is over, but which a run that is not finished may ask for\n", r.Needed)
	}
	if !r.Oldest.IsZero() {
		e.printf("kept: the oldest content is of %s, %s ago\n", stamp(r.Oldest), age(time.Since(r.Oldest)))
	}
	if err != nil {
		return fmt.Errorf("pruning stopped, and can be begun again: %w", err)
	}
	return nil
}

// terminal reports whether a person reads along.
func terminal(out any) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
