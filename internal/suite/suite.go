// Package suite is what the conformance suites of stores share: cases that end at the first broken promise, and
// implementations broken on purpose, each of which must fail the cases that are named for it. It needs the standard
// library alone.
package suite

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"
)

// Case is one promise on its way to be checked.
type Case struct {
	Name string
	Rule string // where the contract says it
	// Check opens what it checks by t. Its error matches errors.ErrUnsupported where that does not offer what the promise
	// is about.
	Check func(ctx context.Context, t *testing.T) error
}

// caseTime ends a case that hangs.
const caseTime = time.Minute

func (c *Case) run(t *testing.T) error {
	ctx, cancel := context.WithTimeout(t.Context(), caseTime)
	defer cancel()
	return c.Check(ctx, t)
}

// Run checks the cases, each as a test of its own. What is not offered is skipped.
func Run(t *testing.T, cases []Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			switch err := c.run(t); {
			case errors.Is(err, errors.ErrUnsupported):
				t.Skip(err)
			case err != nil:
				t.Errorf("contract, %s: %v", c.Rule, err)
			}
		})
	}
}

// RunBroken checks on an implementation that is broken on purpose, as a test called name, that the case called fails
// and those that match one of also fail, and no more. also are patterns of [path.Match].
func RunBroken(t *testing.T, name, fails string, also []string, cases []Case) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		unused := append([]string{fails}, also...)
		for _, c := range cases {
			var err error
			t.Run(c.Name, func(t *testing.T) { err = c.run(t) })
			named := func(pattern string) bool {
				ok, err := path.Match(pattern, c.Name)
				return ok && err == nil || pattern == c.Name
			}
			wanted := c.Name == fails || slices.ContainsFunc(also, named)
			unused = slices.DeleteFunc(unused, named)
			switch {
			case errors.Is(err, errors.ErrUnsupported): // it tells nothing
			case wanted && err == nil:
				t.Errorf("%q passes, but should tell that this is broken", c.Name)
			case !wanted && err != nil:
				t.Errorf("%q fails, which is not listed: %v", c.Name, err)
			}
		}
		if len(unused) > 0 {
			t.Errorf("no case is named %q", unused)
		}
	})
}

type failure struct{ error }

// Catch gives the error by which f has ended itself, nil if it has not.
func Catch(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			err = r.error
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// Failf ends the case that is run by [Catch].
func Failf(format string, args ...any) {
	panic(failure{fmt.Errorf(format, args...)})
}

// Want ends the case unless what came is what was wanted.
func Want[T comparable](what string, got, wanted T) {
	if got != wanted {
		Failf("%s is %v, want %v", what, got, wanted)
	}
}

// None ends the case where there is an error.
func None(err error, doing string) {
	if err != nil {
		Failf("%s: %w", doing, err)
	}
}
