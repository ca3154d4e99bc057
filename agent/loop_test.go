package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/transcript"
)

func TestARunAnswersItsCallsAndEnds(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{lookCall("call_a", "1001"), refundCall("call_b", "1001"), refundCall("call_c", "1001")}},
			transcript.Step{Calls: []transcript.ToolCall{refundCall("call_d", "1001")}},
			transcript.Step{Text: "It is on its way."},
		), nil)
		o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), nil), run, request)
		if o.err != nil || o.text != "It is on its way." {
			t.Fatalf("%q, %v", o.text, o.err)
		}
		if got := b.total(); got != "1001 500" {
			t.Errorf("moved %q", got)
		}
		want := []string{"1.0 look_up executed", "1.1 issue_refund executed", "1.2 issue_refund already_done", "2.0 issue_refund already_done"}
		if diff := cmp.Diff(want, o.verdicts()); diff != "" {
			t.Error(diff)
		}
		if len(o.report.Usage) != 3 || o.report.Total().Input == 0 || o.report.Total().Output == 0 || o.report.Resumed {
			t.Errorf("report %+v", o.report)
		}
		if len(s.Requests()) != 3 {
			t.Errorf("%d requests", len(s.Requests()))
		}
	})
}

func TestAFinishedRunIsAnsweredWithoutARequest(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1001")}},
			transcript.Step{Text: "Done."},
		), nil)
		l := agent.New(onceClient(s), b.tools(), memory(), nil)
		first := f.do(t, l, run, request)
		again := f.do(t, l, run, request)
		if first.err != nil || again.err != nil || again.text != "Done." || !again.report.Resumed {
			t.Fatalf("%v, %v, %q", first.err, again.err, again.text)
		}
		if diff := cmp.Diff(first.verdicts(), again.verdicts()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(first.history, again.history); diff != "" {
			t.Error(diff)
		}
		if n := len(s.Requests()); n != 2 || b.total() != "1001 500" {
			t.Errorf("%d requests, moved %q", n, b.total())
		}
	})
}

func TestAnotherInputUnderARunIDIsRefused(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(transcript.Steps(transcript.Step{Text: "Hello."}), nil)
		l := agent.New(onceClient(s), b.tools(), memory(), nil)
		f.do(t, l, run, request)
		o := f.do(t, l, run, "And order 1002?")
		if !errors.Is(o.err, journal.ErrOtherInput) || !strings.Contains(o.err.Error(), "onversation") {
			t.Error(o.err)
		}
		if n := len(s.Requests()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestARunThatWasForgottenIsNotBegunAgain(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(transcript.Steps(transcript.Step{Text: "Hello."}), nil)
		runs := journal.Memory()
		l := agent.New(onceClient(s), b.tools(), struct {
			*middleware.MemoryLedger
			*journal.MemoryJournal
		}{middleware.Memory(), runs}, nil)
		f.do(t, l, run, request)
		if err := runs.Forget(t.Context(), run.ID); err != nil {
			t.Fatal(err)
		}
		if o := f.do(t, l, run, request); !errors.Is(o.err, journal.ErrForgotten) || len(s.Requests()) != 1 {
			t.Errorf("%d requests, %v", len(s.Requests()), o.err)
		}
	})
}

// A model request fails after a call has run: the next attempt goes straight to it.
func TestAFailedRequestIsAskedAgainWithoutTheTurnBefore(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		var up atomic.Bool
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			switch {
			case r.Turn == 1:
				return transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1001")}}
			case up.Load():
				return transcript.Step{Text: "Done."}
			}
			return transcript.Step{Faults: []transcript.Fault{{Times: -1, Status: 500}}}
		}, nil)
		l := agent.New(onceClient(s), b.tools(), memory(), nil)
		for range 2 {
			o := f.do(t, l, run, request)
			var api *openai.Error
			if e, ok := asRunError(o.err); !ok || e.Turn != 2 || !errors.As(o.err, &api) || api.StatusCode != 500 {
				t.Fatal(o.err)
			}
		}
		up.Store(true)
		o := f.do(t, l, run, request)
		if o.err != nil || o.text != "Done." || b.total() != "1001 500" {
			t.Fatalf("%q, %v, moved %q", o.text, o.err, b.total())
		}
		var turns []int
		for _, r := range s.Requests() {
			turns = append(turns, r.Turn)
		}
		if diff := cmp.Diff([]int{1, 2, 2, 2}, turns); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"1.0 issue_refund executed"}, o.verdicts()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestARunThatIsGoingOnIsTaken(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		s := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1001")}},
			transcript.Step{Text: "Done."},
		), nil)
		var b bank
		var l *agent.Loop
		var second error
		b.during = func(ctx context.Context, _ refundInput) error {
			second = f.doContext(ctx, t, l, run, request).err
			return nil
		}
		l = agent.New(onceClient(s), b.tools(), memory(), nil)
		if o := f.do(t, l, run, request); o.err != nil || o.text != "Done." {
			t.Fatal(o.err)
		}
		if !errors.Is(second, journal.ErrRunTaken) {
			t.Errorf("the second got %v", second)
		}
		if n := len(s.Requests()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestTheLimitOfTurnsLeavesAHistoryThatTheAPIAccepts(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			if last := r.Messages[len(r.Messages)-1]; last.Role == "user" && r.Turn > 1 {
				return transcript.Step{Text: "It was too much."}
			}
			return transcript.Step{Calls: []transcript.ToolCall{lookCall("call_a", "1001"), refundCall("call_b", "100"+string(rune('0'+r.Turn)))}}
		}, &transcript.Options{RepeatedIDs: true})
		st := memory()
		l := agent.New(onceClient(s), b.tools(), st, &agent.Options{MaxTurns: 2})
		o := f.do(t, l, run, request)
		if !limited(o.err, "turns") {
			t.Fatal(o.err)
		}
		if got := b.total(); got != "1001 500" {
			t.Errorf("moved %q", got)
		}
		want := []string{"1.0 look_up executed", "1.1 issue_refund executed", "2.0 look_up refused", "2.1 issue_refund refused"}
		if diff := cmp.Diff(want, o.verdicts()); diff != "" {
			t.Error(diff)
		}
		again := f.do(t, l, run, request)
		if !limited(again.err, "turns") || len(s.Requests()) != 2 {
			t.Errorf("again: %v, %d requests", again.err, len(s.Requests()))
		}
		if diff := cmp.Diff(o.history, again.history); diff != "" {
			t.Error(diff)
		}
		next := f.goOn(t, agent.New(onceClient(s), b.tools(), st, nil), agent.Run{ID: "ticket-43"}, o, "Well?")
		if next.err != nil || next.text != "It was too much." {
			t.Errorf("%q, %v", next.text, next.err)
		}
	})
}

func TestARepeatBudgetEndsTheRunWithEveryCallAnswered(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(func(transcript.Request) transcript.Step {
			return transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1001"), lookCall("call_b", "1001")}}
		}, &transcript.Options{RepeatedIDs: true})
		o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), nil), run, request)
		over, ok := errors.AsType[*middleware.RepeatError](o.err)
		if !ok || over.Repeats != 4 || b.total() != "1001 500" || len(o.report.Calls) != 10 {
			t.Errorf("%v, moved %q, %d calls", o.err, b.total(), len(o.report.Calls))
		}
	})
}
