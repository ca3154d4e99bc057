package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/transcript"
)

func TestAnAliasIsDecidedByTheModelThatAnsweredItToo(t *testing.T) {
	rule := func(model string, a agent.ParallelAction) []agent.ParallelRule {
		return []agent.ParallelRule{{Model: model, Action: a}}
	}
	for _, c := range []struct {
		name, model, answers string
		rules                []agent.ParallelRule
		want                 []string
	}{
		{"a snapshot's alias", "gpt-4.1-nano-latest", nanoSnapshot, nil, []string{"true 200", "false 200", "false 200"}},
		{"a deployment's name", "team-bot", nanoSnapshot, nil, []string{"true 200", "false 200", "false 200"}},
		{"tuned, behind a gateway", "team-bot", "openai/ft:" + nanoSnapshot + ":acme::a1", nil, []string{"true 200", "false 200", "false 200"}},
		{"a model that refuses", "team-bot", "o4-mini-2025-04-16", nil, []string{"true 200", "- 200", "- 200"}},
		{"omit before force", "gpt-4.1-nano", "o4-mini", nil, []string{"false 200", "- 200", "- 200"}},
		{"omit before force, the other way", "codex-mini-latest", nanoSnapshot, nil, []string{"- 200", "- 200", "- 200"}},
		{"no flagged model", "team-bot", "gpt-4o", nil, []string{"true 200", "true 200", "true 200"}},
		{"a rule for the one asked", "team-bot", nanoSnapshot, rule("team-bot", agent.KeepParallel), []string{"true 200", "true 200", "true 200"}},
		{"a rule for the one that answers", "team-bot", nanoSnapshot, rule("gpt-4.1-*", agent.KeepParallel), []string{"true 200", "true 200", "true 200"}},
		{"a rule without a name", "team-bot", "gpt-4o", rule("", agent.ForceSerial), []string{"true 200", "true 200", "true 200"}},
	} {
		for way, ask := range askers {
			server := transcript.NewServer(transcript.Steps(transcript.Step{Text: "hi", Model: c.answers}), nil)
			client := clientOf(server, agent.SerialToolCalls(c.rules...))
			for range 3 {
				if err := ask(t.Context(), client, c.model); err != nil {
					t.Errorf("%s, %s: %v", c.name, way, err)
				}
			}
			same(t, c.name+", "+way, c.want, onTheWire(server))
		}
	}
}

func TestAnotherModelOrHostInheritsNothing(t *testing.T) {
	server := transcript.NewServer(func(r transcript.Request) transcript.Step {
		if r.Model == "team-bot" {
			return transcript.Step{Text: "hi", Model: nanoSnapshot}
		}
		return transcript.Step{Text: "hi"}
	}, nil)
	client := clientOf(server, agent.SerialToolCalls())
	other := clientOf(server, agent.SerialToolCalls())
	shared := agent.SerialToolCalls()
	a, b := clientOf(server, shared), clientOf(server, shared, option.WithBaseURL("http://b.invalid/v1"))
	for _, ask := range []struct {
		client openai.Client
		model  string
	}{{client, "team-bot"}, {client, "team-bot-2"}, {client, "team-bot"}, {other, "team-bot"}, {a, "team-bot"}, {b, "team-bot"}, {a, "team-bot"}} {
		if err := askers["chat"](t.Context(), ask.client, ask.model); err != nil {
			t.Error(err)
		}
	}
	same(t, "requests", []string{"true 200", "true 200", "false 200", "true 200", "true 200", "true 200", "false 200"}, onTheWire(server))
}

// learns is what the field is in a second request after the given answer to a first one, which must arrive as it is.
func learns(t *testing.T, status int, contentType, answer string) string {
	t.Helper()
	rec := &recorder{answer: func(int, *http.Request) (int, string, string) { return status, contentType, answer }}
	client := rec.client(agent.SerialToolCalls(), option.WithMaxRetries(0))
	for range 2 {
		var res *http.Response
		err := client.Post(t.Context(), chatPath, json.RawMessage(body(model("team-bot"), chatTool, userAskedForTrue)), &res)
		if (err == nil) != (status < 400) {
			t.Fatal(err)
		}
		if err != nil {
			continue
		}
		got, err := io.ReadAll(res.Body)
		if err := errors.Join(err, res.Body.Close()); err != nil || string(got) != answer {
			t.Errorf("%d bytes of %d arrived, or others: %v", len(got), len(answer), err)
		}
	}
	return rec.fields()[1]
}

