package middleware

import (
	"context"
	"errors"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// part is a part of a call that Timed is to be told of.
type part struct {
	call *registry.Call
	name string
	took time.Duration
	err  error
}

// timed tells the program how long a part of a call took, where nothing is at risk meanwhile.
func (g *guard) timed(ctx context.Context, c *registry.Call, name string, began time.Time, err error) {
	if g.Timed != nil {
		g.tellParts(ctx, []part{{c, name, time.Since(began), err}})
	}
}

// tellParts does so in a goroutine of its own: what a hook breaks or ends, decides nothing.
func (g *guard) tellParts(ctx context.Context, parts []part) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // it is for measuring alone
		for _, p := range parts {
			g.Timed(ctx, p.call, p.name, p.took, p.err)
		}
	}()
	<-done
}

// timed keeps a part until the outcome is stored, or cannot be.
func (a *attempt) timed(c *registry.Call, name string, took time.Duration, err error) {
	if a.g.Timed == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.parts = append(a.parts, part{c, name, took, err})
}

func (a *attempt) tellParts() {
	a.mu.Lock()
	parts := a.parts
	a.parts = nil
	a.mu.Unlock()
	if len(parts) > 0 {
		a.g.tellParts(a.ctx, parts)
	}
}

// redacted is what a handler or a Lookup came to as it is to be kept and told. What links it to an undo is taken before.
func (g *guard) redacted(c *registry.Call, o outcome) (kept outcome) {
	if !ran(o) && (o.err != nil || o.res.Verdict != registry.Replayed) {
		return o
	}
	o.resource = c.Info().ResultResource(o.res.Content)
	if g.Redact == nil {
		return o
	}
	defer func() {
		if recover() != nil { // it was done: only what came of it cannot be shown
			kept = outcome{err: &registry.ResultError{Err: errors.New("OnceOptions.Redact broke down")}, resource: o.resource}
		}
	}()
	o.res.Content = g.Redact(c, o.res.Content)
	return o
}
