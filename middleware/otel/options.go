package otel

import (
	"context"
	"errors"
	"slices"

	otelapi "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Options of this package. nil and the zero value work.
type Options struct {
	// TracerProvider and MeterProvider take the spans and the metrics. nil: the global ones.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// Content puts arguments, results and messages into the attributes of spans. They hold data of users, and what is tagged
	// once:"secret" too.
	Content bool
	// Agent is the name of the agent, "" for none.
	Agent string
	// Provider is who answers for the model: "" is azure.ai.openai at an Azure address, else openai.
	Provider string
	// Attributes are on every span and metric: a tenant's namespace, for one.
	Attributes []attribute.KeyValue
}

// telemetry is what Options come to.
type telemetry struct {
	Options
	tracer trace.Tracer
	meter  metric.Meter
	calls  metric.Int64Counter
	tokens metric.Int64Histogram
	// durations, in seconds
	runs, chats, executions, claims, saves, waits metric.Float64Histogram
}

func (o *Options) telemetry() *telemetry {
	t := &telemetry{}
	if o != nil {
		t.Options = *o
	}
	if t.TracerProvider == nil {
		t.TracerProvider = otelapi.GetTracerProvider()
	}
	if t.MeterProvider == nil {
		t.MeterProvider = otelapi.GetMeterProvider()
	}
	t.Attributes = slices.Clone(t.Attributes)
	t.tracer, t.meter = t.TracerProvider.Tracer(scope), t.MeterProvider.Meter(scope)
	var errs [3]error
	t.calls, errs[0] = t.meter.Int64Counter("toolonce.calls", metric.WithUnit("{call}"),
		metric.WithDescription("Tool calls, by what was decided for them."))
	t.tokens, errs[1] = t.meter.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"),
		metric.WithDescription("Tokens of a request, as the server counted them."), metric.WithExplicitBucketBoundaries(tokenCounts...))
	seconds := func(name, what string, bounds []float64) metric.Float64Histogram {
		h, err := t.meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(bounds...))
		errs[2] = errors.Join(errs[2], err)
		return h
	}
	t.runs = seconds("gen_ai.invoke_agent.duration", "Attempts at a run.", modelSeconds)
	t.chats = seconds("gen_ai.client.operation.duration", "Requests of the model, to the end of their answers.", modelSeconds)
	t.executions = seconds("gen_ai.execute_tool.duration", "Executions of a tool's handler.", modelSeconds)
	t.claims = seconds("toolonce.claim.duration", "Claims in the ledger.", storeSeconds)
	t.saves = seconds("toolonce.save.duration", "Writes of what an attempt came to, each try.", storeSeconds)
	t.waits = seconds("toolonce.wait.duration", "Waits of a call for another's attempt.", modelSeconds)
	report(errors.Join(errs[:]...))
	return t
}

// report hands an error to the program's handler, as instrumentation does that has no other way.
func report(err error) {
	if err != nil {
		otelapi.Handle(err)
	}
}

// with is the attributes of every metric and more.
func (t *telemetry) with(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(slices.Concat(t.Attributes, more)...)
}

// start begins a span.
func (t *telemetry) start(ctx context.Context, name string, kind trace.SpanKind, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	return t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(slices.Concat(t.Attributes, attrs)...))
}

// failed marks a span as one of an error. what is a word, never a text.
func failed(span trace.Span, what string) {
	span.SetStatus(codes.Error, "")
	span.SetAttributes(attribute.String(errorTypeName, what))
}

// given adds an attribute that is not empty.
func given(attrs []attribute.KeyValue, key, value string) []attribute.KeyValue {
	if value == "" {
		return attrs
	}
	return append(attrs, attribute.String(key, value))
}
