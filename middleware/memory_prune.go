package middleware

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// Prune implements Pruner, in one batch.
func (l *MemoryLedger) Prune(ctx context.Context, opts PruneOptions) (PruneReport, error) {
	if ctx.Err() != nil {
		return PruneReport{}, context.Cause(ctx)
	}
	report := l.prune(opts)
	if opts.Progress != nil {
		opts.Progress(report)
	}
	return report, nil
}

func (l *MemoryLedger) prune(opts PruneOptions) (report PruneReport) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for id, r := range l.rows {
		if r.Namespace != l.namespace {
			continue
		}
		content, over := r.Input != nil || r.HasResult, r.contentOver(now, opts.OlderThan)
		switch {
		case over && l.forgettable(r, now):
			report.Identities++
			if !opts.DryRun {
				delete(l.rows, id)
				l.aliases = slices.DeleteFunc(l.aliases, func(a memoryAlias) bool { return a.operation == id })
			}
		case over && content:
			report.Contents++
			if !opts.DryRun {
				r.Input, r.Result, r.HasResult = nil, "", false
			}
		case content && (report.Oldest.IsZero() || r.Created.Before(report.Oldest)):
			report.Oldest = r.Created
		}
	}
	approvals := len(l.approvals)
	kept := slices.DeleteFunc(slices.Clone(l.approvals), func(a *memoryApproval) bool {
		return a.namespace == l.namespace && !now.Before(a.Expires.Add(max(registry.DefaultRetain, opts.OlderThan)))
	})
	if report.Approvals = approvals - len(kept); !opts.DryRun {
		l.approvals = kept
	}
	return report
}

// contentOver reports whether input and result have been kept long enough.
func (r *memoryRow) contentOver(now time.Time, olderThan time.Duration) bool {
	since := r.DoneAt
	switch r.State {
	case Done, Released:
	case Free:
		since = r.Since
	default:
		return false
	}
	return !now.Before(since.Add(max(cmp.Or(r.retain, registry.DefaultRetain), olderThan)))
}

// forgettable reports whether nobody needs to know the operation any more.
func (l *MemoryLedger) forgettable(r *memoryRow, now time.Time) bool {
	if r.Late {
		return false
	}
	if r.State == Free {
		return !r.ByPerson && !r.Unclear && r.Generation == 0 && !now.Before(r.Deadline)
	}
	return r.State == Done && expired(r, now) && l.undoing(r.Operation) == ""
}
