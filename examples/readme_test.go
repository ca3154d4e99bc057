// Package examples_test runs what README shows.
package examples_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/transcript"
)

// block is a fenced block of README.
type block struct{ lang, text string }

func blocks(t *testing.T) []block {
	t.Helper()
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []block
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(b), -1) {
		all = append(all, block{m[1], m[2]})
	}
	return all
}

// model refunds twice in one turn, once more a turn later, and then says so.
func model() *transcript.Server {
	call := func(id, arguments string) transcript.ToolCall {
		return transcript.ToolCall{ID: id, Name: "issue_refund", Arguments: arguments}
	}
	return transcript.NewServer(transcript.Steps(
		transcript.Step{Calls: []transcript.ToolCall{
			call("call_1", `{"order_id":"1001","cents":500,"reason":"broken"}`),
			call("call_2", `{"reason":"it arrived broken","cents":500,"order_id":"1001"}`),
		}},
		transcript.Step{Calls: []transcript.ToolCall{call("call_3", `{"order_id":"1001","cents":500,"reason":"broken"}`)}},
		transcript.Step{Text: "Your 5.00 are on their way."},
	), nil)
}

// TestREADMEProgramsPrintWhatREADMESays runs the Go blocks of README. The first is a program, whose output is the text
// block behind it; each other one takes the place of the loop in it, and prints the same.
func TestREADMEProgramsPrintWhatREADMESays(t *testing.T) {
	var program, want string
	blocks := blocks(t)
	for i, b := range blocks {
		if b.lang != "go" {
			continue
		}
		text := b.text
		if program == "" {
			program, want = text, blocks[i+1].text
		} else {
			text = inside(t, program, text)
		}
		server := httptest.NewServer(model())
		defer server.Close()
		got := run(t, text, "OPENAI_API_KEY=x", "OPENAI_BASE_URL="+server.URL+"/v1")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("block %d of README prints otherwise:\n%s", i, diff)
		}
	}
	if program == "" {
		t.Error("README has no program")
	}
}

// inside puts a loop of one's own in the place of ours.
func inside(t *testing.T, program, loop string) string {
	t.Helper()
	ours := regexp.MustCompile(`(?s)\n\tloop := .*fmt\.Println\(reply[^\n]*\n`)
	if !ours.MatchString(program) {
		t.Fatal("the program of README has no loop to replace")
	}
	program = ours.ReplaceAllLiteralString(program, "\nctx := context.Background()\n"+loop)
	const agent = `"github.com/toolonce/toolonce/agent"`
	return strings.Replace(program, agent, agent+"\n"+`"github.com/toolonce/toolonce/middleware"`, 1)
}

// run builds a program inside this module, so that it uses the packages as they are, and runs it in an empty folder.
func run(t *testing.T, program string, env ...string) string {
	t.Helper()
	src := filepath.Join("testdata", "readme") // patterns such as ./... leave it out
	if err := os.MkdirAll(src, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll("testdata") })
	if err := os.WriteFile(filepath.Join(src, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "program")
	ctx := context.WithoutCancel(t.Context())
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "./"+src).CombinedOutput(); err != nil {
		t.Fatalf("building a program of README: %v\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, bin)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("running a program of README: %v\n%s", err, out)
	}
	return string(out)
}
