package transcript_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolonce/toolonce/transcript"
)

// FuzzRead checks on any bytes that reading ends, that each call stands where it says, and that what is broken hides no
// run behind it.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json*")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[:min(len(b), 4000)])
	}
	for _, s := range []string{
		"", "[", "[]", "[[]]", `[{"role":"user"}]`, "\xef\xbb\xbf{}", "\x1f\x8b", "\n\n{\n", `{"messages":[{"role":"assistant","tool_calls":[{}]}]}`,
		`{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"o"}]}`,
		`{"messages":1}` + "\n" + `{"messages":[]}`, `[{"id":"a","messages":[]},{"id":`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		runs, errs := readAll(t, b)
		if head := bytes.TrimLeft(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), " \t\r\n"); len(head) == 0 || head[0] != '{' {
			return // an array, or packed: what is broken there may end the file
		}
		const last = `{"id":"the last one","messages":[{"role":"user","content":"Hello."}]}`
		more, moreErrs := readAll(t, append(append(bytes.Clone(b), '\n'), last...))
		if len(more) != len(runs)+1 || more[len(more)-1].ID != "the last one" || moreErrs != errs {
			t.Fatalf("%d runs and %d errors, and with a line behind them %d and %d", len(runs), errs, len(more), moreErrs)
		}
		if diff := cmp.Diff(runs, more[:len(runs)], cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func readAll(t *testing.T, b []byte) (runs []transcript.Run, errs int) {
	for run, err := range transcript.Read(bytes.NewReader(b), "fuzz") {
		if err != nil {
			errs++
			continue
		}
		for c := range run.Calls() {
			if c.Turn < 1 || c.Position < 0 || !c.Answered && (c.Output != "" || c.Error) {
				t.Fatalf("%+v", c)
			}
		}
		runs = append(runs, run)
	}
	return runs, errs
}
