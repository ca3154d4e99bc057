package history

import (
	"hash/maphash"
	"slices"
	"strings"

	"github.com/toolonce/toolonce/middleware"
)

// far is a deadline that is not over while a history lasts; any other is over at the next tick of the clock.
const far = 1 << 42 // over an hour

// state is what a namespace remembers, as values that are never changed: each step makes another.
type state struct {
	rows    []row   // by operation
	aliases []alias // by place
	dead    []string
}

// row is an operation.
type row struct {
	operation, identity, fingerprint, undoes string

	state                         middleware.State
	token, owner, settle, settler string
	attempt, generation           int
	unclear, byPerson, late       bool
	result                        string
	hasResult                     bool

	distant bool // the deadline of one of its attempts is far
	keep    bool // it is forgotten at once when it is done
}

type alias struct {
	turn, position      int
	run                 string
	operation, identity string
	repeat              bool
}

func (s state) equal(o state) bool {
	return slices.Equal(s.rows, o.rows) && slices.Equal(s.aliases, o.aliases) && slices.Equal(s.dead, o.dead)
}

var seed = maphash.MakeSeed()

func (s state) hash() uint64 {
	var h uint64
	for _, r := range s.rows {
		h = h*31 + maphash.Comparable(seed, r)
	}
	return h*31 + uint64(len(s.aliases)) + uint64(len(s.dead))<<8
}

func (s state) row(operation string) (row, bool) {
	i := slices.IndexFunc(s.rows, func(r row) bool { return r.operation == operation })
	if i < 0 {
		return row{}, false
	}
	return s.rows[i], true
}

// live is the row that holds an identity.
func (s state) live(identity string) (row, bool) {
	for _, r := range s.rows {
		if r.identity == identity && r.state != middleware.Released {
			return r, true
		}
	}
	return row{}, false
}

func (s state) released(identity string) (last row, ok bool) {
	for _, r := range s.rows {
		if r.identity == identity && r.state == middleware.Released && (!ok || r.generation > last.generation) {
			last, ok = r, true
		}
	}
	return last, ok
}

// place is the operation that a call at a place meant, "" for none.
func (s state) place(run string, turn, position int) string {
	for _, a := range s.aliases {
		if turn > 0 && a.turn == turn && a.position == position && a.run == run {
			return a.operation
		}
	}
	return ""
}

func (s state) gone(owner string) bool { return slices.Contains(s.dead, owner) }

// with is the state with a row put in the place of that operation's.
func (s state) with(r row) state {
	s.rows = slices.DeleteFunc(slices.Clone(s.rows), func(o row) bool { return o.operation == r.operation })
	i, _ := slices.BinarySearchFunc(s.rows, r.operation, func(o row, op string) int { return strings.Compare(o.operation, op) })
	s.rows = slices.Insert(s.rows, i, r)
	return s
}

func (s state) without(operation string) state {
	s.rows = slices.DeleteFunc(slices.Clone(s.rows), func(r row) bool { return r.operation == operation })
	s.aliases = slices.DeleteFunc(slices.Clone(s.aliases), func(a alias) bool { return a.operation == operation })
	return s
}

// point makes a place mean an operation.
func (s state) point(a alias) state {
	s.aliases = slices.DeleteFunc(slices.Clone(s.aliases), func(o alias) bool {
		return a.turn > 0 && o.turn == a.turn && o.position == a.position && o.run == a.run
	})
	i := 0
	for i < len(s.aliases) && (s.aliases[i].turn < a.turn || s.aliases[i].turn == a.turn && s.aliases[i].position < a.position) {
		i++
	}
	s.aliases = slices.Insert(s.aliases, i, a)
	return s
}

// step makes a call and reports whether the model answers as the ledger did. A call that never returned answers nothing.
func (s state) step(o *Op) (state, bool) {
	switch {
	case o.way:
		return s, s.inTheWay(o)
	case o.Claim != nil:
		return s.claim(o)
	case o.Change != nil:
		return s.change(o)
	case o.Note != nil:
		return s.note(o)
	case o.Find != nil:
		return s, o.To == pending || s.find(o)
	default:
		if !s.gone(o.Kill) {
			s.dead = append(slices.Clone(s.dead), o.Kill)
			slices.Sort(s.dead)
		}
		return s, true
	}
}

