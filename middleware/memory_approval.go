package middleware

import (
	"bytes"
	"context"
	"crypto/rand"
	"slices"
	"time"
)

type memoryApproval struct {
	Approval
	namespace string
}

// Ask implements Approver.
func (l *MemoryLedger) Ask(_ context.Context, a Approval, expires time.Duration) (Approval, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var stored *memoryApproval
	for _, s := range l.approvals {
		if s.namespace == l.namespace && s.counts(&a, now) && (stored == nil || s.State == Denied) {
			stored = s
		}
	}
	if stored == nil && expires < 0 {
		return Approval{}, nil
	}
	if stored == nil {
		stored = &memoryApproval{namespace: l.namespace, Approval: Approval{
			ID: rand.Text(), State: Pending, Call: a.Call, Identity: a.Identity, Generation: a.Generation,
			Conversation: a.Conversation, Input: slices.Clone(a.Input), RepeatOf: a.RepeatOf, Asked: now, Expires: now.Add(expires),
		}}
		l.approvals = append(l.approvals, stored)
	}
	return stored.read(now), nil
}

// Decide implements Approver.
func (l *MemoryLedger) Decide(_ context.Context, d Decision) (Approval, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var last Approval
	var open []*memoryApproval
	for _, a := range l.approvals {
		if a.namespace != l.namespace || a.Call.Run != d.Run || a.Call.Turn != d.Turn || a.Call.Position != d.Position {
			continue
		}
		last = a.read(now)
		if a.State == Pending && now.Before(a.Expires) && !l.moot(a, now) && (d.ID == "" || d.ID == a.ID) {
			open = append(open, a)
		}
	}
	if len(open) != 1 {
		return last, ErrLost
	}
	a := open[0]
	a.State, a.Decided, a.By, a.Why = Denied, now, d.By, d.Why
	if d.Approve {
		a.State = Approved
	}
	act := DecisionAct(&a.Approval)
	act.Namespace = l.namespace
	l.record(act)
	return a.read(now), nil
}

// Approvals implements Approver.
func (l *MemoryLedger) Approvals(_ context.Context, states ...ApprovalState) ([]Approval, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var all []Approval
	for _, a := range l.approvals {
		if a.namespace == l.namespace && (len(states) == 0 || slices.Contains(states, a.State) && !l.moot(a, now)) {
			all = append(all, a.read(now))
		}
	}
	return all, nil
}

// moot reports whether nobody waits for an answer any more: somebody does it, or has done it.
func (l *MemoryLedger) moot(a *memoryApproval, now time.Time) bool {
	r := l.live(a.Identity)
	if a.State != Pending || r == nil || r.State == Free {
		return false
	}
	row := r.Row
	row.Now = now
	return !row.Expired()
}

// approved is the approval that the claim spends if it wins, nil for none that serves it.
func (l *MemoryLedger) approved(c Claim, generation int, now time.Time) *memoryApproval {
	claimed := Approval{Call: c.Call, Identity: c.Identity, Generation: generation, Input: c.Input}
	for _, a := range l.approvals {
		if a.ID == c.Approval && a.namespace == l.namespace && a.State == Approved && now.Before(a.Expires) && a.bound(&claimed) {
			return a
		}
	}
	return nil
}

// counts reports whether a question that is asked anew is answered by this one.
func (a *memoryApproval) counts(asked *Approval, now time.Time) bool {
	if a.State == Denied {
		return a.Call.Run == asked.Call.Run && a.Call.Tool == asked.Call.Tool && a.Call.Fingerprint == asked.Call.Fingerprint
	}
	return a.State != Spent && now.Before(a.Expires) && a.bound(asked)
}

// bound reports whether two approvals are bound to the same.
func (a *memoryApproval) bound(b *Approval) bool {
	x, y := &a.Call, &b.Call
	return x.Run == y.Run && x.Turn == y.Turn && x.Position == y.Position && x.Tool == y.Tool && x.Fingerprint == y.Fingerprint &&
		a.Identity == b.Identity && a.Generation == b.Generation && bytes.Equal(a.Input, b.Input)
}

func (a *memoryApproval) read(now time.Time) Approval {
	c := a.Approval
	c.Input, c.Now = slices.Clone(a.Input), now
	return c
}
