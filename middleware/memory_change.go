package middleware

import (
	"context"
	"time"
)

// Change implements Ledger.
func (l *MemoryLedger) Change(_ context.Context, t Transition) (Row, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.row(t.Operation)
	if r == nil {
		return Row{}, ErrLost
	}
	now := time.Now()
	if err := l.allowed(r, t, now); err != nil {
		stored := (r.State == Done || r.State == Released) && r.Token == t.Token && r.Result == t.Result && r.HasResult == t.HasResult
		r.Late = r.Late || t.Step == Complete && !stored
		return l.read(r, ""), err
	}
	l.apply(r, t, now)
	if a, ok := VerdictAct(&t); ok {
		a.Namespace = l.namespace
		l.record(a)
	}
	return l.read(r, ""), nil
}

// allowed is the condition of each step.
func (l *MemoryLedger) allowed(r *memoryRow, t Transition, now time.Time) error {
	is := func(ok bool) error {
		if !ok {
			return ErrLost
		}
		return nil
	}
	token := r.Token == t.Token
	attempt := token && r.Attempt == t.Attempt
	mine := attempt && r.State == InDoubt && r.Settle == t.Mark && t.Mark != ""
	owner := r.Owner == l.owner
	if t.Owner != "" {
		owner = r.Owner == t.Owner && l.gone[t.Owner]
	}
	switch t.Step {
	case Complete:
		return is(token && (r.State == Running || r.State == InDoubt || r.State == Free && r.ByPerson))
	case GiveBack:
		return is(attempt && (r.State == Running || r.State == InDoubt))
	case Doubt:
		return is(attempt && r.State == Running && owner)
	case Again:
		return is(attempt && r.State == Running && owner && !l.handlers.Running(r.Operation) &&
			below(r.Attempt, t.MaxAttempts) && (t.KeyWindow == 0 || now.Before(r.KeySince.Add(t.KeyWindow))))
	case Take:
		if t.State == Running {
			return is(attempt && r.State == Running && owner)
		}
		return is(attempt && r.State == InDoubt && t.State == InDoubt && (r.Settle == "" || l.gone[r.settler]))
	case Found, Unsure:
		return is(mine)
	case Absent:
		if !mine || !below(r.Attempt, t.MaxAttempts) {
			return ErrLost
		}
		return l.over(r, now, t.AbsentAfter)
	case Happened:
		return is(attempt && r.State == InDoubt)
	case NotHappened:
		if !attempt || r.State != InDoubt {
			return ErrLost
		}
		return l.over(r, now, 0)
	default:
		return ErrLost
	}
}

// over says whether no request of an earlier attempt can land any more.
func (l *MemoryLedger) over(r *memoryRow, now time.Time, after time.Duration) error {
	if l.handlers.Running(r.Operation) {
		return &EarlyError{}
	}
	if until := r.Deadline.Add(after); now.Before(until) {
		return &EarlyError{Until: until}
	}
	return nil
}

func below(attempt, bound int) bool { return bound == 0 || attempt < bound }

func (l *MemoryLedger) apply(r *memoryRow, t Transition, now time.Time) {
	state := func(s State) {
		if r.State != s {
			r.State, r.Since = s, now
		}
	}
	switch t.Step {
	case Complete, Found, Happened:
		state(Done)
		r.Result, r.HasResult, r.DoneAt, r.Settle, r.ByPerson = t.Result, t.HasResult, now, "", false
		if t.Resource != "" {
			r.Resource = t.Resource
		}
		if r.keep > 0 {
			r.Expires = now.Add(r.keep)
		}
		if u := l.row(r.Undoes); r.Undoes != "" && u != nil && u.State == Done {
			u.State, u.Since = Released, now
		}
	case GiveBack, NotHappened:
		state(Free)
		r.Settle, r.ByPerson = "", t.Step == NotHappened
		r.Unclear = r.Unclear || t.Unclear
		if t.NewKey {
			r.Generation++
			r.Key, r.Unclear = "", false
		}
	case Doubt:
		state(InDoubt)
		r.Unclear = true
	case Take:
		state(InDoubt)
		r.Settle, r.settler, r.Unclear = t.Mark, l.owner, true
	case Unsure:
		r.Settle = ""
	case Again, Absent:
		state(Running)
		r.Attempt++
		r.Owner, r.Settle, r.Unclear = l.owner, "", true
		r.Deadline = later(r.Deadline, now.Add(t.Deadline))
	}
	if t.By != "" {
		r.SettledBy, r.SettledWhy = t.By, t.Why
	}
}