func (s state) claim(o *Op) (state, bool) {
	c := o.Claim
	old, held := s.live(c.Identity)
	at := s.place(c.Call.Run, c.Call.Turn, c.Call.Position)
	may := at == c.SeenAlias && s.mayTake(c, old, held)
	if _, ok := s.released(c.Identity); c.New && ok {
		may = false
	}
	if u, ok := s.row(c.Undoes); c.Undoes != "" && (!ok || u.state != middleware.Done) {
		may = false
	}
	answered := o.To != pending
	if answered && o.OK != may {
		// Only the clock may stand in the way of one that may be won: the row has expired by now, but not when it was asked for.
		return s, may && old.state == middleware.Done && (o.Row.Expires.After(o.Wall) || o.Row.Token != old.token)
	}
	if !may {
		return s, true
	}
	r := row{operation: o.Row.Operation}
	switch {
	case held && old.state == middleware.Free:
		r = old
	case held:
		s = s.without(old.operation)
		r.generation, r.unclear = old.generation, old.unclear
	default:
		if last, ok := s.released(c.Identity); ok {
			r.generation = last.generation + 1
		}
	}
	if _, taken := s.row(r.operation); taken && !held {
		return s, false
	}
	r.identity, r.fingerprint, r.undoes = c.Identity, c.Call.Fingerprint, c.Undoes
	r.state, r.token, r.attempt, r.owner, r.settle, r.settler = middleware.Running, c.Token, 1, o.By, "", ""
	r.byPerson, r.result, r.hasResult = false, "", false
	r.distant, r.keep = r.distant || c.Deadline >= far, c.Keep > 0
	s = s.with(r).point(alias{run: c.Call.Run, turn: c.Call.Turn, position: c.Call.Position, operation: r.operation, identity: c.Identity})
	return s, !answered || r.shown(&o.Row)
}

// inTheWay reports whether what a claim that was not won was shown is what its place means, or else who holds the
// identity. A ledger may read that after its transaction.
func (s state) inTheWay(o *Op) bool {
	c := o.Claim
	if c.New {
		return o.Row.Operation == ""
	}
	placed, _ := s.row(s.place(c.Call.Run, c.Call.Turn, c.Call.Position))
	held, _ := s.live(c.Identity)
	return placed.operation != "" && placed.operation != c.SeenAlias && placed.shown(&o.Row) || held.shown(&o.Row)
}

// mayTake reports whether the row that holds the identity of a claim is as the claim has seen it and can be had.
func (s state) mayTake(c *middleware.Claim, old row, held bool) bool {
	if !held {
		return c.Seen.Operation == ""
	}
	return old.operation == c.Seen.Operation && old.state == c.Seen.State && old.token == c.Seen.Token &&
		(old.state == middleware.Free || old.state == middleware.Done && old.keep)
}

func (s state) change(o *Op) (state, bool) {
	t, answered := o.Change, o.To != pending
	r, ok := s.row(t.Operation)
	if !ok {
		return s, !answered || o.Err == Lost && o.Row.Operation == ""
	}
	switch may, early := s.allowed(&r, o.By, t); {
	case may && o.Err == Early:
		// As for a claim, the clock may not have moved yet.
		timed := t.Step == middleware.Absent || t.Step == middleware.NotHappened
		return s, timed && (early || o.Until.After(o.Wall)) && r.shown(&o.Row)
	case may && o.Err == Lost && s.gone(o.By) && (t.Owner == o.By || r.settler == o.By):
		return s, r.shown(&o.Row) // of all owners, the one that is wrongly believed dead need not believe it
	case may && !early:
		s = s.apply(&r, o.By, t)
		return s, !answered || o.Err == "" && r.shown(&o.Row)
	case may:
		return s, !answered // far, and yet not too early
	}
	if t.Step == middleware.Complete && !r.stored(t) {
		r.late = true
		s = s.with(r)
	}
	return s, !answered || o.Err == Lost && r.shown(&o.Row)
}

// stored reports that the same claim has the same result already.
func (r *row) stored(t *middleware.Transition) bool {
	return (r.state == middleware.Done || r.state == middleware.Released) && r.token == t.Token && r.result == t.Result && r.hasResult == t.HasResult
}

