package pgstore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
)

// BenchmarkClaimAndComplete stands beside a guarded call, which looks first, and beside its floor: two committed statements,
// over as many connections as there are callers.
func BenchmarkClaimAndComplete(b *testing.B) {
	for _, callers := range []int{1, 8, 64} {
		for _, mode := range []string{"cache_describe", "cache_statement"} {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, mode), func(b *testing.B) {
				p := fresh(b)
				s, err := pgstore.Open(b.Context(), p.dsn+"&pool_max_conns=16&default_query_exec_mode="+mode, p.options(pgstore.Options{}))
				check(b, err)
				b.Cleanup(func() { _ = s.Close() })
				var turn atomic.Int64
				parallel(b, callers, func(ctx context.Context) error {
					row, won, err := s.Claim(ctx, aClaim("run", int(turn.Add(1))))
					if err != nil || !won {
						return fmt.Errorf("won %v: %w", won, err)
					}
					_, err = s.Change(ctx, middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1, Result: "{}", HasResult: true, Blind: true})
					return err
				})
			})
		}
		b.Run(fmt.Sprintf("callers=%d/guarded", callers), func(b *testing.B) { guarded(b, callers) })
		b.Run(fmt.Sprintf("callers=%d/floor", callers), func(b *testing.B) {
			p := fresh(b)
			table := quoted(p.schema)
			statement(b, p.dsn, "CREATE TABLE "+table+" (id text PRIMARY KEY, data bytea, state text)")
			pool, err := pgxpool.New(b.Context(), fmt.Sprint(p.dsn, "&pool_max_conns=", callers))
			check(b, err)
			b.Cleanup(pool.Close)
			parallel(b, callers, func(ctx context.Context) error {
				id := freshHash()
				_, err := pool.Exec(ctx, "INSERT INTO "+table+" VALUES ($1, $2, 'running')", id, make([]byte, 400))
				if err == nil {
					_, err = pool.Exec(ctx, "UPDATE "+table+" SET state = 'done' WHERE id = $1 AND state = 'running'", id)
				}
				return err
			})
		})
	}
}

type payment struct {
	Order string `json:"order" once:"key"`
	Cents int64  `json:"cents"`
}

// guarded makes calls as a loop makes them, of a tool that does nothing.
func guarded(b *testing.B, callers int) {
	b.Helper()
	p := fresh(b)
	s, err := pgstore.Open(b.Context(), p.dsn, p.options(pgstore.Options{}))
	check(b, err)
	b.Cleanup(func() { _ = s.Close() })
	r := registry.New()
	registry.Add(r, registry.Tool[payment, string]{
		Name: "pay", Effect: registry.NonIdempotentWrite, Run: func(context.Context, payment) (string, error) { return "paid", nil },
	})
	handle := r.Handler(middleware.Once(s, nil))
	var calls atomic.Int64
	parallel(b, callers, func(ctx context.Context) error {
		n := calls.Add(1)
		res, err := handle(ctx, &registry.Call{
			Run: registry.Run{ID: fmt.Sprint("run ", n/4)}, Turn: int(n%4 + 1), ID: "call", Tool: "pay", Arguments: fmt.Sprintf(`{"order":"A-%d","cents":1999}`, n),
		})
		if err == nil && res.Verdict != registry.Executed {
			err = fmt.Errorf("a call was %s: %s", res.Verdict, res.Content)
		}
		return err
	})
}

// parallel has so many callers make b.N calls.
func parallel(b *testing.B, callers int, call func(context.Context) error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	errs := make(chan error, callers)
	b.ResetTimer()
	for range callers {
		go func() {
			for left.Add(-1) >= 0 {
				if err := call(b.Context()); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range callers {
		check(b, <-errs)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
