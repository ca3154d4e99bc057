package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

// Worker makes random calls on few identities, as slow, dead and careless callers would: often it acts on what it has
// seen a while ago.
type Worker struct {
	Name   string // its own, in one history
	Views  []string
	Random *rand.Rand
	// Clock is one for all workers.
	Clock func() int64
	// Log is told each call before it is made, with To 0, and once more when it has returned.
	Log func(Op)

	views map[string]middleware.Ledger
	owner string
	seen  map[string][]middleware.Row // by view, the last reading of each operation
	n     int
}

// Use makes the worker go on as the owner behind a ledger, as after a crash and a new start.
func (w *Worker) Use(ctx context.Context, l middleware.Ledger, namespace func(l middleware.Ledger, name string) middleware.Ledger) error {
	w.n++
	token := fmt.Sprintf("%s-%d", w.Name, w.n)
	c := middleware.Claim{Identity: "hello " + token, Token: token, Call: middleware.Alias{Run: token}, Deadline: 1, KeyWindow: far}
	row, won, err := namespace(l, "hello "+w.Views[0]).Claim(ctx, c)
	if err != nil || !won {
		return fmt.Errorf("learning the owner's name: won %v: %w", won, err)
	}
	w.owner = row.Owner
	w.views = map[string]middleware.Ledger{}
	for _, v := range w.Views {
		w.views[v] = namespace(l, v)
	}
	return nil
}

// Do makes n calls.
func (w *Worker) Do(ctx context.Context, n int) error {
	if w.seen == nil {
		w.seen = map[string][]middleware.Row{}
	}
	for range n {
		view := pick(w, w.Views)
		o := Op{View: view}
		w.choose(&o)
		if err := w.Record(&o, func() error { return call(ctx, w.views[view], &o) }); err != nil {
			return err
		}
		w.remember(view, o.Row)
		for range w.Random.IntN(3) {
			runtime.Gosched()
		}
	}
	return nil
}

// Record logs a call of the worker's.
func (w *Worker) Record(o *Op, do func() error) error {
	w.n++
	o.ID, o.By, o.Wall, o.From = fmt.Sprintf("%s-%d", w.Name, w.n), w.owner, time.Now(), w.Clock()
	w.Log(*o)
	if err := do(); err != nil {
		return err
	}
	o.To = w.Clock()
	w.Log(*o)
	return nil
}

func call(ctx context.Context, l middleware.Ledger, o *Op) (err error) {
	switch {
	case o.Claim != nil:
		o.Row, o.OK, err = l.Claim(ctx, *o.Claim)
	case o.Change != nil:
		o.Row, err = l.Change(ctx, *o.Change)
	case o.Note != nil:
		o.Repeats, err = l.Note(ctx, o.Note.Operation, o.Note.Call)
	default:
		o.Row, o.OK, err = l.Find(ctx, *o.Find)
	}
	return o.refused(err)
}

func pick[T any](w *Worker, all []T) T { return all[w.Random.IntN(len(all))] }

// one reports true once in n times.
func (w *Worker) one(n int) bool { return w.Random.IntN(n) == 0 }

// remember keeps the latest reading of a few operations.
func (w *Worker) remember(view string, r middleware.Row) {
	if r.Operation == "" {
		return
	}
	all := w.seen[view]
	for i := range all {
		if all[i].Operation == r.Operation {
			all[i] = r
			return
		}
	}
	if len(all) >= 4 {
		all = all[1:]
	}
	w.seen[view] = append(all, r)
}

// choose says what to call next.
func (w *Worker) choose(o *Op) {
	seen := w.seen[o.View]
	if len(seen) == 0 || w.one(3) {
		q := middleware.Query{Identity: w.identity()}
		switch {
		case len(seen) > 0 && w.one(3):
			q = middleware.Query{Operation: pick(w, seen).Operation}
		case w.one(4):
			q = middleware.Query{Run: "shared", Turn: 1, Position: w.Random.IntN(2)}
		}
		if len(seen) > 0 || w.one(2) {
			o.Find = &q
			return
		}
		w.claim(o, w.identity(), middleware.Row{})
		return
	}
	r := pick(w, seen)
	switch {
	case w.one(8):
		o.Note = &Note{Operation: r.Operation, Call: w.place(w.Random.IntN(2) * w.Random.IntN(3))}
	case r.State == middleware.Free, r.State == middleware.Done && w.one(2):
		w.claim(o, r.Identity, r)
	case r.State == middleware.Released, w.one(10):
		w.claim(o, r.Identity, middleware.Row{})
	default:
		o.Change = w.transition(&r)
	}
}

