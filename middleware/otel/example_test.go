package otel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/otel"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

type order struct {
	ID string `json:"id" once:"key"`
}

// A model asks for the same refund twice. The spans show both calls, and that the second was not run.
func Example() {
	exporter := tracetest.NewInMemoryExporter() // an OTLP exporter in production
	o := &otel.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))}

	tools := registry.New()
	registry.Add(tools, registry.Tool[order, string]{
		Name: "refund", Description: "Refund an order.", Effect: registry.NonIdempotentWrite,
		Run: func(context.Context, order) (string, error) { return "refunded", nil },
	})
	call := func(id string) []transcript.ToolCall {
		return []transcript.ToolCall{{ID: id, Name: "refund", Arguments: `{"id":"R-7"}`}}
	}
	model := transcript.NewServer(transcript.Steps(
		transcript.Step{Calls: call("call_a")}, transcript.Step{Calls: call("call_b")}, transcript.Step{Text: "Refunded."},
	), nil)
	client := openai.NewClient(option.WithAPIKey("any"), option.WithHTTPClient(model.Client()), option.WithMiddleware(otel.Chat(o)))
	trial := struct { // sqlitestore.Open in production, and otel.Watch(store, o)
		*middleware.MemoryLedger
		*journal.MemoryJournal
	}{middleware.Memory(), journal.Memory()}
	loop := agent.New(client, tools, trial, &agent.Options{
		Trace:      otel.Run(o),
		Middleware: []registry.Middleware{otel.Tools(o)},
		Once:       &middleware.OnceOptions{Timed: otel.Timed(o)},
	})
	_, err := loop.Chat(context.Background(), agent.Run{ID: "ticket-42"}, openai.ChatCompletionNewParams{
		Model: "gpt-4.1-nano", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Refund order R-7.")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	spans := exporter.GetSpans()
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	for _, s := range spans {
		line := s.Name
		if s.Parent.IsValid() {
			line = "  " + line
		}
		for _, kv := range s.Attributes {
			if name, ours := strings.CutPrefix(string(kv.Key), "toolonce."); ours && (name == "verdict" || name == "turn" || name == "parallel_tool_calls") {
				line += fmt.Sprintf(" %s=%s", name, kv.Value.String())
			}
		}
		fmt.Println(line)
	}
	// Output:
	// invoke_agent
	//   chat gpt-4.1-nano turn=1 parallel_tool_calls=forced
	//   execute_tool refund turn=1 verdict=executed
	//   chat gpt-4.1-nano turn=2 parallel_tool_calls=forced
	//   execute_tool refund turn=2 verdict=already_done
	//   chat gpt-4.1-nano turn=3 parallel_tool_calls=forced
}
