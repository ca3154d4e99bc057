package pgstore

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

const (
	// maxTogether is how many requests go to the server together. More would only make the first of them wait for the last.
	maxTogether = 256
	// patience is how long a request waits for those that are being sent. What takes longer waits for a lock or for the
	// network, and is to keep nobody else waiting.
	patience = 200 * time.Millisecond
)

// gatherer has requests of many callers go to the server together. Whoever finds nobody leading leads: it sends its own
// request with all that wait, and hands the lead to the first of those that have come meanwhile. So one alone waits for
// nobody, and the more there are the more go together. There is one leader for each kind of request: with more of them, or
// with one for several kinds, each sends less, and so the server parses and plans more often.
type gatherer[R any] struct {
	least    int // how many go together, where fewer go by themselves
	patience time.Duration

	mu      sync.Mutex
	leader  *request[R]   // nil: nobody leads
	waiting []*request[R] // in the order they came
}

// request is what one caller wants.
type request[R any] struct {
	what R
	left bool      // its caller does not wait for it any more
	turn chan bool // of one that waits: true, it leads; false, it was sent
}

// do has send called with what goes together, this caller's first, or by another with this among its own. Where send is false
// it was not sent, and the others have another lead. It is an error where ctx ends before another has sent it: a leader's send
// must see to that itself.
func (g *gatherer[R]) do(ctx context.Context, what R, send func([]R) bool) error {
	r := &request[R]{what: what}
	g.mu.Lock()
	if g.leader == nil {
		g.leader = r
	} else {
		r.turn = make(chan bool, 1)
		g.waiting = append(g.waiting, r)
	}
	g.mu.Unlock()
	if r.turn != nil {
		if leads, err := g.wait(ctx, r); !leads {
			return err
		}
	}
	g.lead(r, send)
	return nil
}

// wait is for a request whose turn it is not: until it leads, or another has sent it.
func (g *gatherer[R]) wait(ctx context.Context, r *request[R]) (leads bool, err error) {
	timer := time.NewTimer(g.patience)
	defer timer.Stop()
	for {
		select {
		case leads = <-r.turn:
			return leads, nil
		case <-timer.C:
			if g.depose(r) {
				return true, nil
			}
			timer.Reset(g.patience) // it is being sent, or will wait again
		case <-ctx.Done():
			g.leave(r)
			return false, context.Cause(ctx)
		}
	}
}

// depose has a request that has waited for too long lead, beside the one that leads. It is false where it is being sent.
func (g *gatherer[R]) depose(r *request[R]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting, r)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		g.leader = r
	}
	return i >= 0
}

// leave is for a request whose caller goes.
func (g *gatherer[R]) leave(r *request[R]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.left = true
	g.waiting = slices.DeleteFunc(g.waiting, func(w *request[R]) bool { return w == r })
	if g.leader == r { // it has become so just now
		g.handOn()
	}
}

// lead sends a request and those that wait, and hands the lead on.
func (g *gatherer[R]) lead(r *request[R], send func([]R) bool) {
	runtime.Gosched() // those who have just got their answers come again, and find their place here
	g.mu.Lock()
	n := min(len(g.waiting), maxTogether-1)
	others := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	g.mu.Unlock()
	all := []R{r.what}
	for _, o := range others {
		all = append(all, o.what)
	}
	sent := true
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !sent {
			others = slices.DeleteFunc(others, func(o *request[R]) bool { return o.left })
			g.waiting = slices.Concat(others, g.waiting)
			others = nil
		}
		if g.leader == r || g.leader == nil { // nil: who has deposed it is done
			g.handOn()
		}
		for _, o := range others {
			o.turn <- false
		}
	}()
	sent = send(all)
}

// handOn gives the lead to the first that waits. mu is held.
func (g *gatherer[R]) handOn() {
	g.leader = nil
	if len(g.waiting) > 0 {
		g.leader = g.waiting[0]
		g.waiting = slices.Delete(g.waiting, 0, 1)
		g.leader.turn <- true
	}
}
