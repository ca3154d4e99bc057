package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/transcript"
)

const (
	chatTool         = `"tools":[{"type":"function","function":{"name":"f"}}]`
	strictChatTool   = `"tools":[{"type":"function","function":{"name":"f","strict":true}}]`
	strictTool       = `"tools":[{"type":"function","name":"f","strict":true}]`
	azureV1          = "https://acme.openai.azure.com/openai/v1"
	chatPath         = "chat/completions"
	responsesPath    = "responses"
	unchanged        = ""
	userAskedForTrue = `"parallel_tool_calls":true`
)

func body(fields ...string) string { return "{" + strings.Join(fields, ",") + "}" }

func model(name string) string { return `"model":"` + name + `"` }

// sends is what arrives of a body.
func sends(t *testing.T, base, path, body string, opts []agent.ParallelRule) string {
	t.Helper()
	rec := &recorder{}
	client := rec.client(agent.SerialToolCalls(opts...))
	if base == "" {
		base = "https://api.openai.com/v1"
	}
	var out map[string]any
	if err := client.Post(t.Context(), path, json.RawMessage(body), &out, option.WithBaseURL(base)); err != nil {
		t.Fatal(err)
	}
	if len(rec.sent) != 1 || rec.sent[0].length != int64(len(rec.sent[0].body)) {
		t.Fatalf("%d requests, or a wrong length: %+v", len(rec.sent), rec.sent)
	}
	return rec.sent[0].body
}

func TestTheParallelTableDecidesByModel(t *testing.T) {
	forced := []string{
		"gpt-4.1-nano", "gpt-4.1-nano-2025-04-14", "ft:gpt-4.1-nano-2025-04-14:acme::a1", "openai/gpt-4.1-nano", "GPT-4.1-Nano",
	}
	omitted := []string{
		"o1", "o1-2024-12-17", "o1-pro", "o3", "o3-2025-04-16", "o3-mini", "o3-mini-2025-01-31", "o4-mini", "o4-mini-2025-04-16",
		"o3-pro", "o3-pro-2025-06-10", "codex-mini-latest", "gpt-5-pro", "gpt-5-pro-2025-10-06", "gpt-5.4-pro", "openai/o4-mini",
		"ft:o4-mini-2025-04-16:acme::a1",
	}
	kept := []string{
		"gpt-4.1", "gpt-4.1-mini", "gpt-4o", "gpt-5", "gpt-5-mini", "gpt-5.1", "gpt-5.4", "o3-deep-research", "gpt-4.1-nano-next",
		"ft:gpt-4o-2024-08-06:acme::a1", "llama-3",
	}
	const no, yes, none = `,"parallel_tool_calls":false`, `,"parallel_tool_calls":true`, ``
	for _, c := range []struct {
		models []string
		want   func(asked string) string
	}{
		{forced, func(string) string { return no }},
		{omitted, func(string) string { return none }},
		{kept, func(asked string) string { return asked }},
	} {
		for _, m := range c.models {
			for _, path := range []string{chatPath, responsesPath} {
				for _, asked := range []string{none, no, yes} {
					in := body(model(m), chatTool) + asked
					in = strings.Replace(in, "}"+asked, asked+"}", 1)
					want := strings.TrimSuffix(body(model(m), chatTool), "}") + c.want(asked) + "}"
					if got := sends(t, "", path, in, nil); got != want {
						t.Errorf("%s asked %q:\n got %s\nwant %s", m, asked, got, want)
					}
				}
			}
		}
	}
}

