//go:build cgo

package sqlitestore_test

import (
	"context"
	"testing"

	"github.com/toolonce/toolonce/internal/history"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

var processes = history.Processes{
	New: func(t *testing.T) string { return t.TempDir() + "/once.db" },
	Open: func(_ context.Context, where string) (middleware.Ledger, func() error, error) {
		s, err := sqlitestore.Open(where, nil)
		return s, s.Close, err
	},
	Namespace: func(l middleware.Ledger, name string) middleware.Ledger {
		return l.(*sqlitestore.Store).Namespace(name)
	},
	Calls: 40, Lines: 60,
}

// TestHistoryWorker is the process of the test below.
func TestHistoryWorker(t *testing.T) { processes.Work(t) }

func TestHistoriesOfKilledProcessesHaveAnOrder(t *testing.T) { processes.Check(t, 10) }
