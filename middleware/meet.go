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
	*visit
	g    *guard
	row  Row
	same bool // the call has been here before: it counts no repeat
	// fingerprint is that of the call when it was seen first, so that a deploy which changes schemas does not make a
	// stored call another one.
	fingerprint string
	until       time.Time
	poll        time.Duration
}

func (g *guard) meet(ctx context.Context, v *visit, row Row, same bool) (registry.Result, bool, error) {
	if v.OnlyAsk { // what is there needs no approval
		return registry.Result{}, false, nil
	}
	m := &meeting{visit: v, g: g, row: row, same: same, until: time.Now().Add(g.Wait), poll: 20 * time.Millisecond}
	_, m.fingerprint = v.Operation()
	if same {
		m.fingerprint = row.Found.Fingerprint
	}
	if same {
		v.noted, v.repeats = row.Operation, row.Repeats
	}
	res, again, err := m.answer(ctx)
	if errors.Is(err, ErrLost) { // the row went away while the call was noted
		return registry.Result{}, true, nil
	}
	if again || err != nil || same || g.Repeats < 0 || v.repeats <= g.Repeats {
		return res, again, err
	}
	return res, false, &RepeatError{Tool: v.Tool, Operation: m.row.Operation, Repeats: v.repeats}
}

func (m *meeting) answer(ctx context.Context) (res registry.Result, again bool, err error) {
	for {
		if m.row.State == Free {
			return registry.Result{}, true, nil
		}
		if m.Turn > 0 { // a place is noted before the wait; without a place each note counts, so it waits for the answer
			if err := m.note(ctx); err != nil {
				return registry.Result{}, false, err
			}
		}
		if m.row.Fingerprint != m.fingerprint {
			return m.tell(ctx, conflict)
		}
		switch {
		case m.row.State == Done || m.row.State == Released:
			return m.tell(ctx, func(v *visit, row *Row) registry.Result { return m.g.doneAnswer(v.Call, row, m.same, v.repeats) })
		case m.row.State == Running && m.row.OwnerGone:
			return m.recover(ctx)
		case m.row.State == InDoubt && (m.row.Settle == "" || m.row.SettleGone): // nobody asks Lookup
			if info := m.Info(); info != nil && info.HasLookup && !m.asked {
				m.asked = true
				return m.recover(ctx)
			}
			return m.tell(ctx, unknown)
		}
		// Somebody runs it, or asks Lookup: then it is asked for this call too.
		m.asked = m.asked || m.row.State == InDoubt
		began := time.Now()
		waited, err := m.wait(ctx)
		m.g.timed(ctx, m.Call, "wait", began, err)
		switch {
		case err != nil:
			return registry.Result{}, false, err
		case !waited && m.row.State == InDoubt:
			return m.tell(ctx, unknown)
		case !waited:
			return m.tell(ctx, inProgress)
		}
	}
}

// tell notes the call, if it is not yet, and answers it.
func (m *meeting) tell(ctx context.Context, answer func(*visit, *Row) registry.Result) (registry.Result, bool, error) {
	if err := m.note(ctx); err != nil {
		return registry.Result{}, false, err
	}
	return answer(m.visit, &m.row), false, nil
}

// note keeps the call as one that meant the operation.
func (m *meeting) note(ctx context.Context) error {
	if m.noted == m.row.Operation {
		return nil
	}
	n, err := m.g.ledger.Note(context.WithoutCancel(ctx), m.row.Operation, aliasOf(m.Call))
	if err != nil && !errors.Is(err, ErrLost) && (m.row.State == Done || m.row.State == Released) {
		m.g.Logger.Warn("toolonce: a repeat could not be noted", "event", "repeat_not_noted", "tool", m.Tool, "operation", m.row.Operation, "error", err)
		return nil // what is done can be told all the same
	}
	if err != nil {
		return err
	}
	m.noted, m.repeats = m.row.Operation, n
	return nil
}

