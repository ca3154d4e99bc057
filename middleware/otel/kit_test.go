package otel_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/otel"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// What must not be told: of users, of the tool, and of the program.
const (
	secretOrder  = "order-4711"
	secretResult = "re_secret"
	secretText   = "Please refund it."
	secretError  = "card 4242 was declined"
	secretKey    = "sk-secret"
)

// namespace is on all that is told.
var namespace = attribute.String("toolonce.namespace", "acme")

// world is a loop that is watched.
type world struct {
	t      *testing.T
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
	opts   *otel.Options
	ledger ledger
	loop   *agent.Loop
	run    func(context.Context) error // what the tool does, nil for nothing more
	once   middleware.OnceOptions
	needs  bool // an approval
	tries  int  // of the SDK, after the first
	report agent.Report
}

// ledger is one that can do all that a guard, a loop and Watch ask for.
type ledger interface {
	middleware.Ledger
	middleware.Lister
	middleware.Approver
}

type refundInput struct {
	Order string `json:"order" once:"key"`
	Cents int    `json:"cents"`
}

type lookInput struct {
	Order string `json:"order"`
}

func newWorld(t *testing.T, content bool) *world {
	t.Helper()
	w := &world{t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader(), ledger: middleware.Memory()}
	w.opts = &otel.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans)),
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader)),
		Content:        content,
		Attributes:     []attribute.KeyValue{namespace},
	}
	return w
}

func (w *world) tools() *registry.Registry {
	tools := registry.New()
	registry.Add(tools, registry.Tool[refundInput, string]{
		Name: "issue_refund", Description: "Refund an order.", Effect: registry.NonIdempotentWrite,
		NeedsApproval: func(context.Context, refundInput) (bool, error) { return w.needs, nil },
		Run: func(ctx context.Context, _ refundInput) (string, error) {
			if w.run != nil {
				return secretResult, w.run(ctx)
			}
			return secretResult, nil
		},
	})
	registry.Add(tools, registry.Tool[lookInput, string]{
		Name: "look_up", Description: "Look up an order.", Effect: registry.Read,
		Run: func(context.Context, lookInput) (string, error) { return secretResult, nil },
	})
	return tools
}

// serve makes the loop on a scripted server.
func (w *world) serve(steps ...transcript.Step) {
	w.serveBy(transcript.Steps(steps...))
}

func (w *world) serveBy(script transcript.Script) {
	w.once.Timed = otel.Timed(w.opts)
	client := openai.NewClient(option.WithAPIKey(secretKey), option.WithBaseURL("http://model.invalid:8443/v1?key="+secretKey),
		option.WithHTTPClient(transcript.NewServer(script, nil).Client()), option.WithMiddleware(otel.Chat(w.opts)), option.WithMaxRetries(w.tries))
	w.loop = agent.New(client, w.tools(), struct {
		ledger
		*journal.MemoryJournal
	}{w.ledger, journal.Memory()}, &agent.Options{
		Trace: otel.Run(w.opts), Middleware: []registry.Middleware{otel.Tools(w.opts)}, Once: &w.once,
	})
}

// form is one of the four ways to run a loop.
type form struct {
	api    string
	stream bool
}

var forms = []form{{"chat_completions", false}, {"chat_completions", true}, {"responses", false}, {"responses", true}}

func (f form) String() string { return fmt.Sprintf("%s,stream=%t", f.api, f.stream) }

var run = agent.Run{ID: "ticket-42", Conversation: "chat-7"}

// do runs the request with a model whose calls are made one at a time.
func (w *world) do(ctx context.Context, f form) error {
	chat := openai.ChatCompletionNewParams{Model: "gpt-4.1-nano", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(secretText)}}
	resp := responses.ResponseNewParams{Model: "gpt-4.1-nano", Instructions: openai.String("Be kind.")}
	resp.Input.OfString = openai.String(secretText)
	var c *agent.ChatReply
	var r *agent.ResponseReply
	var err error
	switch {
	case f.api == "responses" && f.stream:
		var e agent.Event
		for e, err = range w.loop.StreamRespond(ctx, run, resp) {
			r = e.Response
		}
	case f.api == "responses":
		r, err = w.loop.Respond(ctx, run, resp)
	case f.stream:
		var e agent.Event
		for e, err = range w.loop.StreamChat(ctx, run, chat) {
			c = e.Chat
		}
	default:
		c, err = w.loop.Chat(ctx, run, chat)
	}
	if c != nil {
		w.report = c.Report
	}
	if r != nil {
		w.report = r.Report
	}
	return err
}

