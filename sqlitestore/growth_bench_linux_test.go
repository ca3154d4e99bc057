//go:build cgo

package sqlitestore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// BenchmarkGrowth measures what a store of many operations costs beside one of few, in turns: a claim with its result, and
// a call that is answered from what is done. Bars: with five million a claim 1.5 times, a hit 3 times what it costs with ten
// thousand. TOOLONCE_ROWS is how many are many, five million (about 8 GB of disk meanwhile) where it is not set.
func BenchmarkGrowth(b *testing.B) {
	sizes := []int{10_000, 1_000_000}
	if many := bulkRows(b, 5_000_000); many != sizes[1] {
		sizes = append(sizes, many)
	}
	var steps []func()
	for _, rows := range sizes {
		s, err := sqlitestore.Open(b.TempDir()+"/once.db", nil)
		check(b, err)
		b.Cleanup(func() { check(b, s.Close()) })
		bulk(b, s, rows, 0)
		steps = append(steps, claimOf(b, s), hitOf(b, s, rows))
	}
	p50 := medians(b, steps...)
	for i, rows := range sizes {
		for j, name := range []string{"claim", "hit"} {
			b.ReportMetric(p50[2*i+j], fmt.Sprintf("%s-of-%d-p50-us", name, rows))
			if i > 0 {
				b.ReportMetric(p50[2*i+j]/p50[j], fmt.Sprintf("%s-of-%d-ratio", name, rows))
			}
		}
	}
}

func claimOf(b *testing.B, s *sqlitestore.Store) func() {
	next := claims()
	return func() {
		row, won, err := s.Claim(b.Context(), next())
		check(b, err)
		if !won {
			b.Fatal("lost")
		}
		_, err = s.Change(b.Context(), middleware.Transition{
			Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "result", HasResult: true, Blind: true,
		})
		check(b, err)
	}
}

// hitOf finds one of the operations of a store, here and there.
func hitOf(b *testing.B, s *sqlitestore.Store, rows int) func() {
	return func() {
		q := middleware.Query{Run: "another run", Turn: 1, Identity: bulkIdentity(rand.Int64N(int64(rows)) + 1)}
		if _, ok, err := s.Find(context.Background(), q); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}
