package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	hanging = 2 * time.Minute // when a test is taken to hang
	longest = 5 * time.Minute // of a build and its tests
)

// verdict is what a test says about a mutant.
type verdict struct {
	why  string // it is not caught; "" if it is
	said string
	took time.Duration
}

// judge has the mutant tested. What is needed for that is written to dir.
func (m *mutant) judge(ctx context.Context, dir string) verdict {
	began := time.Now()
	pkg, name := m.test()
	overlay, err := m.overlay(".", dir)
	var r report
	if err == nil {
		r, err = goTest(ctx, pkg, []string{name}, "-overlay", overlay)
	}
	if err != nil {
		return verdict{why: err.Error(), took: time.Since(began)}
	}
	return verdict{why: m.escapes(r), said: r.said, took: time.Since(began)}
}

// escapes says why a report does not show that the mutant is caught, "" where it does.
func (m *mutant) escapes(r report) string {
	_, name := m.test()
	hung := strings.Contains(r.said, "panic: test timed out after")
	switch {
	case !r.built:
		return "it does not build"
	case hung && m.hangs:
		return ""
	case hung:
		return "the test hangs"
	case brokenQuery.MatchString(r.said):
		return "its SQL is no fault but an error"
	case r.results[name] == "fail":
		return ""
	case r.results[name] == "pass":
		return "the test passes"
	default:
		return "the test was not run to its end"
	}
}

// brokenQuery is what a mutant must not come to whose SQL was changed: any test would catch it.
var brokenQuery = regexp.MustCompile(`SQL logic error|syntax error|no such column|sql: expected \d+ arguments|SQLSTATE 42|SQLSTATE 08P01|mismatched param and argument count|ON CONFLICT clause does not match`)

// passes reports whether all tests that are to catch a mutant pass on the code as it is.
func passes(ctx context.Context, all []mutant) error {
	tests := map[string][]string{}
	for _, m := range all {
		if pkg, name := m.test(); !slices.Contains(tests[pkg], name) {
			tests[pkg] = append(tests[pkg], name)
		}
	}
	var errs []error
	for pkg, names := range tests {
		r, err := goTest(ctx, pkg, names)
		if err != nil || !r.built {
			errs = append(errs, fmt.Errorf("%s cannot be tested: %w", pkg, errors.Join(err, errors.New(r.said))))
			continue
		}
		for _, name := range names {
			if got := r.results[name]; got != "pass" {
				errs = append(errs, fmt.Errorf("%s: without a fault %q ends with %q, want pass", pkg, name, got))
			}
		}
	}
	return errors.Join(errs...)
}

// report is what a run of tests has come to.
type report struct {
	built   bool
	results map[string]string // pass, fail or skip, by the name of the test as t.Run was given it
	said    string
}

// goTest runs the tests of a package that are named. Its error is that the command could not be run, or was stopped.
func goTest(ctx context.Context, pkg string, names []string, args ...string) (report, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	args = append([]string{"test", "-json", "-count=1", "-vet=off", "-ldflags=-w", "-timeout", hanging.String()}, args...)
	cmd := exec.CommandContext(ctx, "go", append(args, "-run", pattern(names), pkg)...)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed || ctx.Err() != nil {
		return report{}, errors.Join(err, ctx.Err())
	}
	r, err := read(out, names)
	r.said += stderr.String()
	return r, err
}

// event is a line of go test -json.
type event struct{ Action, Test, Output, FailedBuild string }

func read(out []byte, names []string) (report, error) {
	r := report{built: true, results: map[string]string{}}
	called := map[string]string{}
	for _, n := range names {
		called[asRun(n)] = n
	}
	var said strings.Builder
	d := json.NewDecoder(bytes.NewReader(out))
	for d.More() {
		var e event
		if err := d.Decode(&e); err != nil {
			return r, fmt.Errorf("reading what go test -json says: %w", err)
		}
		r.built = r.built && e.Action != "build-fail" && e.FailedBuild == ""
		name, named := called[e.Test]
		switch {
		case e.Action == "output" || e.Action == "build-output":
			said.WriteString("\t" + e.Output)
		case named && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
			r.results[name] = e.Action
		}
	}
	r.said = said.String()
	return r, nil
}

// pattern chooses exactly these tests.
func pattern(names []string) string {
	var all []string
	for _, n := range names {
		var parts []string
		for p := range strings.SplitSeq(asRun(n), "/") {
			parts = append(parts, "^"+regexp.QuoteMeta(p)+"$")
		}
		all = append(all, strings.Join(parts, "/"))
	}
	return strings.Join(all, "|")
}

// asRun is the name of a test as package testing writes it.
func asRun(name string) string { return strings.ReplaceAll(name, " ", "_") }
