package ledgertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
)

var errDisk = errors.New("disk full")

// TestFaultyWithoutFaultsKeepsTheContract also shows how a wrapper is put under the suite.
func TestFaultyWithoutFaultsKeepsTheContract(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledgertest.System {
		sys := memorySystem(t)
		inner := func(l middleware.Ledger) middleware.Ledger { return l.(*ledgertest.Faulty).Ledger }
		return ledgertest.System{
			Open: func() middleware.Ledger { return &ledgertest.Faulty{Ledger: sys.Open()} },
			Kill: func(l middleware.Ledger) { sys.Kill(inner(l)) },
			Namespace: func(l middleware.Ledger, name string) middleware.Ledger {
				return &ledgertest.Faulty{Ledger: sys.Namespace(inner(l), name)}
			},
		}
	})
}

// everyOp calls each method once, and gives what each returned.
func everyOp(ctx context.Context, l *ledgertest.Faulty, token string) map[string]error {
	errs := map[string]error{}
	row, won, err := l.Claim(ctx, middleware.Claim{Identity: "i", Call: middleware.Alias{Run: "run", Turn: 1}, Token: token})
	if err != nil && (won || row.Operation != "") {
		err = errors.New("an answer came with the error")
	}
	errs["Claim"] = err
	row, _, _ = l.Ledger.Find(ctx, middleware.Query{Identity: "i"})
	_, _, errs["Find"] = l.Find(ctx, middleware.Query{Operation: row.Operation})
	_, errs["Note"] = l.Note(ctx, row.Operation, middleware.Alias{Run: "run", Turn: 2})
	_, errs["List"] = l.List(ctx, nil, 0)
	_, errs["Change"] = l.Change(ctx, middleware.Transition{Step: middleware.Doubt, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt})
	call := middleware.Alias{Run: "run", Turn: 3}
	a, err := l.Ask(ctx, middleware.Approval{Call: call}, time.Hour)
	if err != nil && a.ID != "" {
		err = errors.New("an answer came with the error")
	}
	errs["Ask"] = err
	_, errs["Decide"] = l.Decide(ctx, middleware.Decision{Run: call.Run, Turn: call.Turn, Approve: true})
	_, errs["Approvals"] = l.Approvals(ctx)
	return errs
}

func TestFaultyBeforeMakesNoCall(t *testing.T) {
	inner := middleware.Memory()
	l := &ledgertest.Faulty{Ledger: inner, Before: ledgertest.Fail(-1, ledgertest.Op{}, errDisk)}
	for op, err := range everyOp(t.Context(), l, "t") {
		if !errors.Is(err, errDisk) {
			t.Errorf("%s: got error %v", op, err)
		}
	}
	if rows, err := inner.List(t.Context(), nil, 0); err != nil || len(rows) != 0 {
		t.Errorf("a claim that was not made left %d rows, error %v", len(rows), err)
	}
	if all, err := inner.Approvals(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("a question that was not asked left %d approvals, error %v", len(all), err)
	}
}

func TestFaultyAfterLosesTheAnswerOfACallThatWasMade(t *testing.T) {
	inner := middleware.Memory()
	l := &ledgertest.Faulty{Ledger: inner, After: ledgertest.Fail(-1, ledgertest.Op{}, errDisk)}
	for op, err := range everyOp(t.Context(), l, "t") {
		if !errors.Is(err, errDisk) {
			t.Errorf("%s: got error %v", op, err)
		}
	}
	row, ok, err := inner.Find(t.Context(), middleware.Query{Run: "run", Turn: 2})
	if err != nil || !ok || row.State != middleware.InDoubt || row.Token != "t" {
		t.Errorf("want the claim, the note and the change made; found %v, error %v, row %+v", ok, err, row)
	}
	if all, err := inner.Approvals(t.Context(), middleware.Approved); err != nil || len(all) != 1 {
		t.Errorf("want the question asked and approved; found %d, error %v", len(all), err)
	}
}

func TestFailIsForTheFirstCallsOfAKind(t *testing.T) {
	fail := ledgertest.Fail(2, ledgertest.Op{Method: "Change", Step: middleware.Complete}, errDisk)
	doubt, complete := ledgertest.Op{Method: "Change", Step: middleware.Doubt}, ledgertest.Op{Method: "Change", Step: middleware.Complete, Operation: "op"}
	got := []error{fail(t.Context(), ledgertest.Op{Method: "Find"}), fail(t.Context(), doubt)}
	for range 3 {
		got = append(got, fail(t.Context(), complete))
	}
	for i, want := range []error{nil, nil, errDisk, errDisk, nil} {
		if !errors.Is(got[i], want) {
			t.Errorf("call %d: got error %v, want %v", i+1, got[i], want)
		}
	}
	if s := complete.String(); s != "Change complete" {
		t.Errorf("String is %q", s)
	}
}

func TestFaultyOverALedgerWithoutAListOrApprovalsSaysSo(t *testing.T) {
	l := &ledgertest.Faulty{Ledger: struct{ middleware.Ledger }{middleware.Memory()}}
	if _, err := l.List(t.Context(), nil, 0); err == nil {
		t.Error("want an error")
	}
	if _, err := l.Approvals(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("want ErrUnsupported, got %v", err)
	}
}
