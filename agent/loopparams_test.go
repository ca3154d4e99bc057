package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// members are those of each request under a name, "-" where it has none.
func members(s *transcript.Server, path string) []string {
	var out []string
	for _, r := range s.Requests() {
		v := gjson.GetBytes(r.Body, path).Raw
		if v == "" {
			v = "-"
		}
		out = append(out, v)
	}
	return out
}

// adding gives members of a request's JSON to the params of an API, as the SDK decodes them.
func adding(t *testing.T, api, body string) asking {
	t.Helper()
	into := func(p json.Unmarshaler) {
		if err := p.UnmarshalJSON([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if api == "chat" {
		return asking{chat: func(p *openai.ChatCompletionNewParams) { into(p) }}
	}
	return asking{response: func(p *responses.ResponseNewParams) { into(p) }}
}

// A model that is forced to call a tool would call tools for ever.
func TestAForcedToolChoiceHoldsForTheFirstTurnAlone(t *testing.T) {
	const auto, required = `"auto"`, `"required"`
	some := func(api, mode string) string {
		if api == "chat" {
			return `{"allowed_tools":{"mode":` + mode + `,"tools":[{"function":{"name":"look_up"},"type":"function"}]},"type":"allowed_tools"}`
		}
		return `{"mode":` + mode + `,"tools":[{"name":"look_up","type":"function"}],"type":"allowed_tools"}`
	}
	for _, c := range []struct{ api, first, then string }{
		{"chat", required, auto},
		{"chat", `"none"`, `"none"`},
		{"chat", `{"function":{"name":"look_up"},"type":"function"}`, auto},
		{"chat", some("chat", required), some("chat", auto)},
		{"chat", some("chat", auto), some("chat", auto)},
		{"responses", required, auto},
		{"responses", `"none"`, `"none"`},
		{"responses", `{"name":"look_up","type":"function"}`, auto},
		{"responses", `{"type":"file_search"}`, auto},
		{"responses", some("responses", required), some("responses", auto)},
		{"responses", some("responses", auto), some("responses", auto)},
	} {
		for _, f := range forms {
			if f.api != c.api {
				continue
			}
			var b bank
			s := transcript.NewServer(transcript.Steps(
				transcript.Step{Calls: []transcript.ToolCall{lookCall("call_a", "1001")}},
				transcript.Step{Calls: []transcript.ToolCall{lookCall("call_b", "1001")}},
				transcript.Step{Text: "Done."},
			), nil)
			raw := json.RawMessage(c.first)
			o := f.with(t.Context(), t, agent.New(onceClient(s), b.tools(), memory(), nil), run, asking{
				chat: func(p *openai.ChatCompletionNewParams) {
					p.ToolChoice = param.Override[openai.ChatCompletionToolChoiceOptionUnionParam](raw)
				},
				response: func(p *responses.ResponseNewParams) {
					p.ToolChoice = param.Override[responses.ResponseNewParamsToolChoiceUnion](raw)
				},
			})
			if o.err != nil {
				t.Fatal(c.first, o.err)
			}
			same(t, f.String(), []string{c.first, c.then, c.then}, members(s, "tool_choice"))
		}
	}
}

// begins counts the runs that are begun.
type begins struct {
	journal.Journal
	n int
}

func (b *begins) Begin(ctx context.Context, s journal.Start) (journal.Record, error) {
	b.n++
	return b.Journal.Begin(ctx, s)
}

func TestParamsThatCannotBeAnsweredAreRefusedBeforeAnythingIsBegun(t *testing.T) {
	for _, c := range []struct{ api, body, want string }{
		{"chat", `{"n":2}`, "leave N at 1"},
		{"chat", `{"functions":[{"name":"f"}]}`, "registry"},
		{"chat", `{"tools":[{"type":"custom","custom":{"name":"write_note"}}]}`, `"write_note"`},
		{"responses", `{"tools":[{"type":"custom","name":"write_note"}]}`, `"write_note"`},
		{"responses", `{"background":true}`, "Background"},
		{"responses", `{"conversation":"conv_1"}`, "conversation"},
		{"responses", `{"conversation":{"id":"conv_1"}}`, "conversation"},
	} {
		for _, f := range forms {
			if f.api != c.api {
				continue
			}
			var b bank
			s := transcript.NewServer(refundAndEnd, nil)
			j := &begins{Journal: journal.Memory()}
			o := f.with(t.Context(), t, agent.New(onceClient(s), b.tools(), store{memory().Ledger, j}, nil), run, adding(t, c.api, c.body))
			if o.err == nil || !strings.Contains(o.err.Error(), c.want) || len(s.Requests()) != 0 || j.n != 0 {
				t.Errorf("%s: %v, %d requests, %d begun", c.body, o.err, len(s.Requests()), j.n)
			}
			if _, begun := asRunError(o.err); begun {
				t.Errorf("%s: it is an error of a run: %v", c.body, o.err)
			}
		}
	}
}

func TestWithoutToolsNothingAboutToolsIsSent(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		for _, choice := range []string{`"auto"`, `"required"`} {
			s := transcript.NewServer(transcript.Steps(transcript.Step{Text: "Hello."}), nil)
			about := adding(t, f.api, `{"tools":[],"parallel_tool_calls":true,"tool_choice":`+choice+`}`)
			if o := f.with(t.Context(), t, agent.New(onceClient(s), registry.New(), memory(), nil), run, about); o.err != nil {
				t.Fatal(o.err)
			}
			for _, path := range []string{"tools", "tool_choice", "parallel_tool_calls"} {
				same(t, path, []string{"-"}, members(s, path))
			}
		}
	})
}

func TestParallelToolCallsIsDecidedForEachRequestOfALoop(t *testing.T) {
	for _, c := range []struct {
		name, model, answers string
		refuses              []string
		want                 []string
	}{
		{name: "a refusal is met once", model: "team-bot", refuses: []string{"team-bot"}, want: []string{"true", "-", "-", "-"}},
		{name: "an alias is learned", model: "team-bot", answers: nanoSnapshot, want: []string{"true", "false", "false"}},
		{name: "forced from the first", model: "ft:" + nanoSnapshot + ":acme::a1", want: []string{"false", "false", "false"}},
		{name: "never sent", model: "o4-mini", want: []string{"-", "-", "-"}},
		{name: "the caller's", model: "gpt-5.5", want: []string{"true", "true", "true"}},
	} {
		eachForm(t, func(t *testing.T, f form) {
			var b bank
			s := transcript.NewServer(func(r transcript.Request) transcript.Step {
				step := transcript.Step{Text: "Done."}
				if r.Turn < 3 {
					step = transcript.Step{Calls: []transcript.ToolCall{refundCall(fmt.Sprintf("call_%d", r.Turn), "1"), refundCall(fmt.Sprintf("call_%d0", r.Turn), "2")}}
				}
				step.Model = c.answers
				return step
			}, &transcript.Options{NoParallel: c.refuses})
			o := f.with(t.Context(), t, agent.New(onceClient(s), b.tools(), memory(), nil), run, adding(t, f.api, `{"parallel_tool_calls":true,"model":"`+c.model+`"}`))
			if o.err != nil || b.total() != "1 500, 2 500" { // whatever the server makes of the field
				t.Fatal(c.name, o.err, b.total())
			}
			same(t, c.name, c.want, members(s, "parallel_tool_calls"))
		})
	}
}

// slow are reads and a write that take as many seconds as they are told, and note when they ran.
type slow struct {
	mu           sync.Mutex
	now, most    int
	lines        []string
	writing, bad atomic.Bool
}

type slowInput struct {
	N       int `json:"n"`
	Seconds int `json:"seconds"`
}

func (s *slow) tools() *registry.Registry {
	tools := registry.New()
	add := func(name string, effect registry.Effect, write bool) {
		registry.Add(tools, registry.Tool[slowInput, string]{Name: name, Description: name, Effect: effect, Run: func(_ context.Context, in slowInput) (string, error) {
			s.mu.Lock()
			s.now++
			s.most = max(s.most, s.now)
			if s.writing.Swap(write) || write && s.now > 1 {
				s.bad.Store(true)
			}
			s.mu.Unlock()
			time.Sleep(time.Duration(in.Seconds) * time.Second)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.now--
			s.writing.Store(false)
			s.lines = append(s.lines, fmt.Sprintf("%s %d", name, in.N))
			return fmt.Sprintf("%s %d", name, in.N), nil
		}})
	}
	add("read", registry.Read, false)
	add("write", registry.NonIdempotentWrite, true)
	return tools
}

func slowCall(name string, n, seconds int) transcript.ToolCall {
	return transcript.ToolCall{ID: fmt.Sprintf("call_%d", n), Name: name, Arguments: fmt.Sprintf(`{"n":%d,"seconds":%d}`, n, seconds)}
}

func TestOutputsStandInCallOrderWhicheverIsReadyFirst(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		synctest.Test(t, func(t *testing.T) {
			var first []string
			for i := range 100 {
				var sl slow
				s := transcript.NewServer(transcript.Steps(
					transcript.Step{Calls: []transcript.ToolCall{slowCall("read", 0, 2), slowCall("read", 1, 1)}}, transcript.Step{Text: "Done."},
				), nil)
				o := f.do(t, agent.New(onceClient(s), sl.tools(), memory(), nil), run, request)
				if o.err != nil {
					t.Fatal(o.err)
				}
				same(t, "order of work", []string{"read 1", "read 0"}, sl.lines)
				if first == nil {
					first = o.history
				}
				if diff := cmp.Diff(first, o.history); diff != "" {
					t.Fatalf("repeat %d: %s", i, diff)
				}
				calls, outputs := wireIDs(s.Requests()[1])
				same(t, "order of outputs", calls, outputs)
			}
		})
	})
}

