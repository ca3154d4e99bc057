package middleware

import (
	"context"
	"crypto/rand"

	"github.com/toolonce/toolonce/registry"
)

// looksFirst is how many calls are looked for before they are claimed, after one that was not new: where one is repeated,
// as when a run is resumed, others are.
const looksFirst = 64

// hopes reports whether a call is to be claimed as new, before the ledger is asked for it: most are, and it spares a look.
// It must be one of which nothing is asked before the claim but that, since what is done needs no Check, no limit and no
// approval.
func (g *guard) hopes(v *visit) bool {
	c, i := v.Call, v.Info()
	switch {
	case v.hoped || i == nil || c.Refusal() != nil || c.Turn <= 0 || c.RepeatOf() != "" || c.Resumed || c.OnlyAsk:
		return false
	case i.HasCheck || g.Admit != nil || i.HasApproval || i.Repeat != registry.RepeatNever || i.Undoes != "":
		return false
	case g.wary.Load() > 0:
		g.wary.Add(-1)
		return false
	}
	return true
}

// hope claims a call as new. Where it is not, the ledger is asked, and asked first for a while.
func (g *guard) hope(ctx context.Context, v *visit) (res registry.Result, again bool, err error) {
	v.hoped = true
	identity, _ := v.Operation()
	claim := Claim{Identity: identity, New: true, Token: rand.Text()}
	res, again, err = g.claim(ctx, v, claim)
	if err != nil && !v.won {
		g.wary.Store(looksFirst) // a ledger that cannot be written may be read
		row, _, failed := g.find(ctx, v.Call, Query{Run: v.Run.ID, Turn: v.Turn, Position: v.Position, Identity: identity})
		if failed != nil || row.Operation == "" || row.Token == claim.Token {
			return registry.Result{}, false, err
		}
		return registry.Result{}, true, nil
	}
	if again {
		g.wary.Store(looksFirst)
	}
	return res, again, err
}
