package otel_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware/otel"
)

// send sends a request through Chat, and closes its answer.
func (w *world) send(req *http.Request, next func(*http.Request) (*http.Response, error)) error {
	res, err := otel.Chat(w.opts)(req, next)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// answered sends a request through Chat, whose answer has a body.
func (w *world) answered(path, body, kind string, answer io.Reader) *http.Response {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "https://gate.openai.azure.com"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := otel.Chat(w.opts)(req, func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(answer), Request: r}, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

const (
	chatStream = ": a comment\r\n\r\ndata: {\"id\":\"c1\",\"model\":\"gpt-x\",\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}],\"usage\":null}\r\n\r\n" +
		"data: not json\n\ndata:{\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n" +
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"prompt_tokens_details\":{\"cached_tokens\":2}}}\n\ndata: [DONE]\n\n"
	chatSpan = "chat depl (client) operation.name=chat provider.name=azure.ai.openai request.model=depl %sopenai.api.type=chat_completions server.address=gate.openai.azure.com\n"
	chatSaid = `response.finish_reasons=["stop"] response.id=c1 response.model=gpt-x usage.cache_read.input_tokens=2 usage.input_tokens=7 usage.output_tokens=3 usage.reasoning.output_tokens=0 `
	chatPath = "/openai/deployments/depl/chat/completions"
)

func TestAnAnswerPassesByteForByteHoweverItComes(t *testing.T) {
	for name, slow := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "with its end": iotest.DataErrReader, "halves": iotest.HalfReader,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false)
			res := w.answered(chatPath, `{"messages":[]}`, "text/event-stream; charset=utf-8", slow(strings.NewReader(chatStream)))
			got, err := io.ReadAll(res.Body)
			if err != nil || string(got) != chatStream {
				t.Errorf("%v, %q", err, got)
			}
			if d := cmp.Diff(strings.Replace(chatSpan, "%s", chatSaid, 1), w.tree()); d != "" {
				t.Error(d)
			}
			if err := res.Body.Close(); err != nil {
				t.Error(err)
			}
			if n, err := res.Body.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("%d bytes, %v behind the end", n, err)
			}
			measured := some(w.metrics(t.Context()), "gen_ai.client.operation.duration")
			if len(measured) != 1 || !strings.HasSuffix(measured[0], ": 1") || len(w.spans.GetSpans()) != 1 {
				t.Errorf("told %q", measured)
			}
		})
	}
}

func TestASpanLastsUntilItsAnswerIsRead(t *testing.T) {
	w := newWorld(t, false)
	res := w.answered(chatPath, `{}`, "text/event-stream", strings.NewReader(chatStream))
	if _, err := io.CopyN(io.Discard, res.Body, int64(strings.Index(chatStream, "[DONE]"))); err != nil {
		t.Fatal(err)
	}
	if n := len(w.spans.GetSpans()); n != 0 {
		t.Errorf("%d spans have ended before their answer", n)
	}
	if err := res.Body.Close(); err != nil { // a reader who knows enough
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Replace(chatSpan, "%s", chatSaid, 1), w.tree()); d != "" {
		t.Error(d)
	}
}

func TestWhatAServerCallsAnErrorIsOne(t *testing.T) {
	const (
		response = `{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"no"}}}`
		stream   = "text/event-stream"
	)
	for _, c := range []struct{ name, path, kind, body, want string }{
		{"chunk", "/v1/chat/completions", stream, "data: {\"error\":{\"code\":\"busy\"}}\n\n", "busy"},
		{"text as code", "/v1/chat/completions", stream, "data: {\"error\":{\"code\":\"order " + secretOrder + "\"}}\n\n", "_OTHER"},
		{"no code", "/v1/chat/completions", "application/json", `{"error":{"message":"no"}}`, "_OTHER"},
		{"failed", "/v1/responses", stream, "event: response.failed\ndata: " + response + "\n\n", "server_error"},
		{"error event", "/v1/responses", stream, "data: {\"type\":\"error\",\"code\":\"rate_limit\"}\n\n", "rate_limit"},
		{"failed whole", "/v1/responses", "application/json", `{"status":"failed"}`, "_OTHER"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, false)
			res := w.answered(c.path, `{"model":"gpt-x"}`, c.kind, strings.NewReader(c.body))
			if _, err := io.ReadAll(res.Body); err != nil {
				t.Fatal(err)
			}
			if err := res.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if got := w.tree(); !strings.HasPrefix(got, "chat gpt-x (client Error) error.type="+c.want+" ") {
				t.Error(got)
			}
		})
	}
}

func TestOtherRequestsPassWithoutASpan(t *testing.T) {
	w := newWorld(t, false)
	for _, r := range []struct{ method, path string }{
		{http.MethodPost, "/v1/embeddings"}, {http.MethodGet, "/v1/responses"}, {http.MethodPost, "/v1/responses/r/cancel"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), r.method, "https://api.example.com"+r.path, bytes.NewReader([]byte("{}")))
		if err != nil {
			t.Fatal(err)
		}
		gone := errors.New("gone")
		err = w.send(req, func(got *http.Request) (*http.Response, error) {
			if got != req {
				t.Error("the request is another one")
			}
			return nil, gone
		})
		if !errors.Is(err, gone) {
			t.Error(err)
		}
	}
	if n := len(w.spans.GetSpans()); n != 0 {
		t.Errorf("%d spans", n)
	}
}

func TestABodyThatCanBeReadOnceIsLeftAlone(t *testing.T) {
	w := newWorld(t, true)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com/v1/chat/completions", io.NopCloser(strings.NewReader(`{"model":"m"}`)))
	if err != nil {
		t.Fatal(err)
	}
	err = w.send(req, func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != `{"model":"m"}` {
			t.Errorf("%v, %q", err, body)
		}
		return nil, io.ErrClosedPipe
	})
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if got := w.tree(); !strings.HasPrefix(got, "chat (client Error) error.type=_OTHER ") {
		t.Error(got)
	}
}

func TestAnOmittedParameterIsTold(t *testing.T) {
	w := newWorld(t, false)
	const asked = `{"model":"o3","parallel_tool_calls":true}`
	for _, c := range []struct{ sent, want string }{
		{asked, ""}, {`{"model":"o3"}`, "omitted"}, {`{"model":"o3","parallel_tool_calls":false}`, "forced"},
	} {
		w.spans.Reset()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com/v1/responses", strings.NewReader(asked))
		if err != nil {
			t.Fatal(err)
		}
		err = w.send(req, func(r *http.Request) (*http.Response, error) {
			again, err := http.NewRequestWithContext(r.Context(), r.Method, r.URL.String(), strings.NewReader(c.sent))
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: again}, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.tree(); strings.Contains(got, "parallel_tool_calls=") != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("sent %s: %s", c.sent, got)
		}
	}
}
