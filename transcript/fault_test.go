package transcript_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/transcript"
)

// faulty answers "ok" after these faults.
func faulty(faults ...transcript.Fault) *transcript.Server {
	return transcript.NewServer(transcript.Steps(transcript.Step{Text: "okay", Faults: faults}), nil)
}

func statuses(s *transcript.Server) []int {
	var out []int
	for _, r := range s.Requests() {
		out = append(out, r.Status)
	}
	return out
}

func TestFaultsHappenToTheFirstAttempts(t *testing.T) {
	s := faulty(
		transcript.Fault{Status: 429, RetryAfter: time.Millisecond},
		transcript.Fault{Status: 500, RetryAfter: time.Millisecond, Times: 2},
	)
	answer, err := onWire(t, s, option.WithMaxRetries(5)).Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x")))
	if err != nil || answer.Choices[0].Message.Content != "okay" {
		t.Fatalf("%v, %v", answer, err)
	}
	check(t, "statuses", statuses(s), []int{429, 500, 500, 200})
}

func TestAttemptsAreCountedApartByKey(t *testing.T) {
	s := faulty(transcript.Fault{Status: 500})
	for _, key := range []string{"a", "b", "a"} {
		_, _ = inProcess(s, option.WithAPIKey(key)).Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x")))
	}
	check(t, "statuses", statuses(s), []int{500, 500, 200})
}

func TestAFaultWithoutEndNeverEnds(t *testing.T) {
	s := faulty(transcript.Fault{Status: 503, RetryAfter: time.Millisecond, Times: -1, Message: "gone fishing", Code: "fishing"})
	_, err := onWire(t, s, option.WithMaxRetries(3)).Responses.New(t.Context(), responseParams(t, userItem("x")))
	wantRefusal(t, err, 503, "gone fishing", "", "fishing")
	check(t, "statuses", statuses(s), []int{503, 503, 503, 503})
}

func TestFaultsSpeakAsTheAPIDoes(t *testing.T) {
	for status, want := range map[int][2]string{
		429: {"Rate limit reached. Please try again later.", "rate_limit_exceeded"},
		500: {"The server had an error while processing your request. Sorry about that!", ""},
		503: {"The engine is currently overloaded, please try again later.", ""},
		404: {"Not Found", ""},
	} {
		_, err := inProcess(faulty(transcript.Fault{Status: status})).Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x")))
		wantRefusal(t, err, status, want[0], "", want[1])
	}
}

func TestRetryAfterIsSentInBothForms(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model.invalid/v1/responses", strings.NewReader(items("")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer k")
	resp, err := faulty(transcript.Fault{Status: 429, RetryAfter: 1500 * time.Millisecond}).Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	check(t, "headers", []string{resp.Status, resp.Header.Get("Retry-After-Ms"), resp.Header.Get("Retry-After")}, []string{"429 Too Many Requests", "1500", "2"})
}

func TestADroppedConnectionIsAnErrorOnceAndThenForgotten(t *testing.T) {
	for name, client := range map[string]func(*transcript.Server) *openai.Client{
		"on the wire": func(s *transcript.Server) *openai.Client { return onWire(t, s) },
		"in process":  func(s *transcript.Server) *openai.Client { return inProcess(s) },
	} {
		for what, fault := range map[string]transcript.Fault{
			"before the answer": {Drop: true},
			"inside the answer": {Drop: true, After: 40},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				s := faulty(fault, fault)
				c := client(s)
				if _, err := c.Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x"))); err == nil {
					t.Error("no error")
				}
				if _, err := accumulate(t, c, streamOf(t)); err == nil {
					t.Error("no error from the stream")
				}
				_, err := c.Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x")))
				if err == nil {
					t.Error("no error from the second attempt")
				}
				if _, err := c.Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x"))); err != nil {
					t.Errorf("third attempt: %v", err)
				}
				check(t, "statuses", statuses(s), []int{0, 0, 0, 200})
			})
		}
	}
}

func streamOf(t *testing.T) openai.ChatCompletionNewParams {
	return chatParams(t, openai.UserMessage("x"))
}

func TestATruncatedStreamEndsWithoutAnError(t *testing.T) {
	step := transcript.Step{
		Calls:  []transcript.ToolCall{{ID: "a", Name: "add_note", Arguments: `{"text":"abc"}`}},
		Faults: []transcript.Fault{{Truncate: true, After: 3}},
	}
	for name, client := range map[string]*openai.Client{
		"on the wire": onWire(t, transcript.NewServer(transcript.Steps(step), nil)),
		"in process":  inProcess(transcript.NewServer(transcript.Steps(step), nil)),
	} {
		got, err := accumulate(t, client, streamOf(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		check(t, name, got, streamed{Chunks: 3, Calls: []transcript.ToolCall{{ID: "a", Name: "add_note", Arguments: `{"te`}}})
	}
}

func TestATruncatedBodyIsNoJSON(t *testing.T) {
	_, err := inProcess(faulty(transcript.Fault{Truncate: true, After: 30})).Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x")))
	if err == nil {
		t.Error("no error")
	}
}

func TestTimePassesInsideABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := faulty(transcript.Fault{Status: 500}, transcript.Fault{Delay: time.Hour})
		start := time.Now()
		_, err := inProcess(s, option.WithMaxRetries(1)).Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x")))
		if err != nil || time.Since(start) < time.Hour {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		check(t, "statuses", statuses(s), []int{500, 200})
	})
}

func TestADelayEndsWhenTheClientGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := faulty(transcript.Fault{Delay: time.Hour})
		_, err := inProcess(s).Chat.Completions.New(ctx, chatParams(t, openai.UserMessage("x")))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		check(t, "statuses", statuses(s), []int{0})
	})
}

func TestCancelInMidStreamIsTheClientsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		st := inProcess(transcript.NewServer(twoNotes(), nil)).Chat.Completions.NewStreaming(ctx, streamOf(t))
		if !st.Next() {
			t.Fatal(st.Err())
		}
		cancel()
		synctest.Wait()
		for st.Next() {
			t.Log("an event that was on its way")
		}
		if !errors.Is(st.Err(), context.Canceled) {
			t.Errorf("error %v", st.Err())
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAClientThatClosesEarlyLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := inProcess(transcript.NewServer(twoNotes(), nil)).Responses.NewStreaming(t.Context(), responseParams(t, userItem("x")))
		if !st.Next() {
			t.Fatal(st.Err())
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		// The bubble fails the test if the handler still waits for a reader.
	})
}

func TestAScriptThatGivesUpBreaksTheConnection(t *testing.T) {
	s := transcript.NewServer(func(transcript.Request) transcript.Step { panic(http.ErrAbortHandler) }, nil)
	_, err := inProcess(s).Chat.Completions.New(t.Context(), streamOf(t))
	if !errors.Is(err, io.EOF) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inProcess(s).Chat.Completions.New(ctx, streamOf(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
