package middleware

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolonce/toolonce/registry"
)

// Recovered is what Recover made of one orphan.
type Recovered struct {
	Operation, Tool string
	// Verdict is registry.Executed, Replayed or AlreadyDone where the operation is done now, Failed where it is free,
	// OutcomeUnknown where a Lookup must be asked again later or a person must settle it, InProgress where another
	// process was first.
	Verdict registry.Verdict
}

// Recover goes once over a ledger's namespace and settles what it can: the orphans (operations whose owner has died) as
// their tools say, by Lookup, Rerun or in doubt for a person, and what is in doubt of tools that have a Lookup, which is
// asked again. Call it at start, in the background where Lookups are slow, and from time to time where a provider is slow
// to show effects: nothing counts as absent before the deadlines are over. The ledger must also be a Lister. It goes
// on after an error and returns all of them with what was settled.
func Recover(ctx context.Context, tools *registry.Registry, l Ledger, opts *OnceOptions) ([]Recovered, error) {
	g := newGuard(l, opts)
	g.next = registry.Invoke
	lister, ok := l.(Lister)
	if !ok {
		return nil, fmt.Errorf("middleware: recovering: a %T cannot list its rows: use a ledger that implements Lister", l)
	}
	rows, err := lister.List(ctx, []State{Running, InDoubt}, 0)
	if err != nil {
		return nil, fmt.Errorf("middleware: recovering: listing orphans: %w", err)
	}
	var done []Recovered
	var errs []error
	for _, row := range rows {
		if ctx.Err() != nil { // what is not begun waits for another time
			errs = append(errs, ctx.Err())
			break
		}
		if !abandoned(&row) && (row.State != InDoubt || row.Settle != "" || !asks(tools, row.Tool)) {
			continue
		}
		v, err := g.recoverRow(ctx, tools, row)
		if err != nil { // the others must not wait for it
			errs = append(errs, fmt.Errorf("middleware: recovering operation %s of %s: %w", row.Operation, row.Tool, err))
			continue
		}
		done = append(done, Recovered{Operation: row.Operation, Tool: row.Tool, Verdict: v})
	}
	return done, errors.Join(errs...)
}

// asks reports whether a tool has a Lookup.
func asks(tools *registry.Registry, name string) bool {
	for _, t := range tools.Tools() {
		if t.Name == name {
			return t.HasLookup
		}
	}
	return false
}

func (g *guard) recoverRow(ctx context.Context, tools *registry.Registry, row Row) (registry.Verdict, error) {
	if err := readable(row.Tool, &row); err != nil {
		return "", err
	}
	at := row.Claimer
	call := registry.Call{
		Run: registry.Run{ID: at.Run, Conversation: row.Conversation}, Turn: at.Turn, Position: at.Position, ID: at.CallID, Tool: row.Tool,
	}
	c, err := tools.Stored(call, row.Input)
	if err != nil { // its tool is gone or has changed: a person settles it
		c = &call
	}
	a, err := g.takeOver(ctx, c, row)
	switch {
	case errors.Is(err, ErrLost):
		return registry.InProgress, nil
	case err != nil:
		return "", err
	case a == nil:
		return registry.OutcomeUnknown, nil
	}
	a.own, a.fresh, a.caller = true, true, c
	a.start(a.next)
	res, err := a.wait(ctx)
	return res.Verdict, err
}
