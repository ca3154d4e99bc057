package transcript_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/transcript"
)

// collect drains a sequence into runs and the texts of its errors.
func collect(seq iter.Seq2[transcript.Run, error]) (runs []transcript.Run, errs []string) {
	for run, err := range seq {
		if err != nil {
			errs = append(errs, err.Error())
			continue
		}
		runs = append(runs, run)
	}
	return runs, errs
}

func ids(runs []transcript.Run) []string {
	var out []string
	for _, r := range runs {
		out = append(out, r.ID)
	}
	return out
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestReadGivesEveryMessageAsSaved(t *testing.T) {
	runs, errs := collect(transcript.ReadFile("testdata/runs.jsonl"))
	if len(errs) > 0 || len(runs) != 2 {
		t.Fatalf("got %d runs, errors %q", len(runs), errs)
	}
	check(t, "first run", runs[0], transcript.Run{
		ID: "note-1", Model: "demo-model",
		Messages: []transcript.Message{
			{Role: "system", Content: "Keep notes."},
			{Role: "user", Content: "Note this."},
			{Role: "assistant", ToolCalls: []transcript.ToolCall{
				{ID: "call_0", Name: "add_note", Arguments: `{"ref":12345678901234567890}`},
			}},
			{Role: "tool", ToolCallID: "call_0", Content: "ok"},
			{Role: "assistant", Content: "Noted."},
		},
	})
}

func TestCallsFindsOutputsThoughIDsComeBack(t *testing.T) {
	runs, _ := collect(transcript.ReadFile("testdata/runs.jsonl"))
	call := func(turn, pos int, id, name, args string) transcript.Call {
		return transcript.Call{
			ToolCall: transcript.ToolCall{ID: id, Name: name, Arguments: args},
			Turn:     turn, Position: pos,
		}
	}
	first := call(1, 0, "call_0", "add_note", `{"text":"a"}`)
	first.Answered, first.Output = true, "first"
	second := call(1, 1, "call_0", "add_note", `{"text":"b"}`)
	second.Answered, second.Output, second.Error = true, "second", true
	third := call(2, 0, "call_0", "list_notes", "")
	third.Answered, third.Output = true, "third"
	open := call(2, 1, "call_1", "list_notes", "{}")
	check(t, "calls", slices.Collect(runs[1].Calls()), []transcript.Call{first, second, third, open})
}

func TestCallsCountsTurnsWithoutCalls(t *testing.T) {
	run := transcript.Run{Messages: []transcript.Message{
		{Role: "assistant", Content: "One moment."},
		{Role: "user", Content: "Go on."},
		{Role: "assistant", ToolCalls: []transcript.ToolCall{{ID: "a", Name: "x"}, {ID: "b", Name: "x"}}},
		{Role: "tool", ToolCallID: "b", Content: "late"},
		{Role: "user", Content: "In between."},
		{Role: "tool", ToolCallID: "a", Content: "later"},
	}}
	var got []string
	for c := range run.Calls() {
		got = append(got, c.ID+c.Output)
		if c.Turn != 2 {
			t.Errorf("turn %d, want 2", c.Turn)
		}
	}
	check(t, "outputs", got, []string{"alater", "blate"})
	for range run.Calls() {
		break // leaving early is allowed
	}
}

func TestReadTakesEveryForm(t *testing.T) {
	const a = `{"id":"a","messages":[{"role":"user","content":"x"}]}`
	const b = `{"id":7,"messages":[]}`
	const bare = `[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]`
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"lines":                        {a + "\n" + b + "\n", []string{"a", "7"}},
		"lines without a last newline": {"\n\r\n" + a + "\r\n\n" + b, []string{"a", "7"}},
		"array":                        {" [\n" + a + ",\n" + b + "]\n", []string{"a", "7"}},
		"empty array":                  {"[]", nil},
		"empty file":                   {"", nil},
		"blank file":                   {" \n\n", nil},
		"bare messages":                {bare, []string{"f#1"}},
		"bare messages a line":         {bare + "\n" + bare + "\n", []string{"f#1", "f#2"}},
		"bare messages among lines":    {a + "\n" + bare + "\n", []string{"a", "f#2"}},
		"array of arrays":              {"[" + bare + "," + bare + "]", []string{"f#1", "f#2"}},
		"byte order mark":              {"\xef\xbb\xbf" + a, []string{"a"}},
		"no id":                        {`{"messages":[]}`, []string{"f#1"}},
	} {
		t.Run(name, func(t *testing.T) {
			for form, r := range map[string]io.Reader{
				"plain":   strings.NewReader(c.in),
				"bytes":   iotest.OneByteReader(strings.NewReader(c.in)),
				"gzipped": bytes.NewReader(gzipped(t, c.in)),
			} {
				runs, errs := collect(transcript.Read(r, "f"))
				check(t, form+": errors", errs, []string(nil))
				check(t, form+": ids", ids(runs), c.want)
			}
		})
	}
}

