package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
)

// storm is a world in which the store, the provider and the processes fail at random until it is calm.
type storm struct {
	*world
	mu     sync.Mutex
	rng    *rand.Rand
	way    string
	faults int // calls of the store that may still fail
	tries  int // calls of the handler that may still fail
	known  map[string]bool
}

func newStorm(t *testing.T, seed uint64, way string) *storm {
	s := &storm{world: newWorld(t), rng: rand.New(rand.NewPCG(seed, 1)), way: way, faults: 40, tries: 4, known: map[string]bool{}}
	s.run = s.provider
	switch way {
	case "rerun":
		s.recovery = registry.Rerun
	case "lookup":
		s.lookup = s.ask
	}
	return s
}

func (s *storm) roll(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rng.IntN(n)
}

// fault is for Before and After: one call in five fails while the storm lasts.
func (s *storm) fault(_ context.Context, op ledgertest.Op) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults == 0 {
		return nil
	}
	s.faults--
	if s.rng.IntN(5) > 0 {
		return nil
	}
	return fmt.Errorf("connection reset at %v", op)
}

func (s *storm) calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.tries = 0, 0
}

func (s *storm) ledger(l middleware.Ledger) *ledgertest.Faulty {
	return &ledgertest.Faulty{Ledger: l, Before: s.fault, After: s.fault}
}

// effect happens once per key where the provider honours keys.
func (s *storm) effect(key string) {
	s.mu.Lock()
	first := !s.known[key]
	s.known[key] = true
	s.mu.Unlock()
	if first || s.way != "rerun" {
		s.did("refund")
	}
}

// provider does the refund, or not, and does not always say so, or not in time. No request lands after its deadline.
func (s *storm) provider(ctx context.Context, in refundInput) (refund, error) {
	done := refund{"re_" + in.OrderID, in.Cents}
	s.mu.Lock()
	roll := 9
	if s.tries > 0 {
		s.tries--
		roll = s.rng.IntN(9)
	}
	s.mu.Unlock()
	switch roll {
	case 0, 1:
		return refund{}, errTimeout
	case 2:
		return refund{}, registry.NoEffect(errors.New("declined"))
	case 3:
		time.Sleep(timeout + time.Duration(s.roll(10))*time.Second)
		return refund{}, errTimeout
	case 4:
		time.Sleep(time.Duration(s.roll(9)) * time.Second)
	}
	s.effect(registry.IdempotencyKey(ctx))
	switch roll {
	case 4, 5:
		time.Sleep(time.Duration(s.roll(20)) * time.Second)
	case 6, 7:
		return refund{}, errTimeout
	}
	return done, nil
}

// ask is the provider's answer to whether it happened.
func (s *storm) ask(_ context.Context, in refundInput) (refund, error) {
	if s.roll(4) == 0 {
		time.Sleep(time.Duration(s.roll(20)) * time.Second)
	}
	if s.count("refund") == 0 {
		return refund{}, registry.NoEffect(errors.New("no such refund"))
	}
	return refund{"re_" + in.OrderID, in.Cents}, nil
}

// rage lets two processes call the operation up to six times, some at once and some hours apart. In half of all worlds
// the first process dies meanwhile. The ledger returned is that of the second.
func (s *storm) rage(t *testing.T) *middleware.MemoryLedger {
	first := middleware.Memory()
	second := first.Peer()
	o := options()
	o.Repeats = -1
	living := []registry.Handler{s.handler(s.ledger(first), o), s.handler(s.ledger(second), o)}
	if s.roll(2) == 0 {
		dies := time.AfterFunc(time.Duration(s.roll(30))*time.Second, first.Die)
		defer dies.Stop()
	}
	var wg sync.WaitGroup
	for range 1 + s.roll(6) {
		h, c := living[s.roll(2)], at(1+s.roll(3), s.roll(2), "issue_refund", r7)
		wg.Go(func() { _, _ = h(t.Context(), c) }) // whatever it is told: the store may fail
		switch s.roll(4) {
		case 0:
		case 1:
			time.Sleep(time.Duration(s.roll(30)) * time.Second)
		default:
			time.Sleep(time.Duration(1+s.roll(5)) * time.Hour)
		}
		if n := s.count("refund"); n > 1 {
			t.Errorf("%d effects in the storm", n)
		}
	}
	s.calm()
	wg.Wait()
	time.Sleep(72 * time.Hour)
	for i, l := range []*middleware.MemoryLedger{first, second} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := l.Handlers().Wait(ctx); err != nil {
			t.Errorf("process %d, three days later: %v", i+1, err)
		}
		cancel()
	}
	return second
}

func TestWhateverFailsItHappensAtMostOnceAndNothingStaysStuck(t *testing.T) {
	for _, way := range []string{"hold", "lookup", "rerun"} {
		for seed := range uint64(150) {
			t.Run(fmt.Sprintf("%s, seed %d", way, seed+1), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s := newStorm(t, seed+1, way)
					l := s.rage(t)
					o := options()
					o.Repeats = -1
					got, err := s.handler(l, o)(t.Context(), at(9, 0, "issue_refund", r7))
					row := only(t, l)
					state, effects := middleware.Done, 1
					switch {
					case err != nil:
						t.Errorf("the last call: %v", err)
					case got.Verdict == registry.OutcomeUnknown:
						state, effects = middleware.InDoubt, s.count("refund")
					case got.Verdict != registry.Executed && got.Verdict != registry.Replayed && got.Verdict != registry.AlreadyDone:
						t.Errorf("the last call is told %s: %s", got.Verdict, got.Content)
					}
					if row.State != state || row.Settle != "" {
						t.Errorf("told %s, but the row is %s, settled by %q, attempt %d", got.Verdict, row.State, row.Settle, row.Attempt)
					}
					if n := s.count("refund"); n != effects || n > 1 {
						t.Errorf("told %s after %d effects", got.Verdict, n)
					}
					time.Sleep(72 * time.Hour)
				})
			})
		}
	}
}
