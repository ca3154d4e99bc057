package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	savedRuns     = "../../transcript/testdata/refunds.jsonl"
	savedTools    = "../../transcript/testdata/tools.json"
	savedExpected = "../../transcript/testdata/expected.jsonl"
	lastLine      = "runs=3 calls=10 executed=8 already_done=1 conflict=1 refused=0 id_collisions=2 mismatches=0"
)

func runAudit(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(&env{ctx: t.Context(), out: &o, getenv: func(string) string { return "" }}, append([]string{"audit"}, args...), &e)
	return code, o.String(), e.String()
}

// last is the last line of what was printed.
func last(out string) string {
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	return lines[len(lines)-1]
}

func TestAuditTellsWhatTheDocsSay(t *testing.T) {
	t.Chdir("../..")
	readme, err := os.ReadFile("docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(readme), "go run ./cmd/toolonce audit ")
	command, after, _ := strings.Cut(after, "\n```\n\n```text\n")
	want, _, _ := strings.Cut(after, "```\n")
	code, out, errs := runAudit(t, strings.Fields(command)...)
	if diff := cmp.Diff([]any{0, want, ""}, []any{code, out, errs}); diff != "" || last(out) != lastLine {
		t.Error(diff)
	}
}

func TestAuditFindsWhatIsExpected(t *testing.T) {
	if code, out, errs := runAudit(t, "-tools", savedTools, "-expect", savedExpected, savedRuns); code != 0 || last(out) != lastLine {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

func TestAuditExitsWithOneOnADifference(t *testing.T) {
	code, out, errs := runAudit(t, "-rule", "none", "-expect", savedExpected, savedRuns)
	if code != 1 || !strings.HasSuffix(last(out), " mismatches=2") || !strings.Contains(errs, "2 calls were decided otherwise") ||
		!strings.Contains(out, "mismatch: "+savedRuns+" run ticket-1 turn 3 position 0 issue_refund: executed, want already_done") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	short := filepath.Join(t.TempDir(), "short.jsonl")
	b, err := os.ReadFile(savedRuns)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(short, b[:bytes.IndexByte(b, '\n')], 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs = runAudit(t, "-tools", savedTools, "-expect", savedExpected, short)
	if code != 1 || !strings.HasSuffix(last(out), " mismatches=7") || !strings.Contains(out, "mismatch: run ticket-2 is expected, and is in no file") {
		t.Errorf("runs are missing: exit %d\n%s%s", code, out, errs)
	}
}

func TestAuditPrintsJSONByTheLine(t *testing.T) {
	code, out, _ := runAudit(t, "-json", "-v", "-tools", savedTools, savedRuns)
	var lines []map[string]any
	for line := range strings.Lines(out) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, v)
	}
	if code != 0 || len(lines) != 4 {
		t.Fatalf("exit %d\n%s", code, out)
	}
	stopped, _ := lines[1]["stopped"].(map[string]any)
	want := map[string]any{
		"file": savedRuns, "run": "ticket-2", "turn": 3., "position": 0., "tool": "issue_refund", "verdict": "conflict", "repeats": "2.0", "reason": "cents",
	}
	total := map[string]any{
		"runs": 3., "calls": 10., "executed": 8., "already_done": 1., "conflict": 1., "refused": 0., "id_collisions": 2., "mismatches": 0., "broken": 0.,
	}
	if diff := cmp.Diff([]any{want, total}, []any{stopped, lines[3]}); diff != "" {
		t.Error(diff)
	}
}

func TestAuditWritesAFirstToolsFileThatItTakes(t *testing.T) {
	code, out, errs := runAudit(t, "-init", savedRuns)
	want := `{
  "get_order": {
    "effect": "NonIdempotentWrite",
    "calls": 4,
    "repeats": 1
  },
  "issue_refund": {
    "effect": "NonIdempotentWrite",
    "calls": 5
  },
  "toggle_alert": {
    "effect": "NonIdempotentWrite",
    "calls": 1
  }
}
`
	if diff := cmp.Diff([]any{0, want, ""}, []any{code, out, errs}); diff != "" {
		t.Error(diff)
	}
	tools := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(tools, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs = runAudit(t, "-tools", tools, savedRuns); code != 0 {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

func TestAuditNamesABrokenLineAndAuditsTheOthers(t *testing.T) {
	b, err := os.ReadFile(savedRuns)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "saved.jsonl")
	if err := os.WriteFile(file, append([]byte("\x1b[31m{\n"), b...), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := runAudit(t, "-tools", savedTools, dir)
	if code != 1 || last(out) != lastLine || !strings.Contains(out, `broken: transcript: reading "`+file+`" line 1: `) ||
		strings.Contains(out+errs, "\x1b") || !strings.Contains(errs, "1 of the files, lines or runs could not be audited, the first: transcript: reading ") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
}

func TestAuditSaysHowItIsCalled(t *testing.T) {
	for want, args := range map[string][]string{
		"audit takes one argument or more":          {"-rule", "none"},
		"-init FILE… > tools.json writes a first":   {savedRuns},
		"there is no rule \"guess\"":                {"-rule", "guess", savedRuns},
		"-rule is another rule":                     {"-rule", "none", "-tools", savedTools, savedRuns},
		"-init goes without -tools":                 {"-init", "-tools", savedTools, savedRuns},
		"audit: flag provided but not defined: -no": {"-no", savedRuns},
	} {
		if code, out, errs := runAudit(t, args...); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d, want 2 with %q\n%s%s", args, code, want, out, errs)
		}
	}
	for want, args := range map[string][]string{
		"no such file":      {"-rule", "none", "none.jsonl"},
		"has no transcript": {"-rule", "none", t.TempDir()},
		"reading tools":     {"-tools", savedExpected, savedRuns},
		"line 1: ":          {"-tools", savedTools, "-expect", savedTools, savedRuns},
	} {
		if code, out, errs := runAudit(t, args...); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("%q: exit %d, want 1 with %q\n%s%s", args, code, want, out, errs)
		}
	}
	if code, out, _ := runAudit(t, "-h"); code != 0 || !strings.Contains(out, "-expect") {
		t.Errorf("help: exit %d\n%s", code, out)
	}
}

func TestAuditShowsItsProgressAndWipesItAway(t *testing.T) {
	var out, watched bytes.Buffer
	a := &auditing{env: &env{ctx: t.Context(), out: &out}, rule: "none", progress: &watched, runs: 48}
	if err := a.prepare(); err != nil {
		t.Fatal(err)
	}
	if err := a.run([]string{savedRuns}); err != nil {
		t.Fatal(err)
	}
	if want := "\r\x1b[K50 runs, " + savedRuns + "\r\x1b[K"; watched.String() != want {
		t.Errorf("%q, want %q", watched.String(), want)
	}
}

func TestFieldAuditCountsAsExpected(t *testing.T) {
	dir := os.Getenv("TOOLONCE_FIELD_DATA")
	if dir == "" {
		t.Skip("TOOLONCE_FIELD_DATA is not set: it names a folder of saved transcripts with expected verdicts (make field)")
	}
	dir = filepath.Join(dir, "transcripts")
	for folder, want := range map[string]string{
		dir:                           "runs=338 calls=2901 executed=2900 already_done=1 conflict=0 refused=0 id_collisions=37 mismatches=0",
		filepath.Join(dir, "derived"): "runs=1373 calls=14414 executed=13427 already_done=976 conflict=11 refused=0 id_collisions=299 mismatches=0",
	} {
		code, out, errs := runAudit(t, "-tools", filepath.Join(dir, "tools.json"), "-expect", filepath.Join(folder, "expected.jsonl"), folder)
		if code != 0 || last(out) != want {
			t.Errorf("exit %d, want %s\n%s%s", code, want, out, errs)
		}
	}
}
