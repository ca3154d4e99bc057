package journal

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"
)

// MemoryJournal is a Journal that forgets everything when the process ends: for trials and tests. It is safe for
// concurrent use.
type MemoryJournal struct {
	*memory
	namespace string
	owner     *memoryOwner
}

// memory is what all views and owners share.
type memory struct {
	mu   sync.Mutex
	runs map[memoryID]*memoryRun
}

type memoryID struct{ namespace, run string }

// memoryOwner is one process, as the journal sees it.
type memoryOwner struct {
	gone bool
	held map[string]bool // tokens of the runs that its calls are at
}

type memoryRun struct {
	Record              // Token is that of who took it last
	owner  *memoryOwner // nil: nobody has it
}

var _ Journal = (*MemoryJournal)(nil)

// Memory makes an empty journal in memory. With a ledger in memory it is all that a loop needs:
//
//	struct {
//		*middleware.MemoryLedger
//		*journal.MemoryJournal
//	}{middleware.Memory(), journal.Memory()}
func Memory() *MemoryJournal {
	j := &MemoryJournal{memory: &memory{runs: map[memoryID]*memoryRun{}}}
	return j.Peer()
}

// Namespace is the same journal seen by one tenant.
func (j *MemoryJournal) Namespace(name string) *MemoryJournal {
	return &MemoryJournal{memory: j.memory, namespace: name, owner: j.owner}
}

// Peer is the same journal as another living process sees it.
func (j *MemoryJournal) Peer() *MemoryJournal {
	return &MemoryJournal{memory: j.memory, namespace: j.namespace, owner: &memoryOwner{held: map[string]bool{}}}
}

// Die makes the owner behind j count as gone, as though its process had been killed. What still uses j is what a slow
// process would be that others wrongly believe dead.
func (j *MemoryJournal) Die() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.owner.gone = true
}

// Begin implements Journal. A context that has ended begins nothing.
func (j *MemoryJournal) Begin(ctx context.Context, s Start) (Record, error) {
	if ctx.Err() != nil {
		return Record{}, fmt.Errorf("journal: beginning a run: %w", context.Cause(ctx))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	id := memoryID{j.namespace, s.Run.ID}
	r := j.runs[id]
	switch {
	case r == nil:
		s.Input = bytes.Clone(s.Input)
		r = &memoryRun{Record: Record{Start: s, Created: time.Now()}}
		j.runs[id] = r
	case r.Run != s.Run || r.API != s.API || !bytes.Equal(r.Input, s.Input):
		return Record{}, ErrOtherInput
	case r.Finished:
		return r.copy(), nil
	case r.owner != nil && !r.owner.gone && (r.owner != j.owner || j.owner.held[r.Token]):
		return Record{}, ErrRunTaken
	}
	r.Token, r.owner = rand.Text(), j.owner
	j.owner.held[r.Token] = true
	rec := r.copy()
	rec.AskedBefore = j.askedBefore(r)
	return rec, nil
}

// askedBefore is when the input of a run was given in its conversation before.
func (j *MemoryJournal) askedBefore(r *memoryRun) (first time.Time) {
	for id, other := range j.runs {
		if id.namespace == j.namespace && other != r && r.Run.Conversation != "" && other.Run.Conversation == r.Run.Conversation && other.API == r.API &&
			bytes.Equal(other.Input, r.Input) && other.Created.Before(r.Created) && (first.IsZero() || other.Created.Before(first)) {
			first = other.Created
		}
	}
	return first
}

// Append implements Journal.
func (j *MemoryJournal) Append(_ context.Context, e Entry) (Entry, error) {
	var stored Entry
	err := j.write(e.Run, e.Token, func(r *memoryRun) (err error) {
		stored, err = r.append(e)
		return err
	})
	return stored, err
}

// Leave implements Journal.
func (j *MemoryJournal) Leave(_ context.Context, l Leaving) error {
	return j.write(l.Run, l.Token, func(r *memoryRun) error {
		last := len(r.Turns)
		switch {
		case l.Turn == 0 && len(l.Outputs) == 0:
		case l.Turn == 0 || l.Turn != last:
			return fmt.Errorf("journal: leaving a run at turn %d: turn %d is the last one: name it, or leave without outputs", l.Turn, last)
		default:
			r.Turns[last-1].add(l.Outputs)
		}
		r.owner = nil
		return nil
	})
}

// write lets f change a run under its token. Afterwards the caller is at the run no more if f has failed or given it up.
func (j *MemoryJournal) write(run, token string, f func(*memoryRun) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	r, err := j.runs[memoryID{j.namespace, run}], ErrLost
	if r != nil && r.owner != nil && r.Token == token {
		err = f(r)
	}
	if err != nil || r.owner == nil {
		delete(j.owner.held, token)
	}
	return err
}

func (r *memoryRun) append(e Entry) (Entry, error) {
	last, n := len(r.Turns), e.Turn.Number
	switch {
	case n >= 1 && n <= last: // it is stored
	case n != last+1:
		return Entry{}, fmt.Errorf("journal: storing turn %d: the last one is %d: begin the run again and go on from there", n, last)
	case last == 0 && len(e.Outputs) > 0:
		return Entry{}, fmt.Errorf("journal: storing turn %d: no turn is before it, so its entry can have no outputs", n)
	default:
		if last > 0 {
			r.Turns[last-1].add(e.Outputs)
		}
		r.Turns = append(r.Turns, Turn{Number: n, Answer: bytes.Clone(e.Turn.Answer)})
		if e.Final {
			r.Finished, r.owner = true, nil
		}
	}
	e.Turn, e.Outputs, e.Final = Turn{Number: n, Answer: bytes.Clone(r.Turns[n-1].Answer)}, nil, r.Finished
	if n > 1 {
		e.Outputs = slices.Clone(r.Turns[n-2].Outputs)
	}
	return e, nil
}

// add keeps the outputs that are new, in the order of their positions.
func (t *Turn) add(outputs []Output) {
	for _, o := range outputs {
		i, found := slices.BinarySearchFunc(t.Outputs, o.Position, func(o Output, at int) int { return cmp.Compare(o.Position, at) })
		if !found {
			t.Outputs = slices.Insert(t.Outputs, i, o)
		}
	}
}

// copy is the record for a caller.
func (r *memoryRun) copy() Record {
	c := r.Record
	c.Input, c.Turns = bytes.Clone(r.Input), slices.Clone(r.Turns)
	for i, t := range c.Turns {
		c.Turns[i].Answer, c.Turns[i].Outputs = bytes.Clone(t.Answer), slices.Clone(t.Outputs)
	}
	if r.Finished {
		c.Token = ""
	}
	return c
}
