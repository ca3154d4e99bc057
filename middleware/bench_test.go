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

// BenchmarkChainOnARead measures what Once adds to a Read, above resolving and running it, in one run: bar 2,000 ns and
// 10 allocations.
func BenchmarkChainOnARead(b *testing.B) {
	r := sixTool(registry.Read)
	bare, guarded := r.Handler(), r.Handler(middleware.Once(silent{}, nil))
	call := func(h registry.Handler) func() {
		return func() {
			if res, err := h(b.Context(), &registry.Call{Turn: 1, Tool: "t", Arguments: sixArguments}); err != nil || res.Verdict != registry.Executed {
				b.Fatal(res, err)
			}
		}
	}
	const size = 200
	time1 := func(f func()) time.Duration {
		start := time.Now()
		for range size {
			f()
		}
		return time.Since(start)
	}
	var without, with []time.Duration
	for b.Loop() { // in turns, so that both meet the same noise
		without, with = append(without, time1(call(bare))), append(with, time1(call(guarded)))
	}
	floor, all := median(b, without, size), median(b, with, size)
	b.ReportMetric(floor, "resolve+run-ns")
	b.ReportMetric(all, "guarded-read-ns")
	b.ReportMetric(all-floor, "chain-ns(bar:2000)")
	b.ReportMetric(testing.AllocsPerRun(1000, call(guarded))-testing.AllocsPerRun(1000, call(bare)), "chain-allocs(bar:10)")
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