func TestTheParallelTableDecidesByRequest(t *testing.T) {
	const no = `"parallel_tool_calls":false`
	minimal := `"reasoning_effort":"minimal"`
	custom := `"tools":[{"type":"custom","custom":{"name":"c"}}]`
	hosted := `"tools":[{"type":"web_search"}]`
	namespace := `"tools":[{"type":"namespace","name":"crm","tools":[{"type":"function","name":"f","strict":true}]}]`
	for _, c := range []struct {
		name, base, path, in, want string
	}{
		{"no tools", "", chatPath, body(model("gpt-4o"), no), body(model("gpt-4o"))},
		{"no tools, a forced model", "", chatPath, body(model("gpt-4.1-nano"), userAskedForTrue), body(model("gpt-4.1-nano"))},
		{"no tools and no field", "", chatPath, body(model("gpt-4.1-nano")), unchanged},
		{"tools empty", "", chatPath, body(no, model("gpt-4o"), `"tools":[]`), body(model("gpt-4o"), `"tools":[]`)},
		{"hosted tools alone", "", responsesPath, body(no, hosted, model("gpt-4o")), body(hosted, model("gpt-4o"))},
		{"the field alone", "", chatPath, body(no), "{}"},
		{"custom tools", "", chatPath, body(model("gpt-4.1-nano"), custom), body(model("gpt-4.1-nano"), custom, no)},
		{"tools in a stored prompt", "", responsesPath, body(`"prompt":{"id":"pmpt_1"}`, no), unchanged},

		{"gpt-5 at minimal effort", "", chatPath, body(model("gpt-5"), minimal, chatTool, no), body(model("gpt-5"), minimal, chatTool)},
		{"gpt-5 snapshot at minimal effort", "", responsesPath, body(model("gpt-5-2025-08-07"), `"reasoning":{"effort":"minimal"}`, chatTool, no), body(model("gpt-5-2025-08-07"), `"reasoning":{"effort":"minimal"}`, chatTool)},
		{"gpt-5-nano at minimal effort", "", chatPath, body(model("gpt-5-nano"), minimal, chatTool, no), body(model("gpt-5-nano"), minimal, chatTool)},
		{"gpt-5-mini snapshot at minimal effort", "", chatPath, body(model("gpt-5-mini-2025-08-07"), minimal, chatTool, no), body(model("gpt-5-mini-2025-08-07"), minimal, chatTool)},
		{"gpt-5 at low effort", "", chatPath, body(model("gpt-5"), `"reasoning_effort":"low"`, chatTool, no), unchanged},
		{"gpt-5.1 at minimal effort", "", chatPath, body(model("gpt-5.1"), minimal, chatTool, no), unchanged},

		{"fine-tuned, strict", "", chatPath, body(model("ft:gpt-4o:acme::a1"), strictChatTool, userAskedForTrue), body(model("ft:gpt-4o:acme::a1"), strictChatTool, no)},
		{"fine-tuned, strict, Responses", "", responsesPath, body(model("ft:gpt-4o:acme::a1"), strictTool), body(model("ft:gpt-4o:acme::a1"), strictTool, no)},
		{"fine-tuned, not strict", "", responsesPath, body(model("ft:gpt-4o:acme::a1"), `"tools":[{"type":"function","name":"f","strict":false}]`), unchanged},
		{"strict elsewhere", "", chatPath, body(model("gpt-4o"), strictChatTool, userAskedForTrue), unchanged},

		{"Azure, strict", azureV1, chatPath, body(model("team-bot-prod"), strictChatTool), body(model("team-bot-prod"), strictChatTool, no)},
		{"Azure, not strict", azureV1, chatPath, body(model("team-bot-prod"), chatTool, userAskedForTrue), unchanged},
		{"Azure, strict in a namespace", "https://x.services.ai.azure.com/openai/v1", responsesPath, body(model("gpt-5"), namespace), body(model("gpt-5"), namespace, no)},
		{"Azure by another host", "https://x.cognitiveservices.azure.com/openai", responsesPath, body(model("gpt-5"), strictTool), body(model("gpt-5"), strictTool, no)},
		{"Azure by path", "https://gateway.example.com/openai/deployments/bot", chatPath, body(model("bot"), strictChatTool), body(model("bot"), strictChatTool, no)},
		{"Azure, deployment in the path alone", "https://gateway.example.com/openai/deployments/o4-mini", chatPath, body(chatTool, no), body(chatTool)},
		{"Azure, omit before force", azureV1, chatPath, body(model("o4-mini"), strictChatTool, userAskedForTrue), body(model("o4-mini"), strictChatTool)},
		{"no Azure: a name that only contains the host", "https://openai.azure.com.example.org/v1", chatPath, body(model("bot"), strictChatTool), unchanged},

		{"blanks stay", "", chatPath, "{ \"parallel_tool_calls\" : true ,\n " + model("o1") + ", " + chatTool + " }", "{ " + model("o1") + ", " + chatTool + " }"},
		{"blanks stay, last", "", chatPath, "{ " + model("o1") + ", " + chatTool + " , \"parallel_tool_calls\":true }", "{ " + model("o1") + ", " + chatTool + "  }"},
		{"blanks stay, forced", "", chatPath, "{ " + model("gpt-4.1-nano") + ", \"parallel_tool_calls\" : null, " + chatTool + " }", "{ " + model("gpt-4.1-nano") + ", \"parallel_tool_calls\" : false, " + chatTool + " }"},
		{"an escaped name", "", chatPath, body(model("o1"), chatTool, `"parallel\u005ftool_calls":true`), body(model("o1"), chatTool)},
		{"the field deeper down", "", chatPath, body(model("o1"), `"metadata":{"parallel_tool_calls":true}`, chatTool), unchanged},
		{"20 digits", "", chatPath, body(model("gpt-4.1-nano"), `"seed":12345678901234567890`, chatTool), body(model("gpt-4.1-nano"), `"seed":12345678901234567890`, chatTool, no)},

		{"twice the field", "", chatPath, body(model("o1"), no, chatTool, no), unchanged},
		{"twice the model", "", chatPath, body(model("o1"), model("gpt-4o"), no, chatTool), unchanged},
		{"no object", "", chatPath, "[" + body(model("o1"), no, chatTool) + "]", unchanged},
		{"no JSON", "", chatPath, body(model("o1"), no, chatTool) + "}", unchanged},
		{"empty", "", chatPath, "", unchanged},
		{"another path", "", "completions", body(model("o1"), no), unchanged},
		{"another path of responses", "", "responses/input_tokens", body(model("o1"), no), unchanged},
		{"embeddings", "", "embeddings", body(model("gpt-4.1-nano"), chatTool), unchanged},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.want
			if want == unchanged {
				want = c.in
			}
			if got := sends(t, c.base, c.path, c.in, nil); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestTheCallersRulesComeBeforeTheTable(t *testing.T) {
	opts := []agent.ParallelRule{
		{Model: "team-bot-prod", Action: agent.OmitParallel},
		{Model: "team-bot-*"},
		{Model: "gpt-4.1-nano", Action: agent.KeepParallel},
		{Model: "o3", Action: agent.ForceSerial},
	}
	const no = `"parallel_tool_calls":false`
	for _, c := range []struct{ base, in, want string }{
		{azureV1, body(model("team-bot-prod"), strictChatTool, no), body(model("team-bot-prod"), strictChatTool)},
		{azureV1, body(model("team-bot-test"), chatTool), body(model("team-bot-test"), chatTool, no)},
		{"", body(model("team-bot-test"), userAskedForTrue), body(model("team-bot-test"))}, // no tools: the API refuses it
		{"", body(model("gpt-4.1-nano"), chatTool, userAskedForTrue), unchanged},
		{"", body(model("gpt-4.1-nano"), userAskedForTrue), unchanged},
		{"", body(model("o3"), chatTool), body(model("o3"), chatTool, no)},
		{"", body(model("o4-mini"), chatTool, no), body(model("o4-mini"), chatTool)},
		{"", body(model("team-bot-x"), `"prompt":{"id":"pmpt_1"}`), body(model("team-bot-x"), `"prompt":{"id":"pmpt_1"}`, no)},
	} {
		want := c.want
		if want == unchanged {
			want = c.in
		}
		if got := sends(t, c.base, chatPath, c.in, opts); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
}

var nanoParams = openai.ChatCompletionNewParams{
	Model:             "gpt-4.1-nano",
	Messages:          []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
	Tools:             []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "f"})},
	ParallelToolCalls: openai.Bool(true),
}

