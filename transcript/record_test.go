package transcript_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/transcript"
)

// recorded reads what was recorded, and wants the file to be its owner's alone.
func recorded(t *testing.T, path string) (all []transcript.Exchange, text string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var x transcript.Exchange
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all, string(b)
}

func TestRecordKeepsEachAttemptOfBothAPIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recorded.jsonl")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	fails := []transcript.Fault{{Status: 500, Message: "Later.", RetryAfter: 1}}
	server := transcript.NewServer(transcript.Steps(transcript.Step{Text: "<Hello> & bye.", Faults: fails}), nil)
	c := inProcess(server, option.WithMaxRetries(1), transcript.Record(path, nil))
	params := chatParams(t, openai.UserMessage("<x> & y"))
	whole, err := c.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := accumulate(t, c, params); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Responses.New(t.Context(), responseParams(t, userItem("x"))); err != nil {
		t.Fatal(err)
	}
	events := c.Responses.NewStreaming(t.Context(), responseParams(t, userItem("x")))
	for events.Next() {
		continue
	}
	if events.Err() != nil {
		t.Fatal(events.Err())
	}
	got, text := recorded(t, path)
	requests := server.Requests()
	check(t, "exchanges", len(got), len(requests))
	for i, x := range got {
		r := requests[i]
		second := i%2 == 1
		check(t, "place", []any{x.API, x.Path, x.Status, string(x.Request), x.Attempt == 2, x.Complete, x.Stream},
			[]any{r.API, r.Path, r.Status, string(r.Body), second, true, second && r.Stream})
		if x.RequestID == "" && x.Status == http.StatusOK || x.At.IsZero() {
			t.Errorf("exchange %d is %+v", i, x)
		}
	}
	check(t, "answer", got[1].Response, whole.RawJSON())
	if strings.Contains(text, "Authorization") {
		t.Error("headers were recorded")
	}
}

func TestRecordCallsCompleteOnlyWhatHasItsEndMark(t *testing.T) {
	const chunk = `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}` + "\n\n"
	const finish = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	event := func(kind string) string { return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"}\n\n" }
	for name, c := range map[string]struct {
		stream, cut bool
		body        string
		want        bool
	}{
		"JSON":                  {body: `{"choices":[]}`, want: true},
		"half JSON":             {body: `{"choices":[`},
		"JSON cut off":          {body: `{"choices":[]}`, cut: true},
		"done":                  {stream: true, body: chunk + finish + "data: [DONE]\n\n", want: true},
		"no end":                {stream: true, body: chunk},
		"finished":              {stream: true, body: chunk + finish, want: true},
		"finished, cut off":     {stream: true, body: chunk + finish, cut: true},
		"says done in a text":   {stream: true, body: strings.Replace(chunk, `"x"`, `"data: [DONE]"`, 1)},
		"response completed":    {stream: true, body: event("response.completed"), want: true},
		"response incomplete":   {stream: true, body: event("response.incomplete"), want: true},
		"response failed":       {stream: true, body: event("response.failed"), want: true},
		"response in progress":  {stream: true, body: event("response.in_progress")},
		"nothing of a response": {stream: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "recorded.jsonl")
			do := func(*http.Request) (*http.Response, error) {
				body := io.Reader(strings.NewReader(c.body))
				if c.cut {
					body = io.MultiReader(body, cutOff{})
				}
				kind := "application/json"
				if c.stream {
					kind = "text/event-stream; charset=utf-8"
				}
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(body)}, nil
			}
			client := inProcess(transcript.NewServer(twoNotes(), nil), transcript.Record(path, nil), option.WithMiddleware(func(r *http.Request, _ option.MiddlewareNext) (*http.Response, error) { return do(r) }))
			params := chatParams(t, openai.UserMessage("x"))
			if c.stream {
				_, _ = accumulate(t, client, params)
			} else {
				_, _ = client.Chat.Completions.New(t.Context(), params)
			}
			got, _ := recorded(t, path)
			check(t, "exchanges", len(got), 1)
			check(t, "complete", got[0].Complete, c.want)
			check(t, "response", got[0].Response, c.body)
		})
	}
}

// cutOff is a connection that breaks.
type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestRecordHidesKeysAndCookies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recorded.jsonl")
	secrets := []string{"sk-very-secret", "cookie-of-ours", "cookie-of-theirs"}
	echo := option.WithMiddleware(func(r *http.Request, _ option.MiddlewareNext) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusUnauthorized,
			Header:     http.Header{"Set-Cookie": {"session=cookie-of-theirs; Path=/"}},
			Body:       io.NopCloser(strings.NewReader(`{"error":{"message":"no such key: ` + strings.Join(secrets, " ") + `"}}`)),
		}, nil
	})
	c := inProcess(transcript.NewServer(twoNotes(), nil), option.WithAPIKey(secrets[0]), option.WithHeader("Cookie", "a="+secrets[1]), transcript.Record(path, nil), echo)
	if _, err := c.Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x"))); err == nil {
		t.Fatal("no error")
	}
	got, text := recorded(t, path)
	check(t, "response", got[0].Response, `{"error":{"message":"no such key: [secret] [secret] [secret]"}}`)
	for _, s := range secrets {
		if strings.Contains(text, s) {
			t.Errorf("%q was recorded", s)
		}
	}
}

func TestRecordLeavesOtherRequestsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recorded.jsonl")
	c := inProcess(transcript.NewServer(twoNotes(), nil), transcript.Record(path, nil))
	if _, err := c.Models.Get(t.Context(), "x"); err == nil {
		t.Fatal("the server has models")
	}
	if err := c.Post(t.Context(), "embeddings", map[string]string{"input": "x"}, nil); err == nil {
		t.Fatal("the server has embeddings")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it was recorded")
	}
}

func TestRecordNotesARequestWithoutAnAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recorded.jsonl")
	server := transcript.NewServer(transcript.Steps(transcript.Step{Faults: []transcript.Fault{{Drop: true}}}), nil)
	if _, err := inProcess(server, transcript.Record(path, nil)).Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x"))); err == nil {
		t.Fatal("no error")
	}
	got, _ := recorded(t, path)
	check(t, "status", got[0].Status, 0)
	check(t, "complete", got[0].Complete, false)
}

func TestARequestGoesThroughThoughItCannotBeRecorded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "recorded.jsonl")
	var told []string
	c := inProcess(transcript.NewServer(twoNotes(), nil), transcript.Record(path, &transcript.RecordOptions{
		OnError: func(err error) { told = append(told, err.Error()) },
	}))
	if _, err := c.Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x"))); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || !strings.HasPrefix(told[0], "transcript: recording to ") {
		t.Errorf("told %q", told)
	}
}
