package sqlitestore

import (
	"math/rand/v2"
	"time"

	"github.com/toolonce/toolonce/internal/content"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// claiming is one claim in its transaction.
type claiming struct {
	s   *Store
	x   *tx
	c   middleware.Claim
	now time.Time
	r   record // of the operation that was won
	won bool

	input            []byte // as it is stored
	undoes, repeatOf int64  // the operations that the claim names, 0 for none
	placed           bool   // an alias stands at the place of the call that is to go
}

// begin is for another try.
func (n *claiming) begin(x *tx) {
	n.x, n.now = x, n.s.f.now()
	n.r, n.won, n.placed = record{}, false, false
}

// foreign reports that the claim names what is no operation of any ledger of ours.
func (n *claiming) foreign() bool {
	return n.undoes == 0 && n.c.Undoes != "" || n.repeatOf == 0 && n.c.RepeatOf != ""
}

// first is the claim of what has never been claimed, in one statement. Where it does not win, [claiming.run] decides.
func (n *claiming) first(x *tx) error {
	n.begin(x)
	if n.foreign() {
		return nil
	}
	n.r = record{Row: middleware.Row{KeySince: n.now, Created: n.now}, id: newID(n.now)}
	err := x.insert(insertFirst, n.arguments(-1)...)
	if unkept(err) {
		return nil
	}
	if n.won = err == nil; n.won {
		n.fill()
	}
	return err
}

func (n *claiming) run(x *tx) error {
	n.begin(x)
	if n.foreign() {
		return errUndo
	}
	won, err := n.place()
	if err == nil && won {
		won, err = n.take()
	}
	if err == nil && won {
		won, err = n.spend()
	}
	if err == nil && won {
		err = n.point()
	}
	if err != nil {
		return err
	}
	if !won {
		return errUndo
	}
	n.fill()
	n.r.Repeats, err = n.s.repeats(x, n.c.Call.Run, n.r.Identity)
	n.won = err == nil
	return err
}

// place looks whether the place of the call still means what was seen.
func (n *claiming) place() (bool, error) {
	c := &n.c
	if c.Call.Turn <= 0 {
		return c.SeenAlias == "", nil
	}
	at := []any{n.s.namespace, c.Call.Run, c.Call.Turn, c.Call.Position}
	var operation int64
	var known bool
	var err error
	n.placed, err = n.x.one(placed, []any{&operation, &known}, at...)
	if !known {
		return c.SeenAlias == "", err
	}
	return operationOf(operation) == c.SeenAlias, err
}

// point makes the place of the call mean the operation. The trigger has done so for a new row.
func (n *claiming) point() error {
	c, call := &n.c, &n.c.Call
	var repeats any
	if c.Repeat {
		repeats = pack(c.Identity)
	}
	if call.Turn <= 0 {
		return n.x.run(noteCounted, n.s.namespace, call.Run, n.r.id, call.CallID, call.Tool, pack(call.Arguments), pack(call.Fingerprint), repeats)
	}
	at := []any{n.s.namespace, call.Run, call.Turn, call.Position}
	if c.Seen.State == middleware.Free {
		if err := n.x.run(claimAgain, append(at, n.r.id)...); err != nil {
			return err
		}
	}
	if !c.Repeat {
		return nil
	}
	return n.x.run(countClaim, append(at, repeats)...)
}

// take makes or takes the operation's row.
func (n *claiming) take() (bool, error) {
	c, r := &n.c, &n.r
	*r = record{Row: middleware.Row{KeySince: n.now, Created: n.now}}
	if _, err := n.x.one(lowestID, []any{&r.id}); err != nil {
		return false, err
	}
	r.id = max(newID(n.now), r.id+rand.Int64N(1<<idRandom)) // should the clock have been set back
	if c.Seen.Operation != "" {
		ok, err := n.seen()
		if err != nil || !ok {
			return false, err
		}
	}
	if n.placed { // not before: what the place means may be needed still
		if err := n.x.run(clearPlace, n.s.namespace, c.Call.Run, c.Call.Turn, c.Call.Position); err != nil {
			return false, err
		}
	}
	if c.Seen.State == middleware.Free {
		changed, err := n.x.exec(claimFree, n.arguments(pack(c.Seen.Token))...)
		return changed == 1, err
	}
	changed, err := n.x.exec(insertOperation, n.arguments(r.Generation-1)...)
	if err != nil || changed == 1 || c.New {
		return changed == 1, err
	}
	last := -1 // what was done and undone before is rare enough to be looked for only now
	if _, err := n.x.one(lastGeneration, []any{&last}, n.s.namespace, pack(c.Identity)); err != nil || last < r.Generation {
		return false, err
	}
	r.Generation = last + 1
	changed, err = n.x.exec(insertOperation, n.arguments(last)...)
	return changed == 1, err
}

// seen reads the row that the claim was decided on, if it is still that, and clears the way.
func (n *claiming) seen() (bool, error) {
	s, seen, r := n.s, &n.c.Seen, &n.r
	fresh := r.id
	id := idOf(seen.Operation)
	ok, err := n.x.one(byID, r.dest(), id, s.namespace)
	if err != nil || !ok || r.State != seen.State || r.Token != seen.Token || r.Identity != n.c.Identity {
		return false, err
	}
	// A key belongs to its generation: what is known of it stays, unless the provider has forgotten it by now.
	if r.Key == "" || n.now.After(r.KeySince.Add(n.c.KeyWindow)) {
		r.KeySince = n.now
	}
	switch seen.State {
	case middleware.Free:
		_, err = n.x.exec(keepCall, s.namespace, r.Claimer.Run, r.Claimer.Turn, r.Claimer.Position, id,
			r.Claimer.CallID, r.Tool, pack(r.Claimer.Arguments), pack(r.Fingerprint))
		return err == nil, err
	case middleware.Done:
		changed, err := n.x.exec(forgetExpired, id, s.namespace, pack(seen.Token), n.now.UnixNano())
		*r = record{Row: middleware.Row{Generation: r.Generation, KeySince: r.KeySince, Unclear: r.Unclear, Created: n.now}, id: fresh}
		return changed == 1, err
	default:
		return false, nil
	}
}

// spend uses the approval up, if that is for this very claim. A claim that needs none has nothing to spend.
func (n *claiming) spend() (bool, error) {
	c, call := &n.c, &n.c.Call
	if c.Approval == "" {
		return true, nil
	}
	changed, err := n.x.exec(spendApproval, n.s.namespace, call.Run, call.Tool, pack(call.Fingerprint), call.Turn, call.Position,
		pack(c.Identity), n.r.Generation, n.now.UnixNano(), content.Digest(c.Input), c.Approval, operationOf(n.r.id))
	return changed == 1, err
}

// arguments are those of insertOperation and claimFree. seen is the last generation that was released, or the token of the
// free row.
func (n *claiming) arguments(seen any) []any {
	c, r, call, now := &n.c, &n.r, &n.c.Call, n.now.UnixNano()
	r.owner = n.s.f.owners.id
	r.Key = registry.DownstreamKey(n.s.namespace, c.Identity, r.Generation)
	deadline := after(now, c.Deadline)
	if r.Deadline.IsZero() || r.Deadline.UnixNano() < deadline {
		r.Deadline = time.Unix(0, deadline)
	}
	return []any{
		r.id, n.s.namespace, pack(c.Identity), pack(call.Fingerprint), registry.CanonicalVersion, call.Tool, pack(c.Token), deadline,
		r.owner, r.Generation, pack(r.Key), r.KeySince.UnixNano(), r.Unclear, numberOrNull(n.undoes), packOrNull(c.Resource), c.ResourceOut,
		call.Run, call.Turn, call.Position, call.CallID, pack(call.Arguments), c.Conversation, now, int64(c.Keep), n.input,
		numberOrNull(n.repeatOf), seen, int64(c.Retain),
	}
}

// fill is the row as it is now.
func (n *claiming) fill() {
	c, r := &n.c, &n.r
	row := middleware.Row{
		Identity: c.Identity, Fingerprint: c.Call.Fingerprint, Canonical: registry.CanonicalVersion, Tool: c.Call.Tool,
		State: middleware.Running, Token: c.Token, Attempt: 1, Deadline: stored(r.Deadline),
		Generation: r.Generation, Key: r.Key, KeySince: stored(r.KeySince), Unclear: r.Unclear,
		Resource: c.Resource, ResourceOut: c.ResourceOut, Late: r.Late, Input: n.input,
		Claimer: c.Call, Conversation: c.Conversation, Created: stored(r.Created), Since: stored(n.now),
	}
	*r = record{Row: row, id: r.id, owner: r.owner, undoes: n.undoes, repeatOf: n.repeatOf, keep: int64(c.Keep)}
}

// stored is a time as it is read back.
func stored(t time.Time) time.Time { return time.Unix(0, t.UnixNano()).UTC() }

func (s *Store) repeats(x *tx, run, identity string) (n int, err error) {
	_, err = x.one(countRepeats+` = +?3`, []any{&n}, s.namespace, run, pack(identity))
	return n, err
}
