package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// asking is a request whose parameters a test has changed. nil functions change nothing.
type asking struct {
	chat     func(*openai.ChatCompletionNewParams)
	response func(*responses.ResponseNewParams)
	// on is told each event of a stream; false leaves the loop. nil hears all.
	on func(agent.Event) bool
}

// with runs a request with parameters of its own.
func (f form) with(ctx context.Context, t *testing.T, l *agent.Loop, run agent.Run, a asking) (o outcome) {
	t.Helper()
	chat := openai.ChatCompletionNewParams{Model: "gpt-4.1-mini", Messages: messages{openai.UserMessage(request)}}
	resp := responses.ResponseNewParams{Model: "gpt-4.1-mini"}
	resp.Input.OfInputItemList = items{responses.ResponseInputItemParamOfMessage(request, responses.EasyInputMessageRoleUser)}
	if a.chat != nil {
		a.chat(&chat)
	}
	if a.response != nil {
		a.response(&resp)
	}
	var c *agent.ChatReply
	var r *agent.ResponseReply
	stream := l.StreamChat(ctx, run, chat)
	switch {
	case f.api == "chat" && !f.stream:
		c, o.err = l.Chat(ctx, run, chat)
	case !f.stream:
		r, o.err = l.Respond(ctx, run, resp)
	case f.api == "responses":
		stream = l.StreamRespond(ctx, run, resp)
	}
	if f.stream {
		for e, err := range stream {
			if o.err = err; err != nil {
				continue
			}
			o.events, c, r = append(o.events, e), e.Chat, e.Response
			if a.on != nil && !a.on(e) {
				break
			}
		}
	}
	return f.fill(t, o, c, r)
}

// sent are the items (or messages) of a request, byte for byte.
func sent(r transcript.Request) []string {
	var out []string
	for _, m := range gjson.GetBytes(r.Body, map[string]string{"chat": "messages", "responses": "input"}[r.API]).Array() {
		out = append(out, m.Raw)
	}
	return out
}

// wireIDs are the ids of the calls in a request, and of the outputs.
func wireIDs(r transcript.Request) (calls, outputs []string) {
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			calls = append(calls, c.ID)
		}
		if m.Role == "tool" {
			outputs = append(outputs, m.ToolCallID)
		}
	}
	return calls, outputs
}

// allAccepted fails the test for each request that the server has refused.
func allAccepted(t *testing.T, s *transcript.Server) {
	t.Helper()
	for i, r := range s.Requests() {
		if r.Refusal != "" {
			t.Errorf("request %d: %d %s", i, r.Status, r.Refusal)
		}
	}
}

// The ids that servers make are empty, come back, or are too long; the wire has others, the same in each attempt.
func TestIDsOfAServerAreMendedOnTheWireAndStayAcrossAttempts(t *testing.T) {
	long := strings.Repeat("x", 70)
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		down := true
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			switch {
			case r.Turn == 1:
				return transcript.Step{Calls: []transcript.ToolCall{refundCall("", "1"), refundCall("", "2"), lookCall("call_0", "1")}}
			case r.Turn == 2:
				return transcript.Step{Calls: []transcript.ToolCall{refundCall("call_0", "3"), refundCall(long+"a", "4"), refundCall(long+"b", "5")}}
			case down:
				return transcript.Step{Faults: []transcript.Fault{{Times: -1, Status: 500}}}
			}
			return transcript.Step{Text: "Done."}
		}, nil)
		l := agent.New(onceClient(s), b.tools(), memory(), nil)
		first := f.do(t, l, run, request)
		down = false
		again := f.do(t, l, run, request)
		if first.err == nil || again.err != nil || !again.report.Resumed {
			t.Fatal(first.err, again.err)
		}
		if got := b.total(); got != "1 500, 2 500, 3 500, 4 500, 5 500" {
			t.Errorf("moved %q", got)
		}
		rs := s.Requests()
		same(t, "the request after the resume", string(rs[2].Body), string(rs[3].Body))
		calls, outputs := wireIDs(rs[3])
		same(t, "outputs", calls, outputs)
		if len(calls) != 6 || calls[2] != "call_0" {
			t.Errorf("ids on the wire: %q", calls)
		}
		var reported []string
		for _, c := range again.report.Calls {
			reported = append(reported, c.CallID)
		}
		same(t, "reported", []string{"", "", "call_0", "call_0", long + "a", long + "b"}, reported)
	})
}

