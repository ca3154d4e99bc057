// Mutants builds the guard, its stores and the loop with one fault each, and shows that a test catches each fault:
//
//	go run ./internal/mutants [-v] [NAME]
//
// is to be run from the root of the module. NAME is a regular expression that chooses among the mutants. The tree stays
// as it is: a fault is laid over the source for one build (go test -overlay).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"
)

// together is how many mutants are built and tested at the same time.
const together = 2

func main() {
	verbose := flag.Bool("v", false, "print what the tests say about each mutant")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, flag.Arg(0), *verbose)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// run tests the mutants whose names match, and writes a line about each.
func run(ctx context.Context, match string, verbose bool) error {
	names, err := regexp.Compile(match)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(all(), func(m mutant) bool { return !names.MatchString(m.name) })
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant is named like %q", match)
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var stale []error
	for _, m := range chosen {
		if _, err := m.files("."); err != nil {
			stale = append(stale, err)
		}
	}
	if len(stale) > 0 {
		return errors.Join(stale...)
	}
	began := time.Now()
	if err := passes(ctx, chosen); err != nil {
		return err
	}
	fmt.Printf("without a fault all tests named pass, in %.0f s\n", time.Since(began).Seconds())

	caught := 0
	for i, v := range verdicts(ctx, chosen, dir) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		m := chosen[i]
		by := m.caught
		if v.why == "" {
			caught++
		} else {
			by = "NOT CAUGHT: " + v.why + ": " + by
		}
		fmt.Printf("%-52s %-28s %5.1f s  %s\n", m.name, m.file, v.took.Seconds(), by)
		if verbose || v.why != "" {
			fmt.Printf("\t%s\n%s", m.breaks, v.said)
		}
	}
	fmt.Printf("mutants=%d caught=%d, in %.0f s\n", len(chosen), caught, time.Since(began).Seconds())
	if caught < len(chosen) {
		return fmt.Errorf("%d of %d are not caught", len(chosen)-caught, len(chosen))
	}
	return nil
}

// verdicts are about the mutants, in order, as they come.
func verdicts(ctx context.Context, chosen []mutant, dir string) iter.Seq2[int, verdict] {
	coming := make([]chan verdict, len(chosen))
	for i := range coming {
		coming[i] = make(chan verdict, 1)
	}
	next := make(chan int, len(chosen))
	for i := range chosen {
		next <- i
	}
	close(next)
	for range together {
		go func() {
			for i := range next {
				coming[i] <- chosen[i].judge(ctx, dir)
			}
		}()
	}
	return func(yield func(int, verdict) bool) {
		for i, c := range coming {
			if !yield(i, <-c) {
				return
			}
		}
	}
}
