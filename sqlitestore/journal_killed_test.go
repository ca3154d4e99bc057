//go:build unix && cgo

package sqlitestore_test

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

const loopEnv = "TOOLONCE_KILLED_LOOP"

// twoTurns are what the process that is killed has stored.
func twoTurns() []journal.Turn {
	return []journal.Turn{
		{Number: 1, Answer: []byte(`{ "calls" : 2 }`), Outputs: []journal.Output{
			{Position: 0, Content: "re_1", Verdict: registry.Executed, Operation: "op_1"},
			{Position: 1, Content: "", Verdict: registry.Refused},
		}},
		{Number: 2, Answer: []byte(`{"calls":1}`)},
	}
}

// TestLoopToKill is the process that is killed after two turns.
func TestLoopToKill(*testing.T) {
	path := os.Getenv(loopEnv)
	if path == "" {
		return // not that process
	}
	s, err := sqlitestore.Open(path, nil)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	r, err := s.Begin(ctx, aStart("run"))
	if err != nil {
		panic(err)
	}
	var outputs []journal.Output
	for _, t := range twoTurns() {
		if _, err := s.Append(ctx, journal.Entry{Run: "run", Token: r.Token, Turn: t, Outputs: outputs}); err != nil {
			panic(err)
		}
		outputs = t.Outputs
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func TestKilledBetweenTurnsTheRunGoesOnWithAllThatWasStored(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, nil)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLoopToKill$")
	cmd.Env = append(os.Environ(), loopEnv+"="+path)
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process was not killed: %v\n%s", err, out)
	}
	for name, s := range map[string]*sqlitestore.Store{"that was open": s, "opened now": open(t, path, nil)} {
		r := begun(t, s, "run")
		if diff := cmp.Diff(twoTurns(), r.Turns); diff != "" {
			t.Errorf("the store %s: %s", name, diff)
		}
		check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token}))
	}
	r := begun(t, s, "run")
	appended(t, s, r, 3)
}
