//go:build unix && cgo

package sqlitestore_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

const guardEnv = "TOOLONCE_GUARD_SHIFT"

// shift is what one process of two does.
type shift struct {
	Dir   string // holds once.db, the provider's book and the gates
	Run   string
	Calls string // a gate to pass before the call, "" for none
	Runs  string // a gate to pass within the handler, "" for none
}

// gate is closed while somebody holds its lock.
type gate struct{ *os.File }

func openGate(path string) (gate, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	return gate{f}, err
}

// shutGate makes a gate that is closed until it is opened.
func shutGate(t *testing.T, dir, name string) (open func()) {
	t.Helper()
	g, err := openGate(filepath.Join(dir, name))
	check(t, err)
	check(t, syscall.Flock(int(g.Fd()), syscall.LOCK_EX))
	t.Cleanup(func() { _ = g.Close() })
	return func() { check(t, syscall.Flock(int(g.Fd()), syscall.LOCK_UN)) }
}

// pass says that the process stands before a gate, and waits until it is open.
func (s shift) pass(name string) error {
	if name == "" {
		return nil
	}
	g, err := openGate(filepath.Join(s.Dir, name))
	if err != nil {
		return err
	}
	fmt.Println("guard: at " + name)
	for {
		if err = syscall.Flock(int(g.Fd()), syscall.LOCK_SH); !errors.Is(err, syscall.EINTR) {
			return errors.Join(err, g.Close())
		}
	}
}

func (s shift) refund(_ context.Context, in killedInput) (string, error) {
	f, err := os.OpenFile(filepath.Join(s.Dir, "book"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(f, "%s by %s\n", in.Order, s.Run); err != nil {
		return "", err
	}
	return "refunded by " + s.Run, errors.Join(f.Close(), s.pass(s.Runs))
}

func (s shift) work(ctx context.Context) (registry.Result, error) {
	store, err := sqlitestore.Open(filepath.Join(s.Dir, "once.db"), nil)
	if err != nil {
		return registry.Result{}, err
	}
	l := &ledgertest.Faulty{Ledger: store, After: func(_ context.Context, op ledgertest.Op) error {
		if op.Method == "Note" {
			fmt.Println("guard: noted")
		}
		return nil
	}}
	r := registry.New()
	registry.Add(r, registry.Tool[killedInput, string]{Name: "issue_refund", Effect: registry.NonIdempotentWrite, Run: s.refund})
	h := r.Handler(middleware.Once(l, &middleware.OnceOptions{Wait: 5 * time.Minute, Logger: slog.New(slog.DiscardHandler)}))
	if err := s.pass(s.Calls); err != nil {
		return registry.Result{}, err
	}
	res, err := h(ctx, &registry.Call{
		Run: registry.Run{ID: s.Run, Conversation: "chat"}, Turn: 1, ID: "call_1", Tool: "issue_refund", Arguments: `{"order":"A-1"}`,
	})
	return res, errors.Join(err, store.Close())
}

// TestGuardedProcess is each of the processes of the tests below.
func TestGuardedProcess(t *testing.T) {
	text := os.Getenv(guardEnv)
	if text == "" {
		return // not one
	}
	var s shift
	check(t, json.Unmarshal([]byte(text), &s))
	res, err := s.work(t.Context())
	check(t, err)
	fmt.Printf("guard: %s %s\n", res.Verdict, res.Content)
}

// colleague is a process at work.
type colleague struct {
	*exec.Cmd
	out *bufio.Scanner
}

func (s shift) start(t *testing.T) *colleague {
	t.Helper()
	text, err := json.Marshal(s)
	check(t, err)
	c := &colleague{Cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestGuardedProcess$", "-test.v")}
	c.Env = append(os.Environ(), guardEnv+"="+string(text))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	check(t, err)
	c.out = bufio.NewScanner(out)
	check(t, c.Start())
	return c
}

// says is the process's next word.
func (c *colleague) says(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for c.out.Scan() {
		if s, ok := strings.CutPrefix(c.out.Text(), "guard: "); ok {
			return s
		}
		fmt.Fprintln(&all, c.out.Text())
	}
	t.Fatalf("the process has ended:\n%s", all.String())
	return ""
}

// ends is the verdict and the content that a process was told in the end.
func (c *colleague) ends(t *testing.T) (verdict registry.Verdict, content string) {
	t.Helper()
	for {
		v, content, _ := strings.Cut(c.says(t), " ")
		if v == "at" || v == "noted" {
			continue
		}
		for c.out.Scan() { // to the end, before Wait closes the pipe
			continue
		}
		check(t, c.Wait())
		return registry.Verdict(v), content
	}
}

func wantBook(t *testing.T, dir, text string) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "book"))
	check(t, err)
	b, err := io.ReadAll(f)
	check(t, errors.Join(err, f.Close()))
	if string(b) != text {
		t.Errorf("the provider's book says %q, want %q", b, text)
	}
}

