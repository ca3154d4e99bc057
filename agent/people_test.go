package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
