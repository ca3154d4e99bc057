package transcript_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/transcript"
)

// fakeT collects what would fail a test.
type fakeT struct {
	errors   []string
	cleanups []func()
}

func (f *fakeT) Helper() {}

func (f *fakeT) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

func (f *fakeT) Cleanup(do func()) { f.cleanups = append(f.cleanups, do) }

// end is the end of the test.
func (f *fakeT) end() []string {
	for _, do := range f.cleanups {
		do()
	}
	return f.errors
}

func saved(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "saved.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const savedNote = `{"id":"note","messages":[{"role":"user","content":"Note it."},` +
	`{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"add_note","arguments":"{\"text\":\"it\"}"}}]},` +
	`{"role":"tool","tool_call_id":"c","content":"noted it"},{"role":"assistant","content":"Done."}]}`

// noteLoop is a program under test: a loop of two turns.
func noteLoop(t *testing.T, c *openai.Client, user, output string) string {
	t.Helper()
	params := chatParams(t, openai.UserMessage(user))
	first, err := c.Chat.Completions.New(t.Context(), params)
	if err != nil {
		return err.Error()
	}
	m := first.Choices[0].Message
	if len(m.ToolCalls) == 0 {
		return m.Content
	}
	params.Messages = append(params.Messages, m.ToParam(), openai.ToolMessage(output, m.ToolCalls[0].ID))
	second, err := c.Chat.Completions.New(t.Context(), params)
	if err != nil {
		return err.Error()
	}
	return second.Choices[0].Message.Content
}

func TestServeAnswersFromASavedRun(t *testing.T) {
	f := &fakeT{}
	got := noteLoop(t, inProcess(transcript.Serve(f, saved(t, savedNote))), "Note it.", "noted it")
	check(t, "answer", got, "Done.")
	check(t, "errors", f.end(), []string(nil))
}

func TestServeAnswersASavedRunOnTheOtherAPI(t *testing.T) {
	f := &fakeT{}
	c := inProcess(transcript.Serve(f, saved(t, savedNote)))
	items := []responses.ResponseInputItemUnionParam{userItem("Note it.")}
	first, err := c.Responses.New(t.Context(), responseParams(t, items...))
	if err != nil {
		t.Fatal(err)
	}
	items = append(append(items, sentBack(first)...), outputItem("c", "noted it"))
	second, err := c.Responses.New(t.Context(), responseParams(t, items...))
	if err != nil {
		t.Fatal(err)
	}
	check(t, "answer", second.OutputText(), "Done.")
	check(t, "errors", f.end(), []string(nil))
}

func TestServeFailsTheTestOnWhatIsNotSaved(t *testing.T) {
	for name, c := range map[string]struct {
		user, output string
		want         []string
	}{
		"another output": {"Note it.", "noted that", []string{
			"no step for turn 2 of what was sent; it differs from the nearest, run note turn 2:\n\tmessages[2].content: saved \"noted it\", sent \"noted that\"",
			"1 steps were not asked for, the first is run note turn 2",
		}},
		"another user": {"Note that.", "noted it", []string{
			"no step for turn 1 of what was sent; it differs from the nearest, run note turn 1:\n\tmessages[0].content: saved \"Note it.\", sent \"Note that.\"",
			"2 steps were not asked for, the first is run note turn 1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f, file := &fakeT{}, saved(t, savedNote)
			noteLoop(t, inProcess(transcript.Serve(f, file)), c.user, c.output)
			for i := range c.want {
				c.want[i] = "transcript: " + file + ": " + c.want[i]
			}
			check(t, "errors", f.end(), c.want)
		})
	}
}

func TestServeTellsOfAMessageThatIsNotSaved(t *testing.T) {
	f := &fakeT{}
	c := inProcess(transcript.Serve(f, saved(t, savedNote)))
	params := chatParams(t, openai.UserMessage("Note it."), openai.UserMessage("Now."))
	if _, err := c.Chat.Completions.New(t.Context(), params); err == nil {
		t.Error("it was answered")
	}
	if got := f.end(); !strings.HasSuffix(got[0], "run note turn 1:\n\tmessages[1]: not saved, sent {\"content\":\"Now.\",\"role\":\"user\"}") {
		t.Errorf("errors %q", got)
	}
}

func TestServeTakesAnEnvelopeForTheSameThoughItsIDAndTimesDiffer(t *testing.T) {
	envelope := func(operation, at, result string) string {
		return fmt.Sprintf(`{"toolonce":1,"status":"already_done","operation":%q,"tool":"add_note","first_done_at":%q,"repeats":1,"result":%q,"note":"This was done at %s."}`, operation, at, result, at)
	}
	run := func(output string) string {
		b, err := json.Marshal(output)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Replace(savedNote, `"noted it"`, string(b), 1)
	}
	path := saved(t, run(envelope("op_1", "2026-01-01T00:00:00Z", "noted")))
	f := &fakeT{}
	got := noteLoop(t, inProcess(transcript.Serve(f, path)), "Note it.", envelope("op_2", "2026-02-02T00:00:00Z", "noted"))
	check(t, "answer", got, "Done.")
	check(t, "errors", f.end(), []string(nil))
	f = &fakeT{}
	noteLoop(t, inProcess(transcript.Serve(f, path)), "Note it.", envelope("op_2", "2026-02-02T00:00:00Z", "something else"))
	if errs := f.end(); len(errs) == 0 {
		t.Error("another result is taken for the same")
	}
}

func TestServeAnswersAStepOnce(t *testing.T) {
	f, file := &fakeT{}, saved(t, savedNote)
	c := inProcess(transcript.Serve(f, file))
	noteLoop(t, c, "Note it.", "noted it")
	noteLoop(t, c, "Note it.", "noted it")
	check(t, "errors", f.end(), []string{
		"transcript: " + file + `: every step was asked for before; sent once more: turn 1 of the conversation that begins "Note it."`,
	})
}

func TestServeFailsTheTestOnALineThatItCannotRead(t *testing.T) {
	f, file := &fakeT{}, saved(t, "nonsense", savedNote)
	check(t, "answer", noteLoop(t, inProcess(transcript.Serve(f, file)), "Note it.", "noted it"), "Done.")
	if got := f.end(); len(got) != 1 || !strings.Contains(got[0], file) || !strings.Contains(got[0], "line 1: ") {
		t.Errorf("errors %q", got)
	}
	f = &fakeT{}
	transcript.Serve(f, filepath.Join(t.TempDir(), "none.jsonl"))
	if got := f.end(); len(got) != 1 || !strings.Contains(got[0], "none.jsonl") {
		t.Errorf("errors %q", got)
	}
}

// TestServeRepeatsWhatWasRecorded records a loop whose server fails, breaks off and answers, and drives it again.
func TestServeRepeatsWhatWasRecorded(t *testing.T) {
	for _, stream := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "recorded.jsonl")
		server := transcript.NewServer(transcript.Steps(transcript.Step{
			Text:   "Two words.",
			Faults: []transcript.Fault{{Status: 503, Message: "Busy.", RetryAfter: 1}, {Drop: true, After: 40}},
		}), nil)
		drive := func(c *openai.Client) (all []string) {
			for range 2 { // the second request meets the stream that breaks off, and the third is whole
				if stream {
					got, err := accumulate(t, c, chatParams(t, openai.UserMessage("x")))
					all = append(all, fmt.Sprint(got.Content, got.Finish, got.Chunks, err != nil))
					continue
				}
				got, err := c.Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x")))
				if err != nil {
					all = append(all, "error")
					continue
				}
				all = append(all, got.RawJSON())
			}
			return all
		}
		retry := option.WithMaxRetries(1)
		want := drive(inProcess(server, retry, transcript.Record(path, nil)))
		f := &fakeT{}
		check(t, "answers", drive(inProcess(transcript.Serve(f, path), retry)), want)
		check(t, "errors", f.end(), []string(nil))
		_, errs := collect(transcript.ReadFile(path))
		if len(errs) != 3 || !strings.Contains(errs[2], "line 3: it is a recorded exchange and no run") {
			t.Errorf("read as runs: %q", errs)
		}
		if want[0] == want[1] {
			t.Errorf("stream %v: both answers are %s", stream, want[0])
		}
	}
}

