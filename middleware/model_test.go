package middleware_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// ending is how a handler ends.
type ending string

const (
	succeeds     ending = "succeeds"
	refuses      ending = "refuses"      // NoEffect: nothing was done
	failsBefore  ending = "fails before" // a plain error, and nothing was done
	failsAfter   ending = "fails after"  // a plain error, though it was done
	panicsBefore ending = "panics before"
	panicsAfter  ending = "panics after"
	comesLate    ending = "comes late" // it is done, and the handler returns after its time
)

func (e ending) acts() bool {
	return e == succeeds || e == failsAfter || e == panicsAfter || e == comesLate
}

// point is where a process dies in the middle of a call that claims.
type point string

const (
	alive         point = ""
	beforeClaim   point = "before the claim"
	afterClaim    point = "after the claim"
	beforeEffect  point = "before the effect"
	afterEffect   point = "after the effect"
	beforeStoring point = "before storing"
	afterStoring  point = "after storing"
)

// thing is an operation as the reference knows it.
type thing struct {
	tool, name string
	identity   string
	cents      int              // the fingerprint
	state      middleware.State // between two calls, what is running is an orphan
	done       int              // how often it was really done
	attempt    int
	generation int
	ran        int // the generation that its last handler ran under
	unclear    bool
	deadline   time.Time
	lateAt     time.Time // when its handler returns, if it is late
	claimer    place
	undoes     *thing
}

type place struct {
	run  string
	turn int
}

// request is a call, and what becomes of its handler.
type request struct {
	place
	tool, name string
	cents      int
	ends       ending
	dies       point
	unsure     bool // its Lookup cannot tell
}

// reference says what the guard should do, for one call at a time.
type reference struct {
	things  []*thing
	meant   map[place]*thing
	timeout time.Duration
	margin  time.Duration
}

// settle lets the late handlers return whose time has come.
func (m *reference) settle(now time.Time) {
	for _, o := range m.things {
		if !o.lateAt.IsZero() && !now.Before(o.lateAt) {
			o.lateAt = time.Time{}
			if o.state == middleware.InDoubt {
				m.finish(o)
			}
		}
	}
}

// crash is the end of the process, and of all that runs in it.
func (m *reference) crash() {
	for _, o := range m.things {
		o.lateAt = time.Time{}
	}
}

func (m *reference) finish(o *thing) {
	o.state = middleware.Done
	if u := o.undoes; u != nil && u.state == middleware.Done {
		u.state = middleware.Released
	}
}

func (m *reference) last(match func(*thing) bool) *thing {
	for _, o := range slices.Backward(m.things) {
		if match(o) {
			return o
		}
	}
	return nil
}

// undone is what an undo of a seat undoes: what is reserved, before what is being reserved, before what was.
func (m *reference) undone(name string) *thing {
	for _, states := range [][]middleware.State{{middleware.Done}, {middleware.Running, middleware.InDoubt}, {middleware.Released}} {
		for _, s := range states {
			if o := m.last(func(o *thing) bool { return o.tool == "reserve" && o.name == name && o.state == s }); o != nil {
				return o
			}
		}
	}
	return nil
}

// find is the operation that a call means, nil for one that is to be made, and what it undoes.
func (m *reference) find(r *request) (o, target *thing, identity string, same bool) {
	if o := m.meant[r.place]; o != nil && o.state != middleware.Free {
		return o, nil, o.identity, true
	}
	switch r.tool {
	case "note", "set":
		identity = fmt.Sprint(r.tool, " ", r.place)
	case "pay":
		identity = fmt.Sprint("pay ", r.run, " ", r.name, " ", r.cents)
	case "give_up":
		identity = "give_up " + r.name
		if target = m.undone(r.name); target != nil {
			identity += fmt.Sprintf(" %p", target)
		}
	default:
		identity = r.tool + " " + r.name
	}
	o = m.last(func(o *thing) bool { return o.identity == identity && o.state != middleware.Released })
	return o, target, identity, false
}

// claims reports whether a call will claim.
func (m *reference) claims(r *request) bool {
	o, target, _, same := m.find(r)
	return !same && (o == nil || o.state == middleware.Free) && (target == nil || target.state == middleware.Done)
}

// call is the verdict of a call that ends; where its process dies there is none.
func (m *reference) call(r *request, now time.Time) registry.Verdict {
	o, target, identity, same := m.find(r)
	if o == nil || o.state == middleware.Free && !same {
		if target != nil && target.state != middleware.Done {
			return registry.Refused
		}
		if r.dies == beforeClaim {
			return ""
		}
		if o == nil {
			o = &thing{tool: r.tool, name: r.name, identity: identity}
			if old := m.last(func(o *thing) bool { return o.identity == identity }); old != nil {
				o.generation = old.generation + 1
			}
			m.things = append(m.things, o)
		}
		o.state, o.attempt, o.cents, o.claimer, o.undoes = middleware.Running, 1, r.cents, r.place, target
		o.deadline = latest(o.deadline, now.Add(m.timeout+m.margin))
		m.meant[r.place] = o
		return m.run(o, r, now, true, false)
	}
	if m.meant[r.place] == nil {
		m.meant[r.place] = o
	}
	own := same && o.claimer == r.place
	switch {
	case o.cents != r.cents:
		return registry.Conflict
	case o.state == middleware.Done || o.state == middleware.Released:
		if own {
			return registry.Replayed
		}
		return registry.AlreadyDone
	}
	return m.recover(o, r, now, own)
}

