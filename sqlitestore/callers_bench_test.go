package sqlitestore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

type payment struct {
	Order    string `json:"order" once:"key"`
	Cents    int64  `json:"cents" jsonschema:"minimum=1"`
	Currency string `json:"currency"`
	Reason   string `json:"reason,omitempty" once:"-"`
}

// BenchmarkCallers measures how many guarded calls a second one process makes with many callers at once, beside the
// floor of one caller, in turns, in one run. Bars: 8 times the floor with 64 callers, 10 times with 256.
func BenchmarkCallers(b *testing.B) {
	floor := newFloor(b)
	for _, n := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			call := newManyCalls(b)
			var below, above []float64
			for b.Loop() {
				below = append(below, perSecond(1, func(int) { floor() }))
				above = append(above, perSecond(n, call))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(below), "floor-ops/s")
			b.ReportMetric(median(above), "guarded-ops/s")
			b.ReportMetric(median(above)/median(below), "guarded/floor")
		})
	}
}

func median[T int | float64 | time.Duration](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}

// perSecond has n callers do something for a quarter of a second.
func perSecond(n int, f func(caller int)) float64 {
	var done atomic.Int64
	var group sync.WaitGroup
	began := time.Now()
	for i := range n {
		group.Go(func() {
			for time.Since(began) < 250*time.Millisecond {
				f(i)
				done.Add(1)
			}
		})
	}
	group.Wait()
	return float64(done.Load()) / time.Since(began).Seconds()
}

// newManyCalls is newGuardedCall for many callers, each with runs of its own.
func newManyCalls(b *testing.B) func(caller int) {
	s, err := sqlitestore.Open(b.TempDir()+"/once.db", nil)
	check(b, err)
	b.Cleanup(func() { check(b, s.Close()) })
	r, result := registry.New(), strings.Repeat("r", 200)
	registry.Add(r, registry.Tool[payment, string]{Name: "pay", Effect: registry.NonIdempotentWrite, Run: func(context.Context, payment) (string, error) { return result, nil }})
	handle := r.Handler(middleware.Once(s, nil))
	var calls atomic.Int64
	return func(caller int) {
		n := calls.Add(1)
		res, err := handle(b.Context(), &registry.Call{
			Run: registry.Run{ID: fmt.Sprint("run-", caller, "-", n/4)}, Turn: int(n%4 + 1), ID: "call_0123456789abcdef01234567", Tool: "pay",
			Arguments: fmt.Sprintf(`{"order":"A-%d","cents":1999,"currency":"EUR","reason":"it arrived broken"}`, n),
		})
		check(b, err)
		if res.Verdict != registry.Executed {
			b.Error(res)
		}
	}
}
