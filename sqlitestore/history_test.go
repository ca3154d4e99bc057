//go:build cgo

package sqlitestore_test

import (
	"testing"

	"github.com/toolonce/toolonce/internal/history"
	"github.com/toolonce/toolonce/middleware/ledgertest"
)

func TestHistoriesOfAStoreHaveAnOrder(t *testing.T) {
	inMemory(t)
	history.Check(t, 200, func(t *testing.T) ledgertest.System { return system(t) })
}
