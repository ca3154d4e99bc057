package pgstore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
)

// BenchmarkClaimAndComplete stands beside its floor: two committed statements.
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
		b.Run(fmt.Sprintf("callers=%d/floor", callers), func(b *testing.B) {
			p := fresh(b)
			table := quoted(p.schema)
			statement(b, p.dsn, "CREATE TABLE "+table+" (id text PRIMARY KEY, data bytea, state text)")
			pool, err := pgxpool.New(b.Context(), p.dsn+"&pool_max_conns=16")
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
