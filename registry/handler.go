package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Handler answers one call. An error means: end the run and tell the caller alone. What the model should read is a
// Result. Where both are given, the call is answered and the run ends after its turn.
type Handler func(ctx context.Context, call *Call) (Result, error)

// Middleware wraps a Handler. The call it sees is resolved: Info, Refusal and Operation are set.
type Middleware func(next Handler) Handler

// Handler freezes the registry and returns resolve > mw[0] > mw[1] > … > run. It panics where a tool's Undoes names a
// tool that is not registered or cannot be undone. The handler is safe for concurrent use.
func (r *Registry) Handler(mw ...Middleware) Handler {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkUndoes(); err != nil {
		panic(fmt.Sprintf("registry: making a handler: %v", err))
	}
	r.frozen = true
	h := Handler(Invoke)
	for _, m := range slices.Backward(mw) {
		h = m(h)
	}
	return func(ctx context.Context, call *Call) (Result, error) {
		c := *call
		c.resolve(r)
		res, err := h(ctx, &c)
		if te, ok := errors.AsType[*ToolError](err); ok { // no guard in the chain has dealt with it
			return c.Failed("", te), nil
		}
		return res, err
	}
}

// Invoke is the innermost handler: it asks Check where nobody has, and runs the tool. A tool's own error comes back as a
// *ToolError. It is for middleware that runs stored calls; all others use Registry.Handler. A call that needs an approval
// is not run unless it is marked as Approved.
func Invoke(ctx context.Context, c *Call) (Result, error) {
	if err := c.Check(ctx); err != nil {
		return c.Refused(err), nil
	}
	if c.unapproved() {
		return Result{}, fmt.Errorf("registry: running tool %q: it needs an approval, and nobody in the chain asks for it; it was not run: put middleware.Once into the chain", c.Tool)
	}
	out, err := c.info.run(ctx, c.value)
	if err != nil {
		return Result{}, &ToolError{err}
	}
	return Result{Content: out, Verdict: Executed}, nil
}

// unknownTool names up to three tools whose names are spelt alike.
func unknownTool(r *Registry, name string) error {
	type near struct {
		name string
		d    int
	}
	var ns []near
	name = clip(name, 64)
	for _, t := range r.tools {
		if d := distance(strings.ToLower(name), strings.ToLower(t.Name)); d <= 1+len(t.Name)/3 {
			ns = append(ns, near{t.Name, d})
		}
	}
	slices.SortStableFunc(ns, func(a, b near) int { return cmp.Compare(a.d, b.d) })
	e := &unknownToolError{name: name}
	for _, n := range ns[:min(3, len(ns))] {
		e.nearest = append(e.nearest, n.name)
	}
	return e
}

// distance is the Levenshtein distance of two short names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := prev
			if a[i] != b[j] {
				cost++
			}
			prev = row[j+1]
			row[j+1] = min(cost, row[j]+1, prev+1)
		}
	}
	return row[len(b)]
}
