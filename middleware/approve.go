package middleware

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// approvalTime is how long a question, and an approval that nobody has used, counts.
const approvalTime = 24 * time.Hour

// repeat gives the identity of a call that repeats an operation on purpose, or says why it may not. The named operation
// is part of the identity, so that the repeat itself is made once.
func (g *guard) repeat(ctx context.Context, c *registry.Call) (identity string, no, err error) {
	base, fingerprint := c.Operation()
	row, ok, err := g.find(ctx, c, Query{Operation: c.RepeatOf(), Run: c.Run.ID})
	if err != nil {
		return "", nil, err
	}
	first := registry.Run{ID: row.Claimer.Run, Conversation: row.Conversation}
	switch {
	case !ok || row.Tool != c.Tool || row.Fingerprint != fingerprint || first.Scope() != c.Run.Scope():
		no = errors.New("repeat_of names no operation of this tool with these arguments here; leave it out, or take the id from already_done")
	case row.State != Done || row.Expired():
		no = errors.New("the operation that repeat_of names is not done; leave repeat_of out")
	case c.Asked.IsZero():
		no = errors.New("repeat_of cannot be honoured here: nobody can tell whether the user has asked again")
	case !row.DoneAt.Before(c.Asked):
		no = errors.New("the user has not asked again since this was done; it was not done again")
	}
	return repeatIdentity(base, row.Operation), no, nil
}

// repeatIdentity is the identity of a repeat on purpose: its own without that, and the operation that it repeats.
func repeatIdentity(identity, operation string) string {
	h := sha256.Sum256([]byte("repeat\x00" + identity + "\x00" + operation))
	return hex.EncodeToString(h[:])
}

// needsApproval asks the tool's NeedsApproval, up to the tool's Timeout.
func (g *guard) needsApproval(ctx context.Context, c *registry.Call) (bool, error) {
	if !c.Info().HasApproval {
		return false, nil
	}
	asked, needs := *c, false // what does not return must not meet the call again
	o, _ := g.within(ctx, func(ctx context.Context, c *registry.Call) (res registry.Result, err error) {
		needs, err = c.NeedsApproval(ctx)
		return res, err
	}, &asked)
	if o.err != nil {
		return false, fmt.Errorf("middleware: asking whether a call of %s needs an approval: %w", c.Tool, o.err)
	}
	return needs, nil
}

// approve finds the approval that a claim needs. A result tells the model that it was denied.
func (g *guard) approve(ctx context.Context, c *registry.Call, claim *Claim, generation int) (*registry.Result, error) {
	asks, expires := c.Info().Repeat == registry.RepeatApproved, approvalTime
	if claim.RepeatOf == "" || !asks {
		needs, err := g.needsApproval(ctx, c)
		if err != nil || !needs && !asks && !c.Info().HasApproval && !c.Resumed {
			return nil, err
		}
		if !needs { // a denial stands whatever the tool says by now
			expires = -1
		}
	}
	approver, ok := g.ledger.(Approver)
	switch {
	case expires < 0 && (!ok || c.Turn <= 0):
		return nil, nil
	case !ok:
		return nil, fmt.Errorf("middleware: %s needs an approval, and the ledger keeps none: use one that is an Approver, as sqlitestore is", c.Tool)
	case c.Turn <= 0:
		return nil, fmt.Errorf("middleware: %s needs an approval, which is bound to the call: %w", c.Tool, ErrNoTurn)
	}
	a, err := approver.Ask(context.WithoutCancel(ctx), Approval{
		Call: aliasOf(c), Identity: claim.Identity, Generation: generation, Conversation: c.Run.Conversation, Input: c.Input(), RepeatOf: claim.RepeatOf,
	}, expires)
	switch {
	case err != nil:
		return nil, fmt.Errorf("middleware: asking for an approval of a call of %s: %w", c.Tool, err)
	case a.State == Denied:
		reason := "a person has denied it; do not try it again"
		if a.Why != "" {
			reason = "a person has denied it: " + a.Why + "; do not try it again"
		}
		res := c.Refused(errors.New(reason))
		return &res, nil
	case expires < 0:
		return nil, nil
	case a.State == Approved:
		claim.Approval = a.ID
		return nil, nil
	}
	return nil, &PausedError{Waiting: []Approval{a}}
}