func TestTwoProcessesThatCallAtOnceRunOneHandlerAndReadOneResult(t *testing.T) {
	for range 5 {
		dir := t.TempDir()
		open := shutGate(t, dir, "calls")
		a, b := shift{Dir: dir, Run: "a", Calls: "calls"}.start(t), shift{Dir: dir, Run: "b", Calls: "calls"}.start(t)
		if at := a.says(t) + ", " + b.says(t); at != "at calls, at calls" {
			t.Fatalf("the processes say %s", at)
		}
		open()
		verdicts, contents := map[string]registry.Verdict{}, map[string]string{}
		verdicts["a"], contents["a"] = a.ends(t)
		verdicts["b"], contents["b"] = b.ends(t)
		first, second := "a", "b"
		if verdicts["b"] == registry.Executed {
			first, second = second, first
		}
		if verdicts[first] != registry.Executed || contents[first] != "refunded by "+first ||
			verdicts[second] != registry.AlreadyDone || !strings.Contains(contents[second], `"result":"refunded by `+first+`"`) {
			t.Errorf("told %v and %v", verdicts, contents)
		}
		wantBook(t, dir, "A-1 by "+first+"\n")
	}
}

func TestAProcessThatArrivesWhileAnothersHandlerRunsWaitsAndReadsItsResult(t *testing.T) {
	dir := t.TempDir()
	open := shutGate(t, dir, "runs")
	a := shift{Dir: dir, Run: "a", Runs: "runs"}.start(t)
	if at := a.says(t); at != "at runs" {
		t.Fatalf("the first says %s", at)
	}
	b := shift{Dir: dir, Run: "b", Runs: "runs"}.start(t)
	if at := b.says(t); at != "noted" {
		t.Fatalf("the second says %s, want that it is noted and waits", at)
	}
	open()
	if verdict, content := a.ends(t); verdict != registry.Executed || content != "refunded by a" {
		t.Errorf("the first is told %s: %s", verdict, content)
	}
	if verdict, content := b.ends(t); verdict != registry.AlreadyDone || !strings.Contains(content, `"result":"refunded by a"`) {
		t.Errorf("the second is told %s: %s", verdict, content)
	}
	wantBook(t, dir, "A-1 by a\n")
}

// closing closes a store in the background and returns once nothing can be claimed there any more.
func closing(t *testing.T, s *sqlitestore.Store) (closed <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Close() }()
	c := aClaim("nobody", 1)
	c.SeenAlias = "op_none" // never won
	for {
		_, won, err := s.Claim(t.Context(), c)
		if errors.Is(err, sqlitestore.ErrClosed) {
			return done
		}
		check(t, err)
		if won {
			t.Fatal("a claim whose place points nowhere is won")
		}
		runtime.Gosched()
	}
}

// waits reports whether a Close still waits.
func waits(closed <-chan error) bool { return len(closed) == 0 }

// onlyRow is the one row of the file, read by another store.
func onlyRow(t *testing.T, path string) middleware.Row {
	t.Helper()
	rows, err := open(t, path, nil).List(t.Context(), nil, 0)
	check(t, err)
	if len(rows) != 1 {
		t.Fatalf("%d rows, want 1", len(rows))
	}
	return rows[0]
}