func TestTheAnsweringModelIsFoundOrNotAndTheBytesStay(t *testing.T) {
	const plain, stream, said = "application/json", "text/event-stream", `"model":"gpt-4.1-nano"`
	pad := func(n int) string { return `"pad":"` + strings.Repeat("x", n) + `"` }
	for _, c := range []struct {
		name        string
		status      int
		contentType string
		answer      string
		found       bool
	}{
		{"an object", 200, plain, `{"choices":[{"model":"gpt-4o"}],` + said + `}` + "\n", true},
		{"created", 201, plain, `{` + said + `}`, true},
		{"long", 200, plain, `{` + pad(1<<19) + `,` + said + `}`, true},
		{"too long", 200, plain, `{` + pad(1<<20) + `,` + said + `}`, false},
		{"cut off", 200, plain, `{` + said + `,`, false},
		{"no text", 200, plain, `{"model":null,` + `"response":{` + said + `}}`, false},
		{"deeper down", 200, plain, `{"x":{` + said + `}}`, false},
		{"a list", 200, plain, `[{` + said + `}]`, false},
		{"empty", 200, plain, ``, false},
		{"an error", 500, plain, `{` + said + `}`, false},
		{"a bad request", 400, plain, `{` + said + `}`, false},

		{"a chunk", 200, stream + "; charset=utf-8", ": hello\n\ndata: {" + said + "}\n\ndata: [DONE]\n\n", true},
		{"line ends of another kind", 200, stream, "event: x\r\ndata:{" + said + "}\r\n\r\n", true},
		{"an empty name first", 200, stream, "data: {\"model\":\"\"}\n\ndata: {" + said + "}\n\n", true},
		{"a response", 200, stream, "event: response.created\ndata: {\"response\":{" + said + "}}\n\n", true},
		{"a response with long instructions", 200, stream, "data: {\"response\":{" + pad(40<<10) + "," + said + "}}\n\n", true},
		{"much behind it", 200, stream, "data: {" + said + "}\n\n" + strings.Repeat("data: {}\n\n", 1<<15), true},
		{"late", 200, stream, strings.Repeat("data: {}\n\n", 1<<15) + "data: {" + said + "}\n\n", false},
		{"a line cut off", 200, stream, "data: {" + said + "}", false},
		{"no data", 200, stream, "x: {" + said + "}\n\n", false},
		{"no JSON", 200, stream, "data: " + said + "\n\n", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := "true"
			if c.found {
				want = "false"
			}
			same(t, "field", want, learns(t, c.status, c.contentType, c.answer))
		})
	}
}

func TestTheLastAnswerCounts(t *testing.T) {
	answers := []string{nanoSnapshot, "gpt-4o", nanoSnapshot, "team-bot", "team-bot"}
	rec := &recorder{answer: func(n int, _ *http.Request) (int, string, string) {
		return 200, "application/json", body(model(answers[n-1]))
	}}
	client := rec.client(agent.SerialToolCalls())
	for range answers {
		if err := askers["chat"](t.Context(), client, "team-bot"); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "requests", []string{"true", "false", "true", "false", "true"}, rec.fields())
	same(t, "a forced body", strings.Replace(nanoBody, "gpt-4.1-nano", "team-bot", 1), rec.sent[1].body)
}

func TestStreamBytesArriveAsTheyAreSent(t *testing.T) {
	pieces := []string{"d", "ata: {\"mod", "el\":\"" + nanoSnapshot, "\",\"choices\":[]}", "\n", "\ndata: {}\n", "\n", "data: [DONE]\n\n"}
	arrived := make(chan struct{})
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, fieldOf(string(b)))
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range pieces {
			_, _ = io.WriteString(w, p)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-arrived:
			case <-r.Context().Done():
			}
		}
	}))
	defer srv.Close()
	client := openai.NewClient(option.WithAPIKey("any"), option.WithBaseURL(srv.URL), agent.SerialToolCalls())
	for range 2 {
		var res *http.Response
		if err := client.Post(t.Context(), chatPath, chatParams("team-bot"), &res); err != nil {
			t.Fatal(err)
		}
		for _, p := range pieces {
			b := make([]byte, len(p))
			if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != p {
				t.Fatalf("%q %v", b, err)
			}
			arrived <- struct{}{}
		}
		if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
			t.Errorf("%q %v", rest, err)
		}
		_ = res.Body.Close()
	}
	same(t, "requests", []string{"true", "false"}, got)
}

