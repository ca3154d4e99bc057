package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

// Faulty is a ledger that fails as stores do: before a call has had any effect, or after, so that the caller does not
// know. It is for tests of what is built on a ledger. It is safe for concurrent use if its functions are; they may
// block, to hold a call up.
type Faulty struct {
	middleware.Ledger
	// Before is asked first. The call is not made where it returns an error, and ends with that error. nil: never.
	Before func(context.Context, Op) error
	// After is asked once the call was made, whatever came of it. Where it returns an error the answer is lost, and the
	// call ends with that error. nil: never.
	After func(context.Context, Op) error
}

// Op is one call of a ledger.
type Op struct {
	Method    string          // Claim, Find, Change, Note, List, Ask, Decide or Approvals
	Step      middleware.Step // of a Change, else 0
	Operation string          // that Find, Change or Note names, "" for none
}

// String is the method and, for a Change, its step: "Change give back".
func (o Op) String() string {
	if o.Step == 0 {
		return o.Method
	}
	return o.Method + " " + stepName(o.Step)
}

// Fail is for Before and After: err for the first n calls that are like op, whose empty fields stand for any. A negative
// n is every call. It is safe for concurrent use.
func Fail(n int, op Op, err error) func(context.Context, Op) error {
	var mu sync.Mutex
	return func(_ context.Context, o Op) error {
		if op.Method != "" && op.Method != o.Method || op.Step != 0 && op.Step != o.Step || op.Operation != "" && op.Operation != o.Operation {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if n == 0 {
			return nil
		}
		if n > 0 {
			n--
		}
		return err
	}
}

// Claim implements middleware.Ledger.
func (f *Faulty) Claim(ctx context.Context, c middleware.Claim) (row middleware.Row, won bool, err error) {
	err = f.call(ctx, Op{Method: "Claim"}, func() (err error) {
		row, won, err = f.Ledger.Claim(ctx, c)
		return err
	}, func() { row, won = middleware.Row{}, false })
	return row, won, err
}

// Find implements middleware.Ledger.
func (f *Faulty) Find(ctx context.Context, q middleware.Query) (row middleware.Row, ok bool, err error) {
	err = f.call(ctx, Op{Method: "Find", Operation: q.Operation}, func() (err error) {
		row, ok, err = f.Ledger.Find(ctx, q)
		return err
	}, func() { row, ok = middleware.Row{}, false })
	return row, ok, err
}

// Change implements middleware.Ledger.
func (f *Faulty) Change(ctx context.Context, t middleware.Transition) (row middleware.Row, err error) {
	err = f.call(ctx, Op{Method: "Change", Step: t.Step, Operation: t.Operation}, func() (err error) {
		row, err = f.Ledger.Change(ctx, t)
		return err
	}, func() { row = middleware.Row{} })
	return row, err
}

// Note implements middleware.Ledger.
func (f *Faulty) Note(ctx context.Context, operation string, call middleware.Alias) (repeats int, err error) {
	err = f.call(ctx, Op{Method: "Note", Operation: operation}, func() (err error) {
		repeats, err = f.Ledger.Note(ctx, operation, call)
		return err
	}, func() { repeats = 0 })
	return repeats, err
}

// List implements middleware.Lister. It is an error where the ledger within is not one.
func (f *Faulty) List(ctx context.Context, states []middleware.State, limit int) (rows []middleware.Row, err error) {
	lister, ok := f.Ledger.(middleware.Lister)
	if !ok {
		return nil, fmt.Errorf("ledgertest: listing: a %T cannot list its rows", f.Ledger)
	}
	err = f.call(ctx, Op{Method: "List"}, func() (err error) {
		rows, err = lister.List(ctx, states, limit)
		return err
	}, func() { rows = nil })
	return rows, err
}

// Ask implements middleware.Approver. As the other two methods of that, it is an error where the ledger within is not one.
func (f *Faulty) Ask(ctx context.Context, a middleware.Approval, expires time.Duration) (got middleware.Approval, err error) {
	err = f.approve(ctx, "Ask", func(l middleware.Approver) (err error) {
		got, err = l.Ask(ctx, a, expires)
		return err
	}, func() { got = middleware.Approval{} })
	return got, err
}

// Decide implements middleware.Approver.
func (f *Faulty) Decide(ctx context.Context, d middleware.Decision) (got middleware.Approval, err error) {
	err = f.approve(ctx, "Decide", func(l middleware.Approver) (err error) {
		got, err = l.Decide(ctx, d)
		return err
	}, func() { got = middleware.Approval{} })
	return got, err
}

// Approvals implements middleware.Approver.
func (f *Faulty) Approvals(ctx context.Context, states ...middleware.ApprovalState) (all []middleware.Approval, err error) {
	err = f.approve(ctx, "Approvals", func(l middleware.Approver) (err error) {
		all, err = l.Approvals(ctx, states...)
		return err
	}, func() { all = nil })
	return all, err
}

func (f *Faulty) approve(ctx context.Context, method string, do func(middleware.Approver) error, lose func()) error {
	l, err := approver(f.Ledger)
	if err != nil {
		return err
	}
	return f.call(ctx, Op{Method: method}, func() error { return do(l) }, lose)
}

// approver is the ledger as an Approver. The error matches errors.ErrUnsupported.
func approver(l middleware.Ledger) (middleware.Approver, error) {
	if a, ok := l.(middleware.Approver); ok {
		return a, nil
	}
	return nil, fmt.Errorf("ledgertest: looking for approvals: a %T keeps none: %w", l, errors.ErrUnsupported)
}

// call makes a call between Before and After. lose forgets its answer.
func (f *Faulty) call(ctx context.Context, op Op, do func() error, lose func()) error {
	if f.Before != nil {
		if err := f.Before(ctx, op); err != nil {
			return err
		}
	}
	err := do()
	if f.After != nil {
		if lost := f.After(ctx, op); lost != nil {
			lose()
			return lost
		}
	}
	return err
}

var (
	_ middleware.Ledger   = (*Faulty)(nil)
	_ middleware.Lister   = (*Faulty)(nil)
	_ middleware.Approver = (*Faulty)(nil)
)
