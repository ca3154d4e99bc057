package otel

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/toolonce/toolonce/registry"
)

// Timed measures the parts of a guarded call: it is for middleware.OnceOptions.Timed.
func Timed(opts *Options) func(ctx context.Context, c *registry.Call, part string, took time.Duration, err error) {
	t := opts.telemetry()
	return func(ctx context.Context, c *registry.Call, part string, took time.Duration, err error) {
		var attrs []attribute.KeyValue
		if err != nil {
			attrs = given(attrs, errorTypeName, errorType(err))
		}
		h := t.claims
		switch part {
		case "claim":
		case "save":
			h = t.saves
		case "run":
			h, attrs = t.executions, append(attrs, append(ofTool(c), attribute.String(operationName, "execute_tool"))...)
		case "wait":
			h, attrs = t.waits, append(attrs, ofTool(c)...)
		default: // it has come since
			return
		}
		h.Record(ctx, took.Seconds(), t.with(attrs...))
	}
}
