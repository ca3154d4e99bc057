package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// bench measures what a disk or a database carries, on a store of its own that is gone afterwards.
func bench(e *env, args []string) error {
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	where := fs.String("store", "", "measure beside this `store`, which is not touched: "+storeForms+" (default $TOOLONCE_STORE)")
	callers := fs.String("callers", "1,8,64,256", "how many call at a time, one `N` after the other")
	lasts := fs.Duration("for", 3*time.Second, "how long each is measured")
	rows := fs.Int("rows", 10_000, "how many operations are done before, `N`: a million takes some minutes")
	fs.BoolVar(&e.json, "json", false, "print JSON")
	rest, err := parse(fs, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprint(e.out, "usage: toolonce bench [flags]\nmeasure what the disk or the database of a store carries\n\n"+example("bench")+"\n\n")
		fs.SetOutput(e.out)
		fs.PrintDefaults()
		return err
	case err != nil:
		return usagef("bench: %w: try toolonce bench -h", err)
	case len(rest) > 0:
		return usagef("bench: %q: it takes no arguments", rest[0])
	case *lasts <= 0:
		return usagef("bench: -for %v: say how long, above 0, such as 3s", *lasts)
	case *rows < 1:
		return usagef("bench: -rows %d: say a number above 0", *rows)
	}
	var counts []int
	for text := range strings.SplitSeq(*callers, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 {
			return usagef("bench: -callers %q: say numbers above 0, such as 1,8,64", *callers)
		}
		counts = append(counts, n)
	}
	ground, err := newGround(e.ctx, cmp.Or(*where, e.getenv("TOOLONCE_STORE")))
	if err != nil {
		return err
	}
	r, err := measure(e, ground, counts, *rows, *lasts)
	if errors.Is(err, context.Canceled) {
		err = errors.New("bench: interrupted")
	}
	if err = errors.Join(err, ground.clear()); err != nil {
		return err
	}
	if e.json {
		return e.printJSON(r)
	}
	e.printBench(r)
	return nil
}

// ground is where it is measured.
type ground struct {
	kind    string
	store   store
	fsync   func() error // the least that makes something durable: a block written and synced, or one row committed
	floor   func() error // what a hand-written guard without any conditions costs: a row inserted, and updated
	commits func() (int64, error)
	bytes   func() (int64, error) // what the store takes
	clear   func() error
	// floors gives the floor for so many callers, over as many connections, or as many as can be had; nil: it is for one only.
	floors func(callers int) (f floor, err error)
}

// floor is a hand-written guard that many call at once.
type floor struct {
	call        func() error
	connections int
	done        func()
}

// benchResult is what was measured, in one run.
type benchResult struct {
	Store  string        `json:"store"`
	Rows   int           `json:"rows"` // done before
	Fsync  float64       `json:"fsync_per_s"`
	Floor  float64       `json:"floor_ops_per_s"` // of one caller
	Calls  []callsResult `json:"guarded"`
	Hit50  float64       `json:"hit_p50_us"` // of a call that is answered from the store
	Hit99  float64       `json:"hit_p99_us"`
	PerRow int64         `json:"bytes_per_op"`
}

type callsResult struct {
	Callers int     `json:"callers"`
	PerS    float64 `json:"ops_per_s"`
	P50     float64 `json:"p50_us"`
	P99     float64 `json:"p99_us"`
	Commit  float64 `json:"ops_per_commit"`
	// Floor is what as many callers of a hand-written guard get, over so many connections, where several may write at once.
	Floor       float64 `json:"floor_ops_per_s,omitempty"`
	Connections int     `json:"floor_connections,omitempty"`
}

func measure(e *env, g *ground, counts []int, rows int, lasts time.Duration) (*benchResult, error) {
	b := newCaller(e.ctx, g.store)
	r := &benchResult{Store: g.kind, Rows: rows}
	before, err := g.bytes()
	if err != nil {
		return nil, err
	}
	if _, err := b.many(128, func(done int64, _ time.Time) bool { return done < int64(rows) }); err != nil {
		return nil, err
	}
	after, err := g.bytes()
	if err != nil {
		return nil, err
	}
	r.PerRow = (after - before) / b.calls.Load()
	for _, m := range []struct {
		to *float64
		f  func() error
	}{{&r.Fsync, g.fsync}, {&r.Floor, g.floor}} {
		times, err := repeated(e.ctx, lasts, m.f)
		if err != nil {
			return nil, err
		}
		*m.to = perSecond(times, lasts)
	}
	for _, n := range counts {
		c, err := measureCalls(b, g, n, lasts)
		if err != nil {
			return nil, err
		}
		r.Calls = append(r.Calls, c)
	}
	times, err := repeated(e.ctx, lasts, b.hit)
	r.Hit50, r.Hit99 = quantile(times, 50), quantile(times, 99)
	return r, err
}

