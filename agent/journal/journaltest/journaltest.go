// Package journaltest is the contract of [journal.Journal] as a test suite, for authors of stores.
//
// [Run] checks a journal case by case. [Cases] gives the same cases as functions that return an error, and [Broken] gives
// journals that break one promise each, with the case that tells. A store's test is short:
//
//	func TestJournal(t *testing.T) {
//		journaltest.Run(t, func(t *testing.T) journaltest.System {
//			path := filepath.Join(t.TempDir(), "once.db")
//			return journaltest.System{
//				Open:      func() journal.Journal { … open path as a new process would; close it in t.Cleanup },
//				Kill:      func(j journal.Journal) { … give up what proves that j's owner lives },
//				Namespace: func(j journal.Journal, name string) journal.Journal { return j.(*Store).Namespace(name) },
//			}
//		})
//	}
package journaltest

import (
	"context"
	"slices"
	"testing"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/suite"
)

// System is a journal as several processes use it: one set of data, empty at first. All functions but Forget are
// needed.
type System struct {
	// Open gives the default view of the data to a new owner, as a process gets it that has just started. The cases
	// call it from the goroutine of the test.
	Open func() journal.Journal
	// Kill makes the owner behind a journal count as gone, as after SIGKILL. The journal may still be used: it then is
	// what a slow process would be that others wrongly believe dead.
	Kill func(journal.Journal)
	// Namespace gives another view of the data to the same owner. The default view's name is not asked for.
	Namespace func(j journal.Journal, name string) journal.Journal
	// Forget has what a run said and did erased, as a person may. nil: the store cannot, and the cases about it are skipped.
	Forget func(j journal.Journal, run string) error
}

// Case is one promise of the contract.
type Case struct {
	// Name states the promise, after the method that it is about.
	Name string
	// Rule is the number of the contract that the case belongs to, or the type whose documentation says it.
	Rule string
	// Check says what was expected and what came, nil where the promise is kept. Its error matches errors.ErrUnsupported
	// where the journal does not offer what the promise is about. It needs fresh data and does not sleep.
	Check func(context.Context, System) error
}

// Cases gives all cases. Their names are unique.
func Cases() []Case {
	return slices.Concat(beginCases(), takeCases(), appendCases(), leaveCases(), contentCases(), namespaceCases(), raceCases(), readCases(), forgetCases())
}

// Run checks every case on data of its own. open is called once a case and may use t for cleaning up. Cases about what the
// journal does not offer are skipped.
func Run(t *testing.T, open func(t *testing.T) System) {
	t.Helper()
	suite.Run(t, cases(open))
}

// RunBroken checks the suite itself on top of a sound journal: each of [Broken] must fail the case that is named for it
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