const nanoBody = `{"messages":[{"content":"hi","role":"user"}],"model":"gpt-4.1-nano","parallel_tool_calls":false,"tools":[{"function":{"name":"f"},"type":"function"}]}`

func TestAForcedFalseStandsOnTheWireOnEveryRetry(t *testing.T) {
	rec := &recorder{answer: func(n int, _ *http.Request) (int, string, string) {
		if n < 3 {
			return 500, "application/json", `{}`
		}
		return 200, "application/json", `{"id":"x"}`
	}}
	client := rec.client(agent.SerialToolCalls())
	if _, err := client.Chat.Completions.New(t.Context(), nanoParams); err != nil {
		t.Fatal(err)
	}
	e := exchange{"POST", "https://api.example.com/v1/chat/completions", nanoBody, int64(len(nanoBody))}
	if diff := cmp.Diff([]exchange{e, e, e}, rec.sent, cmp.AllowUnexported(exchange{})); diff != "" {
		t.Error(diff)
	}
}

func TestAStreamIsRewrittenAndArrivesWhole(t *testing.T) {
	rec := &recorder{answer: func(n int, _ *http.Request) (int, string, string) {
		if n == 1 {
			return 503, "application/json", `{}`
		}
		return 200, "text/event-stream", "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\ndata: [DONE]\n\n"
	}}
	client := rec.client(agent.SerialToolCalls())
	stream := client.Chat.Completions.NewStreaming(t.Context(), nanoParams)
	text := ""
	for stream.Next() {
		text += stream.Current().Choices[0].Delta.Content
	}
	if stream.Err() != nil || text != "hello" || len(rec.sent) != 2 {
		t.Fatalf("%q %v, %d requests", text, stream.Err(), len(rec.sent))
	}
	for _, e := range rec.sent {
		if want := strings.TrimSuffix(nanoBody, "}") + `,"stream":true}`; e.body != want {
			t.Errorf("\n got %s\nwant %s", e.body, want)
		}
	}
}

