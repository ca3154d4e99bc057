package ledgertest

import (
	"context"

	"github.com/toolonce/toolonce/middleware"
)

func brokenPruning() []BrokenLedger {
	return []BrokenLedger{
		{
			Name: "content is forgotten at once", Wrap: faulty(retainsNothing),
			Fails: "prune/input and result stay before",
			Also: []string{
				"prune/input and result go when their time is over, and nothing else", "prune/an expired row whose content stays, stays",
				"prune/an expired row stays while it is undone", "prune/a released row stays, and its generation counts",
				"prune/what is too young for the caller stays", "prune/the oldest content is what is left",
			},
		},
		{
			Name: "a dry run forgets", Wrap: faulty(neverDry),
			Fails: "prune/a dry run counts and changes nothing",
			Also:  []string{"prune/the oldest content is what is left", "namespaces/prune does not cross"},
		},
	}
}

// retainsNothing does not keep how long content is to be kept.
func retainsNothing() *fault {
	return &fault{claim: func(ctx context.Context, l middleware.Ledger, c middleware.Claim) (middleware.Row, bool, error) {
		c.Retain = soon
		return l.Claim(ctx, c)
	}}
}

// neverDry does not look at DryRun.
func neverDry() *fault {
	return &fault{prune: func(o *middleware.PruneOptions) { o.DryRun = false }}
}

// Prune implements middleware.Pruner.
func (b *brokenLedger) Prune(ctx context.Context, opts middleware.PruneOptions) (middleware.PruneReport, error) {
	l, err := pruner(b.Ledger)
	if err != nil {
		return middleware.PruneReport{}, err
	}
	if b.prune != nil {
		b.prune(&opts)
	}
	return l.Prune(ctx, opts)
}
