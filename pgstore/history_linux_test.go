package pgstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/internal/history"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
)

var processes = history.Processes{
	New: func(t *testing.T) string {
		p := fresh(t)
		check(t, p.open(t).Close())
		return p.at()
	},
	Open: func(ctx context.Context, where string) (middleware.Ledger, func() error, error) {
		p := placeAt(where)
		s, err := pgstore.Open(ctx, p.dsn, p.options(pgstore.Options{}))
		return s, s.Close, err
	},
	Namespace: func(l middleware.Ledger, name string) middleware.Ledger { return l.(*pgstore.Store).Namespace(name) },
	// What some time would make of a heartbeat that has ended.
	Gone: func(ctx context.Context, where, owner string) error {
		p := placeAt(where)
		c, err := pgx.Connect(ctx, p.dsn)
		if err != nil {
			return err
		}
		_, err = c.Exec(ctx, "UPDATE "+quoted(p.schema, "owners")+" SET beat = '-infinity', overdue = '0' WHERE name = $1", owner)
		return errors.Join(err, c.Close(ctx))
	},
	Calls: 15, Lines: 40, // calls overlap for long here, and the search for an order grows with that
}

// TestHistoryWorker is the process of the test below.
func TestHistoryWorker(t *testing.T) { processes.Work(t) }

func TestHistoriesOfKilledProcessesHaveAnOrder(t *testing.T) { processes.Check(t, 10) }
