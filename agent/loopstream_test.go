package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/openai/openai-go/v3"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/transcript"
)

// streams are the forms that stream.
var streams = []form{{"chat", true}, {"responses", true}}

func eachStream(t *testing.T, test func(t *testing.T, f form)) {
	t.Helper()
	for _, f := range streams {
		t.Run(f.api, func(t *testing.T) { test(t, f) })
	}
}

// refundAndEnd is a turn with all that a stream can tell, and an answer.
func refundAndEnd(r transcript.Request) transcript.Step {
	if r.Turn == 1 {
		return transcript.Step{Reasoning: "Hm.", Text: "One moment.", Calls: []transcript.ToolCall{lookCall("call_a", "1001"), refundCall("call_b", "1001")}}
	}
	return transcript.Step{Text: "Done."}
}

// cutAt breaks the stream of a turn, and then goes on with the run. It gives the error of the first attempt.
func cutAt(t *testing.T, f form, turn int, fault transcript.Fault) error {
	t.Helper()
	var b bank
	s := transcript.NewServer(func(r transcript.Request) transcript.Step {
		step := refundAndEnd(r)
		if r.Turn == turn {
			step.Faults = []transcript.Fault{fault}
		}
		return step
	}, nil)
	l := agent.New(onceClient(s), b.tools(), memory(), nil)
	first := f.do(t, l, run, request)
	if e, ok := asRunError(first.err); first.err != nil && (!ok || e.Turn != turn || len(e.Report.Usage) != turn-1 || turn == 1 && b.total() != "") {
		t.Errorf("turn %d, %+v: %v, moved %q", turn, fault, first.err, b.total())
	}
	o := f.do(t, l, run, request)
	if o.err != nil || o.text != "Done." || b.total() != "1001 500" {
		t.Errorf("turn %d, %+v: %q, %v, moved %q", turn, fault, o.text, o.err, b.total())
	}
	return first.err
}

// A stream that is cut anywhere before its end mark runs nothing and stores nothing; the next attempt goes on.
func TestAStreamOfATurnCutAnywhereRunsNothingAndIsAskedForAgain(t *testing.T) {
	eachStream(t, func(t *testing.T, f form) {
		for turn := 1; turn <= 2; turn++ {
			events := 0
			for cutAt(t, f, turn, transcript.Fault{Truncate: true, After: events}) != nil {
				events++
			}
			if least := map[string][]int{"chat": {15, 5}, "responses": {20, 11}}[f.api][turn-1]; events < least {
				t.Errorf("turn %d is whole after %d events", turn, events)
			}
			for after := 0; after < 2000; after += 97 {
				if err := cutAt(t, f, turn, transcript.Fault{Drop: true, After: after}); err == nil && after < 500 {
					t.Errorf("turn %d is whole after %d bytes", turn, after)
				}
			}
		}
	})
}