func TestServeAnswersWhatGoesOnFromARecordedResponse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recorded.jsonl")
	drive := func(c *openai.Client) string {
		first, err := c.Responses.New(t.Context(), responseParams(t, userItem("Two notes please.")))
		if err != nil {
			t.Fatal(err)
		}
		params := responseParams(t, outputItem("call_a", "ok"), outputItem("call_b", "ok"))
		params.PreviousResponseID = openai.String(first.ID)
		second, err := c.Responses.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		return first.ID + second.OutputText()
	}
	want := drive(inProcess(transcript.NewServer(twoNotes(), nil), transcript.Record(path, nil)))
	f := &fakeT{}
	check(t, "answers", drive(inProcess(transcript.Serve(f, path))), want)
	check(t, "errors", f.end(), []string(nil))
}

func TestServeComparesAllOfARecordedRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recorded.jsonl")
	hide := func(x *transcript.Exchange) {
		x.Request = []byte(strings.ReplaceAll(string(x.Request), "Ann", "[name]"))
	}
	record := transcript.Record(path, &transcript.RecordOptions{Redact: hide})
	server := transcript.NewServer(transcript.Steps(transcript.Step{Text: "Hello."}), nil)
	check(t, "recorded", noteLoop(t, inProcess(server, record), "I am Ann.", ""), "Hello.")

	f := &fakeT{}
	check(t, "served", noteLoop(t, inProcess(transcript.Serve(f, path, hide)), "I am Ann.", ""), "Hello.")
	check(t, "errors", f.end(), []string(nil))

	f = &fakeT{}
	params := chatParams(t, openai.UserMessage("I am Ann."))
	params.Model, params.Temperature = "other-model", openai.Float(1)
	_, err := inProcess(transcript.Serve(f, path, hide)).Chat.Completions.New(t.Context(), params)
	if err == nil {
		t.Error("a request with another model was answered")
	}
	got := strings.Join(f.end(), "\n")
	for _, want := range []string{`model: saved "demo-model", sent "other-model"`, "temperature: not saved, sent 1"} {
		if !strings.Contains(got, "\t"+want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
