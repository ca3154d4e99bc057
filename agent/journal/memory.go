package journal

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
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
	held map[[2]string]bool // namespaces and tokens of the runs that its calls are at
}

type memoryRun struct {
	Record              // Token is that of who took it last
	owner  *memoryOwner // nil: nobody has it
	number int          // in the order in which runs were made
}

var (
	_ Journal = (*MemoryJournal)(nil)
	_ Reader  = (*MemoryJournal)(nil)
)

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
	return &MemoryJournal{memory: j.memory, namespace: j.namespace, owner: &memoryOwner{held: map[[2]string]bool{}}}
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
		r = &memoryRun{Record: Record{Start: s, Created: time.Now()}, number: len(j.runs)}
		j.runs[id] = r
	case r.Run != s.Run || r.API != s.API || !bytes.Equal(r.Input, s.Input):
		return Record{}, ErrOtherInput
	case r.Forgotten:
		return Record{}, ErrForgotten
	case r.Finished:
		return r.copy(), nil
	case j.taken(r):
		return Record{}, ErrRunTaken
	}
	r.Token, r.owner = rand.Text(), j.owner
	j.owner.held[[2]string{j.namespace, r.Token}] = true
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

// Runs implements Reader.
func (j *MemoryJournal) Runs(ctx context.Context, q RunsQuery) ([]Summary, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("journal: listing runs: %w", context.Cause(ctx))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var runs []*memoryRun
	for id, r := range j.runs {
		if id.namespace == j.namespace && (q.Conversation == "" || r.Run.Conversation == q.Conversation) && (!q.Unfinished || !r.Finished) {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(a, b *memoryRun) int { return cmp.Compare(b.number, a.number) })
	if q.Limit > 0 && len(runs) > q.Limit {
		runs = runs[:q.Limit]
	}
	var all []Summary
	for _, r := range runs {
		all = append(all, Summary{
			Run: r.Run, API: r.API, Created: r.Created, Turns: len(r.Turns), Finished: r.Finished, Forgotten: r.Forgotten,
			Taken: j.taken(r),
		})
	}
	return all, nil
}

// Forget erases what a run was answered and told, and finishes it, whatever it was. It is ErrRunTaken where somebody who lives
// has the run, and an error where there is none.
func (j *MemoryJournal) Forget(_ context.Context, run string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.runs[memoryID{j.namespace, run}]
	switch {
	case r == nil:
		return errors.New("journal: forgetting a run: there is none with that id")
	case j.taken(r):
		return ErrRunTaken
	}
	r.Turns, r.Finished, r.Forgotten, r.owner = nil, true, true, nil
	return nil
}

// taken reports whether somebody who lives has the run.
func (j *MemoryJournal) taken(r *memoryRun) bool {
	return r.owner != nil && !r.owner.gone && (r.owner != j.owner || j.owner.held[[2]string{j.namespace, r.Token}])
}

// Read implements Reader.
func (j *MemoryJournal) Read(ctx context.Context, run string) (Record, bool, error) {
	if ctx.Err() != nil {
		return Record{}, false, fmt.Errorf("journal: reading a run: %w", context.Cause(ctx))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	r := j.runs[memoryID{j.namespace, run}]
	if r == nil {
		return Record{}, false, nil
	}
	rec := r.copy()
	rec.Token = ""
	return rec, true, nil
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
		delete(j.owner.held, [2]string{j.namespace, token})
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
