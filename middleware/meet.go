package middleware

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// meeting is a call that has met the row of its operation. It is bound to that operation: each look at the row decides
// anew, fingerprint first.
type meeting struct {
	g    *guard
	c    *registry.Call
	row  Row
	same bool // the call has been here before: it is noted, and counts no repeat
	// fingerprint is that of the call when it was seen first, so that a deploy which changes schemas does not make a
	// stored call another one.
	fingerprint string
	noted       bool
	repeats     int
	asked       bool // this call has had Lookup asked
	until       time.Time
	poll        time.Duration
}

func (g *guard) meet(ctx context.Context, c *registry.Call, row Row, same bool) (registry.Result, bool, error) {
	m := &meeting{g: g, c: c, row: row, same: same, noted: same, repeats: row.Repeats, until: time.Now().Add(g.Wait), poll: 20 * time.Millisecond}
	_, m.fingerprint = c.Operation()
	if same {
		m.fingerprint = row.Found.Fingerprint
	}
	res, again, err := m.answer(ctx)
	if errors.Is(err, ErrLost) { // the row went away while the call was noted
		return registry.Result{}, true, nil
	}
	if again || err != nil || same || g.Repeats < 0 || m.repeats <= g.Repeats {
		return res, again, err
	}
	return res, false, &RepeatError{Tool: c.Tool, Operation: m.row.Operation, Repeats: m.repeats}
}

func (m *meeting) answer(ctx context.Context) (res registry.Result, again bool, err error) {
	for {
		if m.row.State == Free {
			return registry.Result{}, true, nil
		}
		if err := m.note(ctx); err != nil {
			return registry.Result{}, false, err
		}
		if m.row.Fingerprint != m.fingerprint {
			return conflict(m.c, &m.row), false, nil
		}
		waited := false
		switch {
		case m.row.State == Done || m.row.State == Released:
			return m.g.doneAnswer(m.c, &m.row, m.same, m.repeats), false, nil
		case m.row.State == Running && m.row.OwnerGone:
			return m.recover(ctx)
		case m.row.State == InDoubt && (m.row.Settle == "" || m.row.SettleGone): // nobody asks Lookup
			if info := m.c.Info(); info != nil && info.HasLookup && !m.asked {
				m.asked = true
				return m.recover(ctx)
			}
			return unknown(&m.row), false, nil
		default: // somebody runs it, or asks Lookup
			if waited, err = m.wait(ctx); err != nil {
				return registry.Result{}, false, err
			}
		}
		if !waited {
			if m.row.State == InDoubt {
				return unknown(&m.row), false, nil
			}
			return inProgress(&m.row), false, nil
		}
	}
}

// note keeps the call as one that meant the operation, before it waits or is answered.
func (m *meeting) note(ctx context.Context) error {
	if m.noted {
		return nil
	}
	n, err := m.g.ledger.Note(context.WithoutCancel(ctx), m.row.Operation, aliasOf(m.c))
	if err != nil && !errors.Is(err, ErrLost) && (m.row.State == Done || m.row.State == Released) {
		m.g.Logger.Warn("toolonce: a repeat could not be noted", "tool", m.c.Tool, "operation", m.row.Operation, "error", err)
		return nil // what is done can be told all the same
	}
	if err != nil {
		return err
	}
	m.noted, m.repeats = true, n
	return nil
}

