package middleware

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// MemoryLedger is a Ledger that forgets everything when the process ends: for trials and tests. It is safe for
// concurrent use.
type MemoryLedger struct {
	*memory
	namespace string
	owner     string
	handlers  *Handlers
}

// memory is what all views and owners share.
type memory struct {
	mu        sync.Mutex
	rows      map[string]*memoryRow // by operation
	aliases   []memoryAlias         // in the order they came
	approvals []*memoryApproval     // in the order they were asked for
	acts      []Act                 // of people, in all namespaces
	gone      map[string]bool       // owners
}

type memoryRow struct {
	Row
	keep, retain time.Duration // of the claim
	settler      string        // who holds Settle
}

type memoryAlias struct {
	Alias
	namespace, operation, identity string
	repeat                         bool
}

var (
	_ Ledger    = (*MemoryLedger)(nil)
	_ Lister    = (*MemoryLedger)(nil)
	_ Approver  = (*MemoryLedger)(nil)
	_ Pruner    = (*MemoryLedger)(nil)
	_ Recorder  = (*MemoryLedger)(nil)
	_ Forgetter = (*MemoryLedger)(nil)
)

// Memory makes an empty ledger in memory.
func Memory() *MemoryLedger {
	m := &memory{rows: map[string]*memoryRow{}, gone: map[string]bool{}}
	return &MemoryLedger{memory: m, owner: rand.Text(), handlers: &Handlers{}}
}

// Namespace is the same ledger seen by one tenant.
func (l *MemoryLedger) Namespace(name string) *MemoryLedger {
	return &MemoryLedger{memory: l.memory, namespace: name, owner: l.owner, handlers: l.handlers}
}

// Peer is the same ledger as another living process sees it.
func (l *MemoryLedger) Peer() *MemoryLedger {
	return &MemoryLedger{memory: l.memory, namespace: l.namespace, owner: rand.Text(), handlers: &Handlers{}}
}

// Die makes the owner behind l count as gone, as though its process had been killed. What still runs under l is what a
// slow process would be that others wrongly believe dead.
func (l *MemoryLedger) Die() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone[l.owner] = true
}

// Handlers is the record of what runs under l and its namespaces.
func (l *MemoryLedger) Handlers() *Handlers { return l.handlers }

// Find implements Ledger.
func (l *MemoryLedger) Find(_ context.Context, q Query) (Row, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var r *memoryRow
	var found *Alias
	if q.Operation != "" {
		r = l.row(q.Operation)
	}
	if r == nil && q.Operation == "" {
		if a := l.place(q.Run, q.Turn, q.Position); a != nil {
			c := a.Alias
			r, found = l.row(a.operation), &c
		}
	}
	if r == nil && q.Identity != "" {
		if r = l.live(q.Identity); r == nil {
			r = l.lastReleased(q.Identity)
		}
	}
	if r == nil && q.Resource != "" {
		r = l.latest(q.Tool, q.Resource)
	}
	if r == nil {
		return Row{}, false, nil
	}
	row := l.read(r, q.Run)
	row.Found = found
	if q.Resource != "" {
		row.UndoneBy = l.undoing(r.Operation)
	}
	return row, true, nil
}

