// Package closing ends what several goroutines use, once nothing of it runs any more.
package closing

import (
	"sync"
	"time"
)

// Gate is passed by what makes a process run something, until it is closed. The zero value is open.
type Gate struct {
	mu     sync.RWMutex // held for reading by who has entered
	closed bool

	once sync.Once
	over chan struct{} // closed when all has ended
	err  error
}

// Enter keeps Close away until leave is called. ok is false, and leave nil, once Close has begun.
func (g *Gate) Enter() (leave func(), ok bool) {
	g.mu.RLock()
	if g.closed {
		g.mu.RUnlock()
		return nil, false
	}
	return g.mu.RUnlock, true
}

// Close lets nobody enter any more, has end called, once and in the background, and waits for its answer, at most for the
// time given. over is false where that was too short: end goes on, and another Close waits for it again.
func (g *Gate) Close(most time.Duration, end func() error) (over bool, err error) {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.once.Do(func() {
		g.over = make(chan struct{})
		go func() {
			g.err = end()
			close(g.over)
		}()
	})
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-g.over:
		return true, g.err
	case <-timer.C:
		return false, nil
	}
}