func TestReadsRunTogetherAtMostEightAndAWriteAlone(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		synctest.Test(t, func(t *testing.T) {
			var sl slow
			var calls []transcript.ToolCall
			for n := range 10 {
				calls = append(calls, slowCall("read", n, 10-n))
			}
			calls = append(calls, slowCall("write", 10, 5), slowCall("write", 11, 1), slowCall("read", 12, 1))
			s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: calls}, transcript.Step{Text: "Done."}), nil)
			begun := time.Now()
			o := f.do(t, agent.New(onceClient(s), sl.tools(), memory(), nil), run, request)
			if o.err != nil || sl.most != 8 || sl.bad.Load() {
				t.Errorf("%v, %d together, a write beside others: %v", o.err, sl.most, sl.bad.Load())
			}
			if took := time.Since(begun); took != 19*time.Second { // 10 for eight, 2 for two, 5, 1, 1
				t.Errorf("took %v", took)
			}
			same(t, "last", []string{"write 10", "write 11", "read 12"}, sl.lines[10:])
		})
	})
}

// The API's own words are what helps; what the user said and did is nobody's business.
func TestErrorsSayWhatTheAPISaysAndNothingOfTheRun(t *testing.T) {
	const secret = "sk-live-4711-secret"
	for _, c := range []struct {
		name          string
		status        int
		contentType   string
		body          string
		want          []string
		notFromTheAPI bool
	}{
		{"400", 400, "application/json", `{"error":{"message":"Invalid schema for x.","type":"invalid_request_error","param":"tools","code":"invalid_function_parameters"}}`, []string{"400 Bad Request", "Invalid schema for x.", "invalid_function_parameters"}, false},
		{"401", 401, "application/json", `{"error":{"message":"Incorrect API key provided: ` + secret + `.","code":"invalid_api_key"}}`, []string{"401", "Incorrect API key provided: …", "invalid_api_key"}, false},
		{"429", 429, "application/json", `{"error":{"message":"You exceeded your current quota.","code":"insufficient_quota"}}`, []string{"429", "exceeded your current quota", "insufficient_quota"}, false},
		{"500", 500, "application/json", `{"error":{"message":"The server had an error.","type":"server_error","code":null}}`, []string{"500", "The server had an error."}, false},
		{"what was sent is quoted", 400, "application/json", `{"error":{"message":"cannot read {\"order_id\":\"1001\",\"cents\":500} and refunded 1001","code":"bad"}}`, []string{"400", "cannot read … and …"}, false},
		{"a string", 400, "application/json", `{"error":"model not loaded"}`, []string{"400", "model not loaded"}, false},
		{"no error", 503, "application/json", `{"detail":"warming up"}`, []string{"503"}, false},
		{"no JSON", 502, "text/html", `<html>Bad gateway</html>`, []string{"502"}, false},
		{"no JSON and yet 200", 200, "text/html", `<html>Login</html>`, []string{"asking the model"}, true},
	} {
		eachForm(t, func(t *testing.T, f form) {
			var b bank
			rec := &recorder{answer: func(n int, _ *http.Request) (int, string, string) {
				if n == 1 {
					return 200, "text/event-stream", firstTurn(f)
				}
				return c.status, c.contentType, c.body
			}}
			o := f.do(t, agent.New(rec.client(option.WithMaxRetries(0), option.WithAPIKey(secret)), b.tools(), memory(), nil), run, request)
			e, ok := asRunError(o.err)
			if !ok || e.Turn != 2 || b.total() != "1001 500" {
				t.Fatalf("%s: %v", c.name, o.err)
			}
			text := o.err.Error()
			for _, w := range c.want {
				if !strings.Contains(text, w) {
					t.Errorf("%s: %q lacks %q", c.name, text, w)
				}
			}
			for _, private := range []string{secret, "cents", "refunded", request} {
				if strings.Contains(text, private) {
					t.Errorf("%s: the error says %q: %s", c.name, private, text)
				}
			}
			if api, ok := errors.AsType[*openai.Error](o.err); c.notFromTheAPI == ok || ok && api.StatusCode != c.status {
				t.Errorf("%s: %v", c.name, o.err)
			}
		})
	}
}