// measureCalls measures n callers, and then the floor of as many.
func measureCalls(b *caller, g *ground, n int, lasts time.Duration) (c callsResult, err error) {
	before, err := g.commits()
	if err != nil {
		return c, err
	}
	began := time.Now()
	times, err := b.many(n, func(_ int64, now time.Time) bool { return now.Sub(began) < lasts })
	if err != nil {
		return c, err
	}
	took := time.Since(began)
	after, err := g.commits()
	if err != nil {
		return c, err
	}
	c = callsResult{
		Callers: n, PerS: perSecond(times, took), P50: quantile(times, 50), P99: quantile(times, 99),
		Commit: float64(len(times)) / float64(max(after-before, 1)),
	}
	if g.floors == nil {
		return c, nil
	}
	f, err := g.floors(n)
	if err != nil {
		return c, err
	}
	defer f.done()
	began = time.Now()
	times, err = atOnce(n, func() ([]time.Duration, error) { return repeated(b.ctx, lasts, f.call) })
	c.Floor, c.Connections = perSecond(times, time.Since(began)), f.connections
	return c, err
}

// caller makes guarded calls of a tool that does nothing.
type caller struct {
	ctx    context.Context
	handle registry.Handler
	calls  atomic.Int64
	hits   int64
}

type payment struct {
	Order    string `json:"order" once:"key"`
	Cents    int64  `json:"cents" jsonschema:"minimum=1"`
	Currency string `json:"currency"`
	Reason   string `json:"reason,omitempty" once:"-"`
}

func newCaller(ctx context.Context, l middleware.Ledger) *caller {
	r, result := registry.New(), strings.Repeat("r", 200)
	registry.Add(r, registry.Tool[payment, string]{
		Name: "pay", Effect: registry.NonIdempotentWrite, Run: func(context.Context, payment) (string, error) { return result, nil },
	})
	return &caller{ctx: ctx, handle: r.Handler(middleware.Once(l, &middleware.OnceOptions{Logger: slog.New(slog.DiscardHandler)}))}
}

// call makes the n-th call, or the same again.
func (b *caller) call(n int64, want registry.Verdict) error {
	res, err := b.handle(b.ctx, &registry.Call{
		Run: registry.Run{ID: fmt.Sprint("run-", n/4)}, Turn: int(n%4 + 1), ID: "call_0123456789abcdef01234567", Tool: "pay",
		Arguments: fmt.Sprintf(`{"order":"A-%d","cents":1999,"currency":"EUR","reason":"it arrived broken"}`, n),
	})
	if err == nil && res.Verdict != want {
		err = fmt.Errorf("a call was %s, not %s: %s", res.Verdict, want, res.Content)
	}
	return err
}

// hit asks for one of those that are done, here and there.
func (b *caller) hit() error {
	b.hits = (b.hits + 7919) % b.calls.Load()
	return b.call(b.hits+1, registry.Replayed)
}

// many has n callers call as long as more says so.
func (b *caller) many(n int, more func(done int64, now time.Time) bool) (all []time.Duration, err error) {
	all, err = atOnce(n, func() (times []time.Duration, err error) {
		for began := time.Now(); err == nil && b.ctx.Err() == nil && more(b.calls.Load(), began); began = time.Now() {
			err = b.call(b.calls.Add(1), registry.Executed)
			times = append(times, time.Since(began))
		}
		return times, err
	})
	return all, cmp.Or(err, b.ctx.Err())
}

// atOnce has n callers do the same, and gives what all of them took.
func atOnce(n int, f func() ([]time.Duration, error)) (all []time.Duration, err error) {
	var mu sync.Mutex
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			times, failed := f()
			mu.Lock()
			defer mu.Unlock()
			all, err = append(all, times...), cmp.Or(err, failed)
		})
	}
	group.Wait()
	return all, err
}

// repeated does something by one caller for a time.
func repeated(ctx context.Context, lasts time.Duration, f func() error) (times []time.Duration, err error) {
	for end := time.Now().Add(lasts); ctx.Err() == nil; {
		began := time.Now()
		if !began.Before(end) {
			return times, nil
		}
		if err := f(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
	}
	return nil, ctx.Err()
}

func perSecond(times []time.Duration, took time.Duration) float64 {
	return round(float64(len(times)) / took.Seconds())
}

// quantile is in microseconds.
func quantile(times []time.Duration, percent int) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return round(float64(times[(len(times)-1)*percent/100].Nanoseconds()) / 1e3)
}

func round(f float64) float64 { return float64(int64(f*10+0.5)) / 10 }

func (e *env) printBench(r *benchResult) {
	e.printf("%s, %d operations done before, %d bytes each\n\n", r.Store, r.Rows, r.PerRow)
	e.printf("%-22s %10.0f /s\n", "made durable, alone", r.Fsync)
	e.printf("%-22s %10.0f /s\n", "floor, one caller", r.Floor)
	for _, c := range r.Calls {
		e.printf("%-22s %10.0f /s   %5.2f of one caller's floor   p50 %8.0f us   p99 %8.0f us   %6.2f calls a commit\n",
			fmt.Sprintf("guarded, %d callers", c.Callers), c.PerS, c.PerS/r.Floor, c.P50, c.P99, c.Commit)
		if c.Floor > 0 {
			e.printf("%-22s %10.0f /s   over %d connections: guarded calls are %.2f of it\n",
				fmt.Sprintf("floor, %d callers", c.Callers), c.Floor, c.Connections, c.PerS/c.Floor)
		}
	}
	e.printf("%-22s p50 %.1f us   p99 %.1f us\n", "answered from the store", r.Hit50, r.Hit99)
}
