package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/transcript"
)

// heard are the events of attempts at a run, but the pieces of text, in which a server may cut its answer as it likes. A
// completion says only at its end that its calls are written, so those of a turn stand here in call order.
func heard(t *testing.T, r agent.Run, events []agent.Event) (lines []string) {
	t.Helper()
	var calls []agent.Event
	add := func(e agent.Event) {
		text := e.Text
		if e.Err != nil {
			text = e.Err.Error()
		}
		lines = append(lines, fmt.Sprintf("%d: %d.%d %s %s %s %s %v", e.Kind, e.Turn, e.Position, e.CallID, e.Tool, e.Verdict, text, e.Operation != ""))
	}
	for _, e := range events {
		if e.Run != r {
			t.Errorf("the event %d is of run %+v", e.Kind, e.Run)
		}
		switch e.Kind {
		case agent.TextDelta, agent.ReasoningDelta, agent.RefusalDelta:
			continue
		case agent.CallAnnounced, agent.ArgumentsComplete:
			calls = append(calls, e)
			continue
		default:
		}
		slices.SortStableFunc(calls, func(a, b agent.Event) int { return a.Position - b.Position })
		for _, c := range calls {
			add(c)
		}
		calls = nil
		add(e)
	}
	return lines
}

// ends checks the end that attempts at a run have told.
func ends(t *testing.T, events []agent.Event, o outcome) {
	t.Helper()
	last := events[len(events)-1]
	if kind := last.Kind; o.err == nil && kind != agent.Answered || o.err != nil && kind != agent.Stopped || !errors.Is(last.Err, o.err) {
		t.Errorf("the last event is %d with %v, after %v", kind, last.Err, o.err)
	}
	if answered := last.Chat != nil || last.Response != nil; answered != (o.err == nil) {
		t.Errorf("the last event has an answer: %v, after %v", answered, o.err)
	}
}

func TestARunTellsTheSameStreamedOrNot(t *testing.T) {
	chat := agent.Run{ID: "msg-1", Conversation: "chat-7"}
	script := func(r transcript.Request) transcript.Step {
		if r.Turn == 1 {
			return transcript.Step{Text: "One moment.", Calls: []transcript.ToolCall{payCall("a", "1", 500), payCall("b", "2", 5000), payCall("c", "3", 700)}}
		}
		return transcript.Step{Text: "All are paid."}
	}
	// what one form tells of a run that waits, goes on, reaches a limit, ends, and is asked for again
	tells := func(t *testing.T, f form) []string {
		var b office
		var events []agent.Event
		st := memory()
		s := transcript.NewServer(script, nil)
		loop := func(o agent.Options) *agent.Loop {
			o.On = func(e agent.Event) { events = append(events, e) }
			return agent.New(onceClient(s), b.tools(), st, &o)
		}
		attempt := func(o agent.Options, user string) outcome {
			got := f.do(t, loop(o), chat, user)
			ends(t, events, got)
			return got
		}
		waiting(t, attempt(agent.Options{}, request))
		pending, err := st.Approvals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := loop(agent.Options{}).Approve(t.Context(), pending[0], "ann", ""); err != nil {
			t.Fatal(err)
		}
		if o := attempt(agent.Options{MaxCalls: 2}, request); !limited(o.err, "calls") {
			t.Fatal(o.err)
		}
		for range 2 {
			if o := attempt(agent.Options{}, request); o.err != nil {
				t.Fatal(o.err)
			}
		}
		if o := attempt(agent.Options{}, "Another message."); o.err == nil {
			t.Fatal("another message under the id of a run")
		}
		return heard(t, chat, events)
	}
	for _, api := range []string{"chat", "responses"} {
		want, got := tells(t, form{api, false}), tells(t, form{api, true})
		if diff := cmp.Diff(want, got); diff != "" || len(want) < 20 {
			t.Errorf("%s: %d events, and streamed\n%s", api, len(want), diff)
		}
	}
}

func TestOnIsToldWhatAStreamGives(t *testing.T) {
	eachStream(t, func(t *testing.T, f form) {
		var b bank
		var events []agent.Event
		l := agent.New(onceClient(transcript.NewServer(refundAndEnd, nil)), b.tools(), memory(), &agent.Options{On: func(e agent.Event) { events = append(events, e) }})
		o := f.do(t, l, run, request)
		if o.err != nil {
			t.Fatal(o.err)
		}
		same(t, "events", eventLines(o.events), eventLines(events))
		ends(t, events, o)
	})
}

// A reader who leaves hears no more; On hears the end.
func TestOnIsToldTheEndOfAStreamThatIsLeft(t *testing.T) {
	eachStream(t, func(t *testing.T, f form) {
		var b bank
		var last agent.Event
		l := agent.New(onceClient(transcript.NewServer(refundAndEnd, nil)), b.tools(), memory(), &agent.Options{On: func(e agent.Event) { last = e }})
		f.with(context.Background(), t, l, run, asking{on: func(e agent.Event) bool { return e.Kind != agent.VerdictGiven }})
		if last.Kind != agent.Stopped || last.Err == nil || last.Run != run {
			t.Errorf("%+v", last)
		}
	})
}
