package middleware

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// State of an operation's row.
type State string

const (
	// Running means claimed: its handler runs, or did when its owner died.
	Running State = "running"
	// Done means that it happened and its result is kept.
	Done State = "done"
	// InDoubt means that it may have happened; a Lookup or a person settles it.
	InDoubt State = "in_doubt"
	// Free means that it surely did not happen; the row stays for its generation, and the operation may be claimed again.
	Free State = "free"
	// Released means done, and undone by another tool's operation; the same call is a new operation.
	Released State = "released"
)

// Alias is one call that meant an operation: where it stood, and what it said in hashes.
type Alias struct {
	Run         string
	Turn        int // 0: the loop has no count; such an alias is kept for counting and is never found
	Position    int
	CallID      string
	Tool        string
	Arguments   string // Call.ArgumentsHash
	Fingerprint string
}

// Row is what a ledger remembers of one operation. Times are the store's clock.
type Row struct {
	Namespace   string
	Operation   string // random id, new after release or expiry
	Identity    string
	Fingerprint string
	Canonical   int // registry.CanonicalVersion of identity and fingerprint
	Tool        string
	State       State

	Token    string    // random, one per claim
	Attempt  int       // of this claim, from 1
	Deadline time.Time // the latest deadline of all attempts under all claims
	Owner    string    // the process instance that claimed or runs it
	Settle   string    // mark of who asks Lookup now, "" for nobody

	Generation int       // which downstream key the identity is at
	Key        string    // registry.DownstreamKey of namespace, identity and generation
	KeySince   time.Time // first claim with that key
	Unclear    bool      // a claim under that key has ended unclear
	ByPerson   bool      // free because a person said that it did not happen

	Undoes      string // id of the operation it undoes, "" for none
	RepeatOf    string // id of the operation it repeats on purpose, "" for none
	Resource    string // hash that links it to a tool that undoes it, "" for none
	ResourceOut string // registry.Info.ResourceOut of its tool
	Late        bool   // a result came that could not be stored: an operator should look

	Input     []byte // canonical, of the claim; nil once its content has gone
	Result    string
	HasResult bool // false: done, but its result is not kept
	// Unreadable says why Input and Result could not be opened, nil where they were. Such a row answers no call.
	Unreadable error

	Claimer      Alias // the call of the present claim
	Conversation string
	Created      time.Time // first claim of this id
	Since        time.Time // last change of state
	DoneAt       time.Time // zero until done
	Expires      time.Time // when a done operation is forgotten; zero for never
	SettledBy    string    // the person whose verdict it is, "" for none
	SettledWhy   string

	// What follows is worked out when the row is read.

	OwnerMine    bool      // the owner is this process instance
	OwnerGone    bool      // the owner is gone by evidence
	OwnerUnknown bool      // nothing shows whether the owner lives or has gone
	SettleGone   bool      // whoever asked Lookup is gone by evidence
	Now          time.Time // the store's clock
	Found        *Alias    // set where the row was found by the place of a call
	Repeats      int       // repeats of the identity by the run that was asked for, undone executions included
	UndoneBy     string    // the operation that undoes it and is running or in doubt, "" for none; where Query.Resource found it
}

// Expired reports whether a done row is past its date.
func (r *Row) Expired() bool {
	return r.State == Done && !r.Expires.IsZero() && !r.Now.Before(r.Expires)
}

// Shown is what a person's verdict is bound to: a short mark of the claim and the attempt that were looked at.
func (r *Row) Shown() string {
	h := sha256.Sum256([]byte(r.Token))
	return fmt.Sprintf("%s.%d", hex.EncodeToString(h[:4]), r.Attempt)
}

// Query says which row to find: the first that applies of Operation, the place of a call, Identity, Tool and Resource.
type Query struct {
	Operation string
	// Run with Turn > 0 and Position is the place of a call: the operation that the call there meant, in any state.
	Run            string
	Turn, Position int
	// Identity finds the row that is running, in doubt, done or free; where there is none, the last released one.
	Identity string
	// Tool and Resource find the latest operation of a tool on a resource that is not free: done before running or
	// in_doubt before released.
	Tool, Resource string
}

