package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// form is one of the four ways to run a loop.
type form struct {
	api    string
	stream bool
}

var forms = []form{{"chat", false}, {"chat", true}, {"responses", false}, {"responses", true}}

func (f form) String() string {
	if f.stream {
		return f.api + " stream"
	}
	return f.api
}

// eachForm runs a test in all four ways.
func eachForm(t *testing.T, test func(t *testing.T, f form)) {
	t.Helper()
	for _, f := range forms {
		t.Run(f.String(), func(t *testing.T) { test(t, f) })
	}
}

// outcome is what a run came to.
type outcome struct {
	text    string
	report  agent.Report
	history []string
	events  []agent.Event
	err     error
}

// verdicts are those of all calls, as turn.position tool verdict.
func (o outcome) verdicts() []string {
	var out []string
	for _, c := range o.report.Calls {
		out = append(out, fmt.Sprintf("%d.%d %s %s", c.Turn, c.Position, c.Tool, c.Verdict))
	}
	return out
}

const request = "Refund order 1001, please."

// do runs a request.
func (f form) do(t *testing.T, l *agent.Loop, run agent.Run, user string, opts ...option.RequestOption) (o outcome) {
	t.Helper()
	return f.doContext(t.Context(), t, l, run, user, opts...)
}

func (f form) doContext(ctx context.Context, t *testing.T, l *agent.Loop, run agent.Run, user string, opts ...option.RequestOption) (o outcome) {
	t.Helper()
	chat := openai.ChatCompletionNewParams{Model: "gpt-4.1-mini", Messages: messages{openai.SystemMessage("Be kind."), openai.UserMessage(user)}}
	resp := responses.ResponseNewParams{Model: "gpt-4.1-mini", Instructions: openai.String("Be kind.")}
	resp.Input.OfString = openai.String(user)
	var c *agent.ChatReply
	var r *agent.ResponseReply
	switch {
	case f.api == "chat" && !f.stream:
		c, o.err = l.Chat(ctx, run, chat, opts...)
	case f.api == "chat":
		for e, err := range l.StreamChat(ctx, run, chat, opts...) {
			if o.err = err; err == nil {
				o.events, c = append(o.events, e), e.Chat
			}
		}
	case !f.stream:
		r, o.err = l.Respond(ctx, run, resp, opts...)
	default:
		for e, err := range l.StreamRespond(ctx, run, resp, opts...) {
			if o.err = err; err == nil {
				o.events, r = append(o.events, e), e.Response
			}
		}
	}
	return f.fill(t, o, c, r)
}

func (f form) fill(t *testing.T, o outcome, c *agent.ChatReply, r *agent.ResponseReply) outcome {
	t.Helper()
	switch {
	case c != nil:
		o.text, o.report, o.history = c.Choices[0].Message.Content, c.Report, wire(t, c.Messages)
	case r != nil:
		o.text, o.report, o.history = r.OutputText(), r.Report, wire(t, r.Items)
	}
	if e, ok := asRunError(o.err); ok {
		o.report, o.history = e.Report, wire(t, e.Messages)
		if f.api == "responses" {
			o.history = wire(t, e.Items)
		}
	}
	return o
}

func asRunError(err error) (*agent.RunError, bool) {
	return errors.AsType[*agent.RunError](err)
}

// store is a ledger and a journal in memory.
type store struct {
	middleware.Ledger
	journal.Journal
}

func memory() store { return store{middleware.Memory(), journal.Memory()} }

// bank is a provider whose money is counted.
type bank struct {
	mu    sync.Mutex
	moved []string
	// during is called while a refund is made, nil for nothing.
	during func(ctx context.Context, in refundInput) error
}

type refundInput struct {
	OrderID string `json:"order_id" once:"key"`
	Cents   int    `json:"cents"`
}

type lookInput struct {
	OrderID string `json:"order_id"`
}

func (b *bank) tools() *registry.Registry {
	tools := registry.New()
	registry.Add(tools, registry.Tool[refundInput, string]{
		Name: "issue_refund", Description: "Refund an order.", Effect: registry.NonIdempotentWrite,
		Run: func(ctx context.Context, in refundInput) (string, error) {
			b.mu.Lock()
			b.moved = append(b.moved, fmt.Sprintf("%s %d", in.OrderID, in.Cents))
			b.mu.Unlock()
			if b.during != nil {
				if err := b.during(ctx, in); err != nil {
					return "", err
				}
			}
			return "refunded " + in.OrderID, nil
		},
	})
	registry.Add(tools, registry.Tool[lookInput, string]{
		Name: "look_up", Description: "Look up an order.", Effect: registry.Read,
		Run: func(_ context.Context, in lookInput) (string, error) { return "order " + in.OrderID + " arrived", nil },
	})
	return tools
}

func (b *bank) total() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.moved, ", ")
}

// refundCall asks for a refund of 500 cents.
func refundCall(id, order string) transcript.ToolCall {
	return transcript.ToolCall{ID: id, Name: "issue_refund", Arguments: fmt.Sprintf(`{"order_id":%q,"cents":500}`, order)}
}

func lookCall(id, order string) transcript.ToolCall {
	return transcript.ToolCall{ID: id, Name: "look_up", Arguments: fmt.Sprintf(`{"order_id":%q}`, order)}
}

// once is a client that does not try again by itself.
func onceClient(s *transcript.Server) openai.Client { return clientOf(s, option.WithMaxRetries(0)) }

// goOn runs a request behind the history of another run.
func (f form) goOn(t *testing.T, l *agent.Loop, run agent.Run, before outcome, user string) (o outcome) {
	t.Helper()
	e, _ := asRunError(before.err)
	if f.api == "chat" {
		ms := append(messages{}, e.Messages...)
		c, err := l.Chat(t.Context(), run, openai.ChatCompletionNewParams{Model: "gpt-4.1-mini", Messages: append(ms, openai.UserMessage(user))})
		o.err = err
		return f.fill(t, o, c, nil)
	}
	p := responses.ResponseNewParams{Model: "gpt-4.1-mini"}
	p.Input.OfInputItemList = append(append(responses.ResponseInputParam{}, e.Items...), responses.ResponseInputItemParamOfMessage(user, responses.EasyInputMessageRoleUser))
	r, err := l.Respond(t.Context(), run, p)
	o.err = err
	return f.fill(t, o, nil, r)
}

// limited tells that a run has ended at a limit.
func limited(err error, limit string) bool {
	over, ok := errors.AsType[*agent.LimitError](err)
	return ok && over.Limit == limit
}
