package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// approver is what keeps the questions of a store in memory.
func (s store) approver() middleware.Approver { return s.Ledger.(middleware.Approver) }

func (s store) Ask(ctx context.Context, a middleware.Approval, expires time.Duration) (middleware.Approval, error) {
	return s.approver().Ask(ctx, a, expires)
}

func (s store) Decide(ctx context.Context, d middleware.Decision) (middleware.Approval, error) {
	return s.approver().Decide(ctx, d)
}

func (s store) Approvals(ctx context.Context, states ...middleware.ApprovalState) ([]middleware.Approval, error) {
	return s.approver().Approvals(ctx, states...)
}

type payout struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

// office pays out, from 1000 cents on with an approval, and again if the user asks for it.
type office struct{ paid []string }

func (o *office) tools() *registry.Registry {
	tools := registry.New()
	registry.Add(tools, registry.Tool[payout, string]{
		Name: "pay_out", Description: "Pay out.", Effect: registry.NonIdempotentWrite, Repeat: registry.RepeatApproved,
		NeedsApproval: func(_ context.Context, in payout) (bool, error) { return in.Cents >= 1000, nil },
		Run: func(_ context.Context, in payout) (string, error) {
			o.paid = append(o.paid, fmt.Sprintf("%s %d", in.Order, in.Cents))
			return fmt.Sprintf("paid %d", len(o.paid)), nil
		},
	})
	return tools
}

func payCall(id, order string, cents int) transcript.ToolCall {
	return transcript.ToolCall{ID: id, Name: "pay_out", Arguments: fmt.Sprintf(`{"order":%q,"cents":%d,"repeat_of":null}`, order, cents)}
}

func waiting(t *testing.T, o outcome) []string {
	t.Helper()
	paused, ok := errors.AsType[*middleware.PausedError](o.err)
	if !ok {
		t.Fatalf("not paused: %v", o.err)
	}
	var calls []string
	for _, a := range paused.Waiting {
		calls = append(calls, fmt.Sprintf("%d.%d %s %s", a.Call.Turn, a.Call.Position, a.Call.Tool, a.Input))
	}
	return calls
}

func TestARunWaitsForApprovalsAndGoesOn(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b office
		s := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{payCall("a", "1", 500), payCall("b", "2", 5000), payCall("c", "3", 6000), payCall("d", "4", 700)}},
			transcript.Step{Text: "Some are paid."},
		), nil)
		st := memory()
		l := agent.New(onceClient(s), b.tools(), st, nil)
		want := []string{`1.1 pay_out {"cents":5000,"order":"2"}`, `1.2 pay_out {"cents":6000,"order":"3"}`}
		for range 2 { // the second attempt asks nothing new
			if diff := cmp.Diff(want, waiting(t, f.do(t, l, run, request))); diff != "" {
				t.Fatal(diff)
			}
		}
		pending, err := st.Approvals(t.Context(), middleware.Pending)
		if err != nil || len(pending) != 2 || len(b.paid) != 1 {
			t.Fatalf("%d pending, paid %q, %v", len(pending), b.paid, err)
		}
		for position, approve := range map[int]bool{1: true, 2: false} {
			if _, err := st.Decide(t.Context(), middleware.Decision{Run: run.ID, Turn: 1, Position: position, Approve: approve, By: "ann", Why: "policy 7"}); err != nil {
				t.Fatal(err)
			}
		}
		o := f.do(t, l, run, request)
		if o.err != nil || o.text != "Some are paid." {
			t.Fatal(o.err)
		}
		verdicts := []string{"1.0 pay_out executed", "1.1 pay_out executed", "1.2 pay_out refused", "1.3 pay_out executed"}
		if diff := cmp.Diff(verdicts, o.verdicts()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"1 500", "2 5000", "4 700"}, b.paid); diff != "" || len(s.Requests()) != 2 {
			t.Errorf("%d requests\n%s", len(s.Requests()), diff)
		}
	})
}

