package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// teller prints what happens, as it happens. It is safe for concurrent use.
type teller struct {
	mu   sync.Mutex
	out  io.Writer
	open bool // a line that a piece has begun
}

func (t *teller) print(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		format = "\n" + format
	}
	t.open = false
	_, _ = fmt.Fprintf(t.out, format+"\n", args...) // nobody reads it any more, and the work goes on
}

// piece prints a part of a line, which end ends, or the next print.
func (t *teller) piece(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = t.open || text != ""
	_, _ = io.WriteString(t.out, text)
}

func (t *teller) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		_, _ = io.WriteString(t.out, "\n")
	}
	t.open = false
}

// line says who did what.
func (t *teller) line(who, format string, args ...any) {
	t.print("  %-9s %s", who, fmt.Sprintf(format, args...))
}

// call is one tool call of the model.
func (t *teller) call(tool, arguments string) {
	var in struct {
		OrderID string      `json:"order_id"`
		Cents   json.Number `json:"cents"`
		Reason  string      `json:"reason"`
		Text    string      `json:"text"`
	}
	_ = json.Unmarshal([]byte(arguments), &in) // what cannot be read is not shown
	about := []string{"order " + in.OrderID}
	if cents, err := in.Cents.Float64(); err == nil {
		about = append(about, provider.Money(int64(cents)))
	}
	for _, words := range []string{in.Reason, in.Text} {
		if words != "" {
			about = append(about, strconv.Quote(words))
		}
	}
	t.line("model", "calls %s(%s)", tool, strings.Join(about, ", "))
}

// output is what the model reads as a call's answer: the tool's own, or what the guard says in its place.
func (t *teller) output(tool, content string) {
	var e registry.Envelope
	if json.Unmarshal([]byte(content), &e) != nil || e.Version == 0 {
		t.line("tool", "%s answers %s", tool, content)
		return
	}
	switch e.Status {
	case registry.AlreadyDone:
		t.line("guard", "%s is not run again: already_done %s", tool, e.Output)
	case registry.OutcomeUnknown:
		t.line("guard", "%s is held: outcome_unknown, a person must check", tool)
	case registry.Failed:
		t.line("tool", "%s failed: %s", tool, e.Error)
	default:
		t.line("guard", "%s: %s %s", tool, e.Status, e.Reason)
	}
}

// model wraps a script, so that what the model reads and says is told.
func (t *teller) model(script transcript.Script) transcript.Script {
	return func(r transcript.Request) transcript.Step {
		names := map[string]string{}
		for _, m := range r.Messages {
			for _, c := range m.ToolCalls {
				names[c.ID] = c.Name
			}
		}
		for _, out := range r.Outputs() {
			t.output(names[out.ToolCallID], out.Content)
		}
		step := script(r)
		for _, c := range step.Calls {
			t.call(c.Name, c.Arguments)
		}
		if step.Text != "" {
			t.line("model", "%q", step.Text)
		}
		return step
	}
}

// calls is middleware that tells of every call, for a model that is none of ours.
func (t *teller) calls(next registry.Handler) registry.Handler {
	return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
		t.call(c.Tool, c.Arguments)
		res, err := next(ctx, c)
		switch res.Verdict {
		case "":
		case registry.Replayed:
			t.line("guard", "%s was done before this call came: its answer was %s", c.Tool, res.Content)
		default:
			t.output(c.Tool, res.Content)
		}
		return res, err
	}
}
