package middleware

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Handlers is the record of the handlers that one process runs under claims. A ledger makes one and shares it between
// its namespaces. The zero value is ready to use, by any number of goroutines.
type Handlers struct {
	mu   sync.Mutex
	open map[string]*entry
	idle chan struct{} // closed when open becomes empty; nil while nobody waits for that
}

// entry is what is open for one operation.
type entry struct {
	held    []*Held
	changed chan struct{} // made for the first that watches
	carried bool          // somebody carries a doubtful step on
}

// Held is one piece of work on an operation: a handler that runs, a Lookup that is asked, a result not yet stored.
type Held struct {
	h         *Handlers
	operation string
	running   bool // its handler runs
	doubtful  bool // it is about a step that may not have been made
	unsaved   *Row // its outcome, which is not stored yet
}

// Open records that this process works on the operation. Its handler counts as running from Begin to Returned.
func (h *Handlers) Open(operation string) *Held {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[string]*entry{}
	}
	e := h.open[operation]
	if e == nil {
		e = &entry{}
		h.open[operation] = e
	}
	p := &Held{h: h, operation: operation}
	e.held = append(e.held, p)
	return p
}

// become is for work that was recorded under a name of its own: it goes on under its operation's.
func (p *Held) become(operation string) {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	e := p.h.open[p.operation]
	delete(p.h.open, p.operation)
	if other := p.h.open[operation]; other != nil {
		other.held = append(other.held, p)
	} else {
		p.h.open[operation] = e
	}
	p.operation = operation
}

// Running reports whether a handler of the operation runs in this process.
func (h *Handlers) Running(operation string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.open[operation]; e != nil {
		return slices.ContainsFunc(e.held, func(p *Held) bool { return p.running })
	}
	return false
}

// Wait returns when nothing is open, or with an error that says how many operations are when ctx ends.
func (h *Handlers) Wait(ctx context.Context) error {
	for {
		h.mu.Lock()
		n := len(h.open)
		if n == 0 {
			h.mu.Unlock()
			return nil
		}
		if h.idle == nil {
			h.idle = make(chan struct{})
		}
		idle := h.idle
		h.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("middleware: waiting for handlers: %d operations still run or have not stored their result: %w", n, context.Cause(ctx))
		}
	}
}

// watch is a channel that closes at the operation's next change in this process, and an outcome that could not be
// stored yet. Both are nil where nothing is open.
func (h *Handlers) watch(operation string) (changed <-chan struct{}, unsaved *Row) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := h.open[operation]
	if e == nil {
		return nil, nil
	}
	for _, p := range e.held {
		if p.unsaved != nil {
			unsaved = p.unsaved
		}
	}
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.changed, unsaved
}

// Begin records that the handler starts.
func (p *Held) Begin() { p.set(func(*entry) { p.running = true }) }

// Returned records that the handler has returned.
func (p *Held) Returned() { p.set(func(*entry) { p.running = false }) }

// Changed wakes those who wait for the operation. unsaved, if not nil, is its outcome, which is not stored yet.
func (p *Held) Changed(unsaved *Row) {
	p.set(func(e *entry) {
		p.unsaved = unsaved
		e.wake()
	})
}

// End records that the work is over.
func (p *Held) End() {
	p.set(func(e *entry) {
		e.wake()
		e.held = slices.DeleteFunc(e.held, func(other *Held) bool { return other == p })
		if len(e.held) > 0 {
			return
		}
		delete(p.h.open, p.operation)
		if len(p.h.open) == 0 && p.h.idle != nil {
			close(p.h.idle)
			p.h.idle = nil
		}
	})
}

// carry reports whether p may carry on with a step that was made: it is alone with the operation in this process, but for
// others whose step is in doubt as well, of whom one may.
func (p *Held) carry() (may bool) {
	p.set(func(e *entry) {
		for _, other := range e.held {
			if !other.doubtful {
				return
			}
		}
		may, e.carried = !e.carried, true
	})
	return may
}

func (p *Held) set(f func(*entry)) {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	if e := p.h.open[p.operation]; e != nil {
		f(e)
	}
}

func (e *entry) wake() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}