func TestABrokenAnswerBreaksAsItWould(t *testing.T) {
	for _, status := range []int{200, 400} {
		head := strings.Repeat("x", 100)
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			body := io.MultiReader(strings.NewReader(head), broken{})
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body), Request: r}, nil
		})
		var res *http.Response
		// A layer of our own sees the answer before the SDK does.
		look := option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			var err error
			res, err = next(r)
			return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}, err
		})
		client := openai.NewClient(option.WithAPIKey("any"), option.WithHTTPClient(&http.Client{Transport: transport}), look, agent.SerialToolCalls())
		if err := client.Post(t.Context(), chatPath, chatParams("m"), nil); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if string(got) != head || err == nil || err.Error() != "broken" {
			t.Errorf("%d: %d bytes, %v", status, len(got), err)
		}
	}
}

func TestALayerBelowMayAnswerWithoutABody(t *testing.T) {
	below := option.WithMiddleware(func(r *http.Request, _ option.MiddlewareNext) (*http.Response, error) {
		return &http.Response{StatusCode: 204, Header: http.Header{}, Request: r}, nil
	})
	client := openai.NewClient(option.WithAPIKey("any"), agent.SerialToolCalls(), below)
	if err := client.Post(t.Context(), chatPath, chatParams("m"), nil); err != nil {
		t.Error(err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRequestsThatNameNoModelShareNothing(t *testing.T) {
	rec := &recorder{answer: func(int, *http.Request) (int, string, string) {
		return 200, "application/json", body(model(nanoSnapshot))
	}}
	client := rec.client(agent.SerialToolCalls())
	for range 2 {
		var out map[string]any
		if err := client.Post(t.Context(), responsesPath, json.RawMessage(body(`"prompt":{"id":"pmpt_1"}`, strictTool, userAskedForTrue)), &out); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "requests", []string{"true", "true"}, rec.fields())
}

func TestAnOptionKnowsAThousandNames(t *testing.T) {
	answer := body(model("gpt-4.1-nano"))
	rec := &recorder{answer: func(int, *http.Request) (int, string, string) { return 200, "application/json", answer }}
	client := rec.client(agent.SerialToolCalls())
	ask := func(name string) string {
		if err := askers["chat"](t.Context(), client, name); err != nil {
			t.Fatal(err)
		}
		return fieldOf(rec.sent[len(rec.sent)-1].body)
	}
	const more = 1100
	for i := range more {
		ask(fmt.Sprint("bot-", i))
	}
	long := strings.Repeat("x", 1000)
	ask(long)
	for i := range more {
		name := fmt.Sprint("direct-", i)
		answer = body(model(name)) // its own name is nothing to know
		ask(name)
	}
	answer, rec.sent = "{}", nil
	for i := range more {
		ask(fmt.Sprint("bot-", i))
	}
	same(t, "known", 1000, strings.Count(strings.Join(rec.fields(), " "), "false"))
	same(t, "a long name", "true", ask(long))
}

func TestAnOptionIsSharedByGoroutines(t *testing.T) {
	server := transcript.NewServer(func(r transcript.Request) transcript.Step {
		return transcript.Step{Text: "hi", Model: strings.Replace(r.Model, "alias", "gpt-4.1-nano", 1)}
	}, &transcript.Options{NoParallel: []string{"team-bot-*"}})
	client := clientOf(server, agent.SerialToolCalls())
	var all sync.WaitGroup
	for i := range 8 {
		for _, ask := range askers {
			all.Go(func() {
				for _, m := range []string{"alias", fmt.Sprint("team-bot-", i%2), "demo-model"} {
					if err := ask(t.Context(), client, m); err != nil {
						t.Errorf("%s: %v", m, err)
					}
				}
			})
		}
	}
	all.Wait()
	before := len(server.Requests())
	for _, m := range []string{"alias", "team-bot-0", "team-bot-1", "demo-model"} {
		if err := askers["chat"](t.Context(), client, m); err != nil {
			t.Error(err)
		}
	}
	same(t, "requests", []string{"false 200", "- 200", "- 200", "true 200"}, onTheWire(server)[before:])
}
