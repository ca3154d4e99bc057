package ledgertest_test

import (
	"errors"
	"strings"
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

// TestOfALedgerThatOffersNoMoreTheRestIsChecked has a ledger of which only the methods of Ledger show.
func TestOfALedgerThatOffersNoMoreTheRestIsChecked(t *testing.T) {
	type bare struct{ middleware.Ledger }
	sys := func() ledgertest.System {
		sound := memorySystem(t)
		return ledgertest.System{
			Open: func() middleware.Ledger { return bare{sound.Open()} },
			Kill: func(l middleware.Ledger) { sound.Kill(l.(bare).Ledger) },
			Namespace: func(l middleware.Ledger, name string) middleware.Ledger {
				return bare{sound.Namespace(l.(bare).Ledger, name)}
			},
		}
	}
	for _, c := range ledgertest.Cases() {
		err := c.Check(t.Context(), sys())
		optional := strings.HasPrefix(c.Rule, "Approver") || strings.HasPrefix(c.Rule, "Prune") || strings.HasPrefix(c.Rule, "Recorder") || strings.HasPrefix(c.Rule, "Forgetter")
		if optional && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%q: want ErrUnsupported, got %v", c.Name, err)
		} else if !optional && err != nil {
			t.Errorf("%q: %v", c.Name, err)
		}
	}
}

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
