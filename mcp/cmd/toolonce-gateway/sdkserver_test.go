package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK's own example server keeps what it is told in a file. It is run behind a relay, which writes down what reaches
// it, and can kill the gateway once the server has done its part.
const (
	memoryVar = "TOOLONCE_TEST_MEMORY" // the server's program
	graphVar  = "TOOLONCE_TEST_GRAPH"  // its file
)

func relay() {
	server := exec.CommandContext(context.Background(), os.Getenv(memoryVar), "-memory", os.Getenv(graphVar))
	in, err := server.StdinPipe()
	if err != nil {
		panic(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := server.Start(); err != nil {
		panic(err)
	}
	var dies atomic.Bool
	go func() {
		for r := bufio.NewReader(os.Stdin); ; {
			line, err := r.ReadString('\n')
			if strings.Contains(line, `"create_entities"`) && strings.Contains(line, `"tools/call"`) {
				happen("create_entities")
				dies.Store(strings.Contains(line, "fatal"))
			}
			if _, werr := io.WriteString(in, line); err != nil || werr != nil {
				_ = in.Close()
				return
			}
		}
	}()
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadString('\n')
		if dies.Load() {
			_ = syscall.Kill(os.Getppid(), syscall.SIGKILL)
			break
		}
		if _, werr := io.WriteString(os.Stdout, line); err != nil || werr != nil {
			break
		}
	}
	_ = in.Close()
	_ = server.Wait()
}

func TestKilledBeforeTheSDKsExampleServerIsHeardItIsSettledByResolve(t *testing.T) {
	w := newWorld(t)
	w.role = "relay"
	program := filepath.Join(t.TempDir(), "memory")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/modelcontextprotocol/go-sdk/examples/server/memory")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the SDK's example server: %v: %s", err, out)
	}
	graph := filepath.Join(w.dir, "graph.json")
	t.Setenv(memoryVar, program)
	t.Setenv(graphVar, graph)
	type entity struct {
		Name         string   `json:"name"`
		EntityType   string   `json:"entityType"`
		Observations []string `json:"observations"`
	}
	create := func(s *mcp.ClientSession, name string) (*mcp.CallToolResult, error) {
		in := map[string]any{"entities": []entity{{name, "order", []string{"paid"}}}}
		return s.CallTool(t.Context(), &mcp.CallToolParams{Name: "create_entities", Arguments: in})
	}
	verdict := func(s *mcp.ClientSession, name string) (string, string) {
		t.Helper()
		res, err := create(s, name)
		if err != nil {
			t.Fatalf("%v: %s", err, &w.log)
		}
		return verdictOf(res)
	}
	known := func(name string) int {
		b, err := os.ReadFile(graph)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(b), `"`+name+`"`)
	}

	s, _ := w.connect()
	for _, want := range []string{"executed", "already_done"} {
		if got, content := verdict(s, "order 1"); got != want {
			t.Errorf("%s %s, want %s", got, content, want)
		}
	}
	if known("order 1") != 1 {
		t.Errorf("the server knows order 1 %d times", known("order 1"))
	}
	if _, err := create(s, "fatal order"); err == nil {
		t.Fatal("the gateway lives")
	}
	if known("fatal order") != 1 {
		t.Errorf("the server knows the fatal order %d times", known("fatal order"))
	}
	s, _ = w.connect()
	got, content := verdict(s, "fatal order")
	if got != "outcome_unknown" {
		t.Fatalf("%s %s", got, content)
	}
	w.settle(buildToolonce(t), operation(t, content))
	if got, content := verdict(s, "fatal order"); got != "already_done" {
		t.Errorf("after the verdict: %s %s", got, content)
	}
	w.want("create_entities", "create_entities")
}