// identity is one of few.
func (w *Worker) identity() string { return pick(w, []string{"a", "b"}) }

// place is a call's: at turn 1 one that others use too, at turn 2 one of its own.
func (w *Worker) place(turn int) middleware.Alias {
	a := middleware.Alias{Run: "shared", Turn: turn, Position: w.Random.IntN(2), Tool: "book", CallID: "call", Arguments: "arguments", Fingerprint: "noted"}
	if turn == 2 {
		w.n++
		a.Run = fmt.Sprintf("%s-%d", w.Name, w.n)
	}
	return a
}

func (w *Worker) claim(o *Op, identity string, seen middleware.Row) {
	w.n++
	token := fmt.Sprintf("%s-%d", w.Name, w.n)
	c := &middleware.Claim{Identity: identity, Call: w.place(w.Random.IntN(3)), Token: token, Input: []byte("{}"), Deadline: w.deadline(4), KeyWindow: far}
	c.Call.Fingerprint = "of " + token
	switch {
	case seen.State == middleware.Done && w.one(2): // undo it
		c.Identity, c.Undoes = "undo "+seen.Operation, seen.Operation
	case seen.Operation != "":
		c.Seen, c.Undoes = seen, seen.Undoes
	}
	switch {
	case seen.Operation == "" && w.one(2):
		c.New = true
	case c.Call.Turn == 1 && w.one(2):
		c.SeenAlias = pick(w, append(w.seen[o.View], middleware.Row{})).Operation
	}
	if w.one(2) {
		c.Keep = 1
	}
	o.Claim = c
}

// deadline is far once in n times, and else over at once.
func (w *Worker) deadline(n int) time.Duration {
	if w.one(n) {
		return far
	}
	return 1
}

// transition is a step that suits a row as it was seen, most of the time.
func (w *Worker) transition(r *middleware.Row) *middleware.Transition {
	t := &middleware.Transition{Operation: r.Operation, Token: r.Token, Attempt: r.Attempt, State: r.State, Mark: r.Settle}
	t.Step = middleware.Complete + middleware.Step(w.Random.IntN(10))
	likely := map[middleware.State][]middleware.Step{
		middleware.Running: {middleware.Complete, middleware.GiveBack, middleware.Doubt, middleware.Doubt, middleware.Again, middleware.Take},
		middleware.InDoubt: {
			middleware.Complete, middleware.Take, middleware.Take, middleware.Found, middleware.Absent, middleware.Absent,
			middleware.Unsure, middleware.Happened, middleware.NotHappened, middleware.NotHappened,
		},
	}
	if steps := likely[r.State]; steps != nil && !w.one(8) {
		t.Step = pick(w, steps)
	}
	w.n++
	mark := fmt.Sprintf("%s-%d", w.Name, w.n)
	switch t.Step {
	case middleware.Complete, middleware.Found, middleware.Happened:
		t.Result, t.HasResult = pick(w, []string{"one", "two", ""}), true
		if t.Result == "" && w.one(2) {
			t.HasResult = false
		}
	case middleware.GiveBack, middleware.NotHappened:
		t.NewKey, t.Unclear = w.one(2), w.one(2)
	case middleware.Take:
		t.Mark = mark
	case middleware.Again, middleware.Absent:
		t.Deadline, t.MaxAttempts = w.deadline(6), w.Random.IntN(4)
		if t.Step == middleware.Absent && w.one(8) {
			t.AbsentAfter = far
		}
	default: // Doubt and Unsure say no more
	}
	if t.Step == middleware.Happened || t.Step == middleware.NotHappened {
		t.By, t.Why = "Ann", "seen"
	}
	if r.OwnerGone && !w.one(6) || w.one(12) {
		t.Owner = r.Owner
	}
	return t
}
