package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// beforeCalls is a middleware that asks whether a call may go on.
func beforeCalls(ask func(*registry.Call) error) []registry.Middleware {
	return []registry.Middleware{func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
			if err := ask(c); err != nil {
				return registry.Result{}, err
			}
			return next(ctx, c)
		}
	}}
}

// What was read before a turn was cut off may be old by then; nobody has told the model of it.
func TestReadsOfATurnThatWasCutOffAreMadeAgain(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		looked, down := 0, true
		opts := &agent.Options{Middleware: beforeCalls(func(c *registry.Call) error {
			switch {
			case c.Tool == "look_up":
				looked++
			case down:
				return errors.New("stop it")
			}
			return nil
		})}
		s := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{lookCall("call_a", "1"), refundCall("call_b", "1")}}, transcript.Step{Text: "Done."},
		), nil)
		l := agent.New(onceClient(s), b.tools(), memory(), opts)
		if o := f.do(t, l, run, request); o.err == nil || looked != 1 {
			t.Fatal(o.err, looked)
		}
		down = false
		wantVerdicts(t, f.do(t, l, run, request), "1.0 look_up executed", "1.1 issue_refund executed")
		if looked != 2 || b.total() != "1 500" {
			t.Errorf("looked up %d times, moved %q", looked, b.total())
		}
	})
}

// A model that repeats on purpose what it has just done has not been asked to: the user spoke before that.
func TestTheUserHasAskedWhenTheRunBeganWhateverTheTimeOfItsCalls(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		synctest.Test(t, func(t *testing.T) {
			paid := 0
			tools := registry.New()
			registry.Add(tools, registry.Tool[payout, string]{
				Name: "pay_out", Effect: registry.NonIdempotentWrite, Repeat: registry.RepeatFreely,
				Run: func(context.Context, payout) (string, error) {
					paid++
					return "paid", nil
				},
			})
			s := transcript.NewServer(func(r transcript.Request) (step transcript.Step) {
				time.Sleep(time.Second) // each answer takes its time
				operation := ""
				if outs := r.Outputs(); len(outs) > 0 {
					operation = gjson.Get(outs[0].Content, "operation").String()
				}
				switch {
				case operation != "":
					again := strings.Replace(payCall("", "7", 5000).Arguments, "null", quote(operation), 1)
					step.Calls = []transcript.ToolCall{{ID: "r", Name: "pay_out", Arguments: again}}
				case r.Turn < 3:
					step.Calls = []transcript.ToolCall{payCall(fmt.Sprint("p", r.Turn), "7", 5000)}
				default:
					step.Text = "Done."
				}
				return step
			}, nil)
			l := agent.New(onceClient(s), tools, memory(), nil)
			o := f.do(t, l, agent.Run{ID: "msg-1", Conversation: "chat-7"}, "Pay order 7.")
			wantVerdicts(t, o, "1.0 pay_out executed", "2.0 pay_out already_done", "3.0 pay_out refused")
			time.Sleep(time.Minute)
			o = f.do(t, l, agent.Run{ID: "msg-2", Conversation: "chat-7"}, "Pay it once more.")
			if wantVerdicts(t, o, "1.0 pay_out already_done", "2.0 pay_out executed"); paid != 2 {
				t.Errorf("paid %d times", paid)
			}
		})
	})
}

func TestAnswersThatSayNothingAreCountedInARowAndOfOneAttempt(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		if f.api == "chat" {
			return
		}
		var b bank
		nothing := f.answers("completed", "["+reasoning+"]")
		down := transcript.Step{Faults: []transcript.Fault{{Times: -1, Status: 500}}}
		call := transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1")}}
		steps := []transcript.Step{nothing, nothing, down, nothing, nothing, call, nothing, nothing, {Text: "Done."}}
		n := 0
		s := transcript.NewServer(func(transcript.Request) transcript.Step {
			n++
			return steps[n-1]
		}, nil)
		l := agent.New(onceClient(s), b.tools(), memory(), nil)
		if o := f.do(t, l, run, request); o.err == nil || n != 3 {
			t.Fatal(o.err, n)
		}
		if o := f.do(t, l, run, request); o.err != nil || o.text != "Done." || b.total() != "1 500" {
			t.Errorf("%q, %v, moved %q, %d requests", o.text, o.err, b.total(), n)
		}
	})
}