// Claim asks for an operation.
type Claim struct {
	Identity     string
	Call         Alias // Fingerprint and Tool are the row's
	Conversation string
	Input        []byte
	Token        string

	// New: nobody has looked for the operation before. It wins only if Find would not find it either, by the place of the
	// call or by the identity. The fields from Seen to Approval are not set then.
	New bool
	// Seen is the row that the decision was based on: zero for none, else a free or an expired one. Its Operation,
	// State and Token are compared.
	Seen Row
	// SeenAlias is the operation that the place of the call pointed to, "" for none.
	SeenAlias string
	// Repeat: the run has had this identity executed and undone before; it counts as a repeat.
	Repeat bool

	Undoes                string // must be done, and nothing else about to undo it
	RepeatOf              string // the operation that it repeats on purpose: must be done; "" for none
	Approval              string // the approval that it spends, see Approver; "" where it needs none
	Resource, ResourceOut string
	Deadline              time.Duration // of attempt 1, from now on
	KeyWindow             time.Duration // a free row whose key is older starts a new window with this claim; never 0
	Keep                  time.Duration // 0: for ever
	Retain                time.Duration // how long input and result are kept once it is done, see [Pruner]; 0: 90 days
}

// Ledger remembers operations and decides nothing. It is safe for concurrent use by several processes. Every method
// works in one namespace. Writes do not end with the caller's context half done: they are whole or absent, on a bounded
// context of the ledger's own.
//
// The contract, each number a case of ledgertest:
//
//  1. Claim with no row Seen makes a row: Running, a new random id, attempt 1, in one transaction with the alias of the
//     call. It wins only if no row of the identity is running, in doubt, done or free, the place of the call
//     (Turn > 0) still points to SeenAlias, the operations named by Undoes and RepeatOf are done, and no other operation
//     that undoes the same is running or in doubt. The generation is 0, or one more than that of the last released row
//     of the identity. A claim that is New wins only if there is no row of the identity at all, and none that the
//     place of the call points to.
//  2. Claim with a free row Seen takes that row if id, state and token are as seen, the rest as in 1: new token,
//     attempt 1, fingerprint, input and claimer of this call. The key stays with its generation.
//  3. Claim with a done row Seen takes its place if id, state and token are as seen, the rest as in 1, and it is
//     expired and no open call points to it: the old row goes with its aliases, the new one has a new id and keeps the
//     generation with all that is known of its key.
//  4. to 14. are the steps of [Transition].
//  15. Note adds the alias of a repeat to an operation and returns how often the run has repeated the identity, this
//     call included. The same place again adds and counts nothing. A place that points elsewhere is left alone unless
//     Turn is 0. It is ErrLost where the operation has gone.
//  16. Find finds what Query says, aliases first, and never crosses namespaces.
//
// Who loses a Claim gets won false and the row that stands in the way, zero if there is none or the claim was New. An error
// of Claim that is marked by registry.NoEffect says that nothing was claimed; after another it may have been.
type Ledger interface {
	Claim(ctx context.Context, c Claim) (row Row, won bool, err error)
	Find(ctx context.Context, q Query) (row Row, ok bool, err error)
	Change(ctx context.Context, t Transition) (Row, error)
	Note(ctx context.Context, operation string, call Alias) (repeats int, err error)
	// Handlers is the one record of the handlers that this process runs under claims of this ledger, whatever the
	// namespace.
	Handlers() *Handlers
}

// Lister is a Ledger that can be looked through: what Recover and operators need.
type Lister interface {
	// List gives rows of the namespace, newest change first. limit 0 is all.
	List(ctx context.Context, states []State, limit int) ([]Row, error)
}

// Step names a transition of a row.
type Step uint8