func TestGarbageInAStreamRunsNothing(t *testing.T) {
	eachStream(t, func(t *testing.T, f form) {
		for _, raw := range []string{
			"data: {\"x\n\n", "data: [1]\n\n", "data: 7\n\n", ": only a comment\n\n", "<html>busy</html>", "data: [DONE]\n\n",
			`{"id":"x","choices":[{"message":{"role":"assistant","content":"no stream"},"finish_reason":"stop"}]}`,
			sse(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"issue_refund","arguments":"{\"order_id\":\"1\",\"cents\":5}"}}]}}]}`, "[DONE]"), // no finish_reason
		} {
			var b bank
			s := transcript.NewServer(func(r transcript.Request) transcript.Step {
				if r.Turn == 1 && r.Attempt == 1 {
					return transcript.Step{Raw: raw, FinishReason: "stop"}
				}
				return refundAndEnd(r)
			}, nil)
			l := agent.New(onceClient(s), b.tools(), memory(), nil)
			o := f.do(t, l, run, request)
			if e, ok := asRunError(o.err); !ok || e.Turn != 1 || b.total() != "" || len(o.report.Usage) != 0 {
				t.Errorf("%q: %v", raw, o.err)
			}
			if o = f.do(t, l, run, request); o.err != nil || b.total() != "1001 500" {
				t.Errorf("%q, again: %v, moved %q", raw, o.err, b.total())
			}
		}
	})
}

func TestACancelInMidStreamIsTheContextsError(t *testing.T) {
	mine := errors.New("the user has gone")
	eachStream(t, func(t *testing.T, f form) {
		for _, kind := range []agent.EventKind{agent.TextDelta, agent.CallAnnounced, agent.ArgumentsComplete} {
			for _, cause := range []error{nil, mine} {
				var b bank
				ctx, cancel := context.WithCancelCause(t.Context())
				s := transcript.NewServer(refundAndEnd, nil)
				l := agent.New(onceClient(s), b.tools(), memory(), nil)
				o := f.with(ctx, t, l, run, asking{on: func(e agent.Event) bool {
					if e.Kind == kind {
						cancel(cause)
					}
					return true
				}})
				cancel(nil)
				if !errors.Is(o.err, context.Canceled) || len(o.report.Usage) != 0 || b.total() != "" {
					t.Errorf("%d: %v, moved %q", kind, o.err, b.total())
				}
				if cause != nil && !errors.Is(o.err, cause) {
					t.Errorf("%d: the cause is lost: %v", kind, o.err)
				}
				if o = f.with(t.Context(), t, l, run, asking{}); o.err != nil || b.total() != "1001 500" {
					t.Errorf("again: %v, moved %q", o.err, b.total())
				}
			}
		}
	})
}

// eventLines are events as text.
func eventLines(events []agent.Event) []string {
	names := map[agent.EventKind]string{
		agent.TextDelta: "text", agent.RefusalDelta: "refusal", agent.ReasoningDelta: "reasoning", agent.CallAnnounced: "call",
		agent.ArgumentsComplete: "arguments", agent.VerdictGiven: "verdict", agent.ResultGiven: "result", agent.TurnEnded: "ended", agent.Answered: "answered",
	}
	var out []string
	for _, e := range events {
		line := fmt.Sprintf("%d %s", e.Turn, names[e.Kind])
		switch e.Kind {
		case agent.TextDelta, agent.RefusalDelta, agent.ReasoningDelta:
			if n := len(out) - 1; n >= 0 && strings.HasPrefix(out[n], line+" ") {
				out[n] += e.Text // pieces are the server's choice
				continue
			}
			line += " " + e.Text
		case agent.TurnEnded, agent.Answered:
		default:
			line += strings.TrimRight(fmt.Sprintf(" %d %s %s %s %s", e.Position, e.CallID, e.Tool, e.Verdict, e.Text), " ")
		}
		out = append(out, line)
	}
	return out
}

func TestTheEventsOfARunComeInOrder(t *testing.T) {
	calls := []string{
		"1 call 0 call_a look_up", `1 arguments 0 call_a look_up  {"order_id":"1001"}`,
		"1 call 1 call_b issue_refund", `1 arguments 1 call_b issue_refund  {"order_id":"1001","cents":500}`,
	}
	rest := []string{
		"1 verdict 0 call_a look_up executed", "1 result 0 call_a look_up executed order 1001 arrived",
		"1 verdict 1 call_b issue_refund executed", "1 result 1 call_b issue_refund executed refunded 1001",
		"1 ended", "2 text Done.", "2 ended", "2 answered",
	}
	want := map[string][]string{
		// A completion says that its calls are complete all at once, at its end.
		"chat":      append([]string{"1 text One moment.", calls[0], calls[2], calls[1], calls[3]}, rest...),
		"responses": append(append([]string{"1 reasoning Hm.", "1 text One moment."}, calls...), rest...),
	}
	eachStream(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(refundAndEnd, nil)
		l := agent.New(onceClient(s), b.tools(), memory(), nil)
		o := f.do(t, l, run, request)
		if o.err != nil {
			t.Fatal(o.err)
		}
		same(t, "events", want[f.api], eventLines(o.events))
		var ended []agent.Usage
		for _, e := range o.events {
			if e.Kind == agent.TurnEnded {
				ended = append(ended, e.Usage)
			}
			if e.Kind == agent.VerdictGiven && (e.Operation != "") != (e.Tool == "issue_refund") {
				t.Errorf("operation %q of %s", e.Operation, e.Tool)
			}
		}
		same(t, "usage", o.report.Usage, ended)
		if total := o.report.Total(); total.Input == 0 || total.Output == 0 || total.Input != ended[0].Input+ended[1].Input {
			t.Errorf("total %+v of %+v", total, ended)
		}
		again := f.do(t, l, run, request)
		same(t, "a finished run", []string{"2 text Done.", "2 answered"}, eventLines(again.events))
	})
}

func TestUsageIsAskedForUnlessTheCallerHasSaidSo(t *testing.T) {
	for _, c := range []struct {
		name, want string
		set        func(*openai.ChatCompletionNewParams)
	}{
		{"nothing is said", `{"include_usage":true}`, nil},
		{"no is said", `{"include_usage":false}`, func(p *openai.ChatCompletionNewParams) { p.StreamOptions.IncludeUsage = openai.Bool(false) }},
		{"something else is said", `{"include_obfuscation":false,"include_usage":true}`, func(p *openai.ChatCompletionNewParams) {
			p.StreamOptions.IncludeObfuscation = openai.Bool(false)
		}},
	} {
		var b bank
		s := transcript.NewServer(refundAndEnd, nil)
		o := streams[0].with(t.Context(), t, agent.New(onceClient(s), b.tools(), memory(), nil), run, asking{chat: c.set})
		if o.err != nil || len(o.report.Usage) != 2 || (o.report.Total().Output > 0) != strings.Contains(c.want, `usage":true`) {
			t.Errorf("%s: %v, %+v", c.name, o.err, o.report.Usage)
		}
		for _, r := range s.Requests() {
			same(t, c.name, c.want, gjson.GetBytes(r.Body, "stream_options").Raw)
		}
	}
}

