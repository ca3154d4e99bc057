package middleware

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// Log writes one line per call: run, turn, position, tool, effect, verdict, operation and how long it took. Arguments,
// results and keys never appear. An unknown outcome and a conflict are warnings. nil: slog.Default(). Put it outside
// Once. A call that waits for a person is told as paused. As all lines of this package, it has an event, here tool_call,
// which does not change; docs/operating.md lists them.
func Log(logger *slog.Logger) registry.Middleware {
	if logger == nil {
		logger = slog.Default()
	}
	return func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
			if c.OnlyAsk { // nothing is decided, and what is asked for is told by the run's pause
				return next(ctx, c)
			}
			start := time.Now()
			res, err := next(ctx, c)
			level := slog.LevelInfo
			attrs := []slog.Attr{
				slog.String("event", "tool_call"), slog.String("run", c.Run.ID), slog.Int("turn", c.Turn), slog.Int("position", c.Position), slog.String("tool", c.Tool),
			}
			if info := c.Info(); info != nil {
				attrs = append(attrs, slog.String("effect", info.Effect.String()))
			}
			if res.Verdict != "" {
				attrs = append(attrs, slog.String("verdict", string(res.Verdict)))
			}
			if res.Operation != "" {
				attrs = append(attrs, slog.String("operation", res.Operation))
			}
			if res.Verdict == registry.OutcomeUnknown || res.Verdict == registry.Conflict {
				level = slog.LevelWarn
			}
			if _, paused := errors.AsType[*PausedError](err); paused {
				attrs = append(attrs, slog.Bool("paused", true))
			} else if err != nil { // its type alone: the text may be the tool's
				level = slog.LevelError
				attrs = append(attrs, slog.String("error_type", fmt.Sprintf("%T", err)))
			}
			attrs = append(attrs, slog.Duration("took", time.Since(start)))
			logger.LogAttrs(ctx, level, "toolonce: tool call", attrs...)
			return res, err
		}
	}
}