func TestEqualCallsOfATurnAskOneQuestionUnlessEachIsMeant(t *testing.T) {
	for identity, want := range map[registry.Identity]int{registry.ByArguments: 1, registry.ByCall: 2} {
		eachForm(t, func(t *testing.T, f form) {
			paid := 0
			tools := registry.New()
			registry.Add(tools, registry.Tool[payout, string]{
				Name: "pay_out", Description: "Pay out.", Effect: registry.NonIdempotentWrite, Identity: identity,
				NeedsApproval: func(context.Context, payout) (bool, error) { return true, nil },
				Run: func(context.Context, payout) (string, error) {
					paid++
					return "paid", nil
				},
			})
			call := func(id, arguments string) transcript.ToolCall {
				return transcript.ToolCall{ID: id, Name: "pay_out", Arguments: arguments}
			}
			s := transcript.NewServer(transcript.Steps(
				transcript.Step{Calls: []transcript.ToolCall{call("a", `{"order":"1","cents":5000}`), call("b", `{"cents":5000, "order":"1"}`)}},
				transcript.Step{Text: "Paid."},
			), nil)
			l := agent.New(onceClient(s), tools, memory(), nil)
			paused, _ := errors.AsType[*middleware.PausedError](f.do(t, l, run, request).err)
			if paused == nil || len(paused.Waiting) != want {
				t.Fatalf("%v: %v, want %d questions", identity, paused, want)
			}
			for _, a := range paused.Waiting {
				if err := l.Approve(t.Context(), a, "ann", ""); err != nil {
					t.Fatal(err)
				}
			}
			if o := f.do(t, l, run, request); o.err != nil || paid != want {
				t.Errorf("%v: paid %d times, %v", identity, paid, o.err)
			}
		})
	}
}

func TestADenialStandsThoughADeployAsksNoMore(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		paid := 0
		tools := func(needs func(context.Context, payout) (bool, error)) *registry.Registry {
			tools := registry.New()
			registry.Add(tools, registry.Tool[payout, string]{
				Name: "pay_out", Description: "Pay out.", Effect: registry.NonIdempotentWrite, NeedsApproval: needs,
				Run: func(context.Context, payout) (string, error) { paid++; return "paid", nil },
			})
			return tools
		}
		call := func(id string, cents int) transcript.ToolCall {
			return transcript.ToolCall{ID: id, Name: "pay_out", Arguments: fmt.Sprintf(`{"order":"1","cents":%d}`, cents)}
		}
		s := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{call("a", 5000)}},
			transcript.Step{Calls: []transcript.ToolCall{call("b", 5000), call("c", 6000)}},
			transcript.Step{Text: "Done."},
		), nil)
		st := memory()
		before := agent.New(onceClient(s), tools(func(context.Context, payout) (bool, error) { return true, nil }), st, nil)
		paused, _ := errors.AsType[*middleware.PausedError](f.do(t, before, run, request).err)
		if paused == nil {
			t.Fatal("not paused")
		}
		if err := before.Deny(t.Context(), paused.Waiting[0], "ann", "no receipt"); err != nil {
			t.Fatal(err)
		}
		o := f.do(t, agent.New(onceClient(s), tools(nil), st, nil), run, request)
		wantVerdicts(t, o, "1.0 pay_out refused", "2.0 pay_out refused", "2.1 pay_out executed")
		if paid != 1 {
			t.Errorf("paid %d times", paid)
		}
	})
}

func TestWhatUndoesSomethingThatWaitsIsAskedAboutWhenThatIsDone(t *testing.T) {
	type room struct {
		Number string `json:"number" once:"resource"`
	}
	eachForm(t, func(t *testing.T, f form) {
		tools := registry.New()
		for _, name := range []string{"book", "cancel"} {
			undoes := map[string]string{"cancel": "book"}[name]
			registry.Add(tools, registry.Tool[room, string]{
				Name: name, Description: name, Effect: registry.NonIdempotentWrite, Undoes: undoes,
				NeedsApproval: func(context.Context, room) (bool, error) { return true, nil },
				Run:           func(context.Context, room) (string, error) { return name, nil },
			})
		}
		call := func(name string) transcript.ToolCall {
			return transcript.ToolCall{ID: name, Name: name, Arguments: `{"number":"1"}`}
		}
		s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: []transcript.ToolCall{call("book"), call("cancel")}}, transcript.Step{Text: "Done."}), nil)
		st := memory()
		l := agent.New(onceClient(s), tools, st, nil)
		for _, name := range []string{"book", "cancel"} {
			paused, _ := errors.AsType[*middleware.PausedError](f.do(t, l, run, request).err)
			if paused == nil || len(paused.Waiting) != 1 || paused.Waiting[0].Call.Tool != name {
				t.Fatalf("%s: %v", name, paused)
			}
			if err := l.Approve(t.Context(), paused.Waiting[0], "ann", ""); err != nil {
				t.Fatal(err)
			}
		}
		wantVerdicts(t, f.do(t, l, run, request), "1.0 book executed", "1.1 cancel executed")
		left, err := st.Approvals(t.Context(), middleware.Pending, middleware.Approved)
		if err != nil || len(left) > 0 {
			t.Errorf("questions are left: %+v, %v", left, err)
		}
	})
}