func refundCall(id string) transcript.ToolCall {
	return transcript.ToolCall{ID: id, Name: "issue_refund", Arguments: `{"order":"` + secretOrder + `","cents":500}`}
}

func lookCall(id string) transcript.ToolCall {
	return transcript.ToolCall{ID: id, Name: "look_up", Arguments: `{"order":"` + secretOrder + `"}`}
}

// tree is all spans, each below its parent, without some attributes.
func (w *world) tree(hide ...string) string {
	all := w.spans.GetSpans()
	slices.SortStableFunc(all, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var b strings.Builder
	var below func(parent tracetest.SpanStub, indent string)
	below = func(parent tracetest.SpanStub, indent string) {
		for _, s := range all {
			if s.Parent.SpanID() == parent.SpanContext.SpanID() {
				fmt.Fprintf(&b, "%s%s\n", indent, describe(s, hide))
				below(s, indent+"  ")
			}
		}
	}
	below(tracetest.SpanStub{}, "")
	return b.String()
}

func describe(s tracetest.SpanStub, hide []string) string {
	out := s.Name + " (" + s.SpanKind.String()
	if s.Status.Code != codes.Unset {
		out += " " + s.Status.Code.String() + s.Status.Description
	}
	out += ")"
	if !slices.Contains(s.Attributes, namespace) {
		out += " without the attributes of the options"
	}
	for _, kv := range sorted(s.Attributes) {
		key, value := string(kv.Key), kv.Value.String()
		switch {
		case slices.Contains(hide, key), kv == namespace:
			continue
		case key == "toolonce.operation":
			value = "some"
		}
		out += " " + strings.TrimPrefix(key, "gen_ai.") + "=" + value
	}
	return out
}

func sorted(attrs []attribute.KeyValue) []attribute.KeyValue {
	attrs = slices.Clone(attrs)
	slices.SortFunc(attrs, func(a, b attribute.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
	return attrs
}

// metrics is a line for each series: what was counted, or how often was measured.
func (w *world) metrics(ctx context.Context) []string {
	w.t.Helper()
	var rm metricdata.ResourceMetrics
	if err := w.reader.Collect(ctx, &rm); err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			for _, line := range series(m.Data) {
				out = append(out, m.Name+" "+m.Unit+line)
			}
		}
	}
	slices.Sort(out)
	return out
}

func series(data metricdata.Aggregation) (out []string) {
	line := func(set attribute.Set, value any) {
		s := ""
		if !slices.Contains(set.ToSlice(), namespace) {
			s += " without the attributes of the options"
		}
		for _, kv := range sorted(set.ToSlice()) {
			if kv != namespace {
				s += fmt.Sprintf(" %s=%s", strings.TrimPrefix(string(kv.Key), "gen_ai."), kv.Value.String())
			}
		}
		out = append(out, fmt.Sprintf("%s: %v", s, value))
	}
	switch d := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			line(p.Attributes, p.Value)
		}
	case metricdata.Gauge[int64]:
		for _, p := range d.DataPoints {
			line(p.Attributes, p.Value)
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			line(p.Attributes, p.Value)
		}
	case metricdata.Histogram[int64]:
		for _, p := range d.DataPoints {
			line(p.Attributes, p.Sum)
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			line(p.Attributes, p.Count)
		}
	default:
		out = append(out, fmt.Sprintf(": %T", data))
	}
	return out
}

// some are the lines of metrics that begin so.
func some(lines []string, prefixes ...string) (out []string) {
	for _, l := range lines {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(l, p) }) {
			out = append(out, l)
		}
	}
	return out
}

// everything is all that spans and metrics tell.
func (w *world) everything() string {
	var b strings.Builder
	for _, s := range w.spans.GetSpans() {
		fmt.Fprintln(&b, s.Name, s.Status.Description, s.Resource)
		attrs := s.Attributes
		for _, e := range s.Events {
			fmt.Fprintln(&b, e.Name)
			attrs = append(attrs, e.Attributes...)
		}
		for _, kv := range attrs {
			fmt.Fprintln(&b, kv.Key, kv.Value.String())
		}
	}
	return b.String() + strings.Join(w.metrics(context.Background()), "\n")
}

func sortedWords(words []string) []string {
	slices.Sort(words)
	return words
}

var errDeclined = errors.New(secretError)
