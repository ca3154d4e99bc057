package main

import (
	"context"
	"flag"

	"github.com/toolonce/toolonce/agent/journal"
)

// What export prints, a line each.
type (
	exportedOperation struct {
		Kind string `json:"kind"`
		operation
	}
	exportedApproval struct {
		Kind string `json:"kind"`
		question
	}
	exportedRun struct {
		Kind string `json:"kind"`
		storedRun
	}
)

// exportPage is how many operations are read at a time.
const exportPage = 1000

func exportVerb(fs *flag.FlagSet) action {
	data := fs.Bool("show-data", false, "print arguments, results, texts and downstream keys too: they may hold personal data")
	all := fs.Bool("all-namespaces", false, "of every tenant")
	return func(ctx context.Context, e *env, _ []string) error {
		names, err := e.tenants(ctx, *all)
		if err != nil {
			return err
		}
		for _, name := range names {
			for _, part := range []func(context.Context, string, bool) error{e.exportOperations, e.exportApprovals, e.exportRuns} {
				if err := part(ctx, name, *data); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

func (e *env) exportOperations(ctx context.Context, namespace string, data bool) error {
	for after := ""; ; {
		rows, err := e.tenant(namespace).Page(ctx, after, exportPage)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			o := operationOf(&rows[i], data)
			if o.Owner = rows[i].Owner; data {
				o.Key = rows[i].Key
			}
			if err := e.printJSON(exportedOperation{"operation", o}); err != nil {
				return err
			}
		}
		after = rows[len(rows)-1].Operation
	}
}

func (e *env) exportApprovals(ctx context.Context, namespace string, data bool) error {
	approvals, err := e.tenant(namespace).Approvals(ctx)
	if err != nil {
		return err
	}
	for i := range approvals {
		if err := e.printJSON(exportedApproval{"approval", questionOf(namespace, &approvals[i], data)}); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) exportRuns(ctx context.Context, namespace string, data bool) error {
	runs, err := e.tenant(namespace).Runs(ctx, journal.RunsQuery{})
	if err != nil {
		return err
	}
	for _, s := range runs {
		rec, ok, err := e.tenant(namespace).Read(ctx, s.Run.ID)
		if !ok && err != nil {
			return err
		}
		if !ok { // forgotten meanwhile
			continue
		}
		if err := e.printJSON(exportedRun{"run", storedRunOf(namespace, &rec, err, data)}); err != nil {
			return err
		}
	}
	return nil
}