func TestCloseWaitsForAnOutcomeThatIsUnclearAndItIsRecorded(t *testing.T) {
	for _, way := range []string{"hold", "lookup", "rerun"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "once.db")
			s, err := sqlitestore.Open(path, nil)
			check(t, err)
			inside, release := make(chan struct{}), make(chan struct{})
			tries := 0
			tool := registry.Tool[killedInput, string]{
				Name: "issue_refund", Effect: registry.NonIdempotentWrite,
				Run: func(context.Context, killedInput) (string, error) {
					if tries++; tries > 1 {
						return "re_1", nil
					}
					close(inside)
					<-release
					return "", errors.New("read: connection timed out")
				},
			}
			switch way {
			case "lookup":
				tool.Lookup = func(context.Context, killedInput) (string, error) { return "re_1", nil }
			case "rerun":
				tool.Recovery = registry.Rerun
			}
			r := registry.New()
			registry.Add(r, tool)
			h := r.Handler(middleware.Once(s, &middleware.OnceOptions{Logger: slog.New(slog.DiscardHandler)}))
			told := make(chan string, 1)
			go func() {
				res, err := h(t.Context(), &registry.Call{Run: registry.Run{ID: "r"}, Turn: 1, Tool: "issue_refund", Arguments: `{"order":"A-1"}`})
				told <- fmt.Sprintf("%s: %s, error %v", res.Verdict, res.Content, err)
			}()
			<-inside
			closed := closing(t, s)
			if !waits(closed) {
				t.Error("Close does not wait for the handler")
			}
			close(release)
			if err := <-closed; err != nil {
				t.Errorf("Close: %v", err)
			}
			row, answer := onlyRow(t, path), <-told
			if row.State != middleware.InDoubt && row.State != middleware.Done || row.Settle != "" {
				t.Errorf("row is %s, settled by %q, want in_doubt or done; told %s", row.State, row.Settle, answer)
			}
			if verdict := string(registry.OutcomeUnknown); strings.HasPrefix(answer, verdict) != (row.State == middleware.InDoubt) || !strings.HasSuffix(answer, "error <nil>") {
				t.Errorf("row is %s, told %s", row.State, answer)
			}
		})
	}
}

func TestCloseBetweenAClaimAndItsHandlerWaitsForIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "once.db")
	s, err := sqlitestore.Open(path, nil)
	check(t, err)
	claimed, release := make(chan struct{}), make(chan struct{})
	l := &ledgertest.Faulty{Ledger: s, After: func(_ context.Context, op ledgertest.Op) error {
		if op.Method == "Claim" {
			close(claimed)
			<-release
		}
		return nil
	}}
	var closed <-chan error
	runs := 0
	r := registry.New()
	registry.Add(r, registry.Tool[killedInput, string]{Name: "issue_refund", Effect: registry.NonIdempotentWrite, Run: func(context.Context, killedInput) (string, error) {
		runs++
		if !waits(closed) {
			return "the store is closed", nil
		}
		return "re_1", nil
	}})
	h := r.Handler(middleware.Once(l, &middleware.OnceOptions{Logger: slog.New(slog.DiscardHandler)}))
	told := make(chan string, 1)
	go func() {
		res, err := h(t.Context(), &registry.Call{Run: registry.Run{ID: "r"}, Turn: 1, Tool: "issue_refund", Arguments: `{"order":"A-1"}`})
		told <- fmt.Sprintf("%s: %s, error %v", res.Verdict, res.Content, err)
	}()
	<-claimed
	closed = closing(t, s)
	close(release)
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	if row := onlyRow(t, path); row.State != middleware.Done || row.Result != "re_1" {
		t.Errorf("row is %s with %q, want done", row.State, row.Result)
	}
	if got := <-told; got != "executed: re_1, error <nil>" || runs != 1 {
		t.Errorf("told %s after %d runs", got, runs)
	}
}

func TestCallsOfAClosedStoreLeaveNothingOpen(t *testing.T) {
	s, err := sqlitestore.Open(filepath.Join(t.TempDir(), "once.db"), nil)
	check(t, err)
	r := registry.New()
	registry.Add(r, registry.Tool[payment, string]{Name: "pay", Effect: registry.NonIdempotentWrite, Run: func(context.Context, payment) (string, error) {
		t.Error("it was run")
		return "", nil
	}})
	h := r.Handler(middleware.Once(s, nil))
	check(t, s.Close())
	for turn := range 3 {
		c := &registry.Call{Run: registry.Run{ID: "run"}, Turn: turn + 1, Tool: "pay", Arguments: `{"order":"7","cents":1,"currency":"EUR"}`}
		if _, err := h(t.Context(), c); !errors.Is(err, sqlitestore.ErrClosed) {
			t.Errorf("%v, want ErrClosed", err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	check(t, s.Handlers().Wait(ended))
}
