package agent_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// twoQuestions runs into two questions.
func twoQuestions(t *testing.T, b *office, st agent.Store) (*agent.Loop, []middleware.Approval) {
	t.Helper()
	s := transcript.NewServer(transcript.Steps(
		transcript.Step{Calls: []transcript.ToolCall{payCall("a", "1", 5000), payCall("b", "2", 6000)}}, transcript.Step{Text: "Done."},
	), nil)
	l := agent.New(onceClient(s), b.tools(), st, nil)
	paused, ok := errors.AsType[*middleware.PausedError](form{"chat", false}.do(t, l, run, request).err)
	if !ok || len(paused.Waiting) != 2 {
		t.Fatal(paused)
	}
	return l, paused.Waiting
}

func TestWhatAPersonHasDecidedCountsInAnotherProcess(t *testing.T) {
	var b office
	st := memory()
	_, asked := twoQuestions(t, &b, st)
	l := agent.New(onceClient(endsWith("Done.")), b.tools(), st, nil)
	if err := errors.Join(l.Approve(t.Context(), asked[0], "ann", ""), l.Deny(t.Context(), asked[1], "bob", "no receipt")); err != nil {
		t.Fatal(err)
	}
	o := form{"chat", true}.do(t, l, run, request)
	wantVerdicts(t, o, "1.0 pay_out executed", "1.1 pay_out refused")
	if told := strings.Join(o.history, "\n"); !strings.Contains(told, "denied it: no receipt") || strings.Contains(told, "bob") {
		t.Error(told)
	}
	all, err := st.Approvals(t.Context())
	if err != nil || all[0].By != "ann" || all[0].State != middleware.Spent || all[1].By != "bob" || all[1].Why != "no receipt" {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestADecisionThatCannotBeMadeSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b office
		st := memory()
		l, asked := twoQuestions(t, &b, st)
		ctx := t.Context()
		refused := func(err error, lost bool, says ...string) {
			t.Helper()
			if err == nil || errors.Is(err, middleware.ErrLost) != lost {
				t.Fatalf("%v, lost %v", err, lost)
			}
			for _, s := range append(says, "agent: ", "pay_out", `run "ticket-42"`) {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q lacks %q", err, s)
				}
			}
		}
		refused(l.Approve(ctx, asked[0], "", "why"), false, "say by whom")
		deaf := agent.New(onceClient(endsWith("Done.")), registry.New(), struct {
			middleware.Ledger
			journal.Journal
		}{st.Ledger, st.Journal}, nil)
		refused(deaf.Deny(ctx, asked[0], "ann", ""), false, "use one that is a middleware.Approver")
		elsewhere := asked[0]
		elsewhere.Call.Position = 7
		refused(l.Approve(ctx, elsewhere, "ann", ""), true, "nothing has been asked about it", "position 7")
		other := asked[0]
		other.ID = "another"
		refused(l.Approve(ctx, other, "ann", ""), true, "another question stands there")
		if pending, err := st.Approvals(ctx, middleware.Pending); err != nil || len(pending) != 2 {
			t.Fatalf("a decision that was refused has changed something: %+v, %v", pending, err)
		}
		at := time.Now().UTC().Format(time.RFC3339)
		if err := l.Approve(ctx, asked[0], "ann", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		refused(l.Deny(ctx, asked[0], "bob", ""), true, "denying", "ann has approved it at "+at)
		if err := l.Deny(ctx, asked[1], "ann", ""); err != nil {
			t.Fatal(err)
		}
		refused(l.Approve(ctx, asked[1], "bob", ""), true, "approving", "ann has denied it at ")
		o := form{"chat", false}.do(t, l, run, request)
		refused(l.Approve(ctx, asked[0], "bob", ""), true, "ann has approved it at "+at, "it was claimed: operation "+o.report.Calls[0].Operation)
		if diff := cmp.Diff([]string{"1 5000"}, b.paid); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAQuestionThatHasExpiredIsAskedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b office
		st := memory()
		l, asked := twoQuestions(t, &b, st)
		if err := l.Approve(t.Context(), asked[1], "ann", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		err := l.Approve(t.Context(), asked[0], "ann", "")
		if !errors.Is(err, middleware.ErrLost) || !strings.Contains(err.Error(), "expired at "+asked[0].Expires.UTC().Format(time.RFC3339)) {
			t.Error(err)
		}
		anew, ok := errors.AsType[*middleware.PausedError](form{"chat", false}.do(t, l, run, request).err)
		if !ok || len(anew.Waiting) != 2 || anew.Waiting[0].ID == asked[0].ID || anew.Waiting[1].ID == asked[1].ID || len(b.paid) != 0 {
			t.Fatalf("%+v, paid %q", anew, b.paid)
		}
		if err = l.Approve(t.Context(), asked[0], "ann", ""); err == nil || !strings.Contains(err.Error(), "another question stands there now") {
			t.Error(err)
		}
	})
}
