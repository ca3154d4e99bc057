package middleware_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// silent is a ledger that must not be asked.
type silent struct{ middleware.Ledger }

type sixFields struct {
	Order    string  `json:"order"`
	Cents    int64   `json:"cents" jsonschema:"minimum=1"`
	Currency string  `json:"currency" jsonschema:"enum=EUR,enum=USD"`
	Express  bool    `json:"express"`
	Weight   float64 `json:"weight"`
	Note     string  `json:"note,omitempty" once:"-"`
}

const sixArguments = `{"order":"A-1001","cents":1999,"currency":"EUR","express":false,"weight":1.5,"note":"leave it at the door"}`

func sixTool(effect registry.Effect) *registry.Registry {
	r := registry.New()
	registry.Add(r, registry.Tool[sixFields, string]{Name: "t", Effect: effect, Run: func(context.Context, sixFields) (string, error) { return "ok", nil }})
	return r
}

// median is the time of one call, in nanoseconds: the median of batches.
func median(b *testing.B, batches []time.Duration, size int) float64 {
	b.Helper()
	slices.Sort(batches)
	return float64(batches[len(batches)/2].Nanoseconds()) / float64(size)
}

// BenchmarkChainOnARead measures what Once adds to a Read above resolving and running it: bars 1,000 ns and 5
// allocations. chain-ns calls the chain alone, again and again; in-calls-ns is the difference between whole calls with
// and without it. The latter is larger where the other processors have gone to sleep meanwhile: the handler's goroutine
// wakes one.
func BenchmarkChainOnARead(b *testing.B) {
	r := sixTool(registry.Read)
	var resolved *registry.Call
	var run, chain registry.Handler
	bare := r.Handler(func(next registry.Handler) registry.Handler {
		run, chain = next, middleware.Once(silent{}, nil)(next)
		return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
			resolved = c
			return next(ctx, c)
		}
	})
	guarded := r.Handler(middleware.Once(silent{}, nil))
	whole := func(h registry.Handler) func() {
		return func() {
			if res, err := h(b.Context(), &registry.Call{Turn: 1, Tool: "t", Arguments: sixArguments}); err != nil || res.Verdict != registry.Executed {
				b.Fatal(res, err)
			}
		}
	}
	alone := func(h registry.Handler) func() {
		return func() {
			if res, err := h(b.Context(), resolved); err != nil || res.Verdict != registry.Executed {
				b.Fatal(res, err)
			}
		}
	}
	whole(bare)()
	const size = 200
	steps := []func(){alone(run), alone(chain), whole(bare), whole(guarded)}
	times := make([][]time.Duration, len(steps))
	for b.Loop() { // in turns, so that all meet the same noise
		for i, f := range steps {
			start := time.Now()
			for range size {
				f()
			}
			times[i] = append(times[i], time.Since(start))
		}
	}
	var ns [4]float64
	for i := range times {
		ns[i] = median(b, times[i], size)
	}
	b.ReportMetric(ns[1]-ns[0], "chain-ns(bar:1000)")
	b.ReportMetric(testing.AllocsPerRun(1000, steps[1])-testing.AllocsPerRun(1000, steps[0]), "chain-allocs(bar:5)")
	b.ReportMetric(ns[3]-ns[2], "in-calls-ns")
	b.ReportMetric(ns[2], "resolve+run-ns")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkResolve measures decoding, schema check and hashes of a struct with six fields: bar 20,000 ns.
func BenchmarkResolve(b *testing.B) {
	r := sixTool(registry.NonIdempotentWrite)
	h := r.Handler(func(registry.Handler) registry.Handler { // stops after resolving
		return func(_ context.Context, c *registry.Call) (registry.Result, error) {
			if id, fp := c.Operation(); id == "" || fp == "" {
				b.Fatal("not resolved")
			}
			return registry.Result{}, nil
		}
	})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h(b.Context(), &registry.Call{Turn: 1, Tool: "t", Arguments: sixArguments}); err != nil {
			b.Fatal(err)
		}
	}
}