// Between two calls nothing runs: the rest has surely not been done, and the model must not hear otherwise.
func TestCancelledBetweenCallsTheHistorySaysThatTheRestWasNotDone(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(twoRefunds, nil)
		st := memory()
		ctx, cancel := context.WithCancelCause(t.Context())
		mine := errors.New("the user has gone")
		leaves := func(next registry.Handler) registry.Handler {
			return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
				defer cancel(mine) // with the result in hand
				return next(ctx, c)
			}
		}
		o := f.doContext(ctx, t, agent.New(onceClient(s), b.tools(), st, &agent.Options{Middleware: []registry.Middleware{leaves}}), run, request)
		if !errors.Is(o.err, context.Canceled) || !errors.Is(o.err, mine) || !strings.Contains(o.err.Error(), "cancelled before call 1") {
			t.Fatal(o.err)
		}
		l := agent.New(onceClient(s), b.tools(), st, nil)
		if next := f.goOn(t, l, agent.Run{ID: "ticket-43"}, o, "Well?"); next.err != nil {
			t.Fatal(next.err)
		}
		var told []string
		for _, m := range s.Requests()[1].Messages {
			if m.Role == "tool" {
				told = append(told, m.Content)
			}
		}
		if len(told) != 2 || told[0] != "refunded 1" || gjson.Get(told[1], "status").String() != "refused" || !strings.Contains(told[1], "the run was stopped before this call") {
			t.Errorf("told %q", told)
		}
		wantVerdicts(t, f.do(t, l, run, request), "1.0 issue_refund replayed", "1.1 issue_refund executed")
	})
}

// storing is a store at which something happens as a turn is stored.
type storing struct {
	agent.Store
	during func(e journal.Entry, store func(journal.Entry) (journal.Entry, error)) (journal.Entry, error)
}

func (s storing) Append(ctx context.Context, e journal.Entry) (journal.Entry, error) {
	return s.during(e, func(e journal.Entry) (journal.Entry, error) { return s.Store.Append(ctx, e) })
}

// stubborn stores a refund of order 1001 in place of the first answers.
func stubborn(f form, st agent.Store, times int) storing {
	return storing{st, func(e journal.Entry, store func(journal.Entry) (journal.Entry, error)) (journal.Entry, error) {
		if times--; times >= 0 {
			e.Turn.Answer, e.Final = []byte(firstTurn(form{f.api, false})), false
		}
		return store(e)
	}}
}

func TestAnAnswerThatWasStoredBeforeIsTheOneThatCounts(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: []transcript.ToolCall{refundCall("call_z", "9999")}}, transcript.Step{Text: "Done."}), nil)
		o := f.do(t, agent.New(onceClient(s), b.tools(), stubborn(f, memory(), 1), nil), run, request)
		if wantVerdicts(t, o, "1.0 issue_refund executed"); o.text != "Done." || b.total() != "1001 500" || len(s.Requests()) != 2 || !o.report.Resumed {
			t.Errorf("%q, moved %q, %d requests", o.text, b.total(), len(s.Requests()))
		}
		if all := strings.Join(o.history, "\n"); strings.Contains(all, "9999") {
			t.Error(all)
		}
		allAccepted(t, s)
	})
}

func TestARunWhoseAnswersAreNeverStoredStopsAndIsFree(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(func(transcript.Request) transcript.Step { return transcript.Step{Text: "Done."} }, &transcript.Options{RepeatedIDs: true})
		l := agent.New(onceClient(s), b.tools(), stubborn(f, memory(), 3), nil)
		o := f.do(t, l, run, request)
		if e, ok := asRunError(o.err); !ok || e.Turn != 3 || len(s.Requests()) != 3 {
			t.Fatalf("%v, %d requests", o.err, len(s.Requests()))
		}
		if o = f.do(t, l, run, request); o.err != nil || o.text != "Done." || b.total() != "1001 500" {
			t.Errorf("%q, %v, moved %q", o.text, o.err, b.total())
		}
	})
}

