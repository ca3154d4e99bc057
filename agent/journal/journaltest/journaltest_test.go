package journaltest_test

import (
	"context"
	"testing"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/agent/journal/journaltest"
)

// memorySystem is the memory journal as several processes would use it.
func memorySystem(*testing.T) journaltest.System {
	j := journal.Memory()
	return journaltest.System{
		Open: func() journal.Journal { return j.Peer() },
		Kill: func(j journal.Journal) { j.(*journal.MemoryJournal).Die() },
		Namespace: func(j journal.Journal, name string) journal.Journal {
			return j.(*journal.MemoryJournal).Namespace(name)
		},
		Forget: func(j journal.Journal, run string) error {
			return j.(*journal.MemoryJournal).Forget(context.Background(), run)
		},
	}
}

func TestMemoryJournalKeepsTheContract(t *testing.T) { journaltest.Run(t, memorySystem) }

func TestBrokenJournalsFailTheirCasesAndNoOthers(t *testing.T) {
	journaltest.RunBroken(t, memorySystem)
}

func TestCasesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range journaltest.Cases() {
		if c.Name == "" || c.Rule == "" || c.Check == nil || seen[c.Name] {
			t.Errorf("case %q, rule %q: want a name of its own, a rule and a check", c.Name, c.Rule)
		}
		seen[c.Name] = true
	}
	t.Logf("%d cases", len(seen))
}