func gzipped(t *testing.T, s string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, s); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadKeepsArgumentsAndContentThatAreNoStrings(t *testing.T) {
	const in = `{"messages":[
		{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"x","arguments":{"n": 12345678901234567890}}}]},
		{"role":"tool","tool_call_id":"a","content":{"ok":true}},
		{"role":"tool","tool_call_id":"a","content":[1,2]}]}`
	runs, errs := collect(transcript.Read(strings.NewReader(strings.ReplaceAll(in, "\n", "")), "f"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	ms := runs[0].Messages
	check(t, "arguments", ms[0].ToolCalls[0].Arguments, `{"n": 12345678901234567890}`)
	check(t, "object", ms[1].Content, `{"ok":true}`)
	check(t, "list", ms[2].Content, `[1,2]`)
}

func TestReadNamesABrokenLineAndGoesOn(t *testing.T) {
	const good = `{"id":"good","messages":[]}`
	in := strings.Join([]string{
		good, `{"id":"cut","messages":[`, `{"id":"none"}`, `nonsense`, `{"messages":[{"content":"x"}]}`,
		`{"messages":[null]}`, `{"messages":[{"role":"assistant","tool_calls":[null]}]}`, `{"messages":"x"}`, good,
	}, "\n")
	runs, errs := collect(transcript.Read(strings.NewReader(in), "f.jsonl"))
	check(t, "runs", ids(runs), []string{"good", "good"})
	check(t, "errors", errs, []string{
		`transcript: reading "f.jsonl" line 2: unexpected end of JSON input`,
		`transcript: reading "f.jsonl" line 3: no "messages" and no "input"`,
		`transcript: reading "f.jsonl" line 4: invalid character 'o' in literal null (expecting 'u')`,
		`transcript: reading "f.jsonl" line 5: message 0: no "role"`,
		`transcript: reading "f.jsonl" line 6: message 0: no "role"`,
		`transcript: reading "f.jsonl" line 7: message 0: tool call 0 is null`,
		`transcript: reading "f.jsonl" line 8: json: cannot unmarshal string into Go struct field savedRun.messages of type []json.RawMessage`,
	})
}

func TestReadEndsABrokenArrayWithItsPosition(t *testing.T) {
	const good = `{"id":"a","messages":[]}`
	for name, c := range map[string]struct{ in, want string }{
		"syntax":   {"[" + good + ",\n{]", `transcript: reading "f" element 1 at byte 25: invalid character ']' looking for beginning of object key string`},
		"cut":      {"[" + good + `,{"id`, `transcript: reading "f" element 1 at byte 25: unexpected EOF`},
		"unclosed": {"[" + good, `transcript: reading "f" at byte 25: unexpected EOF`},
		"trailing": {"[" + good + `] x`, `transcript: reading "f" at byte 27: invalid character 'x' looking for beginning of value`},
		"object":   {"[" + good + `]` + good, `transcript: reading "f" at byte 27: expected an array`},
	} {
		t.Run(name, func(t *testing.T) {
			runs, errs := collect(transcript.Read(strings.NewReader(c.in), "f"))
			check(t, "runs", ids(runs), []string{"a"})
			check(t, "errors", errs, []string{c.want})
		})
	}
}

func TestReadSkipsAnElementThatIsNoRun(t *testing.T) {
	runs, errs := collect(transcript.Read(strings.NewReader(`[{"id":"a","messages":[]},3,{"role":"user"},{"id":"b","messages":[]}]`), "f"))
	check(t, "runs", ids(runs), []string{"a", "b"})
	if len(errs) != 2 || !strings.Contains(errs[0], "element 1 at byte 25") || !strings.Contains(errs[1], "element 2 at byte 27") {
		t.Errorf("errors %q", errs)
	}
}

func TestReadDropsNoMessageOfABareRunSilently(t *testing.T) {
	const in = `[{"role":"user","content":"x"},{"role":1},{"content":"y"}]` + "\n" + `[{"role":"user","content":"x"}]`
	runs, errs := collect(transcript.Read(strings.NewReader(in), "f"))
	check(t, "runs", ids(runs), []string{"f#2"})
	if len(errs) != 1 || !strings.Contains(errs[0], "line 1: message 1: ") {
		t.Errorf("errors %q", errs)
	}
}

func TestReadPassesOverALineThatIsTooLong(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 64 MiB")
	}
	const good = `{"id":"good","messages":[]}` + "\n"
	in := io.MultiReader(strings.NewReader(good), io.LimitReader(endless{}, 65<<20), strings.NewReader("\n"+good))
	runs, errs := collect(transcript.Read(in, "f"))
	check(t, "runs", ids(runs), []string{"good", "good"})
	check(t, "errors", errs, []string{`transcript: reading "f" line 2: longer than 64 MiB`})
}

func TestReadBoundsAnElement(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 64 MiB")
	}
	in := io.MultiReader(strings.NewReader(`[{"id":"a","messages":[]},"`), endless{})
	runs, errs := collect(transcript.Read(in, "f"))
	check(t, "runs", ids(runs), []string{"a"})
	check(t, "errors", errs, []string{`transcript: reading "f" element 1 at byte 25: longer than 64 MiB`})
}