// firstTurn is an answer with one refund.
func firstTurn(f form) string {
	calls := []transcript.ToolCall{refundCall("call_a", "1001")}
	s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: calls}), &transcript.Options{Lenient: true})
	body := fmt.Sprintf(`{"model":"m","stream":%v,"messages":[],"input":[]}`, f.stream)
	path := map[string]string{"chat": "/v1/chat/completions", "responses": "/v1/responses"}[f.api]
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
	return w.Body.String()
}

func TestAServerThatIsNotThereIsAnErrorOfTheRun(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		client := openai.NewClient(option.WithAPIKey("sk-secret"), option.WithBaseURL("http://127.0.0.1:1/v1"), option.WithMaxRetries(0))
		o := f.do(t, agent.New(client, b.tools(), memory(), nil), run, request)
		if e, ok := asRunError(o.err); !ok || e.Turn != 1 || !strings.Contains(o.err.Error(), "127.0.0.1:1") || strings.Contains(o.err.Error(), "sk-secret") {
			t.Error(o.err)
		}
	})
}

func TestAnErrorInAStreamSaysWhatTheAPISays(t *testing.T) {
	for name, raw := range map[string]string{
		"an object": `{"error":{"message":"The server is overloaded.","code":"overloaded"}}`,
		"a string":  `{"error":"The server is overloaded. (overloaded)"}`,
	} {
		eachStream(t, func(t *testing.T, f form) {
			var b bank
			s := transcript.NewServer(transcript.Steps(transcript.Step{Raw: sse(raw)}), nil)
			o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), nil), run, request)
			if o.err == nil || !strings.Contains(o.err.Error(), "The server is overloaded. (overloaded)") {
				t.Error(name, o.err)
			}
		})
	}
}

func TestAResponseThatHasFailedQuotesNothingOfTheRun(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		if f.api == "chat" {
			return
		}
		var b bank
		failed := `{"id":"resp_2","status":"failed","output":[],"error":{"code":"server_error","message":"lost: {\"order_id\":\"1001\",\"cents\":500} refunded 1001"}}`
		if f.stream {
			failed = sse(`{"type":"response.failed","response":` + failed + `}`)
		}
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			if len(r.Outputs()) > 0 {
				return transcript.Step{Raw: failed}
			}
			return transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1001")}}
		}, nil)
		o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), nil), run, request)
		incomplete, ok := errors.AsType[*agent.IncompleteError](o.err)
		if !ok || !strings.Contains(incomplete.Reason, "server_error") || !strings.Contains(o.err.Error(), "lost: … …") {
			t.Error(o.err)
		}
	})
}
