package middleware

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// unclear settles what is unknown as the tool says, or leaves it in doubt.
func (a *attempt) unclear(returned bool) stage {
	info := a.call.Info()
	switch {
	case info.HasLookup:
		t := a.step(Take)
		t.State, t.Mark = Running, rand.Text()
		row, err := a.change(t, nil)
		if err != nil {
			return a.report(row, nil, false)
		}
		a.row, a.mark = &row, t.Mark
		return a.ask
	case info.Recovery == registry.Rerun && returned && a.row.Attempt < maxAttempts:
		return a.again
	}
	return a.doubt()
}

// again runs the handler once more with the same key, after a short pause.
func (a *attempt) again() stage {
	time.Sleep(time.Duration(a.row.Attempt*a.row.Attempt) * 250 * time.Millisecond)
	t := a.step(Again)
	a.g.again(a.call.Info(), &t)
	began := time.Now()
	row, err := a.change(t, nil)
	if err != nil { // the key window is over, or somebody settled it
		return a.doubt()
	}
	a.row, a.began = &row, began
	return a.invoke
}

func (a *attempt) doubt() stage {
	row, err := a.change(a.step(Doubt), nil)
	if err != nil {
		return a.report(row, nil, false)
	}
	return a.tell(unknown(&visit{Call: a.call}, &row), nil)
}

// ask has Lookup say whether it happened.
func (a *attempt) ask() stage {
	info := a.call.Info()
	ctx, cancel := context.WithTimeout(a.ctx, info.Timeout)
	out := make(chan outcome, 1)
	call := a.take()
	go func() {
		defer cancel()
		into(ctx, lookup, call, func(o outcome) { out <- o })
	}()
	timer := time.NewTimer(info.Timeout + min(graceTime, a.g.Margin))
	defer timer.Stop()
	select {
	case o := <-out:
		o = a.g.redacted(call, o)
		if o.err != nil && !registry.HasNoEffect(o.err) {
			a.g.tellError(a.ctx, a.call, o.err)
		}
		return a.settle(o)
	case <-timer.C:
		// What it finds late is a result. It is waited for elsewhere, since a late result of the handler may come first.
		late := a.g.attempt(a.ctx, a.call, *a.row, false, a.g.open(a.row))
		late.start(func() stage {
			o := a.g.redacted(call, <-out)
			if o.err == nil || unreadable(o.err) {
				return late.keep(Complete, o)
			}
			a.g.tellError(a.ctx, call, o.err)
			return nil
		})
		a.g.tellError(a.ctx, call, context.DeadlineExceeded)
		return a.settle(outcome{err: context.DeadlineExceeded})
	}
}

func lookup(ctx context.Context, c *registry.Call) (registry.Result, error) {
	s, err := c.Lookup(ctx)
	return registry.Result{Content: s, Verdict: registry.Replayed}, err
}

// settle ends the settling that this attempt holds.
func (a *attempt) settle(o outcome) stage {
	if o.err == nil || unreadable(o.err) {
		if !a.fresh {
			o.res.Verdict = registry.Executed
		}
		return a.keep(Found, o)
	}
	if registry.HasNoEffect(o.err) {
		t := a.step(Absent)
		a.g.again(a.call.Info(), &t)
		began := time.Now()
		if row, err := a.change(t, nil); err == nil {
			a.row, a.began = &row, began
			return a.invoke
		} // too early, or too often: it stays in doubt
	}
	row, err := a.change(a.step(Unsure), nil)
	if err != nil {
		return a.report(row, nil, false)
	}
	return a.tell(unknown(&visit{Call: a.call}, &row), nil)
}