// The commit has happened, and only its word is lost: the turn's calls are run by whoever goes on, and that is anybody.
func TestATurnWhoseCommitSeemedToFailLeavesTheRunToAnyProcess(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1")}}, transcript.Step{Calls: []transcript.ToolCall{refundCall("call_b", "2")}},
			transcript.Step{Text: "Done."},
		), nil)
		p := newProcess()
		lost := errors.New("the word is lost")
		st := storing{p, func(e journal.Entry, store func(journal.Entry) (journal.Entry, error)) (journal.Entry, error) {
			kept, err := store(e)
			if e.Turn.Number == 2 {
				err = lost
			}
			return kept, err
		}}
		o := f.do(t, agent.New(onceClient(s), b.tools(), st, nil), run, request)
		if !errors.Is(o.err, lost) || b.total() != "1 500" || strings.Contains(o.err.Error(), "leaving the run") {
			t.Fatalf("%v, moved %q", o.err, b.total())
		}
		o = f.do(t, agent.New(onceClient(s), b.tools(), p.Peer(), nil), run, request)
		if wantVerdicts(t, o, "1.0 issue_refund executed", "2.0 issue_refund executed"); b.total() != "1 500, 2 500" || len(s.Requests()) != 3 {
			t.Errorf("moved %q, %d requests", b.total(), len(s.Requests()))
		}
	})
}

// stuck is a store that no run can be left in.
type stuck struct{ agent.Store }

func (stuck) Leave(context.Context, journal.Leaving) error { return errors.New("disk full") }

func TestARunThatCannotBeLeftSaysSoBesideItsError(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(transcript.Steps(transcript.Step{Faults: []transcript.Fault{{Times: -1, Status: 500}}}), nil)
		o := f.do(t, agent.New(onceClient(s), b.tools(), stuck{memory()}, nil), run, request)
		if o.err == nil || !strings.Contains(o.err.Error(), "500") || !strings.Contains(o.err.Error(), "leaving the run") {
			t.Error(o.err)
		}
	})
}

// A call that could not run, whatever a person says, is not asked about.
func TestNobodyIsAskedAboutACallThatCannotRun(t *testing.T) {
	const pay = `"arguments":"{\"order\":\"%d\",\"cents\":5000,\"repeat_of\":null}"`
	eachForm(t, func(t *testing.T, f form) {
		function, custom := func(n int) string {
			return fmt.Sprintf(`{"id":"call_%d","type":"function","function":{"name":"pay_out",`+pay+`}}`, n, n)
		}, `{"id":"call_2","type":"custom","custom":{"name":"pay_out","input":"{\"order\":\"2\",\"cents\":5000,\"repeat_of\":null}"}}`
		first := f.answers("tool_calls", assistantMessage(function(1), custom, function(3)))
		want := []string{`1.0 pay_out {"cents":5000,"order":"1"}`, `1.2 pay_out {"cents":5000,"order":"3"}`}
		if f.api == "responses" {
			item := func(n int, status string) string {
				return fmt.Sprintf(`{"type":"function_call","id":"fc_%d","call_id":"call_%d","name":"pay_out","status":%q,`+pay+`}`, n, n, status, n)
			}
			custom = `{"type":"custom_tool_call","id":"ctc_2","call_id":"call_2","name":"pay_out","input":"{\"order\":\"2\",\"cents\":5000,\"repeat_of\":null}"}`
			first = f.answers("completed", "["+strings.Join([]string{item(1, "completed"), custom, item(3, "completed"), item(4, "incomplete")}, ",")+"]")
		}
		var b office
		l := agent.New(onceClient(transcript.NewServer(running(first), nil)), b.tools(), memory(), nil)
		same(t, "waiting", want, waiting(t, f.do(t, l, run, request)))
	})
}

// What was refused for a limit is no mistake of the model's: the run goes on under a higher one.
func TestCallsThatWereRefusedForALimitDoNotCountAsFailed(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(spending, nil)
		st := memory()
		loop := func(calls int) *agent.Loop {
			return agent.New(onceClient(s), b.tools(), st, &agent.Options{MaxCalls: calls, MaxErrors: 3})
		}
		for range 2 {
			if o := f.do(t, loop(2), run, request); !limited(o.err, "calls") {
				t.Fatal(o.err)
			}
		}
		o := f.do(t, loop(6), run, request)
		if wantVerdicts(t, o, append(three(1, "refused", "refused", "refused"), three(2, "executed", "executed", "executed")...)...); o.text != "Done." {
			t.Errorf("%q, moved %q", o.text, b.total())
		}
	})
}