// wait looks at the row again once it has changed. It is false where the time to wait is over. What this process knows
// it says at once; what another does is polled.
func (m *meeting) wait(ctx context.Context) (bool, error) {
	for {
		changed, unsaved := m.g.ledger.Handlers().watch(m.row.Operation)
		row, ok, err := m.g.find(ctx, m.Call, Query{Operation: m.row.Operation, Run: m.Run.ID})
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
			if m.noted == row.Operation { // who was noted and became the claimer is no repeat
				m.repeats = row.Repeats
			}
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
	if err := m.note(ctx); err != nil {
		return registry.Result{}, false, err
	}
	a, err := m.g.takeOver(ctx, m.Call, m.row)
	switch {
	case errors.Is(err, ErrLost):
		return registry.Result{}, true, nil
	case err != nil:
		return registry.Result{}, false, err
	case a == nil: // nothing but a person can settle it
		row := m.row
		row.State, row.Since = InDoubt, time.Now()
		return unknown(m.visit, &row), false, nil
	}
	a.own, a.fresh, a.caller, a.repeats = m.claimed(), true, m.Call, m.repeats
	a.start(a.next)
	res, err := a.wait(ctx)
	return res, false, err
}

// claimed reports whether the call is the one that the present claim was made for.
func (m *meeting) claimed() bool { return m.same && claimedBy(&m.row, m.Call) }

func claimedBy(r *Row, c *registry.Call) bool {
	return r.Claimer.Run == c.Run.ID && r.Claimer.Turn == c.Turn && r.Claimer.Position == c.Position && c.Turn > 0
}

// takeOver makes the first step of settling a row whose owner is gone, or that is in doubt. The attempt it returns is
// not started; nil means that the row is in doubt now and stays so.
func (g *guard) takeOver(ctx context.Context, c *registry.Call, row Row) (*attempt, error) {
	info := c.Info()
	stored, err := c.With(row.Input)
	held := g.open(&row) // from before the step on, as for a claim
	carried := false
	defer func() {
		if !carried {
			held.End()
		}
	}()
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
		a := g.attempt(ctx, stored, row, false, g.open(&row))
		a.began, a.mark = began, t.Mark
		a.next = a.invoke
		if t.Step == Take {
			a.next = a.ask
		}
		return a
	}
	// A step whose commit is in doubt is looked for, and carried on with if it was made: nobody else would.
	doubtful := func(err error) error {
		if !errors.Is(err, ErrLost) {
			carried = true
			g.carryOn(context.WithoutCancel(ctx), t, held, begin)
		}
		return err
	}
	switch {
	case err != nil: // the tool is gone, or its input no longer fits
	case info.Effect == registry.IdempotentWrite || info.Local || info.Recovery == registry.Rerun && !info.HasLookup:
		g.again(info, &t)
		if row, err = change(Again); err == nil {
			return begin(row), nil
		}
		if !errors.Is(err, ErrLost) {
			return nil, doubtful(err)
		}
	case info.HasLookup:
		t.Mark = rand.Text()
		if row, err = change(Take); err != nil {
			return nil, doubtful(err)
		}
		return begin(row), nil
	}
	if row.State == Running || t.Owner != "" {
		_, err = change(Doubt)
		return nil, err
	}
	return nil, nil
}

// carryOn goes on with a first step whose answer was lost, if it was made.
func (g *guard) carryOn(ctx context.Context, t Transition, held *Held, begin func(Row) *attempt) {
	held.set(func(*entry) { held.doubtful = true })
	g.janitor.do(func() bool {
		row, ok, err := g.ledger.Find(ctx, Query{Operation: t.Operation})
		if err != nil {
			return false
		}
		if ok && committed(&row, t) && held.carry() {
			a := begin(row)
			a.start(a.next)
		}
		held.End()
		return true
	})
}

// committed reports whether a step whose commit seemed to fail was made all the same.
func committed(row *Row, t Transition) bool {
	switch t.Step {
	case Take:
		return row.State == InDoubt && row.Settle == t.Mark
	case Again, Absent:
		return row.State == Running && row.Token == t.Token && row.Attempt == t.Attempt+1 && row.OwnerMine
	default:
		return false
	}
}

// again fills in the bounds of another attempt.
func (g *guard) again(info *registry.Info, t *Transition) {
	t.Deadline = info.Timeout + g.Margin
	if info.Effect == registry.IdempotentWrite || info.Local {
		return
	}
	t.MaxAttempts = maxAttempts
	t.AbsentAfter = info.AbsentAfter
	if !info.HasLookup {
		t.KeyWindow = max(info.KeyWindow-g.Margin, 1)
	}
}
