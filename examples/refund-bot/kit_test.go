package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// testEnv makes the test binary the program itself, which starts itself again as a worker.
const testEnv = "REFUND_BOT_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(testEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is the program with arguments, not yet started. env is what it finds beside our own environment.
func program(t *testing.T, dir string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Dir = dir
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "OPENAI_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	// Under -race every process waits a second at its end for reports to come, unless it is told not to.
	cmd.Env = append(cmd.Env, testEnv+"=1", "GORACE="+strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// ran is what a run of the program left behind.
type ran struct {
	out, err string
	code     int
}

// runIn runs the program in a directory.
func runIn(t *testing.T, dir string, args ...string) ran {
	t.Helper()
	return finish(t, program(t, dir, nil, args...))
}

func finish(t *testing.T, cmd *exec.Cmd) ran {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		t.Fatal(err)
	}
	return ran{out.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// ok fails the test unless the run ended well.
func (r ran) ok(t *testing.T) ran {
	t.Helper()
	if r.code != exitOK || r.err != "" {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	return r
}

// wantLines looks for lines in the output, in this order.
func (r ran) wantLines(t *testing.T, lines ...string) {
	t.Helper()
	rest := r.out
	for _, l := range lines {
		_, after, found := strings.Cut(rest, l)
		if !found {
			t.Errorf("no %q where it should be in:\n%s", l, r.out)
			return
		}
		rest = after
	}
}

// moved counts a provider's file.
func moved(t *testing.T, path string) provider.Tally {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	p, err := provider.Open(t.Context(), path, provider.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	c, err := p.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// files are the names in a directory.
func files(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	return strings.Join(names, " ")
}

// happened settles an operation as toolonce resolve --happened does.
func happened(t *testing.T, path, operation, by, why string) {
	t.Helper()
	store, err := sqlitestore.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	row, ok, err := store.Find(t.Context(), middleware.Query{Operation: operation})
	if err != nil || !ok {
		t.Fatalf("operation %s: %t, %v", operation, ok, err)
	}
	row, err = store.Change(t.Context(), middleware.Transition{
		Step: middleware.Happened, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, By: by, Why: why,
	})
	if err != nil || row.State != middleware.Done {
		t.Errorf("settled: %s, %v", row.State, err)
	}
}