func TestArgumentsThatAreNoObjectAreAnsweredAndBlockNoLaterTurn(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		for _, args := range []string{
			`{"order_id":"1001`, `{"order_id":"1001","cents":5}{"order_id":"1001"}`, `{"order_id":NaN}`,
			`null`, `[]`, ``, `"x"`, `{"order_id":"1001","cents":10.5}`,
		} {
			var b bank
			s := transcript.NewServer(transcript.Steps(
				transcript.Step{Calls: []transcript.ToolCall{{ID: "call_a", Name: "issue_refund", Arguments: args}, lookCall("call_b", "1001")}},
				transcript.Step{Calls: []transcript.ToolCall{{ID: "call_c", Name: "issue_refund", Arguments: args}}},
				transcript.Step{Calls: []transcript.ToolCall{refundCall("call_d", "1001")}},
				transcript.Step{Text: "Done."},
			), nil)
			o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), nil), run, request)
			if o.err != nil || b.total() != "1001 500" {
				t.Errorf("%s: %v, moved %q", args, o.err, b.total())
			}
			same(t, args, []string{"1.0 issue_refund refused", "1.1 look_up executed", "2.0 issue_refund refused", "3.0 issue_refund executed"}, o.verdicts())
		}
	})
}

func TestAnUnknownToolIsAnsweredBesideItsNeighbours(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{{ID: "call_a", Name: "multi_tool_use.parallel", Arguments: `{"tool_uses":[]}`}, {ID: "call_b", Name: "isue_refund", Arguments: `{}`}, refundCall("call_c", "1001")}},
			transcript.Step{Text: "Done."},
		), nil)
		o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), nil), run, request)
		if o.err != nil || b.total() != "1001 500" {
			t.Fatal(o.err, b.total())
		}
		same(t, "verdicts", []string{"1.0 multi_tool_use.parallel refused", "1.1 isue_refund refused", "1.2 issue_refund executed"}, o.verdicts())
		if out := s.Requests()[1].Outputs(); !strings.Contains(out[1].Content, "issue_refund") {
			t.Errorf("the model is not told which tools there are: %s", out[1].Content)
		}
	})
}

// cancelledInTheFirst runs a turn of two refunds whose caller goes away in the first.
func cancelledInTheFirst(t *testing.T, f form, b *bank, l *agent.Loop) outcome {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := make(chan struct{})
	b.during = func(context.Context, refundInput) error {
		cancel()
		<-wait
		return nil
	}
	o := f.doContext(ctx, t, l, run, request)
	close(wait)
	if e, ok := asRunError(o.err); !ok || e.Turn != 1 || !errors.Is(o.err, context.Canceled) {
		t.Fatal(o.err)
	}
	return o
}

func twoRefunds(r transcript.Request) transcript.Step {
	if r.Turn == 1 {
		return transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1"), refundCall("call_b", "2")}}
	}
	return transcript.Step{Text: "Done."}
}

func TestACancelledTurnIsClosedForAnotherRun(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(twoRefunds, nil)
		st := memory()
		l := agent.New(onceClient(s), b.tools(), st, nil)
		before := cancelledInTheFirst(t, f, &b, l)
		next := f.goOn(t, l, agent.Run{ID: "ticket-43"}, before, "Well?")
		if next.err != nil || next.text != "Done." || b.total() != "1 500" {
			t.Fatalf("%q, %v, moved %q", next.text, next.err, b.total())
		}
		var told []string
		for _, m := range s.Requests()[1].Messages {
			if m.Role == "tool" {
				told = append(told, m.ToolCallID+" "+gjson.Get(m.Content, "status").String())
			}
		}
		same(t, "told", []string{"call_a outcome_unknown", "call_b refused"}, told)
		allAccepted(t, s)
	})
}

func TestACancelledTurnIsGoneOnWithByTheSameRun(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(twoRefunds, nil)
		l := agent.New(onceClient(s), b.tools(), memory(), nil)
		cancelledInTheFirst(t, f, &b, l)
		b.during = nil
		o := f.do(t, l, run, request)
		if o.err != nil || o.text != "Done." || b.total() != "1 500, 2 500" || len(s.Requests()) != 2 {
			t.Fatalf("%q, %v, moved %q, %d requests", o.text, o.err, b.total(), len(s.Requests()))
		}
		same(t, "verdicts", []string{"1.0 issue_refund replayed", "1.1 issue_refund executed"}, o.verdicts())
	})
}

// The calls of the last turn had run when the attempt broke off: at the limit they are answered with what came of them.
func TestAtTheLimitCallsThatHadRunAreAnsweredWithTheirResults(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(twoRefunds, nil)
		st := memory()
		cancelledInTheFirst(t, f, &b, agent.New(onceClient(s), b.tools(), st, nil))
		o := f.do(t, agent.New(onceClient(s), b.tools(), st, &agent.Options{MaxTurns: 1}), run, request)
		if !limited(o.err, "turns") || b.total() != "1 500" {
			t.Fatal(o.err, b.total())
		}
		same(t, "verdicts", []string{"1.0 issue_refund replayed", "1.1 issue_refund refused"}, o.verdicts())
		o = f.do(t, agent.New(onceClient(s), b.tools(), st, nil), run, request)
		if o.err != nil || o.text != "Done." || b.total() != "1 500" {
			t.Errorf("with a higher limit: %q, %v, moved %q", o.text, o.err, b.total())
		}
	})
}