// endless is a reader of the letter x.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestReadReportsAReaderThatFails(t *testing.T) {
	broken := errors.New("broken pipe")
	for name, in := range map[string]string{
		"lines": `{"id":"a","messages":[]}` + "\n",
		"array": `[{"id":"a","messages":[]}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := io.MultiReader(strings.NewReader(in), iotest.ErrReader(broken))
			var got error
			n := 0
			for _, err := range transcript.Read(r, "f") {
				n++
				got = err
			}
			if n != 2 || !errors.Is(got, broken) {
				t.Errorf("%d runs and errors, the last is %v", n, got)
			}
		})
	}
}

func TestReadReportsDamagedGzip(t *testing.T) {
	whole := gzipped(t, strings.Repeat(`{"id":"a","messages":[]}`+"\n", 3))
	_, errs := collect(transcript.Read(bytes.NewReader(whole[:len(whole)-9]), "f.gz"))
	check(t, "cut", errs, []string{`transcript: reading "f.gz" line 4: unexpected EOF`})
	_, errs = collect(transcript.Read(bytes.NewReader(whole[:4]), "f.gz"))
	check(t, "header", errs, []string{`transcript: reading "f.gz": unexpected EOF`})
}

func TestReadFileReportsAMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.jsonl")
	for _, err := range transcript.ReadFile(path) {
		if !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "transcript: reading ") {
			t.Errorf("error %v", err)
		}
	}
}

func TestReadStopsWhenTheCallerHasEnough(t *testing.T) {
	for _, in := range []string{
		`{"messages":[]}` + "\nbroken\n" + `{"messages":[]}`,
		`[{"messages":[]},3,{"messages":[]}]`,
	} {
		for stop := 1; stop <= 3; stop++ {
			n := 0
			for _, err := range transcript.Read(strings.NewReader(in), "f") {
				if n++; n == stop {
					t.Log(err)
					break
				}
			}
			if n != stop {
				t.Errorf("stopped after %d, want %d", n, stop)
			}
		}
	}
}

func TestReadFileTakesABareArrayOfMessages(t *testing.T) {
	runs, errs := collect(transcript.ReadFile("testdata/messages.json"))
	check(t, "errors", errs, []string(nil))
	check(t, "runs", runs, []transcript.Run{{ID: "testdata/messages.json#1", Messages: []transcript.Message{
		{Role: "user", Content: "Hello."}, {Role: "assistant", Content: "Hello!"},
	}}})
}
