// Package history checks what several processes saw of a ledger, all at once: whether their calls and returns can be
// put into one order in which a small sequential model of an operation's states gives the same answers. It is for the
// tests of stores.
package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/toolonce/toolonce/middleware"
)

// Op is one call of a ledger and what it returned. One of Claim, Change, Find, Note and Kill is set.
type Op struct {
	ID   string // a worker's name and number
	View string // the namespace; "" for a Kill, which all see
	By   string // the owner that called
	From int64  // when it was called, on a clock that all callers share
	To   int64  // when it returned, 0 if it never did
	Wall time.Time

	Claim  *middleware.Claim
	Change *middleware.Transition
	Find   *middleware.Query
	Note   *Note
	Kill   string // an owner

	Row     middleware.Row
	OK      bool // Claim: won; Find: found
	Err     Refusal
	Until   time.Time // of Early
	Repeats int       // of Note

	way bool // the second half of a claim that was not won: what was in the way
}

// Note is a call of Ledger.Note.
type Note struct {
	Operation string
	Call      middleware.Alias
}

// Refusal is the error that a ledger returned.
type Refusal string

// What a ledger may say but yes.
const (
	Lost  Refusal = "lost"
	Early Refusal = "early"
)

// refused is the error of a ledger as it is kept; any other than those of its contract is returned.
func (o *Op) refused(err error) error {
	if early, ok := errors.AsType[*middleware.EarlyError](err); ok {
		o.Err, o.Until = Early, early.Until
		return nil
	}
	if errors.Is(err, middleware.ErrLost) {
		o.Err = Lost
		return nil
	}
	return err
}

func (o *Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%8d..%-8d %.4s ", o.From/1000, o.To/1000, o.By)
	switch {
	case o.way:
		b.WriteString("what was in the way of that claim")
	case o.Claim != nil:
		c := o.Claim
		fmt.Fprintf(&b, "claim %q token %s at %d.%d seen %s/%s/%s alias %s undoes %s new %v: won %v",
			c.Identity, c.Token, c.Call.Turn, c.Call.Position, c.Seen.Operation, c.Seen.State, c.Seen.Token, c.SeenAlias, c.Undoes, c.New, o.OK)
	case o.Change != nil:
		t := o.Change
		fmt.Fprintf(&b, "%s %s token %s attempt %d mark %q owner %.4s state %s result %q %v: %s",
			stepNames[t.Step], t.Operation, t.Token, t.Attempt, t.Mark, t.Owner, t.State, t.Result, t.HasResult, cmp.Or(string(o.Err), "made"))
	case o.Find != nil:
		fmt.Fprintf(&b, "find %+v: %v", *o.Find, o.OK)
	case o.Note != nil:
		fmt.Fprintf(&b, "note %s at %d.%d: %d %s", o.Note.Operation, o.Note.Call.Turn, o.Note.Call.Position, o.Repeats, o.Err)
	default:
		fmt.Fprintf(&b, "kill %.4s", o.Kill)
	}
	if r := &o.Row; r.Operation != "" {
		fmt.Fprintf(&b, "; row %s %s owner %.4s token %s attempt %d settle %q generation %d unclear %v late %v person %v result %q %v",
			r.Operation, r.State, r.Owner, r.Token, r.Attempt, r.Settle, r.Generation, r.Unclear, r.Late, r.ByPerson, r.Result, r.HasResult)
	}
	return b.String()
}

var stepNames = map[middleware.Step]string{
	middleware.Complete: "complete", middleware.GiveBack: "give back", middleware.Doubt: "doubt", middleware.Again: "again",
	middleware.Take: "take", middleware.Found: "found", middleware.Absent: "absent", middleware.Unsure: "unsure",
	middleware.Happened: "happened", middleware.NotHappened: "not happened",
}

// pending is the return of a call that never returned.
const pending = int64(1<<63 - 1)

// checkTime bounds the search for an order of one namespace's calls.
const checkTime = 20 * time.Second

// Verify returns nil if the calls of each namespace can have happened one after the other, each between its call and its
// return. Its error shows how far an order was found and what fits nowhere after that.
func Verify(ops []Op) error {
	views := map[string]bool{}
	created := map[string]string{} // token of a claim: the operation that it got
	for i := range ops {
		views[ops[i].View] = true
		created[ops[i].Row.Token] = ops[i].Row.Operation
	}
	delete(views, "")
	for view := range views {
		if err := verify(view, ops, created); err != nil {
			return fmt.Errorf("namespace %q: %w", view, err)
		}
	}
	return nil
}

func verify(view string, ops []Op, created map[string]string) error {
	var all []porcupine.Operation
	for i := range ops {
		o := ops[i]
		if o.View != view && o.View != "" {
			continue
		}
		if o.To == 0 { // it may have happened at any time from then on, or at the end of all, where nobody sees it
			o.To = pending
			if o.Claim != nil {
				o.Row.Operation = cmp.Or(created[o.Claim.Token], "of "+o.Claim.Token)
			}
		}
		all = append(all, porcupine.Operation{Input: &o, Call: o.From, Return: o.To})
		if o.Claim != nil && !o.OK && o.To != pending {
			w := o
			w.way = true
			all = append(all, porcupine.Operation{Input: &w, Call: o.From, Return: o.To})
		}
	}
	model := porcupine.Model{
		Init:  func() any { return state{} },
		Step:  func(s, in, _ any) (bool, any) { next, ok := s.(state).step(in.(*Op)); return ok, next },
		Equal: func(a, b any) bool { return a.(state).equal(b.(state)) },
		Hash:  func(s any) uint64 { return s.(state).hash() },
	}
	result, info := porcupine.CheckOperationsVerbose(model, all, checkTime)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("no order of %d calls was found or ruled out in %v", len(all), checkTime)
	default:
		return errors.New(explain(all, info))
	}
}

// explain shows the longest order that was found, and the calls that were due next.
func explain(all []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var longest []porcupine.Operation
	for _, part := range info.PartialLinearizationsOperations() {
		for _, order := range part {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	placed := map[*Op]bool{}
	var b strings.Builder
	fmt.Fprintf(&b, "no order explains what the callers saw. %d of %d calls fit:", len(longest), len(all))
	for i, o := range longest {
		placed[o.Input.(*Op)] = true
		if i >= len(longest)-25 {
			fmt.Fprintf(&b, "\n  %v", o.Input)
		}
	}
	var s state
	for _, o := range longest {
		s, _ = s.step(o.Input.(*Op))
	}
	fmt.Fprintf(&b, "\nwhich makes %+v\nthe next that do not:", s)
	slices.SortFunc(all, func(x, y porcupine.Operation) int { return cmp.Compare(x.Call, y.Call) })
	n := 0
	for _, o := range all {
		if op := o.Input.(*Op); !placed[op] && n < 8 {
			fmt.Fprintf(&b, "\n  %v", op)
			n++
		}
	}
	return b.String()
}

// Merge makes one history of what workers have logged. A call that was logged once never returned.
func Merge(logged []Op) []Op {
	at := map[string]int{}
	var ops []Op
	for _, o := range logged {
		i, known := at[o.ID]
		if !known {
			i, at[o.ID] = len(ops), len(ops)
			ops = append(ops, o)
		}
		ops[i] = o
	}
	return ops
}