const (
	// Complete stores a result: from running, in_doubt, or free by a person's mark. Token mine; any attempt.
	Complete Step = iota + 4
	// GiveBack frees the row: from running or in_doubt. Token and attempt mine.
	GiveBack
	// Doubt makes a running row in_doubt. Token and attempt seen; Owner gone, or own.
	Doubt
	// Again starts the next attempt of a running row. Token and attempt seen; Owner gone, or own; no handler of this
	// process runs; attempt below MaxAttempts; inside KeyWindow.
	Again
	// Take makes a row in_doubt with the settle mark Mark. Token, attempt and State seen; from running as Doubt; from
	// in_doubt if nobody settles it or who does is gone.
	Take
	// Found ends settling with a result: from in_doubt. Token, attempt and mark mine.
	Found
	// Absent ends settling with the next attempt: as Found, and the deadlines of all attempts plus AbsentAfter are
	// over, no handler of this process runs, attempt below MaxAttempts. The row is Running and mine.
	Absent
	// Unsure ends settling without an answer: as Found; the row stays in_doubt.
	Unsure
	// Happened is a person's verdict: from in_doubt. Token and attempt shown.
	Happened
	// NotHappened is a person's verdict: as Happened, and all deadlines are over and no handler of this process runs.
	// The row is free by a person's mark; a settle mark is lost.
	NotHappened
)

// Transition asks for one change of a row. The ledger checks the step's condition and makes the change in one
// statement; it chooses nothing.
//
// A Complete, Found or Happened on a row that undoes another releases that one, if it is still done, in the same
// transaction (14). Doubt, Again and Take mark the row Unclear. A step that grows the generation clears the mark.
type Transition struct {
	Step      Step
	Operation string
	Token     string
	Attempt   int
	State     State  // Take: the state seen
	Owner     string // Doubt, Again, Take of an orphan: the owner seen gone; "" where this process owns the row
	Mark      string // Take, Found, Absent, Unsure

	Result    string // Complete, Found, Happened
	HasResult bool
	Resource  string // Complete, Found, Happened: "" keeps what the claim said
	NewKey    bool   // GiveBack, NotHappened: the next claim gets the next generation
	Unclear   bool   // GiveBack: the attempt ended without proof (an IdempotentWrite's error)

	Deadline    time.Duration // Again, Absent: of the new attempt, from now on
	MaxAttempts int           // Again, Absent: 0 for no bound
	KeyWindow   time.Duration // Again: 0 for no window
	AbsentAfter time.Duration // Absent

	By, Why string // Happened, NotHappened: who and why

	// Blind: the caller does not look at the row of a step that was made, so a ledger for which reading costs something
	// may return a zero one. Who loses gets the row all the same.
	Blind bool
}

// ErrLost says that the row is no longer as it was seen: nothing was changed. The row that came with it is what it is
// now, zero if it has gone. A Complete that loses sets the row's Late mark, unless the same claim has stored the same
// result before.
var ErrLost = errors.New("middleware: the row has changed since it was read")

// EarlyError says that "did not happen" cannot be said yet: a request of an earlier attempt may still land.
type EarlyError struct {
	// Until is when the deadlines of all attempts, and for Absent what AbsentAfter adds, are over; zero while a handler
	// of this process runs.
	Until time.Time
}

func (e *EarlyError) Error() string {
	if e.Until.IsZero() {
		return "middleware: too early to say that it did not happen: its handler still runs in this process"
	}
	return fmt.Sprintf("middleware: too early to say that it did not happen: a request may still land until %s", e.Until.UTC().Format(time.RFC3339Nano))
}

// aliasOf is the call as a ledger keeps it.
func aliasOf(c *registry.Call) Alias {
	_, fp := c.Operation()
	id := c.ID
	if len(id) > maxCallID {
		id = shortID(id)
	}
	return Alias{Run: c.Run.ID, Turn: c.Turn, Position: c.Position, CallID: id, Tool: c.Tool, Arguments: c.ArgumentsHash(), Fingerprint: fp}
}
