package agent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// What the calls have taken is gone for the next request.
func TestARequestHasTheTimeThatIsLeftOfTheAttempt(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		synctest.Test(t, func(t *testing.T) {
			b := bank{during: func(context.Context, refundInput) error { time.Sleep(40 * time.Second); return nil }}
			s := transcript.NewServer(func(r transcript.Request) transcript.Step {
				step := refundAndEnd(r)
				if r.Turn == 2 {
					step.Faults = []transcript.Fault{{Times: -1, Delay: time.Hour}}
				}
				return step
			}, nil)
			begun := time.Now()
			o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), &agent.Options{MaxTime: time.Minute}), run, request)
			if took := time.Since(begun); !limited(o.err, "time") || took != time.Minute {
				t.Errorf("%v after %v", o.err, took)
			}
		})
	})
}

// Reads of a turn wait for their place, and a write waits for another's attempt: the time may be over by then.
func TestACallThatHasWaitedUntilTheTimeIsOverIsNotStarted(t *testing.T) {
	for tool, calls := range map[string][]transcript.ToolCall{
		"look_up": {lookCall("a", "1"), lookCall("b", "2")}, "issue_refund": {refundCall("a", "1"), refundCall("b", "2")},
	} {
		eachForm(t, func(t *testing.T, f form) {
			synctest.Test(t, func(t *testing.T) {
				var b bank
				waits := beforeCalls(func(*registry.Call) error { time.Sleep(time.Minute); return nil })
				s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: calls}, transcript.Step{Text: "Done."}), nil)
				o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), &agent.Options{MaxTime: time.Minute, Middleware: waits}), run, request)
				stoppedAt(t, o, 2, agent.LimitError{Limit: "time", Max: int64(time.Minute)}, []string{"1.0 " + tool + " refused", "1.1 " + tool + " refused"})
				if b.total() != "" {
					t.Errorf("moved %q", b.total())
				}
			})
		})
	}
}

// What is answered from the record behind the limit begins no row anew: the calls behind that would run, where others
// of their turn were refused.
func TestALimitThatATurnHasReachedHoldsForTheRestOfIt(t *testing.T) {
	unknown := func(id string) transcript.ToolCall { return transcript.ToolCall{ID: id, Name: "nope", Arguments: "{}"} }
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{refundCall("a", "1")}},
			transcript.Step{Calls: []transcript.ToolCall{unknown("b"), unknown("c"), refundCall("d", "2"), refundCall("e", "1"), refundCall("f", "3")}},
			transcript.Step{Text: "Done."},
		), nil)
		o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), &agent.Options{MaxErrors: 2}), run, request)
		stoppedAt(t, o, 3, agent.LimitError{Limit: "errors", Max: 2}, []string{
			"1.0 issue_refund executed",
			"2.0 nope refused", "2.1 nope refused", "2.2 issue_refund refused", "2.3 issue_refund already_done", "2.4 issue_refund refused",
		})
		if b.total() != "1 500" {
			t.Errorf("moved %q", b.total())
		}
	})
}

func TestAModelThatRepeatsItselfIsReportedBesideAPause(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b office
		s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: []transcript.ToolCall{
			payCall("a", "1", 500), payCall("b", "1", 500), payCall("c", "1", 500), payCall("d", "2", 5000),
		}}), nil)
		o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), &agent.Options{Once: &middleware.OnceOptions{Repeats: 1}}), run, request)
		same(t, "waiting", []string{`1.3 pay_out {"cents":5000,"order":"2"}`}, waiting(t, o))
		if over, ok := errors.AsType[*middleware.RepeatError](o.err); !ok || over.Repeats != 2 {
			t.Errorf("the pause is all that is told: %v", o.err)
		}
	})
}

// A person is asked once, so all that waits is asked about: what has failed without effect may be tried again.
func TestACallIsAskedAboutThoughAnEqualOneBeforeThePauseHasFailed(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		tools := registry.New()
		registry.Add(tools, registry.Tool[payout, string]{
			Name: "pay_out", Description: "Pay out.", Effect: registry.NonIdempotentWrite,
			NeedsApproval: func(context.Context, payout) (bool, error) { return true, nil },
			Run: func(context.Context, payout) (string, error) {
				return "", registry.NoEffect(errors.New("connection refused"))
			},
		})
		call := func(id, arguments string) transcript.ToolCall {
			return transcript.ToolCall{ID: id, Name: "pay_out", Arguments: arguments}
		}
		s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: []transcript.ToolCall{
			call("a", `{"order":"1","cents":1}`), call("b", `{"order":"2","cents":2}`), call("c", `{"order":"1","cents":1}`),
		}}), nil)
		l := agent.New(onceClient(s), tools, memory(), nil)
		paused, ok := errors.AsType[*middleware.PausedError](f.do(t, l, run, request).err)
		if !ok || len(paused.Waiting) != 2 {
			t.Fatal(paused)
		}
		if err := l.Approve(t.Context(), paused.Waiting[0], "ann", ""); err != nil {
			t.Fatal(err)
		}
		want := []string{`1.1 pay_out {"cents":2,"order":"2"}`, `1.2 pay_out {"cents":1,"order":"1"}`}
		same(t, "waiting", want, waiting(t, f.do(t, l, run, request)))
	})
}

