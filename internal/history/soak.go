package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
)

const (
	workers = 6
	owners  = 3 // at first, two workers each
	spares  = 2 // owners that start after a crash
	calls   = 30
)

// Seeds is how many histories a test checks: TOOLONCE_SEEDS where it is set, else n, or a tenth with -short. The first
// is 1, or TOOLONCE_SEED.
func Seeds(t *testing.T, n int) (first, count uint64) {
	t.Helper()
	if testing.Short() {
		n = max(1, n/10)
	}
	number := func(name string, otherwise int) uint64 {
		s := os.Getenv(name)
		if s == "" {
			return uint64(otherwise)
		}
		v, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			t.Fatalf("%s=%q is no number", name, s)
		}
		return v
	}
	return number("TOOLONCE_SEED", 1), number("TOOLONCE_SEEDS", n)
}

// Check has goroutines of several owners work on fresh data, seed by seed, and checks each history.
func Check(t *testing.T, n int, open func(t *testing.T) ledgertest.System) {
	t.Helper()
	first, count := Seeds(t, n)
	t.Logf("seeds %d to %d", first, first+count-1)
	total := 0
	for seed := first; seed < first+count && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { // what it opens is closed before the next one
			ops, err := Record(t, open(t), seed)
			if err == nil {
				err = Verify(ops)
			}
			if err != nil {
				t.Fatalf("TOOLONCE_SEED=%d TOOLONCE_SEEDS=1: %v", seed, err)
			}
			total += len(ops)
		})
	}
	t.Logf("%d calls", total)
}

// Record is the history of one seed. The schedule is not part of the seed: run it again to see it again.
func Record(t *testing.T, sys ledgertest.System, seed uint64) ([]Op, error) {
	t.Helper()
	k := &soak{sys: sys, seed: seed, begun: time.Now(), spare: make(chan middleware.Ledger, spares)}
	for range owners {
		k.first = append(k.first, sys.Open())
	}
	for range spares {
		k.spare <- sys.Open()
	}
	k.ready.Add(workers)
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() { errs[i] = k.work(t.Context(), i) })
	}
	wg.Wait()
	return k.ops, errors.Join(errs...)
}

// soak is one seed at work.
type soak struct {
	sys   ledgertest.System
	seed  uint64
	begun time.Time
	first []middleware.Ledger
	spare chan middleware.Ledger
	ready sync.WaitGroup

	mu  sync.Mutex
	ops []Op
}

func (k *soak) log(o Op) {
	if o.To == 0 { // here each call returns
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ops = append(k.ops, o)
}

func (k *soak) work(ctx context.Context, i int) error {
	w := &Worker{
		Name: fmt.Sprintf("w%d", i), Views: []string{fmt.Sprintf("acme %d", k.seed), fmt.Sprintf("globex %d", k.seed)},
		Random: rand.New(rand.NewPCG(k.seed, uint64(i))), Clock: func() int64 { return int64(time.Since(k.begun)) }, Log: k.log,
	}
	l := k.first[i%owners]
	err := w.Use(ctx, l, k.sys.Namespace)
	k.ready.Done()
	k.ready.Wait()
	for err == nil {
		n := 1 + w.Random.IntN(calls)
		if err := w.Do(ctx, n); err != nil {
			return err
		}
		select {
		case next := <-k.spare: // a crash; what still runs under the dead owner is slow
			err = w.Record(&Op{Kill: w.owner}, func() error { k.sys.Kill(l); return nil })
			if err == nil && w.one(2) {
				err = w.Do(ctx, 3)
			}
			if l = next; err == nil {
				err = w.Use(ctx, l, k.sys.Namespace)
			}
		default:
			return w.Do(ctx, calls-n)
		}
	}
	return err
}
