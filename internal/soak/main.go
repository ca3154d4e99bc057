// Command soak makes guarded calls on a new SQLite store for a while, repeats some, and prunes: so long that what grows
// without bound shows. It exits with 1 where the write-ahead log or the heap has grown, and leaves nothing behind.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

const (
	parts   = 10 // a line is printed for each
	callers = 8
	// What has grown is over so many times what it was, and by more than this.
	factor = 3
	slack  = 32 << 20
)

func main() {
	lasts := flag.Duration("for", 10*time.Minute, "how long")
	flag.Parse()
	if err := run(*lasts); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// fading is a store that keeps content and identities for seconds, so that pruning has work.
type fading struct{ *sqlitestore.Store }

// Claim implements middleware.Ledger.
func (f fading) Claim(ctx context.Context, c middleware.Claim) (middleware.Row, bool, error) {
	c.Retain, c.Keep = time.Second, 2*time.Second
	return f.Store.Claim(ctx, c)
}

func run(lasts time.Duration) (err error) {
	if lasts < time.Second {
		return fmt.Errorf("-for %v: say a second at least", lasts)
	}
	dir, err := os.MkdirTemp("", "toolonce-soak-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "once.db")
	s, err := sqlitestore.Open(path, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	w := newWork(fading{s})
	ctx, stop := context.WithTimeout(context.Background(), lasts)
	defer stop()
	var group sync.WaitGroup
	defer group.Wait()
	for range callers {
		group.Go(func() { w.failed(w.call(ctx)) })
	}
	group.Go(func() { w.failed(w.prune(ctx, s, lasts/(5*parts))) })
	var seen []sample
	fmt.Printf("%4s %10s %10s %10s %10s %10s %10s %10s\n", "part", "calls/s", "p50 us", "p99 us", "heap kB", "WAL kB", "rows", "forgotten")
	for part := range parts {
		if !w.wait(lasts / parts) {
			break
		}
		m, err := w.sample(path, lasts/parts)
		if err != nil {
			return err
		}
		fmt.Printf("%4d %10.0f %10d %10d %10d %10d %10d %10d\n", part+1, m.rate, m.p50, m.p99, m.heap>>10, m.wal>>10, m.rows, w.forgotten.Load())
		seen = append(seen, m)
	}
	stop()
	group.Wait()
	return errors.Join(w.err, grown(seen))
}

// grown compares the first third with the last.
func grown(seen []sample) error {
	var errs []error
	third := len(seen) / 3
	for name, of := range map[string]func(sample) int64{"heap": func(m sample) int64 { return m.heap }, "write-ahead log": func(m sample) int64 { return m.wal }} {
		mean := func(all []sample) (sum int64) {
			for _, m := range all {
				sum += of(m)
			}
			return sum / int64(max(len(all), 1))
		}
		first, last := mean(seen[:third]), mean(seen[len(seen)-third:])
		if last > factor*first && last > first+slack {
			errs = append(errs, fmt.Errorf("the %s grows: %d kB in the first third, %d kB in the last", name, first>>10, last>>10))
		}
	}
	return errors.Join(errs...)
}

// work is what goes on.
type work struct {
	handle    registry.Handler
	calls     atomic.Int64
	forgotten atomic.Int64
	broken    chan struct{} // closed by the first error

	mu    sync.Mutex
	times []time.Duration // of the calls of a part
	err   error
}

func newWork(l middleware.Ledger) *work {
	type payment struct {
		Order string `json:"order" once:"key"`
		Cents int64  `json:"cents"`
	}
	r := registry.New()
	registry.Add(r, registry.Tool[payment, string]{
		Name: "pay", Effect: registry.NonIdempotentWrite, Run: func(context.Context, payment) (string, error) { return "paid", nil },
	})
	return &work{
		handle: r.Handler(middleware.Once(l, &middleware.OnceOptions{Logger: slog.New(slog.DiscardHandler)})),
		broken: make(chan struct{}),
	}
}

func (w *work) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.err == nil {
		w.err = err
		close(w.broken)
	}
}

// wait is false where something has failed.
func (w *work) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.broken:
		return false
	}
}

// call makes calls, every fourth of them the one before once more.
func (w *work) call(ctx context.Context) error {
	var n int64
	for i := 0; ctx.Err() == nil; i++ {
		want := registry.Replayed
		if i%4 != 3 {
			n, want = w.calls.Add(1), registry.Executed
		}
		began := time.Now()
		res, err := w.handle(context.WithoutCancel(ctx), &registry.Call{
			Run: registry.Run{ID: fmt.Sprint("run-", n)}, Turn: 1, ID: "call", Tool: "pay", Arguments: fmt.Sprintf(`{"order":"A-%d","cents":1999}`, n),
		})
		// What was forgotten meanwhile is answered without its result, or done anew.
		forgotten := want == registry.Replayed && (res.Verdict == registry.AlreadyDone || res.Verdict == registry.Executed)
		if err == nil && res.Verdict != want && !forgotten {
			err = fmt.Errorf("a call was %s, not %s", res.Verdict, want)
		}
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.times = append(w.times, time.Since(began))
		w.mu.Unlock()
	}
	return nil
}

func (w *work) prune(ctx context.Context, s *sqlitestore.Store, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		r, err := s.Prune(context.WithoutCancel(ctx), middleware.PruneOptions{})
		if err != nil {
			return err
		}
		w.forgotten.Add(int64(r.Contents + r.Identities))
	}
}

// sample is how it goes in one part.
type sample struct {
	rate      float64
	p50, p99  int64 // microseconds
	heap, wal int64 // bytes
	rows      int64
}

func (w *work) sample(path string, lasted time.Duration) (m sample, err error) {
	w.mu.Lock()
	times := w.times
	w.times = nil
	w.mu.Unlock()
	slices.Sort(times)
	if n := len(times); n > 0 {
		m.rate = float64(n) / lasted.Seconds()
		m.p50, m.p99 = times[n/2].Microseconds(), times[n*99/100].Microseconds()
	}
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	m.heap = int64(mem.HeapInuse)
	info, err := os.Stat(path + "-wal")
	if err != nil {
		return m, err
	}
	m.wal = info.Size()
	db, err := sql.Open("sqlite3", "file:"+path+"?mode=ro")
	if err != nil {
		return m, err
	}
	err = db.QueryRowContext(context.Background(), `SELECT count(*) FROM operations`).Scan(&m.rows)
	return m, errors.Join(err, db.Close())
}
