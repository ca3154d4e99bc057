package middleware

import (
	"context"
	"fmt"
	"strings"
	"time"
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
	Generation int // which downstream key the identity is at

	Conversation string
	Input        []byte // canonical, of the call: what the person is shown
	RepeatOf     string // the operation that it repeats on purpose, "" for none
	Asked        time.Time
	Expires      time.Time // when it counts no more, pending or approved
	Decided      time.Time // zero until somebody has answered
	By, Why      string
	Operation    string // that it was spent on, "" until then

	Now time.Time // the store's clock when it was read
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
//     (an expired one is not), or another than ID, or several are and ID does not say which.
//  3. A Claim with an Approval wins only if that is approved, not expired, and bound to this very claim: namespace, place,
//     tool, fingerprint, identity, and the generation that the claim gets. It is spent in the claim's transaction, so it
//     serves one claim.
//  4. Approvals lists by state, oldest first; no states are all.
type Approver interface {
	Ask(ctx context.Context, a Approval, expires time.Duration) (Approval, error)
	Decide(ctx context.Context, d Decision) (Approval, error)
	Approvals(ctx context.Context, states ...ApprovalState) ([]Approval, error)
}
