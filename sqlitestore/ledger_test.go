//go:build cgo

package sqlitestore_test

import (
	"os"
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
	inMemory(t)
	ledgertest.RunBroken(t, system)
}

// inMemory puts the files of a test where a sync costs nothing, for tests to which the disk does not matter.
func inMemory(t *testing.T) {
	t.Helper()
	const dir = "/dev/shm"
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		t.Setenv("TMPDIR", dir)
	}
}
