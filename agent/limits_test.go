package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// spending is a model that looks one order up and refunds two in each of two turns, and hears it if it is stopped.
func spending(r transcript.Request) transcript.Step {
	if last := r.Messages[len(r.Messages)-1]; last.Role == "user" && r.Turn > 1 {
		return transcript.Step{Text: "It was too much."}
	}
	n := fmt.Sprint(r.Turn)
	if r.Turn > 2 {
		return transcript.Step{Text: "Done."}
	}
	return transcript.Step{Calls: []transcript.ToolCall{lookCall("l"+n, "1"+n), refundCall("r"+n, "1"+n), refundCall("s"+n, "2"+n)}}
}

// three are the verdicts of a turn of spending.
func three(turn int, look, first, second string) []string {
	return []string{
		fmt.Sprintf("%d.0 look_up %s", turn, look), fmt.Sprintf("%d.1 issue_refund %s", turn, first), fmt.Sprintf("%d.2 issue_refund %s", turn, second),
	}
}

// stoppedAt is a run that has reached a limit before a turn could be ended.
func stoppedAt(t *testing.T, o outcome, turn int, want agent.LimitError, verdicts []string) {
	t.Helper()
	over, ok := errors.AsType[*agent.LimitError](o.err)
	if e, isRun := asRunError(o.err); !ok || !isRun || e.Turn != turn || *over != want {
		t.Fatalf("%v, want turn %d at %+v", o.err, turn, want)
	}
	if diff := cmp.Diff(verdicts, o.verdicts()); diff != "" {
		t.Fatal(diff)
	}
}

func TestALimitEndsARunThatGoesOnUnderAHigherOne(t *testing.T) {
	all := func(turns ...[]string) (v []string) {
		for _, turn := range turns {
			v = append(v, turn...)
		}
		return v
	}
	executed, refused := three(1, "executed", "executed", "executed"), three(2, "refused", "refused", "refused")
	for _, c := range []struct {
		name        string
		low, high   agent.Options
		limit       agent.LimitError
		turn        int
		at, after   []string
		moved, then string
	}{
		{
			"turns", agent.Options{MaxTurns: 2}, agent.Options{MaxTurns: 3}, agent.LimitError{Limit: "turns", Max: 2}, 3,
			all(executed, refused), all(executed, refused), "11 500, 21 500", "11 500, 21 500",
		},
		{
			"calls", agent.Options{MaxCalls: 3}, agent.Options{MaxCalls: 6}, agent.LimitError{Limit: "calls", Max: 3}, 3,
			all(executed, refused), all(executed, refused), "11 500, 21 500", "11 500, 21 500",
		},
		{
			"tokens", agent.Options{MaxTokens: 1}, agent.Options{MaxTokens: 100_000}, agent.LimitError{Limit: "tokens", Max: 1}, 2,
			three(1, "refused", "refused", "refused"), all(three(1, "refused", "refused", "refused"), three(2, "executed", "executed", "executed")),
			"", "12 500, 22 500",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachForm(t, func(t *testing.T, f form) {
				var b bank
				s := transcript.NewServer(spending, nil)
				st := memory()
				loop := func(o *agent.Options) *agent.Loop { return agent.New(onceClient(s), b.tools(), st, o) }
				o := f.do(t, loop(&c.low), run, request)
				stoppedAt(t, o, c.turn, c.limit, c.at)
				asked := len(s.Requests())
				again := f.do(t, loop(&c.low), run, request)
				stoppedAt(t, again, c.turn, c.limit, c.at)
				if diff := cmp.Diff(o.history, again.history); diff != "" || len(s.Requests()) != asked || b.total() != c.moved {
					t.Errorf("again: %d requests more, moved %q\n%s", len(s.Requests())-asked, b.total(), diff)
				}
				if next := f.goOn(t, loop(nil), agent.Run{ID: "ticket-43"}, o, "Well?"); next.err != nil || next.text != "It was too much." {
					t.Errorf("another message: %q, %v", next.text, next.err)
				}
				o = f.do(t, loop(&c.high), run, request)
				if wantVerdicts(t, o, c.after...); o.text != "Done." || b.total() != c.then {
					t.Errorf("under a higher limit: %q, moved %q", o.text, b.total())
				}
			})
		})
	}
}