// wait looks at the row again once it has changed. It is false where the time to wait is over. What this process knows
// it says at once; what another does is polled.
func (m *meeting) wait(ctx context.Context) (bool, error) {
	for {
		changed, unsaved := m.g.ledger.Handlers().watch(m.row.Operation)
		row, ok, err := m.g.find(ctx, m.c, Query{Operation: m.row.Operation, Run: m.c.Run.ID})
		switch {
		case err != nil:
			return false, err
		case !ok:
			return false, ErrLost
		case unsaved != nil && (row.State == Running || row.State == InDoubt):
			m.row = *unsaved
			return true, nil
		case row.State != m.row.State || row.Token != m.row.Token || row.Settle != m.row.Settle || abandoned(&row):
			m.row = row
			return true, nil
		}
		left := time.Until(m.until)
		if left <= 0 {
			return false, nil
		}
		timer := time.NewTimer(min(m.poll, left))
		select {
		case <-changed:
		case <-timer.C:
			m.poll = min(2*m.poll, time.Second)
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
		timer.Stop()
	}
}

// abandoned reports whether whoever works on a row is gone.
func abandoned(r *Row) bool {
	return r.State == Running && r.OwnerGone || r.State == InDoubt && r.SettleGone
}

// recover settles an orphan, or asks Lookup about an operation in doubt, and waits for what comes of it. Whoever is
// overtaken decides anew.
func (m *meeting) recover(ctx context.Context) (registry.Result, bool, error) {
	a, err := m.g.takeOver(ctx, m.c, m.row)
	switch {
	case errors.Is(err, ErrLost):
		return registry.Result{}, true, nil
	case err != nil:
		return registry.Result{}, false, err
	case a == nil: // nothing but a person can settle it
		row := m.row
		row.State, row.Since = InDoubt, time.Now()
		return unknown(&row), false, nil
	}
	a.own, a.fresh, a.caller, a.repeats = m.claimed(), true, m.c, m.repeats
	a.start(a.next)
	res, err := a.wait(ctx)
	return res, false, err
}

// claimed reports whether the call is the one that the present claim was made for.
func (m *meeting) claimed() bool { return m.same && claimedBy(&m.row, m.c) }

func claimedBy(r *Row, c *registry.Call) bool {
	return r.Claimer.Run == c.Run.ID && r.Claimer.Turn == c.Turn && r.Claimer.Position == c.Position && c.Turn > 0
}

// takeOver makes the first step of settling a row whose owner is gone, or that is in doubt. The attempt it returns is
// not started; nil means that the row is in doubt now and stays so.
func (g *guard) takeOver(ctx context.Context, c *registry.Call, row Row) (*attempt, error) {
	info := c.Info()
	stored, err := c.With(row.Input)
	held := g.ledger.Handlers().Open(row.Operation) // from before the step on, as for a claim
	defer held.End()
	t := Transition{Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, State: row.State}
	if row.State == Running {
		t.Owner = row.Owner
	}
	change := func(s Step) (Row, error) {
		t.Step = s
		return g.ledger.Change(context.WithoutCancel(ctx), t)
	}
	began := time.Now()
	begin := func(row Row) *attempt {
		a := g.attempt(ctx, stored, row, false)
		a.began = began
		return a
	}
	switch {
	case err != nil: // the tool is gone, or its input no longer fits
	case info.Effect == registry.IdempotentWrite || info.Recovery == registry.Rerun && !info.HasLookup:
		g.again(info, &t)
		if row, err = change(Again); err == nil {
			a := begin(row)
			a.next = a.invoke
			return a, nil
		}
		if !errors.Is(err, ErrLost) {
			return nil, err
		}
	case info.HasLookup:
		t.Mark = rand.Text()
		if row, err = change(Take); err != nil {
			return nil, err
		}
		a := begin(row)
		a.mark, a.next = t.Mark, a.ask
		return a, nil
	}
	if row.State == Running || t.Owner != "" {
		_, err = change(Doubt)
		return nil, err
	}
	return nil, nil
}

// again fills in the bounds of another attempt.
func (g *guard) again(info *registry.Info, t *Transition) {
	t.Deadline = info.Timeout + g.Margin
	if info.Effect == registry.IdempotentWrite {
		return
	}
	t.MaxAttempts = maxAttempts
	t.AbsentAfter = info.AbsentAfter
	if !info.HasLookup {
		t.KeyWindow = max(info.KeyWindow-g.Margin, 1)
	}
}