// Servers quote what they were sent, and that is what the model has said before, too.
func TestAnErrorQuotesNothingThatTheModelHasSaid(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			if r.Turn == 1 {
				return transcript.Step{Text: "Ada's card ends in 4711.", Calls: []transcript.ToolCall{lookCall("call_a", "1")}}
			}
			return transcript.Step{Faults: []transcript.Fault{{Times: -1, Status: 400, Message: "cannot read 's card ends in 4711."}}}
		}, nil)
		l := agent.New(onceClient(s), b.tools(), memory(), nil)
		for range 2 { // said in this attempt, and in an earlier one
			if o := f.do(t, l, run, request); o.err == nil || !strings.Contains(o.err.Error(), "cannot read …") || strings.Contains(o.err.Error(), "4711") {
				t.Error(o.err)
			}
		}
	})
}

func TestTheLimitOfTokensCountsThoseInAndOutAndIsReachedWithTheLast(t *testing.T) {
	for _, api := range []string{"chat", "responses"} {
		f := form{api, false}
		first := transcript.Step{Raw: strings.TrimSuffix(strings.TrimSpace(firstTurn(f)), "}")}
		first.Raw = first.Raw[:strings.LastIndex(first.Raw, `"usage"`)] + `"usage":{"input_tokens":10,"output_tokens":5}}`
		for most, want := range map[int64]string{15: "", 16: "1001 500"} {
			var b bank
			s := transcript.NewServer(running(first), nil)
			o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), &agent.Options{MaxTokens: most}), run, request)
			if limited(o.err, "tokens") != (want == "") || b.total() != want {
				t.Errorf("%s, %d: %v, moved %q", api, most, o.err, b.total())
			}
		}
	}
}

func TestALimitSaysHowItIsMended(t *testing.T) {
	for want, e := range map[string]agent.LimitError{
		"no answer within the limit of 20 turns: raise Options.MaxTurns, ": {Limit: "turns", Max: 20},
		"more than 3 tool calls: raise Options.MaxCalls, ":                 {Limit: "calls", Max: 3},
		"within the limit of 7 tokens: raise Options.MaxTokens":            {Limit: "tokens", Max: 7},
		"no answer within 1m30s: raise Options.MaxTime, ":                  {Limit: "time", Max: int64(90 * time.Second)},
		"4 tool calls in a row have failed or were refused: ":              {Limit: "errors", Max: 4},
	} {
		if got := e.Error(); !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestByWhomAndWhyACallWasApprovedIsKept(t *testing.T) {
	var b office
	st := memory()
	l, asked := twoQuestions(t, &b, st)
	other, whichever := asked[0], asked[0]
	other.Call.Fingerprint, whichever.ID = "another", ""
	if _, err := st.Ask(t.Context(), other, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := l.Approve(t.Context(), whichever, "ann", ""); err == nil || !strings.Contains(err.Error(), "another question stands there now") {
		t.Error("of two questions at a place: ", err)
	}
	if err := l.Approve(t.Context(), asked[0], "ann", "the photos show it"); err != nil {
		t.Fatal(err)
	}
	all, err := st.Approvals(t.Context(), middleware.Approved)
	if err != nil || len(all) != 1 || all[0].ID != asked[0].ID || all[0].By != "ann" || all[0].Why != "the photos show it" {
		t.Errorf("%+v, %v", all, err)
	}
}

// Of a question that was asked anew, what was decided about the other one is no news.
func TestADecisionOnAnOldQuestionIsNotToldTheAnswerToTheNewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b office
		l, old := twoQuestions(t, &b, memory())
		time.Sleep(24 * time.Hour)
		anew, ok := errors.AsType[*middleware.PausedError](form{"chat", false}.do(t, l, run, request).err)
		if !ok {
			t.Fatal("not asked anew")
		}
		if err := l.Approve(t.Context(), anew.Waiting[0], "ann", ""); err != nil {
			t.Fatal(err)
		}
		whichever := old[0]
		whichever.ID = ""
		for want, a := range map[string]middleware.Approval{"another question stands there now": old[0], "ann has approved it": whichever} {
			if err := l.Deny(t.Context(), a, "bob", ""); !errors.Is(err, middleware.ErrLost) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
	})
}
