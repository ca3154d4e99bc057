//go:build unix

package pgstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/internal/killed"
	"github.com/toolonce/toolonce/pgstore"
)

// at is a place as one text.
func (p place) at() string { return p.dsn + "|" + p.schema }

func placeAt(where string) place {
	dsn, schema, _ := strings.Cut(where, "|")
	return place{dsn: dsn, schema: schema}
}

var kills = killed.Kit{
	New: func(t *testing.T) string {
		p := fresh(t)
		check(t, p.open(t).Close())
		statement(t, p.dsn, "CREATE TABLE "+quoted(p.schema, "refunds")+" (line text)")
		return p.at()
	},
	Open: func(ctx context.Context, where string) (killed.Store, error) { // its death shows soon
		p := placeAt(where)
		return pgstore.Open(ctx, p.dsn, p.options(pgstore.Options{Heartbeat: 100 * time.Millisecond, Overdue: 500 * time.Millisecond}))
	},
	Local: func(ctx context.Context, where, order string) error {
		tx, err := pgstore.Tx(ctx)
		if err == nil {
			_, err = tx.Exec(ctx, "INSERT INTO "+quoted(placeAt(where).schema, "refunds")+" VALUES ($1)", order)
		}
		return err
	},
	Locals: func(t *testing.T, where string) int { return count(t, placeAt(where), "refunds") },
}

// TestWorkerToKill is the worker process of the test below.
func TestWorkerToKill(t *testing.T) { kills.Work(t) }

func TestKilledAtEachPointTheOutcomeIsExact(t *testing.T) { kills.Check(t) }
