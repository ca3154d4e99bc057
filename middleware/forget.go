package middleware

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Why a run cannot be forgotten. Nothing was changed.
var (
	// ErrUnsettled says that an operation of the run is running or in doubt.
	ErrUnsettled = errors.New("middleware: an operation of the run is not settled, and what it was asked to do is needed for that: settle it first")
	// ErrUnknownRun says that nothing in the namespace has that run id.
	ErrUnknownRun = errors.New("middleware: there is no such run: look at its id and its namespace")
)

// ForgetReport counts what was erased, or would be.
type ForgetReport struct {
	// Turns are the answers of the model, Outputs what the model was told about its calls.
	Turns, Outputs int
	// Operations are those whose input and result have gone. What was done is still known to have been done.
	Operations int
	// Approvals are questions whose input has gone, or which count no more.
	Approvals int
	// Ended says that the run was not finished: nobody can go on with it any more.
	Ended bool
}

// Forgetter is a Ledger that can erase what users and models wrote in one run. What keeps effects from being repeated stays.
//
//  1. What the model answered and was told goes, and so do input and result of the operations that the run has claimed and
//     that nobody has claimed since. All else of these stays, so an equal call is told that it was done, without the result.
//  2. The input of the run's approvals goes. Those that are pending, or approved and not spent, expire; a denial stands.
//  3. A run of a journal is finished then, whatever it was, and journal.ErrForgotten to whoever begins it. The digest of its
//     input stays, as do all ids and what people gave as reasons.
//  4. All that is done in one transaction with the act: ActForgot, with the run as Target. By must not be empty.
//  5. It is refused, and nothing is changed, where somebody lives at the run (journal.ErrRunTaken), where an operation that it
//     has claimed is running or in doubt (ErrUnsettled), and where nothing at all has that run id (ErrUnknownRun).
//  6. A run may be forgotten again: what has come since goes too, such as the late result of an operation that a person has
//     freed. Where there is nothing to erase no act is recorded.
//  7. Forgettable says what Forget would erase, or why it would be refused, and changes nothing.
type Forgetter interface {
	Forget(ctx context.Context, run string, a Act) (ForgetReport, error)
	Forgettable(ctx context.Context, run string) (ForgetReport, error)
}

// ForgetAct is the act that forgetting a run is, for a Forgetter: By, Why and Detail are the caller's.
func ForgetAct(run string, a Act) Act {
	return Act{Kind: ActForgot, Target: run, By: a.By, Why: a.Why, Detail: a.Detail}
}

// Forget implements Forgetter for what a ledger has. A journal in memory has a Forget of its own.
func (l *MemoryLedger) Forget(_ context.Context, run string, a Act) (ForgetReport, error) {
	a = ForgetAct(run, a)
	if err := a.Check(); err != nil {
		return ForgetReport{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	report, err := l.forget(run, false)
	if a.Namespace = l.namespace; report != (ForgetReport{}) {
		l.record(a)
	}
	return report, err
}

// Forgettable implements Forgetter.
func (l *MemoryLedger) Forgettable(_ context.Context, run string) (ForgetReport, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forget(run, true)
}

func (l *MemoryLedger) forget(run string, dry bool) (report ForgetReport, err error) {
	known := false
	for _, a := range l.aliases {
		known = known || a.namespace == l.namespace && a.Run == run
	}
	var rows []*memoryRow
	for _, r := range l.rows {
		if r.Namespace != l.namespace || r.Claimer.Run != run {
			continue
		}
		known = true
		if r.State == Running || r.State == InDoubt {
			return report, fmt.Errorf("%w: %s is %s", ErrUnsettled, r.Operation, r.State)
		}
		if r.Input != nil || r.HasResult {
			rows = append(rows, r)
		}
	}
	for _, r := range rows {
		report.Operations++
		if !dry {
			r.Input, r.Result, r.HasResult = nil, "", false
		}
	}
	now := time.Now()
	for _, a := range l.approvals {
		if a.namespace != l.namespace || a.Call.Run != run {
			continue
		}
		known = true
		counts := (a.State == Pending || a.State == Approved) && now.Before(a.Expires)
		if a.Input == nil && !counts {
			continue
		}
		report.Approvals++
		if !dry {
			if a.Input = nil; counts {
				a.Expires = now
			}
		}
	}
	if !known {
		err = ErrUnknownRun
	}
	return report, err
}