// A tool that has started is not cut short; what comes after it is not started. Each attempt has its own time.
func TestTheTimeOfAnAttemptEndsItBetweenCalls(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		synctest.Test(t, func(t *testing.T) {
			b := bank{during: func(context.Context, refundInput) error {
				time.Sleep(time.Minute)
				return nil
			}}
			s := transcript.NewServer(spending, nil)
			l := agent.New(onceClient(s), b.tools(), memory(), &agent.Options{MaxTime: time.Minute})
			want := three(1, "executed", "executed", "refused")
			o := f.do(t, l, run, request)
			stoppedAt(t, o, 2, agent.LimitError{Limit: "time", Max: int64(time.Minute)}, want)
			if next := f.goOn(t, l, agent.Run{ID: "ticket-43"}, o, "Well?"); next.err != nil || next.text != "It was too much." {
				t.Errorf("another message: %q, %v", next.text, next.err)
			}
			want = append(want, three(2, "executed", "executed", "refused")...)
			stoppedAt(t, f.do(t, l, run, request), 3, agent.LimitError{Limit: "time", Max: int64(time.Minute)}, want)
			o = f.do(t, l, run, request)
			if wantVerdicts(t, o, want...); o.text != "Done." || b.total() != "11 500, 12 500" || len(s.Requests()) != 4 {
				t.Errorf("%q, moved %q, %d requests", o.text, b.total(), len(s.Requests()))
			}
		})
	})
}

func TestTheTimeOfAnAttemptEndsARequest(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		synctest.Test(t, func(t *testing.T) {
			var b bank
			s := transcript.NewServer(func(r transcript.Request) transcript.Step {
				step := refundAndEnd(r)
				if r.Turn == 2 {
					step.Faults = []transcript.Fault{{Times: -1, Delay: 2 * time.Minute}}
				}
				return step
			}, nil)
			st, begun := memory(), time.Now()
			want := []string{"1.0 look_up executed", "1.1 issue_refund executed"}
			o := f.do(t, agent.New(onceClient(s), b.tools(), st, &agent.Options{MaxTime: time.Minute}), run, request)
			stoppedAt(t, o, 2, agent.LimitError{Limit: "time", Max: int64(time.Minute)}, want)
			if took := time.Since(begun); took != time.Minute {
				t.Errorf("it ended after %v", took)
			}
			o = f.do(t, agent.New(onceClient(s), b.tools(), st, &agent.Options{MaxTime: time.Hour}), run, request)
			if wantVerdicts(t, o, want...); o.text != "Done." || b.total() != "1001 500" || len(s.Requests()) != 3 {
				t.Errorf("%q, moved %q, %d requests", o.text, b.total(), len(s.Requests()))
			}
		})
	})
}