func TestAPanicOfAToolIsAnOutcomeThatIsNotKnown(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		b.during = func(context.Context, refundInput) error { panic("secret") }
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			if r.Turn < 3 {
				return transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1001"), lookCall("call_b", "1001")}}
			}
			return transcript.Step{Text: "Done."}
		}, &transcript.Options{RepeatedIDs: true})
		o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), nil), run, request)
		if o.err != nil || b.total() != "1001 500" {
			t.Fatal(o.err, b.total())
		}
		want := []string{"1.0 issue_refund outcome_unknown", "1.1 look_up executed", "2.0 issue_refund outcome_unknown", "2.1 look_up executed"}
		same(t, "verdicts", want, o.verdicts())
		if history := strings.Join(o.history, ""); strings.Contains(history, "secret") || strings.Contains(history, ".go:") {
			t.Error("the model reads what the panic says")
		}
	})
}

func TestAPanicOfAMiddlewareIsTheCallersAndTheRunCanGoOn(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		for _, calls := range [][]transcript.ToolCall{{refundCall("call_a", "1"), refundCall("call_b", "2")}, {lookCall("call_a", "1"), lookCall("call_b", "2")}} {
			var b bank
			broken := true
			opts := &agent.Options{Middleware: []registry.Middleware{func(next registry.Handler) registry.Handler {
				return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
					if broken && c.Position == 1 {
						panic("mine")
					}
					return next(ctx, c)
				}
			}}}
			s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: calls}, transcript.Step{Text: "Done."}), nil)
			l := agent.New(onceClient(s), b.tools(), memory(), opts)
			func() {
				defer func() {
					if p := recover(); p != "mine" {
						t.Errorf("the caller got %v", p)
					}
				}()
				f.do(t, l, run, request)
			}()
			broken = false
			o := f.do(t, l, run, request)
			if o.err != nil || o.text != "Done." || len(s.Requests()) != 2 || strings.Count(b.total(), "1 500") > 1 {
				t.Errorf("%q, %v, moved %q", o.text, o.err, b.total())
			}
		}
	})
}

func TestAnErrorOfAHandlerChainStopsTheRunAndIsTheCallersAlone(t *testing.T) {
	mine := errors.New("stop it")
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		stop := true
		opts := &agent.Options{Middleware: []registry.Middleware{func(next registry.Handler) registry.Handler {
			return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
				if stop && c.Position == 1 {
					return registry.Result{}, mine
				}
				return next(ctx, c)
			}
		}}}
		s := transcript.NewServer(twoRefunds, nil)
		l := agent.New(onceClient(s), b.tools(), memory(), opts)
		o := f.do(t, l, run, request)
		if e, ok := asRunError(o.err); !ok || e.Turn != 1 || !errors.Is(o.err, mine) || len(s.Requests()) != 1 {
			t.Fatal(o.err)
		}
		if strings.Contains(strings.Join(o.history, ""), "stop it") {
			t.Error("the model would read the error")
		}
		stop = false
		o = f.do(t, l, run, request)
		if o.err != nil || b.total() != "1 500, 2 500" {
			t.Error(o.err, b.total())
		}
	})
}

// The refund has been made but its record cannot be written.
func TestAResultThatCannotBeSavedEndsTheRunAndIsNeverAToolError(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		synctest.Test(t, func(t *testing.T) {
			var b bank
			var full atomic.Bool
			full.Store(true)
			ledger := &ledgertest.Faulty{Ledger: middleware.Memory(), Before: func(_ context.Context, op ledgertest.Op) error {
				if full.Load() && op.Step == middleware.Complete {
					return errors.New("disk full")
				}
				return nil
			}}
			s := transcript.NewServer(twoRefunds, nil)
			l := agent.New(onceClient(s), b.tools(), store{ledger, memory().Journal}, nil)
			o := f.do(t, l, run, request)
			lost, ok := errors.AsType[*middleware.NotSavedError](o.err)
			if !ok || lost.Result != "refunded 1" || len(s.Requests()) != 1 || strings.Contains(o.err.Error(), "refunded") {
				t.Fatal(o.err)
			}
			if h := strings.Join(o.history, ""); strings.Contains(h, "disk") || strings.Contains(h, `failed`) || !strings.Contains(h, "outcome_unknown") {
				t.Errorf("the model would read %s", h)
			}
			full.Store(false)
			o = f.do(t, l, run, request)
			if o.err != nil || o.text != "Done." || b.total() != "1 500, 2 500" {
				t.Errorf("%q, %v, moved %q", o.text, o.err, b.total())
			}
			time.Sleep(time.Hour) // what saves in the background ends
		})
	})
}