// allowed is the condition of a step. early: all but a deadline lets it pass.
func (s state) allowed(r *row, by string, t *middleware.Transition) (may, early bool) {
	running, doubt := r.state == middleware.Running, r.state == middleware.InDoubt
	seen := r.token == t.Token && r.attempt == t.Attempt
	owner := r.owner == by
	if t.Owner != "" {
		owner = r.owner == t.Owner && s.gone(t.Owner)
	}
	settles := seen && doubt && r.settle != "" && r.settle == t.Mark
	below := t.MaxAttempts == 0 || r.attempt < t.MaxAttempts
	switch t.Step {
	case middleware.Complete:
		return r.token == t.Token && (running || doubt || r.state == middleware.Free && r.byPerson), false
	case middleware.GiveBack:
		return seen && (running || doubt), false
	case middleware.Doubt:
		return seen && running && owner, false
	case middleware.Again:
		return seen && running && owner && below, false
	case middleware.Take:
		if t.State == middleware.Running {
			return seen && running && owner, false
		}
		return seen && doubt && t.State == middleware.InDoubt && (r.settle == "" || s.gone(r.settler)), false
	case middleware.Found, middleware.Unsure:
		return settles, false
	case middleware.Absent:
		return settles && below, r.distant || t.AbsentAfter >= far
	case middleware.Happened:
		return seen && doubt, false
	case middleware.NotHappened:
		return seen && doubt, r.distant
	default:
		return false, false
	}
}

func (s state) apply(r *row, by string, t *middleware.Transition) state {
	switch t.Step {
	case middleware.Complete, middleware.Found, middleware.Happened:
		r.state, r.result, r.hasResult, r.settle, r.settler, r.byPerson = middleware.Done, t.Result, t.HasResult, "", "", false
		if u, ok := s.row(r.undoes); ok && u.state == middleware.Done {
			u.state = middleware.Released
			s = s.with(u)
		}
	case middleware.GiveBack, middleware.NotHappened:
		r.state, r.settle, r.settler, r.byPerson = middleware.Free, "", "", t.Step == middleware.NotHappened
		r.unclear = r.unclear || t.Unclear
		if t.NewKey {
			r.generation++
			r.unclear = false
		}
	case middleware.Doubt:
		r.state, r.unclear = middleware.InDoubt, true
	case middleware.Take:
		r.state, r.settle, r.settler, r.unclear = middleware.InDoubt, t.Mark, by, true
	case middleware.Unsure:
		r.settle, r.settler = "", ""
	case middleware.Again, middleware.Absent:
		r.state, r.attempt, r.owner, r.settle, r.settler, r.unclear = middleware.Running, r.attempt+1, by, "", "", true
		r.distant = r.distant || t.Deadline >= far
	}
	return s.with(*r)
}

func (s state) note(o *Op) (state, bool) {
	n, answered := o.Note, o.To != pending
	r, ok := s.row(n.Operation)
	if !ok {
		return s, !answered || o.Err == Lost
	}
	c := &n.Call
	if s.place(c.Run, c.Turn, c.Position) == "" {
		s = s.point(alias{run: c.Run, turn: c.Turn, position: c.Position, operation: r.operation, identity: r.identity, repeat: true})
	}
	repeats := 0
	for _, a := range s.aliases {
		if a.identity == r.identity && a.run == c.Run && a.repeat {
			repeats++
		}
	}
	return s, !answered || o.Err == "" && o.Repeats == repeats
}

func (s state) find(o *Op) bool {
	q := o.Find
	var r row
	var ok bool
	switch {
	case q.Operation != "":
		r, ok = s.row(q.Operation)
	case s.place(q.Run, q.Turn, q.Position) != "":
		r, ok = s.row(s.place(q.Run, q.Turn, q.Position))
	case q.Identity != "":
		if r, ok = s.live(q.Identity); !ok {
			r, ok = s.released(q.Identity)
		}
	}
	return ok == o.OK && (!ok || r.shown(&o.Row))
}

// shown reports whether a ledger's row says the same. A zero row is shown by a zero one.
func (r *row) shown(got *middleware.Row) bool {
	return *r == row{
		operation: got.Operation, identity: got.Identity, fingerprint: got.Fingerprint, undoes: got.Undoes,
		state: got.State, token: got.Token, owner: got.Owner, settle: got.Settle, settler: r.settler,
		attempt: got.Attempt, generation: got.Generation, unclear: got.Unclear, byPerson: got.ByPerson, late: got.Late,
		result: got.Result, hasResult: got.HasResult, distant: r.distant, keep: r.keep,
	}
}
