//go:build unix && cgo

package sqlitestore_test

import (
	"context"
	"testing"

	"github.com/toolonce/toolonce/internal/killed"
	"github.com/toolonce/toolonce/sqlitestore"
)

type killedInput = killed.Input

var kills = killed.Kit{
	New:  func(t *testing.T) string { return t.TempDir() + "/once.db" },
	Open: func(_ context.Context, where string) (killed.Store, error) { return sqlitestore.Open(where, nil) },
	Local: func(ctx context.Context, _, order string) error {
		tx, err := sqlitestore.Tx(ctx)
		for _, query := range []string{`CREATE TABLE IF NOT EXISTS refunds (line TEXT)`, `INSERT INTO refunds VALUES ('` + order + `')`} {
			if err == nil {
				_, err = tx.ExecContext(ctx, query)
			}
		}
		return err
	},
	Locals: func(t *testing.T, where string) int {
		lines, _ := open(t, where, nil).Names(t.Context(), "SELECT line FROM refunds") // there is no table without one
		return len(lines)
	},
}

// TestWorkerToKill is the worker process of the test below.
func TestWorkerToKill(t *testing.T) { kills.Work(t) }

func TestKilledAtEachPointTheOutcomeIsExact(t *testing.T) { kills.Check(t) }
