package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// world is a folder with a store, in which things happen.
type world struct {
	t       *testing.T
	dir     string
	flags   []string
	role    string // of the server behind the gateway
	log     lockedBuffer
	options *mcp.ClientOptions
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWorld(t *testing.T, flags ...string) *world {
	w := &world{t: t, dir: t.TempDir(), flags: flags, role: "shop"}
	t.Setenv(effectsVar, filepath.Join(w.dir, "effects"))
	t.Setenv(fifoVar, filepath.Join(w.dir, "fifo"))
	return w
}

func (w *world) store() string { return "sqlite:" + filepath.Join(w.dir, "once.db") }

func (w *world) args(role string) []string {
	args := append([]string{"-store", w.store()}, w.flags...)
	return append(args, "--", "env", roleVar+"="+role, os.Args[0])
}

func (w *world) file(name, content string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// happened is what has happened, line by line.
func (w *world) happened() []string {
	w.t.Helper()
	b, err := os.ReadFile(os.Getenv(effectsVar))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.t.Fatal(err)
	}
	return strings.Fields(strings.ReplaceAll(string(b), " ", "_"))
}

func (w *world) want(effects ...string) {
	w.t.Helper()
	if got := w.happened(); strings.Join(got, " ") != strings.Join(effects, " ") {
		w.t.Errorf("happened: %q, want %q", got, effects)
	}
}

// connect starts a gateway as a process of its own and a client on the SDK before it.
func (w *world) connect() (*mcp.ClientSession, *exec.Cmd) {
	w.t.Helper()
	cmd := gatewayCommand(w)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "v1"}, w.options)
	session, err := client.Connect(w.t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		w.t.Fatalf("connecting: %v: %s", err, &w.log)
	}
	w.t.Cleanup(func() { _ = session.Close() })
	return session, cmd
}

func gatewayCommand(w *world) *exec.Cmd {
	cmd := exec.CommandContext(w.t.Context(), os.Args[0], w.args(w.role)...)
	cmd.Env = append(os.Environ(), roleVar+"=gateway")
	cmd.Stderr = &w.log
	return cmd
}

// buildToolonce builds the operator's command.
func buildToolonce(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "toolonce")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/toolonce")
	cmd.Dir = filepath.Join("..", "..", "..") // it is of the other module, with what that depends on
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("building toolonce: %v: %s", err, out)
	}
	return path
}

// settle has a person say that an operation happened, and first too early that it did not.
func (w *world) settle(toolonce, op string) {
	w.t.Helper()
	resolve := func(args ...string) (string, error) {
		args = append([]string{"resolve", op, "-store", w.store(), "--by", "ann", "--why", "looked"}, args...)
		out, err := exec.CommandContext(w.t.Context(), toolonce, args...).CombinedOutput()
		return string(out), err
	}
	if out, err := resolve("--did-not-happen"); err == nil || !strings.Contains(out, "too early") {
		w.t.Errorf("did not happen, too early: %v: %s", err, out)
	}
	if out, err := resolve("--happened", "--result", `"paid by hand"`); err != nil {
		w.t.Fatalf("happened: %v: %s", err, out)
	}
}

// call calls a tool and gives the verdict and all text of the result.
func (w *world) call(s *mcp.ClientSession, tool string, in payment) (verdict, content string) {
	w.t.Helper()
	res, err := s.CallTool(w.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		w.t.Fatalf("%s: %v: %s", tool, err, &w.log)
	}
	return verdictOf(res)
}

func verdictOf(res *mcp.CallToolResult) (verdict, content string) {
	var texts []string
	for _, c := range res.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	verdict, _ = res.Meta["toolonce/verdict"].(string)
	return verdict, strings.Join(texts, "|")
}

// operation is the id that a result names.
func operation(t *testing.T, content string) string {
	t.Helper()
	var e struct {
		Operation string `json:"operation"`
	}
	envelope, _, _ := strings.Cut(content, "|")
	if err := json.Unmarshal([]byte(envelope), &e); err != nil || e.Operation == "" {
		t.Fatalf("no operation in %s (%v)", content, err)
	}
	return e.Operation
}

// conversation is a gateway in this process, spoken to in raw lines.
type conversation struct {
	w    *world
	in   *io.PipeWriter
	out  *bufio.Reader
	stop context.CancelFunc
	code chan int
}

func (w *world) speak(role string) *conversation {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(w.t.Context())
	c := &conversation{w: w, in: inW, out: bufio.NewReader(outR), stop: cancel, code: make(chan int, 1)}
	go func() {
		c.code <- run(ctx, w.args(role), inR, outW, &w.log)
		_ = outW.Close()
	}()
	w.t.Cleanup(func() {
		_ = outR.Close()
		_ = inW.Close()
	})
	return c
}

func (c *conversation) say(line string) {
	c.w.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.w.t.Fatal(err)
	}
}

func (c *conversation) hear() string {
	c.w.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.w.t.Fatalf("hearing: %v: %s", err, &c.w.log)
	}
	return strings.TrimSpace(line)
}

// end has the client leave and gives the exit code.
func (c *conversation) end() int {
	_ = c.in.Close()
	return c.exit()
}

func (c *conversation) exit() int {
	c.w.t.Helper()
	go func() { _, _ = io.Copy(io.Discard, c.out) }()
	select {
	case code := <-c.code:
		return code
	case <-time.After(time.Minute): // only if it hangs
		c.w.t.Fatalf("the gateway does not end: %s", &c.w.log)
		return -1
	}
}