func TestQuestionsOfAMiddlewareAboutOtherPlacesAreHandedOn(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		other := &middleware.PausedError{Waiting: []middleware.Approval{{ID: "x", Call: middleware.Alias{Position: 1}}, {ID: "y", Call: middleware.Alias{Position: -1}}}}
		asks := beforeCalls(func(*registry.Call) error { return other })
		s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: []transcript.ToolCall{refundCall("a", "1")}}), nil)
		o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), &agent.Options{Middleware: asks}), run, request)
		paused, _ := errors.AsType[*middleware.PausedError](o.err)
		if paused == nil {
			t.Fatal(o.err)
		}
		same(t, "waiting", other.Waiting, paused.Waiting)
		for _, e := range o.events {
			if e.Kind == agent.ApprovalAsked {
				t.Errorf("told of a call that is not there: %+v", e)
			}
		}
	})
}

func TestARepairRunsUnderTheOptionsOfItsLoop(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		var b bank
		var calls, stopped []string
		s := transcript.NewServer(transcript.Steps(
			transcript.Step{Text: "It is done."}, transcript.Step{Calls: []transcript.ToolCall{refundCall("a", "1")}}, transcript.Step{Text: "{}"},
		), nil)
		_, _, err := as(t, api, agent.New(onceClient(s), b.tools(), memory(), &agent.Options{
			Repair: true, MaxTurns: 1,
			Middleware: beforeCalls(func(c *registry.Call) error { calls = append(calls, c.Run.ID+" "+c.Tool); return nil }),
			On: func(e agent.Event) {
				if e.Kind == agent.Stopped {
					stopped = append(stopped, e.Run.ID)
				}
			},
		}))
		if !limited(err, "turns") || len(s.Requests()) != 2 || b.total() != "" {
			t.Errorf("%v, %d requests, moved %q", err, len(s.Requests()), b.total())
		}
		same(t, "calls", []string{"ticket-42/repair issue_refund"}, calls)
		same(t, "stopped", []string{"ticket-42/repair"}, stopped)
	})
}

func TestARepairLeavesOutTheToolsThatTheCallerHasListed(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		var b bank
		s := transcript.NewServer(transcript.Steps(transcript.Step{Text: "It is done."}, transcript.Step{Text: `{"order":"1001","cents":500,"note":null}`}), nil)
		tools := b.tools()
		l := agent.New(onceClient(s), tools, memory(), &agent.Options{Repair: true})
		var v verdict
		var err error
		if api == "chat" {
			p := openai.ChatCompletionNewParams{Model: "gpt-4.1-mini", Messages: messages{openai.UserMessage(request)}, Tools: agent.ChatTools(tools)}
			p.ToolChoice.OfAuto = openai.String("auto")
			v, _, err = agent.ChatAs[verdict](t.Context(), l, run, p)
		} else {
			p := responses.ResponseNewParams{Model: "gpt-4.1-mini", Tools: agent.ResponseTools(tools), Prompt: responses.ResponsePromptParam{ID: "pmpt_1"}}
			p.Input.OfString = openai.String(request)
			p.ToolChoice.OfToolChoiceMode = openai.Opt(responses.ToolChoiceOptionsAuto)
			v, _, err = agent.RespondAs[verdict](t.Context(), l, run, p)
		}
		if want := (verdict{Order: "1001", Cents: 500}); err != nil || v != want {
			t.Fatalf("%+v, %v", v, err)
		}
		for n, r := range s.Requests() {
			for _, field := range []string{"tools", "tool_choice"} {
				if there := gjson.GetBytes(r.Body, field).Exists(); there != (n == 0) {
					t.Errorf("request %d has %s: %v", n+1, field, there)
				}
			}
		}
	})
}

func TestARefusalThatWasCutOffIsARefusal(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		var b bank
		raw := `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"length","message":{"role":"assistant","content":null,"refusal":"I will"}}]}`
		if api == "responses" {
			raw = `{"id":"r","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"model":"m","output":[{"type":"message","id":"msg_1","role":"assistant","status":"incomplete","content":[{"type":"refusal","refusal":"I will"}]}]}`
		}
		s := transcript.NewServer(transcript.Steps(transcript.Step{Raw: raw}), nil)
		_, report, err := as(t, api, agent.New(onceClient(s), b.tools(), memory(), &agent.Options{Repair: true}))
		if no, ok := errors.AsType[*agent.RefusalError](err); !ok || no.Text != "I will" || report == nil || len(s.Requests()) != 1 {
			t.Errorf("%v, %v, %d requests", err, report, len(s.Requests()))
		}
	})
}