// recover settles what is unclear, as its tool says.
func (m *reference) recover(o *thing, r *request, now time.Time, own bool) registry.Verdict {
	running := o.state == middleware.Running
	switch {
	case o.tool == "look":
		return m.look(o, r, now, own, true)
	case running && (o.tool == "set" || o.tool == "rerun" && o.attempt < 3):
		m.next(o, now)
		return m.run(o, r, now, own, true)
	case running:
		o.state, o.unclear = middleware.InDoubt, true
	}
	return registry.OutcomeUnknown
}

func (m *reference) next(o *thing, now time.Time) {
	o.state, o.unclear = middleware.Running, true
	o.attempt++
	o.deadline = latest(o.deadline, now.Add(m.timeout+m.margin))
}

// look asks the provider.
func (m *reference) look(o *thing, r *request, now time.Time, own, fresh bool) registry.Verdict {
	o.state, o.unclear = middleware.InDoubt, true
	switch {
	case r.unsure:
	case o.done > 0:
		m.finish(o)
		switch {
		case !own:
			return registry.AlreadyDone
		case fresh:
			return registry.Replayed
		}
		return registry.Executed
	case !now.Before(o.deadline) && o.attempt < 3:
		m.next(o, now)
		return m.run(o, r, now, own, fresh)
	}
	return registry.OutcomeUnknown
}

// run is one attempt and what follows from it.
func (m *reference) run(o *thing, r *request, now time.Time, own, fresh bool) registry.Verdict {
	if r.dies == afterClaim || r.dies == beforeEffect {
		return ""
	}
	o.ran = o.generation
	if r.ends.acts() && (o.tool != "rerun" || o.done == 0) {
		o.done++
	}
	if r.dies == afterEffect || r.dies == beforeStoring {
		return ""
	}
	verdict := m.ended(o, r, now, own, fresh)
	if r.dies == afterStoring {
		return ""
	}
	return verdict
}

func (m *reference) ended(o *thing, r *request, now time.Time, own, fresh bool) registry.Verdict {
	switch {
	case r.ends == succeeds:
		m.finish(o)
		if own {
			return registry.Executed
		}
		return registry.AlreadyDone
	case r.ends == refuses && o.attempt == 1:
		o.state = middleware.Free
		if !o.unclear {
			o.generation++
		}
		return registry.Failed
	case o.tool == "set":
		o.state, o.unclear = middleware.Free, o.unclear || r.ends != refuses
		return registry.Failed
	case r.ends == comesLate:
		now = now.Add(m.timeout + time.Second)
		o.lateAt = now.Add(m.timeout) // twice its time, and the moment that the guard gives it
	}
	switch {
	case o.tool == "look" && r.dies == afterStoring: // in the middle of its Lookup
		o.state, o.unclear = middleware.InDoubt, true
		return ""
	case o.tool == "look":
		if o.done == 0 || r.unsure {
			o.state, o.unclear = middleware.InDoubt, true
			return registry.OutcomeUnknown
		}
		return m.look(o, r, now, own, fresh)
	case o.tool == "rerun" && r.ends != comesLate && o.attempt < 3:
		now = now.Add(time.Duration(o.attempt*o.attempt) * 250 * time.Millisecond)
		m.next(o, now)
		if r.dies == afterStoring {
			return ""
		}
		again := *r
		again.ends = succeeds // only the first handler of a call ends as it says
		return m.run(o, &again, now, own, fresh)
	}
	o.state, o.unclear = middleware.InDoubt, true
	return registry.OutcomeUnknown
}

// recoverAll is what Recover does.
func (m *reference) recoverAll(now time.Time) {
	for _, o := range m.things {
		if o.state == middleware.Running || o.state == middleware.InDoubt && o.tool == "look" {
			m.recover(o, &request{tool: o.tool, ends: succeeds}, now, true)
		}
	}
}

// person has one who knows the truth settle an operation that is in doubt. early: it must wait.
func (m *reference) person(o *thing, now time.Time) (step middleware.Step, early bool) {
	if o.done > 0 {
		o.lateAt = time.Time{}
		m.finish(o)
		return middleware.Happened, false
	}
	if now.Before(o.deadline) {
		return middleware.NotHappened, true
	}
	o.state = middleware.Free
	return middleware.NotHappened, false
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
