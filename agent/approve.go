package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolonce/toolonce/middleware"
)

// Approve answers a question of a paused run, one of PausedError.Waiting or of the store's Approvals: the call may run
// once. Start the same run again, in any process, and it does. by says who has decided, and is required; why may be "".
// Both are kept.
//
// It is an error, and nothing is changed, where the store is no middleware.Approver. It is one that wraps
// middleware.ErrLost where the question has been answered (the error says by whom and when), has expired, or stands
// there no more.
func (l *Loop) Approve(ctx context.Context, a middleware.Approval, by, why string) error {
	return l.decide(ctx, "approving", a, middleware.Decision{Approve: true, By: by, Why: why})
}

// Deny is [Loop.Approve] for a call that must not run, nor any with the same arguments in its run. The model is told
// why, and not by whom.
func (l *Loop) Deny(ctx context.Context, a middleware.Approval, by, why string) error {
	return l.decide(ctx, "denying", a, middleware.Decision{By: by, Why: why})
}

func (l *Loop) decide(ctx context.Context, doing string, a middleware.Approval, d middleware.Decision) error {
	d.Run, d.Turn, d.Position, d.ID = a.Call.Run, a.Call.Turn, a.Call.Position, a.ID
	approver, ok := l.store.(middleware.Approver)
	var err error
	switch {
	case !ok:
		err = errors.New("the store keeps no approvals: use one that is a middleware.Approver, as sqlitestore is")
	case d.By == "":
		err = errors.New("nobody is named who has decided it: say by whom")
	default:
		var last middleware.Approval
		if last, err = approver.Decide(ctx, d); errors.Is(err, middleware.ErrLost) {
			err = &undecided{undecidable(&last, d.ID)}
		}
	}
	if err != nil {
		return fmt.Errorf("agent: %s a call of %s at turn %d, position %d of run %q: %w", doing, a.Call.Tool, d.Turn, d.Position, d.Run, err)
	}
	return nil
}

// undecided is ErrLost in words for whoever wants to decide.
type undecided struct{ why string }

func (e *undecided) Error() string { return e.why }
func (e *undecided) Unwrap() error { return middleware.ErrLost }

// undecidable says why the question called id cannot be answered. last is what was asked at its place last.
func undecidable(last *middleware.Approval, id string) string {
	switch {
	case last.ID == "":
		return "nothing has been asked about it: start the run, and it is"
	case id != "" && last.ID != id, id == "" && last.State == middleware.Pending && last.Now.Before(last.Expires):
		return "another question stands there now: take it from the store's Approvals"
	}
	return last.Closed()
}