// Leaving the loop at any event leaves the run: it can be gone on with at once, and nothing happens twice.
func TestTheLoopOverEventsCanBeLeftAnywhere(t *testing.T) {
	eachStream(t, func(t *testing.T, f form) {
		for at := 1; ; at++ {
			var b bank
			s := transcript.NewServer(refundAndEnd, nil)
			l := agent.New(onceClient(s), b.tools(), memory(), nil)
			n := 0
			left := f.with(t.Context(), t, l, run, asking{on: func(agent.Event) bool { n++; return n < at }})
			if n < at {
				break
			}
			last := left.events[len(left.events)-1]
			before := last.Turn == 1 && last.Position == 0 && last.Kind != agent.TurnEnded || last.Kind < agent.VerdictGiven
			if last.Turn == 1 && before && b.total() != "" || len(s.Requests()) != last.Turn {
				t.Errorf("left at event %d, and yet moved %q in %d requests", at, b.total(), len(s.Requests()))
			}
			o := f.with(t.Context(), t, l, run, asking{})
			if o.err != nil || o.text != "Done." || b.total() != "1001 500" {
				t.Errorf("left at event %d: %q, %v, moved %q", at, o.text, o.err, b.total())
			}
			allAccepted(t, s)
		}
	})
}

func TestNothingHappensBeforeTheFirstEventIsAskedFor(t *testing.T) {
	var b bank
	s := transcript.NewServer(refundAndEnd, nil)
	l := agent.New(onceClient(s), b.tools(), memory(), nil)
	_ = l.StreamChat(t.Context(), run, openai.ChatCompletionNewParams{Model: "m", Messages: messages{openai.UserMessage(request)}})
	if len(s.Requests()) != 0 {
		t.Error("a request was sent")
	}
}

// sse is a stream of the events that are given.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

// A server need not send [DONE], nor its ids and indexes as OpenAI does.
func TestStreamsOfOddServersAreRead(t *testing.T) {
	const cut = `{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`
	call := func(index, id, order string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{%s"id":%q,"function":{"name":"issue_refund","arguments":"{\"order_id\":\"%s\",\"cents\":500}"}}]}}]}`, index, id, order)
	}
	for name, raw := range map[string]string{
		"no [DONE]":            sse(call(`"index":0,`, "call_a", "1"), call(`"index":1,`, "call_b", "2"), fmt.Sprintf(cut, "tool_calls")),
		"finish stop":          sse(call(`"index":0,`, "call_a", "1"), call(`"index":1,`, "call_b", "2"), fmt.Sprintf(cut, "stop"), "[DONE]"),
		"no ids":               sse(call(`"index":0,`, "", "1"), call(`"index":1,`, "", "2"), fmt.Sprintf(cut, "tool_calls"), "[DONE]"),
		"no id at the second":  sse(call(`"index":0,`, "call_a", "1"), call(`"index":1,`, "", "2"), fmt.Sprintf(cut, "tool_calls"), "[DONE]"),
		"one index":            sse(call(`"index":0,`, "call_a", "1"), call(`"index":0,`, "call_b", "2"), fmt.Sprintf(cut, "tool_calls"), "[DONE]"),
		"index -1, then a gap": sse(call(`"index":-1,`, "call_a", "1"), call(`"index":7,`, "call_b", "2"), fmt.Sprintf(cut, "tool_calls"), "[DONE]"),
		"no index":             sse(call("", "call_a", "1"), call("", "call_b", "2"), fmt.Sprintf(cut, "tool_calls"), "[DONE]"),
	} {
		var b bank
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			if r.Turn == 1 {
				return transcript.Step{Raw: raw}
			}
			return transcript.Step{Text: "Done."}
		}, nil)
		o := streams[0].do(t, agent.New(onceClient(s), b.tools(), memory(), nil), run, request)
		if o.err != nil || o.text != "Done." || b.total() != "1 500, 2 500" {
			t.Errorf("%s: %q, %v, moved %q", name, o.text, o.err, b.total())
		}
		allAccepted(t, s)
	}
}

// The SDK asks again by itself where a server fails or breaks off. That is one turn.
func TestRetriesOfTheSDKAreOneTurn(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		synctest.Test(t, func(t *testing.T) { // it waits between them
			var b bank
			s := transcript.NewServer(func(r transcript.Request) transcript.Step {
				step := refundAndEnd(r)
				step.Faults = []transcript.Fault{{Status: 500}, {Drop: true}}
				return step
			}, nil)
			o := f.do(t, agent.New(clientOf(s), b.tools(), memory(), nil), run, request)
			if o.err != nil || len(s.Requests()) != 6 || len(o.report.Usage) != 2 || b.total() != "1001 500" {
				t.Errorf("%v, %d requests, %d turns, moved %q", o.err, len(s.Requests()), len(o.report.Usage), b.total())
			}
		})
	})
}