// Claim implements Ledger.
func (l *MemoryLedger) Claim(_ context.Context, c Claim) (Row, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	old := l.live(c.Identity)
	generation := l.generation(c.Identity, old)
	approval := l.approved(c, generation, now)
	if c.New && (l.lastReleased(c.Identity) != nil || !l.asSeen(c, old, now)) {
		return Row{}, false, nil
	}
	if !l.asSeen(c, old, now) || !l.named(c, now) || c.Approval != "" && approval == nil {
		return l.inTheWay(c, old), false, nil
	}
	r := old
	if old == nil || old.State == Done {
		r = &memoryRow{Row: Row{Operation: newOperation(), Generation: generation, Created: now}}
	}
	if old != nil && r != old {
		r.Key, r.KeySince, r.Unclear = old.Key, old.KeySince, old.Unclear
		delete(l.rows, old.Operation)
		l.aliases = slices.DeleteFunc(l.aliases, func(a memoryAlias) bool { return a.operation == old.Operation })
	}
	r.renewKey(now, c.KeyWindow)
	r.Namespace, r.Identity, r.Fingerprint, r.Canonical, r.Tool = l.namespace, c.Identity, c.Call.Fingerprint, registry.CanonicalVersion, c.Call.Tool
	r.State, r.Since, r.Token, r.Attempt, r.Owner, r.Settle = Running, now, c.Token, 1, l.owner, ""
	r.Deadline = later(r.Deadline, now.Add(c.Deadline))
	r.Key = registry.DownstreamKey(l.namespace, c.Identity, r.Generation)
	r.ByPerson, r.SettledBy, r.SettledWhy = false, "", ""
	r.Undoes, r.RepeatOf, r.Resource, r.ResourceOut = c.Undoes, c.RepeatOf, c.Resource, c.ResourceOut
	r.Input, r.Result, r.HasResult = slices.Clone(c.Input), "", false
	r.Claimer, r.Conversation = c.Call, c.Conversation
	r.Expires = time.Time{}
	r.keep, r.retain = c.Keep, c.Retain
	l.rows[r.Operation] = r
	l.alias(memoryAlias{Alias: c.Call, namespace: l.namespace, operation: r.Operation, identity: c.Identity, repeat: c.Repeat})
	if approval != nil {
		approval.State, approval.Operation = Spent, r.Operation
	}
	return l.read(r, c.Call.Run), true, nil
}

// asSeen reports whether the place of the call and the row that holds its identity are as the claim has seen them, and
// whether that row may be claimed.
func (l *MemoryLedger) asSeen(c Claim, r *memoryRow, now time.Time) bool {
	at := ""
	if place := l.place(c.Call.Run, c.Call.Turn, c.Call.Position); place != nil {
		at = place.operation
	}
	switch {
	case at != c.SeenAlias:
		return false
	case r == nil:
		return c.Seen.Operation == ""
	case r.Operation != c.Seen.Operation || r.State != c.Seen.State || r.Token != c.Seen.Token:
		return false
	}
	return r.State == Free || r.State == Done && expired(r, now)
}

// named reports whether the operations that the claim names can be undone and repeated.
func (l *MemoryLedger) named(c Claim, now time.Time) bool {
	u, r := l.row(c.Undoes), l.row(c.RepeatOf)
	return (c.Undoes == "" || u != nil && u.State == Done && l.undoing(c.Undoes) == "") &&
		(c.RepeatOf == "" || r != nil && r.State == Done && !expired(r, now))
}

// undoing is the operation that undoes another and is running or in doubt, "" for none.
func (l *MemoryLedger) undoing(operation string) string {
	for _, r := range l.rows {
		if r.Namespace == l.namespace && r.Undoes == operation && (r.State == Running || r.State == InDoubt) {
			return r.Operation
		}
	}
	return ""
}

// inTheWay is what the place of a call means, or else who holds the identity; zero if there is none.
func (l *MemoryLedger) inTheWay(c Claim, live *memoryRow) Row {
	if at := l.place(c.Call.Run, c.Call.Turn, c.Call.Position); at != nil && at.operation != c.SeenAlias {
		live = l.row(at.operation)
	}
	if live == nil {
		return Row{}
	}
	return l.read(live, c.Call.Run)
}

// Note implements Ledger.
func (l *MemoryLedger) Note(_ context.Context, operation string, call Alias) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.row(operation)
	if r == nil {
		return 0, ErrLost
	}
	if l.place(call.Run, call.Turn, call.Position) == nil {
		l.alias(memoryAlias{Alias: call, namespace: l.namespace, operation: operation, identity: r.Identity, repeat: true})
	}
	return l.repeats(r.Identity, call.Run), nil
}