func TestARedirectSendsTheRewrittenBody(t *testing.T) {
	var bodies []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, r.URL.Path+" "+string(b))
		if r.URL.Path == "/v1/chat/completions" {
			http.Redirect(w, r, "/v2/chat/completions", http.StatusTemporaryRedirect)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"x"}`))
	}))
	defer srv.Close()
	client := openai.NewClient(option.WithAPIKey("any"), option.WithBaseURL(srv.URL+"/v1"), agent.SerialToolCalls())
	if _, err := client.Chat.Completions.New(t.Context(), nanoParams); err != nil {
		t.Fatal(err)
	}
	want := []string{"/v1/chat/completions " + nanoBody, "/v2/chat/completions " + nanoBody}
	if diff := cmp.Diff(want, bodies); diff != "" {
		t.Error(diff)
	}
}

func TestOtherRequestsStayAsTheyAre(t *testing.T) {
	send := func(opts ...option.RequestOption) []exchange {
		rec := &recorder{}
		client := rec.client(opts...)
		ctx := t.Context()
		_, _ = client.Models.List(ctx)
		_, _ = client.Chat.Completions.Get(ctx, "chatcmpl-1")
		_, _ = client.Chat.Completions.Delete(ctx, "chatcmpl-1")
		_, _ = client.Responses.Get(ctx, "resp_1", responses.ResponseGetParams{})
		_, _ = client.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: "o1", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("x")}})
		_ = client.Get(ctx, "chat/completions", nil, nil)
		form := bytes.NewBufferString("--b\r\n\r\n{}\r\n--b--")
		_ = client.Post(ctx, "x/responses", nil, nil, option.WithRequestBody("multipart/form-data; boundary=b", form))
		_ = client.Post(ctx, "x/responses", nil, nil, option.WithRequestBody("application/json", unknownLength{strings.NewReader(body(model("gpt-4.1")))}))
		return rec.sent
	}
	bare, with := send(), send(agent.SerialToolCalls())
	if len(bare) != 8 {
		t.Fatalf("%d requests: %+v", len(bare), bare)
	}
	if diff := cmp.Diff(bare, with, cmp.AllowUnexported(exchange{})); diff != "" {
		t.Error(diff)
	}
}

// unknownLength hides a reader's type.
type unknownLength struct{ io.Reader }

func TestABodyOfUnknownLengthIsRewrittenUpToALimit(t *testing.T) {
	rec := &recorder{}
	client := rec.client(agent.SerialToolCalls(), option.WithMaxRetries(0))
	small := body(model("gpt-4.1-nano"), chatTool)
	big := body(model("gpt-4.1-nano"), chatTool, `"pad":"`+strings.Repeat("x", 64<<20)+`"`)
	for _, b := range []string{small, big} {
		if err := client.Post(t.Context(), chatPath, nil, nil, option.WithRequestBody("application/json", unknownLength{strings.NewReader(b)})); err != nil {
			t.Fatal(err)
		}
	}
	if want := body(model("gpt-4.1-nano"), chatTool, `"parallel_tool_calls":false`); rec.sent[0].body != want {
		t.Errorf("small: %s", rec.sent[0].body)
	}
	if rec.sent[1].body != big {
		t.Errorf("big: %d of %d bytes arrived, or others", len(rec.sent[1].body), len(big))
	}
}

// The SDK's Azure package turns the path into that of a deployment by a middleware of its own.
func TestAzureOptionsInEitherOrderMakeAnAzureRequest(t *testing.T) {
	deploy := option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		r.URL.Path = strings.Replace(r.URL.Path, "/openai/", "/openai/deployments/team-bot-prod/", 1)
		return next(r)
	})
	for _, opts := range [][]option.RequestOption{{agent.SerialToolCalls(), deploy}, {deploy, agent.SerialToolCalls()}} {
		rec := &recorder{}
		client := rec.client(append(opts, option.WithBaseURL("https://acme.openai.azure.com/openai/"))...)
		params := nanoParams
		params.Model = "team-bot-prod"
		params.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "f", Strict: openai.Bool(true)})}
		if _, err := client.Chat.Completions.New(t.Context(), params); err != nil {
			t.Fatal(err)
		}
		if len(rec.sent) != 1 || !strings.Contains(rec.sent[0].body, `"parallel_tool_calls":false`) || !strings.Contains(rec.sent[0].url, "/openai/deployments/team-bot-prod/") {
			t.Errorf("%+v", rec.sent)
		}
	}
}

// The server refuses the field for o4-mini, and for every model without tools.
func TestTheFieldIsAbsentWhereItIsRefused(t *testing.T) {
	server := transcript.NewServer(transcript.Steps(transcript.Step{Text: "hi"}), nil)
	for _, serial := range []bool{false, true} {
		var opts []option.RequestOption
		if serial {
			opts = append(opts, agent.SerialToolCalls())
		}
		client := clientOf(server, opts...)
		for _, m := range []string{"o4-mini", "o1", "demo-model"} {
			params := nanoParams
			params.Model, params.ParallelToolCalls = m, openai.Bool(false)
			if m == "demo-model" {
				params.Tools = nil
			}
			if _, err := client.Chat.Completions.New(t.Context(), params); (err == nil) != serial {
				t.Errorf("%s, serial %v: %v", m, serial, err)
			}
		}
	}
}

func TestAnErrorOfTheBodyIsToldWithItsRequest(t *testing.T) {
	rec := &recorder{}
	client := rec.client(agent.SerialToolCalls(), option.WithMaxRetries(0))
	err := client.Post(context.Background(), chatPath, nil, nil, option.WithRequestBody("application/json", unknownLength{broken{}}))
	if want := `agent: reading the body of a request to "/v1/chat/completions": broken`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if len(rec.sent) != 0 {
		t.Errorf("sent %v", rec.sent)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, fmt.Errorf("broken") }
