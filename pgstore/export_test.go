package pgstore

import (
	"context"
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