// List implements Lister.
func (l *MemoryLedger) List(_ context.Context, states []State, limit int) ([]Row, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var rows []Row
	for _, r := range l.rows {
		if r.Namespace == l.namespace && (len(states) == 0 || slices.Contains(states, r.State)) {
			rows = append(rows, l.read(r, ""))
		}
	}
	slices.SortFunc(rows, func(a, b Row) int { return b.Since.Compare(a.Since) })
	if limit > 0 && len(rows) > limit {
		rows = rows[:limit]
	}
	return rows, nil
}

func newOperation() string { return "op_" + rand.Text() }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func expired(r *memoryRow, now time.Time) bool { return !r.Expires.IsZero() && !now.Before(r.Expires) }

// row is the row of an operation of this namespace, nil for none.
func (l *MemoryLedger) row(operation string) *memoryRow {
	if r := l.rows[operation]; r != nil && r.Namespace == l.namespace {
		return r
	}
	return nil
}

// live is the row that holds an identity.
func (l *MemoryLedger) live(identity string) *memoryRow {
	for _, r := range l.rows {
		if r.Namespace == l.namespace && r.Identity == identity && r.State != Released {
			return r
		}
	}
	return nil
}

// latest is the latest operation of a tool on a resource: done before running or in_doubt before released.
func (l *MemoryLedger) latest(tool, resource string) *memoryRow {
	rank := map[State]int{Done: 3, Running: 2, InDoubt: 2, Released: 1}
	var best *memoryRow
	for _, r := range l.rows {
		if r.Namespace != l.namespace || r.Tool != tool || r.Resource != resource || rank[r.State] == 0 {
			continue
		}
		if best == nil || rank[r.State] > rank[best.State] || rank[r.State] == rank[best.State] && r.Created.After(best.Created) {
			best = r
		}
	}
	return best
}

func (l *MemoryLedger) lastReleased(identity string) *memoryRow {
	var last *memoryRow
	for _, r := range l.rows {
		if r.Namespace == l.namespace && r.Identity == identity && r.State == Released && (last == nil || r.Generation > last.Generation) {
			last = r
		}
	}
	return last
}

// generation is that of the row that a claim gets where r holds the identity.
func (l *MemoryLedger) generation(identity string, r *memoryRow) int {
	if r != nil {
		return r.Generation
	}
	if last := l.lastReleased(identity); last != nil {
		return last.Generation + 1
	}
	return 0
}

// place is the alias at the place of a call, nil for none.
func (l *MemoryLedger) place(run string, turn, position int) *memoryAlias {
	if turn <= 0 {
		return nil
	}
	for i := range l.aliases {
		a := &l.aliases[i]
		if a.namespace == l.namespace && a.Run == run && a.Turn == turn && a.Position == position {
			return a
		}
	}
	return nil
}

func (l *MemoryLedger) alias(a memoryAlias) {
	if at := l.place(a.Run, a.Turn, a.Position); at != nil {
		*at = a
		return
	}
	l.aliases = append(l.aliases, a)
}

func (l *MemoryLedger) repeats(identity, run string) int {
	n := 0
	for _, a := range l.aliases {
		if a.namespace == l.namespace && a.identity == identity && a.Run == run && a.repeat {
			n++
		}
	}
	return n
}

// renewKey starts a new window for a key that is new, or that the provider has forgotten.
func (r *memoryRow) renewKey(now time.Time, window time.Duration) {
	if r.Key == "" || now.After(r.KeySince.Add(window)) {
		r.KeySince = now
	}
}

func (l *MemoryLedger) read(r *memoryRow, run string) Row {
	c := r.Row
	c.Input = slices.Clone(r.Input)
	c.Now = time.Now()
	c.OwnerMine, c.OwnerGone = r.Owner == l.owner, l.gone[r.Owner]
	c.SettleGone = r.Settle != "" && l.gone[r.settler]
	c.Repeats = l.repeats(r.Identity, run)
	return c
}
