package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/transcript"
)

const (
	nanoSnapshot = "gpt-4.1-nano-2025-04-14"
	fieldRefused = `{"error":{"message":"Unsupported parameter: 'parallel_tool_calls' is not supported with this model.","type":"invalid_request_error","param":"parallel_tool_calls","code":"unsupported_parameter"}}`
)

// askers ask a model that has a tool, with parallel_tool_calls true, in each way the SDK has.
var askers = map[string]func(context.Context, openai.Client, string) error{
	"chat": func(ctx context.Context, c openai.Client, model string) error {
		_, err := c.Chat.Completions.New(ctx, chatParams(model))
		return err
	},
	"chat stream": func(ctx context.Context, c openai.Client, model string) error {
		s := c.Chat.Completions.NewStreaming(ctx, chatParams(model))
		for s.Next() {
		}
		return s.Err()
	},
	"responses": func(ctx context.Context, c openai.Client, model string) error {
		_, err := c.Responses.New(ctx, responseParams(model))
		return err
	},
	"responses stream": func(ctx context.Context, c openai.Client, model string) error {
		s := c.Responses.NewStreaming(ctx, responseParams(model))
		for s.Next() {
		}
		return s.Err()
	},
}

func chatParams(model string) openai.ChatCompletionNewParams {
	p := nanoParams
	p.Model = model
	return p
}

func responseParams(model string) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")},
		Tools:             []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{Name: "f", Parameters: map[string]any{"type": "object"}}}},
		ParallelToolCalls: openai.Bool(true),
	}
}

// onTheWire is the field of each request that a server received, and how it was answered.
func onTheWire(s *transcript.Server) []string {
	var out []string
	for _, r := range s.Requests() {
		out = append(out, fmt.Sprintf("%s %d", fieldOf(string(r.Body)), r.Status))
	}
	return out
}

func fieldOf(body string) string {
	if v := gjson.Get(body, "parallel_tool_calls"); v.Exists() {
		return v.Raw
	}
	return "-"
}

// fields are those of what a recorder was sent.
func (r *recorder) fields() []string {
	var out []string
	for _, e := range r.sent {
		out = append(out, fieldOf(e.body))
	}
	return out
}

func same(t *testing.T, name string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

func TestARefusedFieldIsLeftOutOnceMoreAndFromThenOn(t *testing.T) {
	azure := []option.RequestOption{
		option.WithBaseURL("http://model.invalid/openai/deployments/team-bot-prod"),
		option.WithHeaderDel("Authorization"), option.WithHeader("Api-Key", "k"),
	}
	force := []agent.ParallelRule{{Model: "team-bot-*"}}
	keep := []agent.ParallelRule{{Model: "*", Action: agent.KeepParallel}}
	for _, c := range []struct {
		name, model, first string
		rules              []agent.ParallelRule
		opts               []option.RequestOption
	}{
		{"the caller's field", "team-bot-prod", "true 400", nil, nil},
		{"forced by a rule", "team-bot-prod", "false 400", force, nil},
		{"kept by a rule", "o4-mini", "true 400", keep, nil},
		{"Azure says it in a sentence", "team-bot-prod", "true 400", nil, azure},
	} {
		for way, ask := range askers {
			server := transcript.NewServer(transcript.Steps(transcript.Step{Text: "hi"}), &transcript.Options{NoParallel: []string{"team-bot-*"}})
			client := clientOf(server, append(c.opts, agent.SerialToolCalls(c.rules...))...)
			for range 2 {
				if err := ask(t.Context(), client, c.model); err != nil {
					t.Errorf("%s, %s: %v", c.name, way, err)
				}
			}
			same(t, c.name+", "+way, []string{c.first, "- 200", "- 200"}, onTheWire(server))
		}
	}
}

func TestTheSecondRequestDiffersByTheFieldAlone(t *testing.T) {
	deploy := option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		r.URL.Path = strings.Replace(r.URL.Path, "/openai/", "/openai/deployments/bot/", 1)
		return next(r)
	})
	rec := &recorder{answer: func(n int, r *http.Request) (int, string, string) {
		if r.Header.Get("X-Mine") != "7" {
			t.Errorf("request %d has lost its header", n)
		}
		if n == 1 {
			return 400, "application/json", fieldRefused
		}
		return 200, "application/json", `{}`
	}}
	client := rec.client(agent.SerialToolCalls(), deploy, option.WithBaseURL("https://acme.openai.azure.com/openai/"), option.WithHeader("X-Mine", "7"))
	head, tail := "{ "+model("bot")+`, "seed":12345678901234567890, `, chatTool+" }"
	with, bare := head+`"parallel_tool_calls" : true, `+tail, head+tail
	var out map[string]any
	if err := client.Post(t.Context(), chatPath, json.RawMessage(with), &out); err != nil {
		t.Fatal(err)
	}
	url := "https://acme.openai.azure.com/openai/deployments/bot/chat/completions"
	if diff := cmp.Diff([]exchange{{"POST", url, with, int64(len(with))}, {"POST", url, bare, int64(len(bare))}}, rec.sent, cmp.AllowUnexported(exchange{})); diff != "" {
		t.Error(diff)
	}
}

