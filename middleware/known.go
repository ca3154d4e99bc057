package middleware

import (
	"context"
	"errors"

	"github.com/toolonce/toolonce/registry"
)

// Known answers a call from the ledger alone, for closing a hole in a history:
//
//	known := tools.Handler(middleware.Known(store, nil))
//	res, err := known(ctx, &call)
//
// Nothing is run, claimed, settled, waited for, noted or counted, and what comes after it in the chain is not called. A
// Result without a Verdict says that the ledger knows nothing of the call; that it surely did not happen is failed.
//
// The call is found by its place, else by what it means. Of a done operation the call that executed it reads the tool's
// own output: the one at the claimer's place, or, where the place tells nothing, the one with the claimer's call id, tool
// and arguments in the claimer's run or conversation. Any other reads already_done. An operation that was undone or has
// expired since is known only to the calls that meant it then. A call identified by its place (ByCall, an
// IdempotentWrite) is found only with its Turn; a Read is never known.
//
// Of opts only MaxResult counts; nil works. Known panics on a nil ledger.
func Known(l Ledger, opts *OnceOptions) registry.Middleware {
	g := newGuard(l, opts)
	return func(registry.Handler) registry.Handler { return g.known }
}

func (g *guard) known(ctx context.Context, c *registry.Call) (registry.Result, error) {
	row, same, err := g.recall(ctx, c)
	if err != nil {
		return registry.Result{}, err
	}
	_, fingerprint := c.Operation()
	if same {
		fingerprint = row.Found.Fingerprint
	}
	own := same && claimedBy(&row, c) || !same && claimedUnderID(&row, c)
	v := &visit{Call: c}
	switch {
	case row.Found != nil && !same:
		return occupied(c, &row), nil
	case row.Operation == "":
		return registry.Result{}, nil
	case row.State == Free:
		return c.Failed(row.Operation, errors.New("it surely did not happen")), nil
	case own && row.HasResult && (row.State == Done || row.State == Released):
		return registry.Result{Content: g.present(row.Result), Verdict: registry.Replayed, Operation: row.Operation}, nil
	case !same && !own && (row.State == Released || row.Expired()):
		return registry.Result{}, nil
	case row.Fingerprint != fingerprint:
		return conflict(v, &row), nil
	case row.State == Running:
		return inProgress(v, &row), nil
	case row.State == InDoubt:
		return unknown(v, &row), nil
	default: // repeats are left out, so that a hole is closed by the same bytes every time
		return g.doneAnswer(c, &row, false, 0), nil
	}
}

// recall finds the row of a call by its place, else by what it means. A row found by the place of another call is one
// only where places hold one call for ever.
func (g *guard) recall(ctx context.Context, c *registry.Call) (row Row, same bool, err error) {
	if c.Turn > 0 {
		row, _, err = g.find(ctx, c, Query{Run: c.Run.ID, Turn: c.Turn, Position: c.Position})
		if same = sameCall(row.Found, c); err != nil || same || row.Found != nil && c.Journaled {
			return row, same, err
		}
	}
	identity, _ := c.Operation()
	if identity == "" {
		return Row{}, false, nil
	}
	switch {
	case c.RepeatOf() != "":
		identity = repeatIdentity(identity, c.RepeatOf())
	case c.Info().Undoes != "":
		if identity, _, err = g.undo(ctx, c); err != nil {
			return Row{}, false, err
		}
	}
	row, _, err = g.find(ctx, c, Query{Run: c.Run.ID, Identity: identity})
	return row, false, err
}

// claimedUnderID reports whether a call that has no known place is, by all else, the one that the claim was made for.
func claimedUnderID(r *Row, c *registry.Call) bool {
	a := aliasOf(c)
	placed := c.Journaled && c.Turn > 0
	return !placed && a.CallID != "" && a.CallID == r.Claimer.CallID && a.Tool == r.Tool && a.Fingerprint == r.Fingerprint &&
		(r.Claimer.Run == c.Run.ID || r.Conversation != "" && r.Conversation == c.Run.Conversation)
}

// occupied answers a call at a place that holds another one.
func occupied(c *registry.Call, row *Row) registry.Result {
	e := registry.Envelope{
		Status: registry.Conflict, Operation: row.Operation, Tool: row.Tool,
		Note: "Another call was recorded at this place of the run. This call was not run.",
	}
	if c.Info() != nil && c.Tool == row.Tool {
		e.Fields = c.Info().Diff(row.Input, c.Input())
	}
	return e.Result()
}
