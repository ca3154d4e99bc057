package pgstore_test

import (
	"testing"

	"github.com/toolonce/toolonce/internal/history"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/pgstore"
)

// systems are one schema as several processes would use it, emptied each time: to make one takes long.
func systems(t *testing.T) func(t *testing.T) ledgertest.System { return systemsAt(t, fresh(t)) }

func systemsAt(t *testing.T, p place) func(t *testing.T) ledgertest.System {
	return systemsOf(t, p, func(s *pgstore.Store) *pgstore.Store { return s })
}

func systemsOf(t *testing.T, p place, as func(*pgstore.Store) *pgstore.Store) func(t *testing.T) ledgertest.System {
	p.open(t)
	return func(t *testing.T) ledgertest.System {
		p.empty(t)
		return ledgertest.System{
			Open: func() middleware.Ledger { return as(p.open(t)) },
			Kill: func(l middleware.Ledger) { check(t, l.(*pgstore.Store).Die()) },
			Namespace: func(l middleware.Ledger, name string) middleware.Ledger {
				return l.(*pgstore.Store).Namespace(name)
			},
		}
	}
}

func TestStoreKeepsTheContractOfALedger(t *testing.T) { ledgertest.Run(t, systems(t)) }

func TestHistoriesOfAStoreHaveAnOrder(t *testing.T) { history.Check(t, 40, systems(t)) }

func TestStoreKeepsTheContractOfALedgerWhereAllGoesTogether(t *testing.T) {
	ledgertest.Run(t, systemsOf(t, fresh(t), (*pgstore.Store).Together))
}

func TestHistoriesOfAStoreHaveAnOrderWhereAllGoesTogether(t *testing.T) {
	history.Check(t, 40, systemsOf(t, fresh(t), (*pgstore.Store).Together))
}