func TestCallsThatFailInARowEndTheRunAndOneThatDoesNotBeginsTheRowAnew(t *testing.T) {
	unknown := func(id string) transcript.ToolCall { return transcript.ToolCall{ID: id, Name: "nope", Arguments: "{}"} }
	for _, c := range []struct {
		name  string
		turns []transcript.Step
		at    []string
		moved string
	}{
		{
			"over several turns", []transcript.Step{
				{Calls: []transcript.ToolCall{unknown("a"), unknown("b"), refundCall("c", "1")}},
				{Calls: []transcript.ToolCall{unknown("d"), unknown("e")}},
				{Calls: []transcript.ToolCall{unknown("f")}},
			},
			[]string{"1.0 nope refused", "1.1 nope refused", "1.2 issue_refund executed", "2.0 nope refused", "2.1 nope refused", "3.0 nope refused"}, "1 500",
		},
		{
			"of each kind", []transcript.Step{{Calls: []transcript.ToolCall{refundCall("a", "none"), refundCall("b", "unclear"), unknown("c")}}},
			[]string{"1.0 issue_refund failed", "1.1 issue_refund outcome_unknown", "1.2 nope refused"}, "none 500, unclear 500",
		},
		{
			"in one turn, whose rest is refused", []transcript.Step{{Calls: []transcript.ToolCall{
				unknown("a"), unknown("b"), unknown("c"), refundCall("d", "1"), refundCall("e", "2"),
			}}},
			[]string{"1.0 nope refused", "1.1 nope refused", "1.2 nope refused", "1.3 issue_refund refused", "1.4 issue_refund refused"}, "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachForm(t, func(t *testing.T, f form) {
				b := bank{during: func(_ context.Context, in refundInput) error {
					switch in.OrderID {
					case "none":
						return registry.NoEffect(errors.New("no such order"))
					case "unclear":
						return errors.New("connection reset")
					}
					return nil
				}}
				turns := len(c.turns)
				s := transcript.NewServer(transcript.Steps(append(append([]transcript.Step{}, c.turns...), transcript.Step{Text: "Done."})...), nil)
				st := memory()
				loop := func(most int) *agent.Loop {
					return agent.New(onceClient(s), b.tools(), st, &agent.Options{MaxErrors: most})
				}
				for range 2 {
					o := f.do(t, loop(3), run, request)
					stoppedAt(t, o, turns+1, agent.LimitError{Limit: "errors", Max: 3}, c.at)
				}
				if n := len(s.Requests()); n != turns {
					t.Errorf("%d requests", n)
				}
				o := f.do(t, loop(4), run, request)
				if wantVerdicts(t, o, c.at...); o.text != "Done." || b.total() != c.moved {
					t.Errorf("under a higher limit: %q, moved %q", o.text, b.total())
				}
			})
		})
	}
}

func TestReadsRunTogetherUpToTheLimit(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		for reads, took := range map[int]time.Duration{1: 5 * time.Second, 2: 3 * time.Second, 9: time.Second} {
			synctest.Test(t, func(t *testing.T) {
				var sl slow
				var calls []transcript.ToolCall
				for n := range 5 {
					calls = append(calls, slowCall("read", n, 1))
				}
				s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: calls}, transcript.Step{Text: "Done."}), nil)
				begun := time.Now()
				o := f.do(t, agent.New(onceClient(s), sl.tools(), memory(), &agent.Options{Reads: reads}), run, request)
				if got := time.Since(begun); o.err != nil || got != took || sl.most != min(reads, 5) {
					t.Errorf("Reads %d: %v, took %v, %d together", reads, o.err, got, sl.most)
				}
			})
		}
	})
}

// What had run when an attempt broke off is answered with what came of it, whatever the limit.
func TestAtAnyLimitACallThatHadRunIsAnsweredWithItsResult(t *testing.T) {
	for name, o := range map[string]agent.Options{"turns": {MaxTurns: 1}, "calls": {MaxCalls: 1}, "tokens": {MaxTokens: 1}} {
		eachForm(t, func(t *testing.T, f form) {
			var b bank
			p := newProcess()
			f.diesAfterItsCalls(t, p, b.tools(), refundCall("call_a", "1001"), refundCall("call_b", "1001"))
			p.Die()
			p = p.Peer()
			o := f.do(t, agent.New(onceClient(endsWith("Done.")), b.tools(), p, &o), run, request)
			want := []string{"1.0 issue_refund replayed", "1.1 issue_refund already_done"}
			if diff := cmp.Diff(want, o.verdicts()); diff != "" || !limited(o.err, name) || b.total() != "1001 500" {
				t.Errorf("%s: %v, moved %q\n%s", name, o.err, b.total(), diff)
			}
			wantVerdicts(t, f.do(t, agent.New(onceClient(endsWith("Done.")), b.tools(), p, nil), run, request), want...)
		})
	}
}
