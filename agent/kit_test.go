package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

var run = agent.Run{ID: "ticket-42"}

type messages = []openai.ChatCompletionMessageParamUnion

// clientOf is the SDK's client on a scripted server, without a socket.
func clientOf(s *transcript.Server, opts ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{
		option.WithAPIKey("any"), option.WithBaseURL("http://model.invalid/v1"), option.WithHTTPClient(s.Client()),
	}, opts...)...)
}

// spy is a handler that records calls.
type spy struct {
	mu    sync.Mutex
	calls []registry.Call
	// say answers; nil says "ok N" for call N.
	say func(n int, c registry.Call) (registry.Result, error)
}

func (s *spy) handle(_ context.Context, c *registry.Call) (registry.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, *c)
	if s.say != nil {
		return s.say(len(s.calls), *c)
	}
	return registry.Result{Content: fmt.Sprintf("ok %d", len(s.calls)), Verdict: registry.Executed}, nil
}

// seen is what reached the handler, a line per call.
func (s *spy) seen() []string {
	var out []string
	for _, c := range s.calls {
		out = append(out, fmt.Sprintf("%d.%d %s %s %s", c.Turn, c.Position, c.ID, c.Tool, c.Arguments))
	}
	return out
}

// completion decodes an answer as the SDK does.
func completion(t *testing.T, finish, message string) *openai.ChatCompletion {
	t.Helper()
	var c openai.ChatCompletion
	raw := fmt.Sprintf(`{"id":"chatcmpl-1","choices":[{"index":0,"finish_reason":%q,"message":%s}]}`, finish, message)
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

// calling is an assistant message with calls given as id, tool, arguments.
func calling(calls ...[3]string) string {
	var list []string
	for _, c := range calls {
		list = append(list, fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, quote(c[0]), quote(c[1]), quote(c[2])))
	}
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(list, ",") + `]}`
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func response(t *testing.T, status, output string) *responses.Response {
	t.Helper()
	var r responses.Response
	if err := json.Unmarshal(fmt.Appendf(nil, `{"id":"resp_1","status":%q,"output":%s}`, status, output), &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// wire is each value as it goes over the wire.
func wire[T any](t *testing.T, vs []T) []string {
	t.Helper()
	var out []string
	for _, v := range vs {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false) // as the SDK does
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimSuffix(b.String(), "\n"))
	}
	return out
}

// ids are the ids of the calls in a message and of the outputs behind it.
func ids(t *testing.T, ms messages) (calls, outputs []string) {
	t.Helper()
	for _, raw := range wire(t, ms) {
		for _, id := range gjson.Get(raw, "tool_calls.#.id").Array() {
			calls = append(calls, id.String())
		}
		if id := gjson.Get(raw, "tool_call_id"); id.Exists() {
			outputs = append(outputs, id.String())
		}
	}
	return calls, outputs
}

// payments are tools whose effects are counted.
type payments struct {
	tools *registry.Registry
	ran   []string
	hook  func()
}

type order struct {
	Order string `json:"order"`
	Cents int64  `json:"cents"`
}

func newPayments() *payments {
	p := &payments{tools: registry.New()}
	registry.Add(p.tools, registry.Tool[order, string]{
		Name: "refund", Description: "Refund an order.", Effect: registry.NonIdempotentWrite,
		Run: func(_ context.Context, in order) (string, error) {
			p.ran = append(p.ran, fmt.Sprintf("%s %d", in.Order, in.Cents))
			if p.hook != nil {
				p.hook()
			}
			return fmt.Sprintf("refund %d", len(p.ran)), nil
		},
	})
	return p
}

func (p *payments) guarded() registry.Handler {
	return p.tools.Handler(middleware.Once(middleware.Memory(), nil))
}

// loop is an own loop on Chat Completions: it returns the final text and the history.
func loop(ctx context.Context, client openai.Client, h registry.Handler, r agent.Run, history messages) (string, messages, error) {
	params := openai.ChatCompletionNewParams{Model: "demo-model", Messages: history}
	for range 10 {
		turn := agent.ChatTurn(params.Messages)
		c, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			return "", params.Messages, err
		}
		next, err := agent.AnswerChat(ctx, h, r, turn, c, params.Messages...)
		params.Messages = append(params.Messages, next...)
		if err != nil {
			return "", params.Messages, err
		}
		if len(next) == 0 {
			return c.Choices[0].Message.Content, append(params.Messages, c.Choices[0].Message.ToParam()), nil
		}
	}
	return "", params.Messages, fmt.Errorf("no end")
}

// exchange is one request on the wire.
type exchange struct {
	method, url, body string
	length            int64
}

// recorder is a transport that keeps what it is sent and answers by answer.
type recorder struct {
	mu     sync.Mutex
	sent   []exchange
	answer func(n int, r *http.Request) (status int, contentType, body string)
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, exchange{req.Method, req.URL.String(), string(body), req.ContentLength})
	status, contentType, text := 200, "application/json", "{}"
	if r.answer != nil {
		status, contentType, text = r.answer(len(r.sent), req)
	}
	h := http.Header{"Content-Type": {contentType}, "Retry-After-Ms": {"1"}}
	if status == http.StatusTemporaryRedirect {
		h.Set("Location", text)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(text)), Request: req}, nil
}

func (r *recorder) client(opts ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{
		option.WithAPIKey("any"), option.WithBaseURL("https://api.example.com/v1"), option.WithHTTPClient(&http.Client{Transport: r}),
	}, opts...)...)
}