func TestServersSayInManyWordsThatTheyRefuseTheField(t *testing.T) {
	for _, refusal := range []string{
		fieldRefused,
		`{"error":{"message":"Unknown parameter: 'parallel_tool_calls'.","param":"parallel_tool_calls","code":"unknown_parameter"}}`,
		`{"error":{"message":"No.","param":"parallel_tool_calls","code":"unknown_parameter"}}`,
		`{"error":{"message":"Unrecognized request argument supplied: parallel_tool_calls","param":null,"code":null}}`,
		`{"error":{"message":"Unexpected keyword argument: 'parallel_tool_calls'"}}`,
		`{"error":{"message":"Additional property parallel_tool_calls is not allowed"}}`,
		`{"error":{"message":"parallel_tool_calls is not recognised by this model"}}`,
		`{"error":"parallel_tool_calls is not supported"}`,
		`[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"parallel_tool_calls\": Cannot find field."}}]`,
		`{"detail":[{"type":"extra_forbidden","loc":["body","parallel_tool_calls"],"msg":"Extra inputs are not permitted"}]}`,
		`parallel_tool_calls: unsupported`,
	} {
		rec := &recorder{answer: func(n int, _ *http.Request) (int, string, string) {
			if n == 1 {
				return 400, "application/json", refusal
			}
			return 200, "application/json", `{}`
		}}
		if err := askers["chat"](t.Context(), rec.client(agent.SerialToolCalls()), "m"); err != nil {
			t.Errorf("%s: %v", refusal, err)
		}
		same(t, refusal, []string{"true", "-"}, rec.fields())
	}
}

