package transcript_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// fieldTool is how a tool is declared beside saved transcripts.
type fieldTool struct {
	Effect, Identity string
	Key, Ignore      []string
	Undoes           string
	ResourceIn       string `json:"resource_in"`
	ResourceOut      string `json:"resource_out"`
}

// fieldCall is one call of a saved run with the verdict that is right for it.
type fieldCall struct {
	transcript.Call
	verdict string
}

type fieldRun struct {
	id    string
	calls []fieldCall
}

// fieldData is the folder of saved transcripts with expected verdicts, or the test is skipped.
func fieldData(t *testing.T) string {
	dir := os.Getenv("TOOLONCE_FIELD_DATA")
	if dir == "" {
		t.Skip("TOOLONCE_FIELD_DATA is not set: it names a folder of saved transcripts with expected verdicts (make field)")
	}
	return filepath.Join(dir, "transcripts")
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// expected reads the verdicts by run, turn and position.
func expected(t *testing.T, path string) map[string]map[[2]int]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	all := map[string]map[[2]int]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var run struct {
			ID    string
			Calls [][4]any
		}
		if err := json.Unmarshal(lines.Bytes(), &run); err != nil {
			t.Fatal(err)
		}
		m := map[[2]int]string{}
		for _, c := range run.Calls {
			m[[2]int{int(c[0].(float64)), int(c[1].(float64))}] = c[3].(string)
		}
		all[run.ID] = m
	}
	return all
}

func fieldRuns(t *testing.T, dir string) (runs []fieldRun, calls int) {
	t.Helper()
	want := expected(t, filepath.Join(dir, "expected.jsonl"))
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in %s: %v", dir, err)
	}
	for _, file := range files {
		for run, err := range transcript.ReadFile(file) {
			if err != nil {
				t.Fatal(err)
			}
			r := fieldRun{id: run.ID}
			for c := range run.Calls() {
				v, ok := want[run.ID][[2]int{c.Turn, c.Position}]
				if !ok {
					t.Fatalf("run %s has no verdict for turn %d position %d", run.ID, c.Turn, c.Position)
				}
				r.calls = append(r.calls, fieldCall{c, v})
			}
			if len(r.calls) != len(want[run.ID]) {
				t.Fatalf("run %s has %d calls, want %d", run.ID, len(r.calls), len(want[run.ID]))
			}
			runs, calls = append(runs, r), calls+len(r.calls)
		}
	}
	return runs, calls
}

// guarded decides every call of a run by the real guard, whose tools answer what was saved.
func guarded(tools map[string]fieldTool, refusalIsDone bool) func(*testing.T, fieldRun) []string {
	return func(t *testing.T, run fieldRun) []string {
		var at *fieldCall
		reached := false
		r := registry.New()
		for name, f := range tools {
			if err := r.AddRaw(rawTool(name, f, func(context.Context, json.RawMessage) (any, error) {
				reached = true
				if at.Error && !refusalIsDone {
					return nil, registry.NoEffect(errors.New(at.Output))
				}
				return at.Output, nil
			})); err != nil {
				t.Fatal(err)
			}
		}
		h := r.Handler(middleware.Once(middleware.Memory().Namespace(run.id), &middleware.OnceOptions{Repeats: -1}))
		var verdicts []string
		for i := range run.calls {
			at, reached = &run.calls[i], false
			res, err := h(t.Context(), &registry.Call{
				Run: registry.Run{ID: run.id}, Turn: at.Turn, Position: at.Position, ID: at.ID, Tool: at.Name, Arguments: at.Arguments,
			})
			if err != nil {
				t.Fatalf("run %s turn %d position %d: %v", run.id, at.Turn, at.Position, err)
			}
			v := string(res.Verdict)
			if reached {
				v = "execute"
			}
			verdicts = append(verdicts, v)
		}
		return verdicts
	}
}

func rawTool(name string, f fieldTool, run func(context.Context, json.RawMessage) (any, error)) registry.RawTool {
	t := registry.RawTool{
		Name: name, Key: f.Key, Ignore: f.Ignore, Undoes: f.Undoes, ResourceIn: f.ResourceIn, ResourceOut: f.ResourceOut, Run: run,
		Effect: map[string]registry.Effect{"Read": registry.Read, "IdempotentWrite": registry.IdempotentWrite, "NonIdempotentWrite": registry.NonIdempotentWrite}[f.Effect],
	}
	if f.Identity == "ByCall" {
		t.Identity = registry.ByCall
	}
	return t
}

// first stops every call whose key was seen before in its run.
func first(key func(fieldCall) string) func(*testing.T, fieldRun) []string {
	return func(_ *testing.T, run fieldRun) []string {
		seen := map[string]bool{}
		var verdicts []string
		for i, c := range run.calls {
			k, v := key(c), "execute"
			if k == "" {
				k = fmt.Sprint(i)
			}
			if seen[k] {
				v = "already_done"
			}
			seen[k] = true
			verdicts = append(verdicts, v)
		}
		return verdicts
	}
}

// changed is the tools with one thing that is declared about them taken away.
func changed(tools map[string]fieldTool, f func(*fieldTool)) map[string]fieldTool {
	out := map[string]fieldTool{}
	for name, t := range tools {
		f(&t)
		out[name] = t
	}
	return out
}

func TestFieldRunsAreDecidedRight(t *testing.T) {
	dir := fieldData(t)
	var tools map[string]fieldTool
	readJSON(t, filepath.Join(dir, "tools.json"), &tools)
	canonical := func(c fieldCall) string {
		var v any
		if json.Unmarshal([]byte(c.Arguments), &v) != nil {
			return c.Name + c.Arguments
		}
		b, _ := json.Marshal(v)
		return c.Name + string(b)
	}
	rules := []struct {
		name   string
		decide func(*testing.T, fieldRun) []string
	}{
		{"this guard", guarded(tools, false)},
		{"a guard that does nothing", first(func(fieldCall) string { return "" })},
		{"call_id only", first(func(c fieldCall) string { return c.ID })},
		{"arguments only, all tools", first(canonical)},
		{"without ByCall", guarded(changed(tools, func(f *fieldTool) { f.Identity = "" }), false)},
		{"a refusal counts as done", guarded(tools, true)},
		{"without keys", guarded(changed(tools, func(f *fieldTool) { f.Key = nil }), false)},
		{"without ignored fields", guarded(changed(tools, func(f *fieldTool) { f.Ignore = nil }), false)},
		{"without undo", guarded(changed(tools, func(f *fieldTool) { f.Undoes = "" }), false)},
	}
	for _, set := range []struct{ name, dir string }{{"real", dir}, {"derived", filepath.Join(dir, "derived")}} {
		runs, calls := fieldRuns(t, set.dir)
		t.Logf("%s runs: %d, calls: %d; calls decided otherwise than expected:", set.name, len(runs), calls)
		for i, rule := range rules {
			wrong := 0
			for _, run := range runs {
				for n, got := range rule.decide(t, run) {
					if c := run.calls[n]; got != strings.TrimSuffix(c.verdict, "_failed") {
						wrong++
						if i == 0 {
							t.Errorf("run %s turn %d position %d %s: %s, want %s", run.id, c.Turn, c.Position, c.Name, got, c.verdict)
						}
					}
				}
			}
			t.Logf("  %-28s %5d", rule.name, wrong)
			if set.name == "derived" && i > 0 && wrong == 0 {
				t.Errorf("%s: no mismatch: the data cannot tell it from this guard", rule.name)
			}
		}
	}
}
