//go:build cgo

package sqlitestore_test

import (
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/sqlitestore"
)

// system is one file as several processes would use it.
func system(t *testing.T) ledgertest.System {
	path := t.TempDir() + "/once.db"
	return ledgertest.System{
		Open: func() middleware.Ledger { return open(t, path, nil) },
		Kill: func(l middleware.Ledger) { l.(*sqlitestore.Store).Die() },
		Namespace: func(l middleware.Ledger, name string) middleware.Ledger {
			return l.(*sqlitestore.Store).Namespace(name)
		},
	}
}

func TestStoreKeepsTheContractOfALedger(t *testing.T) { ledgertest.Run(t, system) }

func TestTheContractsSuiteFindsBrokenLedgersOnTopOfAStore(t *testing.T) {
	if testing.Short() {
		t.Skip("the suite checks itself on the memory ledger too")
	}
	ledgertest.RunBroken(t, system)
}
