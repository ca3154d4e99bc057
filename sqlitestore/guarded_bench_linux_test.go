package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

// newGuardedCall is a whole call through the registry, Once and the store, of a tool that does nothing.
func newGuardedCall(b *testing.B) func() {
	s, err := sqlitestore.Open(b.TempDir()+"/once.db", nil)
	check(b, err)
	b.Cleanup(func() { check(b, s.Close()) })
	r, result := registry.New(), strings.Repeat("r", 200)
	registry.Add(r, registry.Tool[payment, string]{Name: "pay", Effect: registry.NonIdempotentWrite, Run: func(context.Context, payment) (string, error) { return result, nil }})
	handle, n := r.Handler(middleware.Once(s, nil)), 0
	return func() {
		n++
		res, err := handle(b.Context(), &registry.Call{
			Run: registry.Run{ID: fmt.Sprint("run-", n/4)}, Turn: n%4 + 1, ID: "call_0123456789abcdef01234567", Tool: "pay",
			Arguments: fmt.Sprintf(`{"order":"A-%d","cents":1999,"currency":"EUR","reason":"it arrived broken"}`, n),
		})
		check(b, err)
		if res.Verdict != registry.Executed {
			b.Fatal(res)
		}
	}
}

// newRaw is one block overwritten and synced.
func newRaw(b *testing.B) func() {
	f, err := os.Create(b.TempDir() + "/raw")
	check(b, err)
	b.Cleanup(func() { check(b, f.Close()) })
	block := make([]byte, 4096)
	_, err = f.Write(block)
	check(b, err)
	check(b, f.Sync())
	return func() {
		_, err := f.WriteAt(block, 0)
		check(b, err)
		check(b, unix.Fdatasync(int(f.Fd())))
	}
}

func BenchmarkRawFsync(b *testing.B) { measure(b, newRaw(b)) }

// BenchmarkGuardedCall measures a guarded call beside its floor (two commits by hand), and the floor beside a bare
// fdatasync, in turns, in one run. Bar: 1.3 times the floor. The run is void where the floor is over 3.0 times the bare
// one. BenchmarkOverFloor has what the ledger alone takes of it.
func BenchmarkGuardedCall(b *testing.B) {
	p50 := medians(b, newRaw(b), newFloor(b), newGuardedCall(b))
	b.ReportMetric(p50[0], "raw-p50-us")
	b.ReportMetric(p50[1], "floor-p50-us")
	b.ReportMetric(p50[2], "guarded-p50-us")
	b.ReportMetric(p50[1]/p50[0], "floor/raw(void>3.0)")
	b.ReportMetric(p50[2]/p50[1], "guarded/floor(bar:1.3)")
}

// BenchmarkDetachedFloor measures what it costs on this machine that the tool runs detached from its caller: the floor
// with its second commit in another goroutine, beside the floor.
func BenchmarkDetachedFloor(b *testing.B) {
	p50 := medians(b, newFloor(b), newFloorBy(b, detached))
	b.ReportMetric(p50[0], "floor-p50-us")
	b.ReportMetric(p50[1], "detached-p50-us")
	b.ReportMetric(p50[1]/p50[0], "detached/floor")
}

// medians times several things in turns, in microseconds.
func medians(b *testing.B, steps ...func()) []float64 {
	times := make([][]time.Duration, len(steps))
	for b.Loop() {
		for i, f := range steps {
			for range 250 { // so many that each finds its own rhythm, and all meet the same noise
				began := time.Now()
				f()
				times[i] = append(times[i], time.Since(began))
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	p50 := make([]float64, len(steps))
	for i := range times {
		p50[i] = float64(median(times[i]).Nanoseconds()) / 1e3
	}
	return p50
}
