package pgstore

import (
	"context"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Die stops the store's heartbeat and makes it overdue, as the end of its process and some time would.
func (s *Store) Die() error {
	s.d.quiet()
	_, err := s.d.write(context.Background(), func(b *batch) {
		b.run(`UPDATE @owners SET beat = '-infinity', overdue = '0' WHERE id = $1`, s.d.owner)
	})
	return err
}

// Pool is the store's.
func (s *Store) Pool() *pgxpool.Pool { return s.d.pool }

// SetWriteTimeout is for a store that was opened in peace.
func (s *Store) SetWriteTimeout(d time.Duration) { s.d.opts.WriteTimeout = d }

// Owner is the name of the store's owner.
func (s *Store) Owner() string { return s.d.ownerName }

// StopHeart ends the heartbeat alone.
func (s *Store) StopHeart() { s.d.quiet() }

// SetNewID has operations get the ids that f gives.
func (s *Store) SetNewID(f func() int64) { s.d.newID = f }

// Together has what may go together go so even where it is alone.
func (s *Store) Together() *Store {
	s.d.claims.least, s.d.results.least = 1, 1
	return s
}

// HoldLooks, HoldClaims and HoldResults have start begin what waits until there are n that wait. Then these go together.
func (s *Store) HoldLooks(n int, start func())   { hold(&s.d.looks, n, start) }
func (s *Store) HoldClaims(n int, start func())  { hold(&s.d.claims, n, start) }
func (s *Store) HoldResults(n int, start func()) { hold(&s.d.results, n, start) }

func hold[R any](g *gatherer[R], n int, start func()) {
	g.patience = time.Hour
	var none R
	_ = g.do(context.Background(), none, func([]R) bool {
		start()
		for waiting(g) < n {
			runtime.Gosched()
		}
		return false
	})
}

func waiting[R any](g *gatherer[R]) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// LooksWaiting is how many wait.
func (s *Store) LooksWaiting() int { return waiting(&s.d.looks) }