func TestALoopOfOnesOwnIsToldAllThatWaits(t *testing.T) {
	var b office
	st := memory()
	handle := b.tools().Handler(middleware.Once(st, nil))
	call := func(id, order string, cents int) [3]string {
		return [3]string{id, "pay_out", payCall(id, order, cents).Arguments}
	}
	message := calling(call("a", "1", 5000), call("b", "2", 500), call("c", "3", 6000), call("d", "1", 5000))
	answer := func() error {
		_, err := agent.AnswerChat(t.Context(), handle, run, 1, completion(t, "tool_calls", message))
		return err
	}
	paused, _ := errors.AsType[*middleware.PausedError](answer())
	if paused == nil || len(paused.Waiting) != 2 || paused.Waiting[1].Call.Position != 2 {
		t.Fatalf("%v", paused)
	}
	for _, a := range paused.Waiting {
		d := middleware.Decision{Run: a.Call.Run, Turn: a.Call.Turn, Position: a.Call.Position, ID: a.ID, Approve: true, By: "ann"}
		if _, err := st.Decide(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if err := answer(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"1 5000", "2 500", "3 6000"}, b.paid); diff != "" {
		t.Error(diff)
	}
}

func TestARepeatNeedsAMessageThatTheConversationHasNotHad(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		paid := 0
		tools := registry.New()
		registry.Add(tools, registry.Tool[payout, string]{
			Name: "pay_out", Description: "Pay out.", Effect: registry.NonIdempotentWrite, Repeat: registry.RepeatFreely,
			Run: func(context.Context, payout) (string, error) { paid++; return "paid", nil },
		})
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			switch {
			case r.Turn == 1:
				return transcript.Step{Calls: []transcript.ToolCall{payCall("a", "7", 500)}}
			case r.Turn == 2 && r.Outputs()[0].Content != "paid":
				return transcript.Step{Calls: []transcript.ToolCall{{ID: "b", Name: "pay_out", Arguments: fmt.Sprintf(`{"order":"7","cents":500,"repeat_of":%q}`, operationOf(r.Outputs()[0]))}}}
			}
			return transcript.Step{Text: "Done."}
		}, nil)
		l := agent.New(onceClient(s), tools, memory(), nil)
		in := func(id, message string) outcome {
			o := f.do(t, l, agent.Run{ID: id, Conversation: "chat-7"}, message)
			if o.err != nil {
				t.Fatal(o.err)
			}
			return o
		}
		in("m1", "Pay order 7.")
		wantVerdicts(t, in("m1 under another id", "Pay order 7."), "1.0 pay_out already_done", "2.0 pay_out refused")
		wantVerdicts(t, in("m2", "Pay order 7 again."), "1.0 pay_out already_done", "2.0 pay_out executed")
		wantVerdicts(t, in("m2 under another id", "Pay order 7 again."), "1.0 pay_out already_done", "2.0 pay_out already_done")
		if paid != 2 {
			t.Errorf("paid %d times", paid)
		}
	})
}

func TestAToolThatMayBeRepeatedSaysHow(t *testing.T) {
	for rule, says := range map[registry.RepeatRule]string{registry.RepeatNever: "say that it was not done again", registry.RepeatFreely: "in repeat_of"} {
		tools := registry.New()
		registry.Add(tools, registry.Tool[payout, string]{
			Name: "pay_out", Effect: registry.NonIdempotentWrite, Repeat: rule, Run: func(context.Context, payout) (string, error) { return "paid", nil },
		})
		handle := tools.Handler(middleware.Once(middleware.Memory(), nil))
		for turn, want := range []string{"", says} {
			res, err := handle(t.Context(), &registry.Call{Run: run, Turn: turn + 1, Tool: "pay_out", Arguments: `{"order":"1","cents":5}`})
			if err != nil || !strings.Contains(res.Content, want) {
				t.Errorf("%s, %v, want %q", res.Content, err, want)
			}
		}
	}
}

func TestALocalToolNeedsAStoreWithTransactions(t *testing.T) {
	tools := registry.New()
	registry.Add(tools, registry.Tool[payout, string]{
		Name: "pay_out", Effect: registry.NonIdempotentWrite, Local: true, Run: func(context.Context, payout) (string, error) { return "paid", nil },
	})
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "pay_out") || !strings.Contains(text, "Local") {
			t.Errorf("%s", text)
		}
	}()
	agent.New(openai.NewClient(option.WithAPIKey("any")), tools, memory(), nil)
}
