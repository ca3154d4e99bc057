// Package ledgertest is the contract of [middleware.Ledger] as a test suite, for authors of stores.
//
// [Run] checks a ledger case by case. [Cases] gives the same cases as functions that return an error, [Broken] gives
// ledgers that break one promise each, with the case that tells, and [Faulty] makes a sound ledger fail as stores do,
// for tests of what is built on one. A store's test is short:
//
//	func TestLedger(t *testing.T) {
//		ledgertest.Run(t, func(t *testing.T) ledgertest.System {
//			path := filepath.Join(t.TempDir(), "once.db")
//			return ledgertest.System{
//				Open:      func() middleware.Ledger { … open path as a new process would; close it in t.Cleanup },
//				Kill:      func(l middleware.Ledger) { … give up what proves that l's owner lives },
//				Namespace: func(l middleware.Ledger, name string) middleware.Ledger { return l.(*Store).Namespace(name) },
//			}
//		})
//	}
package ledgertest

import (
	"context"
	"slices"
	"testing"

	"github.com/toolonce/toolonce/internal/suite"
	"github.com/toolonce/toolonce/middleware"
)

// System is a ledger as several processes use it: one set of data, empty at first. All three functions are needed.
type System struct {
	// Open gives the default view of the data to a new owner, as a process gets it that has just started. The cases
	// call it from the goroutine of the test.
	Open func() middleware.Ledger
	// Kill makes the owner behind a ledger count as gone, as after SIGKILL. The ledger may still be used: it then is
	// what a slow process would be that others wrongly believe dead.
	Kill func(middleware.Ledger)
	// Namespace gives another view of the data to the same owner. The default view's name is not asked for.
	Namespace func(l middleware.Ledger, name string) middleware.Ledger
}

// Case is one promise of the contract.
type Case struct {
	// Name states the promise, after the step or method that it is about.
	Name string
	// Rule is the number of the contract that the case belongs to, or the type whose documentation says it.
	Rule string
	// Check says what was expected and what came, nil where the promise is kept. Its error matches
	// errors.ErrUnsupported where the ledger does not offer what the promise is about. It needs fresh data and does
	// not sleep.
	Check func(context.Context, System) error
}

// Cases gives all cases. Their names are unique.
func Cases() []Case {
	return slices.Concat(
		claimCases(), claimNewCases(), claimAgainCases(), claimExpiredCases(),
		stepCases(), completeCases(), ownerCases(), againCases(), settleCases(), personCases(),
		undoCases(), repeatCases(), keyCases(), noteCases(), findCases(), resourceCases(),
		contentCases(), namespaceCases(), raceCases(), processCases(),
		askCases(), decideCases(), spendCases(), pruneCases(), actCases(), forgetCases(),
	)
}

// Run checks every case on data of its own. open is called once a case and may use t for cleaning up. Cases about what
// the ledger does not offer are skipped.
func Run(t *testing.T, open func(t *testing.T) System) {
	t.Helper()
	suite.Run(t, cases(open))
}

// RunBroken checks the suite itself on top of a sound ledger: each of [Broken] must fail the case that is named for it
// and the others that it lists, and no more.
func RunBroken(t *testing.T, open func(t *testing.T) System) {
	t.Helper()
	for _, b := range Broken() {
		suite.RunBroken(t, b.Name, b.Fails, b.Also, cases(func(t *testing.T) System { return b.Wrap(open(t)) }))
	}
}

func cases(open func(t *testing.T) System) []suite.Case {
	var all []suite.Case
	for _, c := range Cases() {
		all = append(all, suite.Case{Name: c.Name, Rule: c.Rule, Check: func(ctx context.Context, t *testing.T) error { return c.Check(ctx, open(t)) }})
	}
	return all
}
