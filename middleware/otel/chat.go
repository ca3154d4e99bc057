package otel

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// maxBody is how much of a request or an answer is looked at, in bytes.
const maxBody = 64 << 20

// Middleware is an option.Middleware of the SDK.
type Middleware func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error)

// Chat makes a span chat of each request for a model's answer: POST …/chat/completions and …/responses, by HTTP. It is
// for option.WithMiddleware of the SDK's client, which calls it for each of its tries, and stands outside a loop's
// SerialToolCalls by itself; a client of one's own has it before that. The span tells where that has changed
// parallel_tool_calls: toolonce.parallel_tool_calls is "forced" (to false) or "omitted".
//
// It ends with the end of the answer's body, which passes as it comes, byte for byte, and tells model and usage from it.
// An answer that has failed has an error.type: the HTTP status, the API's own code, or "incomplete_stream" where a stream
// ended, or its reader left, without its end mark.
func Chat(opts *Options) Middleware {
	t := opts.telemetry()
	return func(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		api := apiOf(req)
		if api == "" {
			return next(req)
		}
		return t.chat(req, api, next)
	}
}

// apiOf is which API a request is for, "" for any that has no model's answer.
func apiOf(req *http.Request) string {
	switch {
	case req.Method != http.MethodPost:
		return ""
	case strings.HasSuffix(req.URL.Path, "/chat/completions"):
		return "chat_completions"
	case strings.HasSuffix(req.URL.Path, "/responses"):
		return "responses"
	}
	return ""
}

func (t *telemetry) chat(req *http.Request, api string, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	asked := bodyOf(req)
	x := &exchange{telemetry: t, began: time.Now(), metered: t.request(req, asked), answer: answer{api: api, content: t.Content}}
	attrs := append(x.metered, attribute.String(apiType, api))
	if n, err := strconv.Atoi(req.Header.Get("X-Stainless-Retry-Count")); err == nil && n > 0 {
		attrs = append(attrs, attribute.Int(resendCount, n))
	}
	attrs = append(attrs, where(req.Context())...)
	if t.Content {
		attrs = append(attrs, inputOf(api, asked)...)
	}
	name := "chat"
	if model := modelOf(req, asked); model != "" {
		name += " " + model
	}
	ctx, span := t.start(req.Context(), name, trace.SpanKindClient, attrs...)
	x.ctx, x.span = ctx, span
	req = req.WithContext(ctx)
	res, err := next(req)
	x.changed(asked, req, res)
	switch {
	case err != nil:
		x.end(errorType(err))
	case res.StatusCode < 200 || res.StatusCode > 299:
		x.span.SetAttributes(attribute.Int(statusCode, res.StatusCode))
		x.end(strconv.Itoa(res.StatusCode))
	case res.Body == nil || res.Body == http.NoBody:
		x.end("")
	default:
		stream := strings.HasPrefix(strings.ToLower(res.Header.Get("Content-Type")), "text/event-stream")
		res.Body = &listened{ReadCloser: res.Body, x: x, stream: stream}
	}
	return res, err
}

// bodyOf is a copy of a request's body, nil where it has none, or one that can be read only once.
func bodyOf(req *http.Request) []byte {
	if req == nil || req.GetBody == nil || req.ContentLength > maxBody {
		return nil
	}
	r, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer func() { _ = r.Close() }() // only read from
	body, err := io.ReadAll(io.LimitReader(r, maxBody))
	if err != nil {
		return nil
	}
	return body
}

// request is what spans and metrics tell of a request.
func (t *telemetry) request(req *http.Request, body []byte) []attribute.KeyValue {
	host := strings.ToLower(req.URL.Hostname())
	provider := t.Provider
	if provider == "" {
		provider = "openai"
		if strings.HasSuffix(host, ".azure.com") || strings.Contains(req.URL.Path, "/openai/deployments/") {
			provider = "azure.ai.openai"
		}
	}
	attrs := []attribute.KeyValue{attribute.String(operationName, "chat"), attribute.String(providerName, provider)}
	attrs = given(given(attrs, requestModel, modelOf(req, body)), serverAddress, host)
	if port, err := strconv.Atoi(req.URL.Port()); err == nil {
		attrs = append(attrs, attribute.Int(serverPort, port))
	}
	return slices.Clip(attrs)
}

// modelOf is the model that is asked, or the Azure deployment.
func modelOf(req *http.Request, body []byte) string {
	if m := gjson.GetBytes(body, "model"); m.Type == gjson.String && m.Str != "" {
		return m.Str
	}
	_, rest, _ := strings.Cut(req.URL.Path, "/openai/deployments/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// exchange is one request and its answer.
type exchange struct {
	*telemetry
	ctx     context.Context
	span    trace.Span
	began   time.Time
	metered []attribute.KeyValue
	answer
}

// changed tells what became of parallel_tool_calls between the caller and the wire.
func (x *exchange) changed(asked []byte, req *http.Request, res *http.Response) {
	sent := bodyOf(req)
	if res != nil && res.Request != nil { // of several, the one that was answered
		sent = bodyOf(res.Request)
	}
	if len(asked) == 0 || len(sent) == 0 {
		return
	}
	const field = "parallel_tool_calls"
	before, after := gjson.GetBytes(asked, field), gjson.GetBytes(sent, field)
	switch {
	case before.Raw == after.Raw:
	case after.Type == gjson.False:
		x.span.SetAttributes(attribute.String(parallelCalls, "forced"))
	case !after.Exists():
		x.span.SetAttributes(attribute.String(parallelCalls, "omitted"))
	}
}

// end ends the span. wrong is "" for an answer that is none.
func (x *exchange) end(wrong string) {
	x.span.SetAttributes(x.attributes()...)
	metered := slices.Clip(given(x.metered, responseModel, x.model))
	if x.counted {
		x.tokens.Record(x.ctx, x.input, x.with(append(metered, attribute.String(tokenType, "input"))...))
		x.tokens.Record(x.ctx, x.output, x.with(append(metered, attribute.String(tokenType, "output"))...))
	}
	if wrong != "" {
		metered = given(metered, errorTypeName, wrong)
		failed(x.span, wrong)
	}
	x.chats.Record(x.ctx, time.Since(x.began).Seconds(), x.with(metered...))
	x.span.End()
}
