package otel

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolonce/toolonce/registry"
)

// place is where in a run a request of the model is made.
type place struct {
	run  registry.Run
	turn int // 0: not known
}

type placeKey struct{}

// Run makes a span invoke_agent of each attempt at a run: it is for agent.Options.Trace. A loop of one's own calls what
// it returns with turn 0 before the run, and may call it with the number of each answer, which makes no span, before
// asking for that: what Chat makes within then tells of it. The function that it gives is called at the end, with the
// run's error. A run that waits for a person has not failed: toolonce.paused.
func Run(opts *Options) func(ctx context.Context, run registry.Run, turn int) (context.Context, func(error)) {
	t := opts.telemetry()
	return func(ctx context.Context, run registry.Run, turn int) (context.Context, func(error)) {
		ctx = context.WithValue(ctx, placeKey{}, place{run, turn})
		if turn > 0 {
			return ctx, func(error) {}
		}
		return t.run(ctx, run)
	}
}

func (t *telemetry) run(ctx context.Context, run registry.Run) (context.Context, func(error)) {
	metered := given([]attribute.KeyValue{attribute.String(operationName, "invoke_agent")}, agentName, t.Agent)
	metered = given(metered, providerName, t.Provider)
	name := "invoke_agent"
	if t.Agent != "" {
		name += " " + t.Agent
	}
	attrs := append(slices.Clip(metered), attribute.String(runID, run.ID))
	ctx, span := t.start(ctx, name, trace.SpanKindInternal, given(attrs, conversationID, run.Conversation)...)
	began := time.Now()
	return ctx, func(err error) {
		defer span.End()
		switch {
		case paused(err):
			metered = append(metered, attribute.Bool(pausedFlag, true))
			span.SetAttributes(attribute.Bool(pausedFlag, true))
		case err != nil:
			word := errorType(err)
			metered = given(metered, errorTypeName, word)
			failed(span, word)
		}
		t.runs.Record(ctx, time.Since(began).Seconds(), t.with(metered...))
	}
}

// where is what a span within a run tells of it.
func where(ctx context.Context) []attribute.KeyValue {
	p, ok := ctx.Value(placeKey{}).(place)
	if !ok {
		return nil
	}
	attrs := given([]attribute.KeyValue{attribute.String(runID, p.run.ID)}, conversationID, p.run.Conversation)
	if p.turn > 0 {
		attrs = append(attrs, attribute.Int(turnNumber, p.turn))
	}
	return attrs
}
