package ledgertest_test

import (
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
)

// memorySystem is the memory ledger as several processes would use it.
func memorySystem(*testing.T) ledgertest.System {
	l := middleware.Memory()
	return ledgertest.System{
		Open: func() middleware.Ledger { return l.Peer() },
		Kill: func(l middleware.Ledger) { l.(*middleware.MemoryLedger).Die() },
		Namespace: func(l middleware.Ledger, name string) middleware.Ledger {
			return l.(*middleware.MemoryLedger).Namespace(name)
		},
	}
}

func TestMemoryLedgerKeepsTheContract(t *testing.T) { ledgertest.Run(t, memorySystem) }

func TestBrokenLedgersFailTheirCasesAndNoOthers(t *testing.T) { ledgertest.RunBroken(t, memorySystem) }

func TestCasesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range ledgertest.Cases() {
		if c.Name == "" || c.Rule == "" || c.Check == nil || seen[c.Name] {
			t.Errorf("case %q, rule %q: want a name of its own, a rule and a check", c.Name, c.Rule)
		}
		seen[c.Name] = true
	}
	t.Logf("%d cases", len(seen))
}
