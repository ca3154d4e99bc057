//go:build cgo

package sqlitestore_test

import (
	"strings"
	"testing"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/registry"
)

func TestTheFirstTurnOfARunHasNoOutputsBeforeIt(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	r := begun(t, s, "run")
	told := journal.Output{Content: "secret", Verdict: registry.Executed}
	first := journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 1, Answer: []byte("{}")}, Outputs: []journal.Output{told}}
	if _, err := s.Append(t.Context(), first); err == nil || !strings.Contains(err.Error(), "outputs came with turn 1") || strings.Contains(err.Error(), "secret") {
		t.Errorf("outputs of no turn are stored: %v", err)
	}
	r = begun(t, s, "run")
	if len(r.Turns) != 0 {
		t.Fatalf("%d turns are stored", len(r.Turns))
	}
	appended(t, s, r, 1)
	appended(t, s, r, 2, told)
}
