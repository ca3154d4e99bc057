//go:build cgo

package sqlitestore_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/toolonce/toolonce/sqlitestore"
)

// BenchmarkCheckpoints measures what it costs callers that the write-ahead log is moved into the file, by whoever commits
// when it is long: the slowest of 32 callers' operations, two commits each, beside those of a store that never does so.
func BenchmarkCheckpoints(b *testing.B) {
	const callers = 32
	var calls [2][callers]func()
	for i, setting := range []string{"PRAGMA wal_autocheckpoint", "PRAGMA wal_autocheckpoint = 0"} {
		s, err := sqlitestore.Open(b.TempDir()+"/once.db", nil)
		check(b, err)
		b.Cleanup(func() { check(b, s.Close()) })
		check(b, s.Write(setting))
		for caller := range callers {
			calls[i][caller] = claimOf(b, s)
		}
	}
	var mu sync.Mutex
	var times [2][]time.Duration
	for b.Loop() {
		for i := range calls {
			perSecond(callers, func(caller int) {
				began := time.Now()
				calls[i][caller]()
				took := time.Since(began)
				mu.Lock()
				times[i] = append(times[i], took)
				mu.Unlock()
			})
		}
	}
	b.ReportMetric(0, "ns/op")
	for i, name := range []string{"", "-without"} {
		slices.Sort(times[i])
		of := func(permille int) float64 { return float64(times[i][(len(times[i])-1)*permille/1000].Microseconds()) }
		b.ReportMetric(of(500), "p50-us"+name)
		b.ReportMetric(of(990), "p99-us"+name)
		b.ReportMetric(of(999), "p99.9-us"+name)
		b.ReportMetric(of(990)/of(500), "p99/p50"+name)
	}
}
