package otel

import (
	"context"
	"errors"
	"slices"

	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// maxID is how long a call's id may be, in bytes, to be told.
const maxID = 256

// Tools makes a span execute_tool of each call, round what is inside it: put it outside Once. It counts the calls by
// verdict, and by error.type where they failed, were refused, are a conflict or unclear, or end their run. A replay is no
// error, nor is a call that waits for a person: that is toolonce.paused.
//
// A tool that is not registered is told as _OTHER, since its name is the model's own text.
func Tools(opts *Options) registry.Middleware {
	t := opts.telemetry()
	return func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
			if c.OnlyAsk { // nothing is decided
				return next(ctx, c)
			}
			return t.call(ctx, c, next)
		}
	}
}

func (t *telemetry) call(ctx context.Context, c *registry.Call, next registry.Handler) (registry.Result, error) {
	metered := ofTool(c)
	attrs := append(metered, attribute.String(operationName, "execute_tool"), attribute.String(toolType, "function"),
		attribute.String(runID, c.Run.ID), attribute.Int(turnNumber, c.Turn), attribute.Int(positionIndex, c.Position))
	attrs = given(attrs, conversationID, c.Run.Conversation)
	if len(c.ID) <= maxID {
		attrs = given(attrs, toolCallID, c.ID)
	}
	ctx, span := t.start(ctx, "execute_tool "+nameOf(c), trace.SpanKindInternal, attrs...)
	broke := true
	defer func() {
		if broke { // a panic of a middleware goes on to the loop's caller
			failed(span, "panic")
		}
		span.End()
	}()
	res, err := next(ctx, c)
	broke = false
	decided := decision(res, err)
	t.calls.Add(ctx, 1, t.with(append(metered, decided...)...))
	span.SetAttributes(decided...)
	if word := wrong(res, err); word != "" {
		failed(span, word)
	}
	span.SetAttributes(t.details(c, res, err)...)
	return res, err
}

// nameOf is the name of the tool that is called.
func nameOf(c *registry.Call) string {
	if c.Info() == nil {
		return other
	}
	return c.Tool
}

// ofTool is what says which tool is called.
func ofTool(c *registry.Call) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String(toolName, nameOf(c))}
	if info := c.Info(); info != nil {
		attrs = append(attrs, attribute.String(effectName, info.Effect.String()))
	}
	return slices.Clip(attrs)
}

// decision is what was decided for a call.
func decision(res registry.Result, err error) []attribute.KeyValue {
	attrs := given(nil, verdictName, string(res.Verdict))
	if paused(err) {
		attrs = append(attrs, attribute.Bool(pausedFlag, true))
	}
	return given(attrs, errorTypeName, wrong(res, err))
}

// wrong is the word for what is wrong about a call, "" where nothing is.
func wrong(res registry.Result, err error) string {
	if err != nil && !paused(err) {
		return errorType(err)
	}
	switch res.Verdict {
	case registry.Failed, registry.OutcomeUnknown, registry.Conflict, registry.Refused:
		return string(res.Verdict)
	default:
		return ""
	}
}

// details are what a span tells besides.
func (t *telemetry) details(c *registry.Call, res registry.Result, err error) []attribute.KeyValue {
	attrs := given(nil, operationID, res.Operation)
	repeats := int64(0)
	if res.Verdict == registry.AlreadyDone { // then the content is an envelope of ours
		repeats = gjson.Get(res.Content, "repeats").Int()
	}
	if over, ok := errors.AsType[*middleware.RepeatError](err); ok {
		repeats = int64(over.Repeats)
	}
	if repeats > 0 {
		attrs = append(attrs, attribute.Int64(repeatCount, repeats))
	}
	if t.Content {
		attrs = given(attrs, toolArguments, c.Arguments)
		attrs = given(attrs, toolResult, res.Content)
	}
	return attrs
}
