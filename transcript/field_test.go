package transcript_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolonce/toolonce/transcript"
)

// fieldData is the folder of saved transcripts with expected verdicts, or the test is skipped.
func fieldData(t *testing.T) string {
	dir := os.Getenv("TOOLONCE_FIELD_DATA")
	if dir == "" {
		t.Skip("TOOLONCE_FIELD_DATA is not set: it names a folder of saved transcripts with expected verdicts (make field)")
	}
	return filepath.Join(dir, "transcripts")
}

type decide = func(context.Context, transcript.Run) ([]transcript.Decision, error)

// auditFolder audits the saved runs of a folder and tells each difference to differs.
func auditFolder(t *testing.T, dir string, rule decide, differs func(string)) transcript.Totals {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "expected.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	expect, err := transcript.ReadExpected(f)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in %s: %v", dir, err)
	}
	a := transcript.Audit{
		Decide: rule, Expect: expect,
		OnRun: func(run transcript.Run, _ []transcript.Decision, differences []string) {
			for _, d := range differences {
				differs(run.ID + " " + d)
			}
		},
		OnBroken: func(err error) { t.Error(err) },
	}
	var total transcript.Totals
	for _, file := range files {
		one, err := a.File(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		total = total.Plus(one)
	}
	if runs, _ := expect.Unmet(); len(runs) > 0 {
		t.Errorf("runs that are expected and not saved: %q", runs)
	}
	return total
}

// guarded decides by the guard, with the tools declared otherwise by change and the runs changed by saved.
func guarded(t *testing.T, file string, change func(*transcript.ToolSpec), saved func(*transcript.Message)) decide {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var specs map[string]transcript.ToolSpec
	if err := json.Unmarshal(b, &specs); err != nil {
		t.Fatal(err)
	}
	for name, s := range specs {
		if change != nil {
			change(&s)
		}
		specs[name] = s
	}
	if b, err = json.Marshal(specs); err != nil {
		t.Fatal(err)
	}
	tools, err := transcript.ReadTools(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, run transcript.Run) ([]transcript.Decision, error) {
		run.Messages = slices.Clone(run.Messages)
		for i := range run.Messages {
			if saved != nil {
				saved(&run.Messages[i])
			}
		}
		return transcript.Replay(ctx, tools, run)
	}
}

func TestFieldRunsAreDecidedRight(t *testing.T) {
	dir := fieldData(t)
	tools := filepath.Join(dir, "tools.json")
	without := func(change func(*transcript.ToolSpec)) decide { return guarded(t, tools, change, nil) }
	rules := []struct {
		name   string
		decide decide
	}{
		{"this guard", without(nil)},
		{"a guard that does nothing", transcript.SimpleRule("none")},
		{"call_id only", transcript.SimpleRule("call_id")},
		{"arguments only, all tools", transcript.SimpleRule("arguments")},
		{"without ByCall", without(func(s *transcript.ToolSpec) { s.Identity = "" })},
		{"a refusal counts as done", guarded(t, tools, nil, func(m *transcript.Message) { m.Error = false })},
		{"without keys", without(func(s *transcript.ToolSpec) { s.Key = nil })},
		{"without ignored fields", without(func(s *transcript.ToolSpec) { s.Ignore = nil })},
		{"without undo", without(func(s *transcript.ToolSpec) { s.Undoes = "" })},
	}
	for _, set := range []struct{ name, dir, want string }{
		{"real", dir, "runs=338 calls=2901 executed=2900 already_done=1 conflict=0 refused=0 id_collisions=37 mismatches=0"},
		{"derived", filepath.Join(dir, "derived"), "runs=1373 calls=14414 executed=13427 already_done=976 conflict=11 refused=0 id_collisions=299 mismatches=0"},
	} {
		for i, rule := range rules {
			total := auditFolder(t, set.dir, rule.decide, func(difference string) {
				if i == 0 {
					t.Error(difference)
				}
			})
			t.Logf("%-8s %-28s %s", set.name, rule.name, total)
			if i == 0 && total.String() != set.want {
				t.Errorf("%s: %s, want %s", set.name, total, set.want)
			}
			if set.name == "derived" && i > 0 && total.Mismatches == 0 {
				t.Errorf("%s: no mismatch: the data cannot tell it from this guard", rule.name)
			}
		}
	}
}
