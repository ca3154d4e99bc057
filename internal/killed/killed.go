//go:build unix

package killed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// Input is that of the tool: one refund an order.
type Input struct {
	Order string `json:"order" once:"key"`
}

// Store is one as a process opens it.
type Store interface {
	middleware.Ledger
	middleware.Lister
	Close() error
}

// Kit is what the test of a store gives.
type Kit struct {
	// New makes a store for a case, and says where it is.
	New func(t *testing.T) (where string)
	// Open opens it as a new process does, in the test and in the worker.
	Open func(ctx context.Context, where string) (Store, error)
	// Local makes the effect in the store's own transaction, and Locals counts what stayed.
	Local  func(ctx context.Context, where, order string) error
	Locals func(t *testing.T, where string) int
}

// job is what a worker process is told to do.
type job struct {
	Where    string // the store
	Dir      string // holds the provider's book
	Provider string // plain, lookup, keyed or local
	Die      string // the point at which the process kills itself, "" for none

	kit Kit
}

const jobEnv = "TOOLONCE_KILLED_JOB"

// book is a provider's: one line per refund, written outside of what the store can see.
func (j job) book() string { return filepath.Join(j.Dir, "book") }

func (j job) refunds(t *testing.T) int {
	if j.Provider == "local" {
		return j.kit.Locals(t, j.Where)
	}
	b, err := os.ReadFile(j.book())
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return bytes.Count(b, []byte("\n"))
}

// at kills this very process where the job says so.
func (j job) at(point string) {
	if j.Die == point {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

var errNone = errors.New("no such refund")

// known is the refund in the book, by order or by key.
func (j job) known(what string) (string, error) {
	b, err := os.ReadFile(j.book())
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	if strings.Contains(string(b), what) {
		return "re_1", nil
	}
	return "", registry.NoEffect(errNone)
}

func (j job) refund(ctx context.Context, in Input) (string, error) {
	j.at("after the claim")
	if j.Provider == "local" {
		if err := j.kit.Local(ctx, j.Where, in.Order); err != nil {
			return "", err
		}
		j.at("after the effect")
		return "re_1", nil
	}
	key := registry.IdempotencyKey(ctx)
	if j.Provider == "keyed" {
		if id, err := j.known(key); err == nil {
			return id, nil
		}
	}
	f, err := os.OpenFile(j.book(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", registry.NoEffect(err)
	}
	if _, err := fmt.Fprintf(f, "%s %s\n", in.Order, key); err != nil {
		return "", err
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	j.at("after the effect")
	return "re_1", nil
}

func (j job) tools() *registry.Registry {
	t := registry.Tool[Input, string]{
		Name: "issue_refund", Effect: registry.NonIdempotentWrite, Timeout: 100 * time.Millisecond, Run: j.refund, Local: j.Provider == "local",
	}
	switch j.Provider {
	case "lookup":
		t.Lookup = func(_ context.Context, in Input) (string, error) { return j.known(in.Order + " ") }
	case "keyed":
		t.Recovery = registry.Rerun
	}
	r := registry.New()
	registry.Add(r, t)
	return r
}

// work is what a worker does with the one call of its run.
func (j job) work(ctx context.Context) (registry.Result, error) {
	s, err := j.kit.Open(ctx, j.Where)
	if err != nil {
		return registry.Result{}, err
	}
	once := middleware.Once(s, &middleware.OnceOptions{
		Margin: 100 * time.Millisecond, Repeats: -1, Logger: slog.New(slog.DiscardHandler),
		Admit: func(context.Context, *registry.Call) (*registry.Result, error) {
			j.at("before the claim")
			return nil, nil
		},
	})
	res, err := j.tools().Handler(once)(ctx, &registry.Call{Run: registry.Run{ID: "run"}, Turn: 1, ID: "call_1", Tool: "issue_refund", Arguments: `{"order":"A-1"}`})
	j.at("after the save")
	return res, errors.Join(err, s.Close())
}

// Work is the body of TestWorkerToKill, which each package that uses Check must have: a process is told by it what to do.
func (k Kit) Work(t *testing.T) {
	text := os.Getenv(jobEnv)
	if text == "" {
		return // not a worker
	}
	j := job{kit: k}
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		t.Fatal(err)
	}
	res, err := j.work(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("verdict=%s content=%s\n", res.Verdict, res.Content)
}

// run does the job in a process of its own and reports whether that was killed.
func (j job) run(t *testing.T) (killed bool, out string) {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWorkerToKill$", "-test.v")
	cmd.Env = append(os.Environ(), jobEnv+"="+string(text))
	b, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signal() == syscall.SIGKILL {
			return true, string(b)
		}
	}
	if err != nil {
		t.Fatalf("worker: %v\n%s", err, b)
	}
	return false, string(b)
}

// Check kills a process at each point with each kind of provider, and has another go on.
func (k Kit) Check(t *testing.T) {
	for _, c := range []struct {
		point, provider string
		refunds         int
		verdict         registry.Verdict
	}{
		{"before the claim", "plain", 1, registry.Executed},
		{"before the claim", "lookup", 1, registry.Executed},
		{"before the claim", "keyed", 1, registry.Executed},
		{"before the claim", "local", 1, registry.Executed},
		{"after the claim", "plain", 0, registry.OutcomeUnknown},
		{"after the claim", "lookup", 1, registry.Executed},
		{"after the claim", "keyed", 1, registry.Executed},
		{"after the claim", "local", 1, registry.Executed},
		{"after the effect", "plain", 1, registry.OutcomeUnknown},
		{"after the effect", "lookup", 1, registry.Replayed},
		{"after the effect", "keyed", 1, registry.Executed},
		{"after the effect", "local", 1, registry.Executed},
		{"after the save", "plain", 1, registry.Replayed},
		{"after the save", "lookup", 1, registry.Replayed},
		{"after the save", "keyed", 1, registry.Replayed},
		{"after the save", "local", 1, registry.Replayed},
	} {
		t.Run(c.point+", "+c.provider, func(t *testing.T) {
			t.Parallel()
			j := job{Where: k.New(t), Dir: t.TempDir(), Provider: c.provider, Die: c.point, kit: k}
			if killed, out := j.run(t); !killed {
				t.Fatalf("the worker was not killed:\n%s", out)
			}
			j.Die = ""
			_, out := j.run(t)
			if c.provider == "lookup" && c.point == "after the claim" {
				// Absence counts only once no request of the dead worker can land any more: ask until then.
				for strings.Contains(out, "verdict=outcome_unknown") {
					if n := j.refunds(t); n != 0 {
						t.Fatalf("unknown, but %d refunds", n)
					}
					_, out = j.run(t)
				}
			}
			if n := j.refunds(t); n != c.refunds || !strings.Contains(out, "verdict="+string(c.verdict)+" ") {
				t.Errorf("%d refunds, want %d, and verdict %s:\n%s", n, c.refunds, c.verdict, out)
			}
			if c.verdict != registry.OutcomeUnknown && !strings.Contains(out, "content=re_1") {
				t.Errorf("the call does not read its own output:\n%s", out)
			}
			k.ends(t, j.Where, c.verdict)
		})
	}
}

// ends checks the one row that is left.
func (k Kit) ends(t *testing.T, where string, verdict registry.Verdict) {
	t.Helper()
	want := middleware.Done
	if verdict == registry.OutcomeUnknown {
		want = middleware.InDoubt
	}
	s, err := k.Open(t.Context(), where)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.List(t.Context(), nil, 0)
	if err != nil || len(rows) != 1 || rows[0].State != want {
		t.Errorf("rows %+v %v, want one that is %s", rows, err, want)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
