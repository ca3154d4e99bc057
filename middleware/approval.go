package middleware

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/toolonce/toolonce/internal/visible"
)

// ApprovalState says what became of the question whether a call may run.
type ApprovalState string

const (
	// Pending means that nobody has answered.
	Pending ApprovalState = "pending"
	// Approved means that the call may be claimed once.
	Approved ApprovalState = "approved"
	// Denied means that it may not, and no equal call of its run either.
	Denied ApprovalState = "denied"
	// Spent means that it was approved, and claimed.
	Spent ApprovalState = "spent"
)

// Approval is the question whether one call may run, and a person's answer to it. Times are the store's clock.
type Approval struct {
	ID    string // random
	State ApprovalState

	// What it is bound to, besides the namespace. Each of these must be that of the claim that spends it.
	Call       Alias // Run, Turn, Position, Tool and Fingerprint count
	Identity   string
	Generation int    // which downstream key the identity is at
	Input      []byte // canonical, of the call; see Shown
	Unreadable error  // why Input could not be opened, nil where it was

	Conversation string
	RepeatOf     string // the operation that it repeats on purpose, "" for none
	Asked        time.Time
	Expires      time.Time // when it counts no more, pending or approved
	Decided      time.Time // zero until somebody has answered
	By, Why      string
	Operation    string // that it was spent on, "" until then

	Now time.Time // the store's clock when it was read
}

// Shown is the input as a person should see it: control, direction and zero-width characters are written out, so that
// nothing in it can pass for something else.
func (a *Approval) Shown() string { return visible.Text(string(a.Input)) }

// Closed says why the question cannot be answered, in words for the person who tried: it has been, it has expired, or
// nobody waits for it any more.
func (a *Approval) Closed() string {
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	switch {
	case a.State == Pending && !a.Now.Before(a.Expires):
		return "the question has expired at " + at(a.Expires) + ": start the run again, and it is asked anew"
	case a.State == Pending:
		return "nobody waits for an answer any more: the call is answered, or it is being done"
	case a.State == Spent:
		return fmt.Sprintf("%s has approved it at %s, and it was claimed: operation %s", a.By, at(a.Decided), a.Operation)
	default:
		return fmt.Sprintf("%s has %s it at %s", a.By, a.State, at(a.Decided))
	}
}

// Decision is a person's answer.
type Decision struct {
	// Run, Turn and Position say which call; ID, where it is set, which question about it.
	Run            string
	Turn, Position int
	ID             string
	Approve        bool
	By, Why        string
}

// PausedError ends a run until a person has decided. The calls were not run; the same calls again are, once they are
// approved, or are refused.
type PausedError struct {
	// Waiting are the questions, in call order: one at least.
	Waiting []Approval
}

func (e *PausedError) Error() string {
	var calls []string
	for _, a := range e.Waiting {
		calls = append(calls, fmt.Sprintf("%s at turn %d, position %d", a.Call.Tool, a.Call.Turn, a.Call.Position))
	}
	return "middleware: waiting for a person to approve or deny " + strings.Join(calls, "; ") + ": decide, and start the same run again"
}

// Approver is a Ledger that keeps approvals: what tools with NeedsApproval need. Its claims honour Claim.Approval.
//
//  1. Ask stores a pending question, unless one is stored that counts for the call: then it gives that and stores nothing.
//     A denied one counts where run, tool and fingerprint are equal, whatever its place and date. A pending or approved
//     one counts where all that it is bound to is equal and it has not expired. With a negative time it never stores, and
//     gives a zero Approval where none counts.
//  2. Decide answers the pending question at a place. It is ErrLost, with what was asked there last, where none is pending
//     (an expired one is not, nor one whose operation runs, is in doubt or is done by now), or another than ID, or several
//     are and ID does not say which.
//  3. A Claim with an Approval wins only if that is approved, not expired, and bound to this very claim: namespace, place,
//     tool, fingerprint, identity, input, and the generation that the claim gets. It is spent in the claim's transaction,
//     so it serves one claim.
//  4. Approvals lists by state, oldest first; no states are all. Of those asked for as pending, one whose operation runs,
//     is in doubt or is done by now is left out.
type Approver interface {
	Ask(ctx context.Context, a Approval, expires time.Duration) (Approval, error)
	Decide(ctx context.Context, d Decision) (Approval, error)
	Approvals(ctx context.Context, states ...ApprovalState) ([]Approval, error)
}
