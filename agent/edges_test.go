package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// What waits for a person has surely not been done, and the model must not hear otherwise.
func TestTheHistoryOfAPausedRunSaysThatNothingWasDone(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b office
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			if r.Turn == 1 {
				return transcript.Step{Calls: []transcript.ToolCall{payCall("a", "1", 500), payCall("b", "2", 5000), payCall("c", "3", 700)}}
			}
			return transcript.Step{Text: "It waits."}
		}, nil)
		st := memory()
		o := f.do(t, agent.New(onceClient(s), b.tools(), st, nil), run, request)
		waiting(t, o)
		history := strings.Join(o.history, "\n")
		if strings.Contains(history, "outcome_unknown") || strings.Count(history, "a person has not approved it yet") != 2 {
			t.Error(history)
		}
		if next := f.goOn(t, agent.New(onceClient(s), b.tools(), st, nil), agent.Run{ID: "ticket-43"}, o, "Well?"); next.err != nil {
			t.Error(next.err)
		}
	})
}

// Some servers send an empty list of calls with every answer, or no content.
func TestTheHistoryOfAnAnswerIsOneThatTheAPITakesBack(t *testing.T) {
	for _, message := range []string{
		`{"role":"assistant","content":"Hello.","tool_calls":[]}`, `{"role":"assistant","content":"Hello.","tool_calls":null}`,
		`{"role":"assistant","content":null}`, `{"role":"assistant"}`, `{"role":"assistant","content":null,"refusal":"No."}`,
	} {
		var b bank
		raw := `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":` + message + `}]}`
		s := transcript.NewServer(transcript.Steps(transcript.Step{Raw: raw}, transcript.Step{Text: "Again."}), nil)
		client := onceClient(s)
		r, err := agent.New(client, b.tools(), memory(), nil).Chat(t.Context(), run, openai.ChatCompletionNewParams{
			Model: "gpt-4.1-mini", Messages: messages{openai.UserMessage(request)},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
			Model: "gpt-4.1-mini", Messages: append(r.Messages, openai.UserMessage("And now?")),
		})
		if err != nil {
			t.Errorf("%s: %v", message, err)
		}
	}
}

func TestAFunctionThatNobodyCouldRunIsRefusedBeforeAnyRequest(t *testing.T) {
	for _, f := range forms {
		tool := `{"type":"function","function":{"name":"mine","parameters":{"type":"object","properties":{}}}}`
		if f.api == "responses" {
			tool = `{"type":"function","name":"mine","parameters":{"type":"object","properties":{}}}`
		}
		var b bank
		s := transcript.NewServer(transcript.Steps(transcript.Step{Text: "Hello."}), nil)
		o := f.with(t.Context(), t, agent.New(onceClient(s), b.tools(), memory(), nil), run, adding(t, f.api, `{"tools":[`+tool+`]}`))
		if o.err == nil || !strings.Contains(o.err.Error(), `"mine"`) || len(s.Requests()) != 0 {
			t.Errorf("%v: %v, %d requests", f, o.err, len(s.Requests()))
		}
	}
}

func TestAnAnswerOfSomethingElseSaysSo(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		for kind, c := range map[string]struct{ body, stream, whole string }{
			"text/html":        {"<html>secret</html>", "answered a request for a stream with text/html", "is the base URL right?"},
			"application/json": {`{"error":{"message":"no such model"}}`, "answered a request for a stream with application/json", "no such model"},
		} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				_, _ = fmt.Fprint(w, c.body)
			}))
			defer server.Close()
			var b bank
			client := openai.NewClient(option.WithAPIKey("any"), option.WithBaseURL(server.URL), option.WithMaxRetries(0))
			o := f.do(t, agent.New(client, b.tools(), memory(), nil), run, request)
			want := c.whole
			if f.stream {
				want = c.stream
			}
			if o.err == nil || !strings.Contains(o.err.Error(), want) || strings.Contains(o.err.Error(), "secret") {
				t.Errorf("%s: %v", kind, o.err)
			}
		}
	})
}

func TestAStoreThatKeepsNoApprovalsIsFoundAtOnce(t *testing.T) {
	defer func() {
		if p := fmt.Sprint(recover()); !strings.Contains(p, `tool "pay_out" needs approvals`) {
			t.Error(p)
		}
	}()
	var b office
	agent.New(openai.Client{}, b.tools(), struct {
		middleware.Ledger
		journal.Journal
	}{middleware.Memory(), journal.Memory()}, nil)
}

func TestARunErrorHasItsCauseItself(t *testing.T) {
	tools := registry.New()
	registry.Add(tools, registry.Tool[lookInput, string]{
		Name: "look_up", Effect: registry.Read, Run: func(context.Context, lookInput) (string, error) { return "", nil },
	})
	s := transcript.NewServer(func(transcript.Request) transcript.Step {
		return transcript.Step{Calls: []transcript.ToolCall{lookCall("a", "1001")}}
	}, &transcript.Options{RepeatedIDs: true})
	o := form{"chat", false}.do(t, agent.New(onceClient(s), tools, memory(), &agent.Options{MaxTurns: 1}), run, request)
	e, _ := errors.AsType[*agent.RunError](o.err)
	if kind := fmt.Sprintf("%T", e.Err); kind != "*agent.LimitError" {
		t.Error(kind)
	}
}

func TestEveryKindOfEventHasAName(t *testing.T) {
	seen := map[string]bool{}
	for k := agent.TextDelta; k <= agent.Stopped; k++ {
		name := k.String()
		if seen[name] || strings.HasPrefix(name, "event_") {
			t.Errorf("%d: %s", k, name)
		}
		seen[name] = true
	}
	if got := agent.EventKind(99).String(); got != "event_99" {
		t.Error(got)
	}
}
