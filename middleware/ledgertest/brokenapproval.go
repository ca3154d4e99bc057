package ledgertest

import (
	"context"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

func brokenApprovals() []BrokenLedger {
	return []BrokenLedger{
		{
			Name: "an approval is not spent", Wrap: faulty(unspent),
			Fails: "approval/serves one claim",
			Also:  []string{"approval/is spent by the claim that it serves, by whatever way", "approval/of 50 claimers with one approval one wins", "forget/approvals lose their input, and those that wait expire"},
		},
		{
			Name: "what an approval is bound to is not compared", Wrap: faulty(unbound),
			Fails: "approval/is not spent on another identity",
			Also:  []string{"approval/is not spent on another *"},
		},
		{
			Name: "what is repeated need not be done", Wrap: faulty(anyRepeat),
			Fails: "repeat/of a row that is in doubt is not won",
			Also: []string{
				"repeat/of * is not won", "namespaces/a repeat on purpose does not cross",
				"approval/stays approved where the claim is not won",
			},
		},
	}
}

// unspent leaves an approval as it was when a claim is won with it.
func unspent() *fault {
	return &fault{
		claim: retried(func(ctx context.Context, l middleware.Ledger, c *middleware.Claim) bool {
			a := approvalOf(ctx, l, c.Approval)
			c.Approval = ""
			return a.State == middleware.Spent
		}),
		approval: func(a *middleware.Approval) {
			if a.State == middleware.Spent {
				a.State, a.Operation = middleware.Approved, ""
			}
		},
	}
}

// unbound takes any approval for one of the claim.
func unbound() *fault {
	return &fault{claim: retried(func(ctx context.Context, l middleware.Ledger, c *middleware.Claim) bool {
		a := approvalOf(ctx, l, c.Approval)
		c.Approval = ""
		return a.State == middleware.Approved && a.Now.Before(a.Expires)
	})}
}

// anyRepeat does not look at what is repeated.
func anyRepeat() *fault {
	return &fault{claim: retried(func(_ context.Context, _ middleware.Ledger, c *middleware.Claim) bool {
		named := c.RepeatOf != ""
		c.RepeatOf = ""
		return named
	})}
}

// retried makes a claim that is not won once more where loosen says so, after it has taken a condition from it.
func retried(loosen func(context.Context, middleware.Ledger, *middleware.Claim) bool) claimer {
	return func(ctx context.Context, l middleware.Ledger, c middleware.Claim) (middleware.Row, bool, error) {
		row, won, err := l.Claim(ctx, c)
		if won || err != nil || !loosen(ctx, l, &c) {
			return row, won, err
		}
		return l.Claim(ctx, c)
	}
}

// approvalOf is zero for one that is not there.
func approvalOf(ctx context.Context, l middleware.Ledger, id string) middleware.Approval {
	if a, err := approver(l); err == nil {
		all, _ := a.Approvals(ctx)
		for _, a := range all {
			if a.ID == id {
				return a
			}
		}
	}
	return middleware.Approval{}
}

func (b *brokenLedger) bent(a middleware.Approval) middleware.Approval {
	if b.approval != nil {
		b.approval(&a)
	}
	return a
}

func (b *brokenLedger) Ask(ctx context.Context, a middleware.Approval, expires time.Duration) (middleware.Approval, error) {
	l, err := approver(b.Ledger)
	if err != nil {
		return a, err
	}
	a, err = l.Ask(ctx, a, expires)
	return b.bent(a), err
}

func (b *brokenLedger) Decide(ctx context.Context, d middleware.Decision) (middleware.Approval, error) {
	l, err := approver(b.Ledger)
	if err != nil {
		return middleware.Approval{}, err
	}
	a, err := l.Decide(ctx, d)
	return b.bent(a), err
}

func (b *brokenLedger) Approvals(ctx context.Context, states ...middleware.ApprovalState) ([]middleware.Approval, error) {
	l, err := approver(b.Ledger)
	if err != nil {
		return nil, err
	}
	all, err := l.Approvals(ctx, states...)
	for i, a := range all {
		all[i] = b.bent(a)
	}
	return all, err
}
