//go:build cgo

package sqlitestore_test

import (
	"os"
	"testing"

	"github.com/toolonce/toolonce/internal/history"
	"github.com/toolonce/toolonce/middleware/ledgertest"
)

func TestHistoriesOfAStoreHaveAnOrder(t *testing.T) {
	onRequest(t)
	inMemory(t)
	history.Check(t, 200, func(t *testing.T) ledgertest.System { return system(t) })
}

// onRequest keeps tests that take minutes to make histories run alone.
func onRequest(t *testing.T) {
	t.Helper()
	if os.Getenv("TOOLONCE_SEEDS") == "" {
		t.Skip("make histories runs it: it takes minutes")
	}
}