func TestAnyOther400IsHandedOnByteForByte(t *testing.T) {
	for name, refusal := range map[string]string{
		"another parameter":         `{"error":{"message":"Unsupported parameter: 'top_k'.","param":"top_k","code":"unsupported_parameter"}}`,
		"another, beside the field": `{"error":{"message":"'strict' is not supported with parallel_tool_calls.","param":"tools[0].strict","code":"unsupported_parameter"}}`,
		"the field's value":         `{"error":{"message":"Invalid type for 'parallel_tool_calls': expected a boolean.","param":"parallel_tool_calls","code":"invalid_type"}}`,
		"the request in an echo":    `{"error":{"message":"Unknown model."},"request":{"parallel_tool_calls":true}}`,
		"no JSON":                   "<html>Bad Request</html>\r\n",
		"nothing":                   "",
		"too long":                  `{"error":{"message":"parallel_tool_calls is not supported` + strings.Repeat(" ", 1<<17) + `"}}`,
	} {
		rec := &recorder{answer: func(int, *http.Request) (int, string, string) { return 400, "application/json", refusal }}
		client := rec.client(agent.SerialToolCalls())
		err := client.Post(t.Context(), chatPath, json.RawMessage(body(model("m"), chatTool, userAskedForTrue)), nil)
		var apiErr *openai.Error
		if !errors.As(err, &apiErr) {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := io.ReadAll(apiErr.Response.Body)
		if err != nil || string(got) != refusal {
			t.Errorf("%s: got %d bytes of %d, or others: %v", name, len(got), len(refusal), err)
		}
		same(t, name, []string{"true"}, rec.fields())
	}
}

func TestAFieldThatTheOptionAddsIsLeftOutWhereItIsRefused(t *testing.T) {
	rec := &recorder{answer: func(n int, _ *http.Request) (int, string, string) {
		if n == 1 {
			return 400, "application/json", fieldRefused
		}
		return 200, "application/json", `{}`
	}}
	client := rec.client(agent.SerialToolCalls())
	params := chatParams("gpt-4.1-nano")
	params.ParallelToolCalls = param.Opt[bool]{}
	if _, err := client.Chat.Completions.New(t.Context(), params); err != nil {
		t.Error(err)
	}
	same(t, "requests", []string{"false", "-"}, rec.fields())
}

func TestARequestWithoutTheFieldIsNotSentAgain(t *testing.T) {
	rec := &recorder{answer: func(int, *http.Request) (int, string, string) { return 400, "application/json", fieldRefused }}
	if err := askers["chat"](t.Context(), rec.client(agent.SerialToolCalls()), "o4-mini"); err == nil {
		t.Error("no error")
	}
	same(t, "requests", []string{"-"}, rec.fields())
}

func TestAStatusOtherThan400IsNoRefusal(t *testing.T) {
	rec := &recorder{answer: func(int, *http.Request) (int, string, string) { return 422, "application/json", fieldRefused }}
	if err := askers["chat"](t.Context(), rec.client(agent.SerialToolCalls()), "m"); err == nil {
		t.Error("no error")
	}
	same(t, "requests", []string{"true"}, rec.fields())
}

func TestARefusalWithoutTheFieldIsHandedOnAndNotRemembered(t *testing.T) {
	rec := &recorder{answer: func(int, *http.Request) (int, string, string) { return 400, "application/json", fieldRefused }}
	client := rec.client(agent.SerialToolCalls())
	for range 2 {
		var apiErr *openai.Error
		if err := askers["chat"](t.Context(), client, "m"); !errors.As(err, &apiErr) || apiErr.Param != "parallel_tool_calls" {
			t.Errorf("got %v", err)
		}
	}
	same(t, "requests", []string{"true", "-", "true", "-"}, rec.fields())
}

func TestTheSDKsRetriesGoOnAroundARefusal(t *testing.T) {
	for way, ask := range askers {
		status := []int{500, 400, 429, 400, 200, 200}
		rec := &recorder{answer: func(n int, _ *http.Request) (int, string, string) {
			switch {
			case status[n-1] == 400:
				return 400, "application/json", fieldRefused
			case strings.HasSuffix(way, "stream"):
				return status[n-1], "text/event-stream", "data: {}\n\n"
			}
			return status[n-1], "application/json", `{}`
		}}
		client := rec.client(agent.SerialToolCalls())
		for range 2 {
			if err := ask(t.Context(), client, "m"); err != nil {
				t.Errorf("%s: %v", way, err)
			}
		}
		same(t, way, []string{"true", "true", "-", "true", "-", "-"}, rec.fields())
	}
}

func TestNothingIsSentOnceMoreAfterTheRequestsContextHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rec := &recorder{answer: func(int, *http.Request) (int, string, string) {
		cancel()
		return 400, "application/json", fieldRefused
	}}
	if err := askers["chat"](ctx, rec.client(agent.SerialToolCalls()), "m"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	same(t, "requests", []string{"true"}, rec.fields())
}

func TestARequestWithoutToolsTeachesNothingAboutItsModel(t *testing.T) {
	server := transcript.NewServer(transcript.Steps(transcript.Step{Text: "hi"}), nil)
	client := clientOf(server, agent.SerialToolCalls(agent.ParallelRule{Model: "*", Action: agent.KeepParallel}))
	bare := chatParams("demo-model")
	bare.Tools = nil
	for _, p := range []openai.ChatCompletionNewParams{bare, chatParams("demo-model")} {
		if _, err := client.Chat.Completions.New(t.Context(), p); err != nil {
			t.Error(err)
		}
	}
	same(t, "requests", []string{"true 400", "- 200", "true 200"}, onTheWire(server))
}

func TestARefusalHoldsForItsHostDeploymentAndModel(t *testing.T) {
	rec := &recorder{answer: func(n int, r *http.Request) (int, string, string) {
		if n == 1 {
			return 400, "application/json", fieldRefused
		}
		return 200, "application/json", `{}`
	}}
	client := rec.client(agent.SerialToolCalls())
	for _, c := range []struct{ base, model string }{
		{"https://a.example/openai/deployments/x", "m"},
		{"https://a.example/openai/deployments/x", "m"},
		{"https://b.example/openai/deployments/x", "m"},
		{"https://a.example/openai/deployments/y", "m"},
		{"https://a.example/openai/deployments/x", "n"},
	} {
		_, err := client.Chat.Completions.New(t.Context(), chatParams(c.model), option.WithBaseURL(c.base))
		if err != nil {
			t.Error(err)
		}
	}
	same(t, "requests", []string{"true", "-", "-", "true", "true", "true"}, rec.fields())
}

func TestCallsKeepTheirOrderWhereTheFieldIsIgnoredOrRefused(t *testing.T) {
	steps := transcript.Steps(transcript.Step{Calls: []transcript.ToolCall{{ID: "a", Name: "f", Arguments: `{"n":1}`}, {ID: "b", Name: "f", Arguments: `{"n":2}`}}})
	for _, m := range []string{"gpt-4.1-nano", "team-bot-prod"} {
		client := clientOf(transcript.NewServer(steps, &transcript.Options{NoParallel: []string{"team-bot-*"}}), agent.SerialToolCalls())
		c, err := client.Chat.Completions.New(t.Context(), chatParams(m))
		if err != nil {
			t.Fatal(err)
		}
		var s spy
		next, err := agent.AnswerChat(t.Context(), s.handle, run, 1, c, nanoParams.Messages...)
		if err != nil {
			t.Fatal(err)
		}
		same(t, m, []string{`1.0 a f {"n":1}`, `1.1 b f {"n":2}`}, s.seen())
		calls, outputs := ids(t, next)
		same(t, m, calls, outputs)
	}
}
