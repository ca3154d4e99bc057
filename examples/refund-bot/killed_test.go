package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
)

// TestKilledAnywhereItRefundsOnce kills the program at a point, gives the same command again, and once more.
func TestKilledAnywhereItRefundsOnce(t *testing.T) {
	for _, c := range []struct {
		point  string
		kinds  []provider.Kind
		turns  []int // that the model is asked for, before and after the kill
		stream bool  // only
	}{
		{asked1, kinds[1:2], []int{1, 1, 2, 3}, false},
		{reading, kinds[1:2], []int{1, 2, 3}, false},
		{half2, kinds[1:2], []int{1, 2, 2, 3}, true},
		{checking, kinds[1:2], []int{1, 2, 3}, false},
		{arrived, kinds, []int{1, 2, 3}, false},
		{paid, kinds, []int{1, 2, 3}, false},
		{asked3, kinds[1:2], []int{1, 2, 3, 3}, false},
		{half3, kinds[1:2], []int{1, 2, 3, 3}, true},
		{printed, kinds[1:2], []int{1, 2, 3}, false},
	} {
		for _, f := range forms {
			for _, kind := range c.kinds {
				if c.stream && !f.stream {
					continue
				}
				t.Run(c.point+"/"+f.String()+"/"+string(kind), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, f, kind)
					w.kill("ticket-42", c.point)
					if kind == provider.Lookup && c.point == arrived { // until then the request may be on its way
						w.timePasses()
					}
					refunds, answer := 1, "Order 1001: 129.00 refunded (re_1001_1).\n"
					if kind == provider.Plain { // nobody can know
						answer = "I cannot tell whether order 1001 was refunded. A person must check; I will not try again.\n"
						if c.point == arrived {
							refunds = 0
						}
					}
					finish(t, w.program("ticket-42")).ok(t).wantLines(t, answer)
					if d := cmp.Diff(c.turns, w.turns()); d != "" {
						t.Errorf("asked for turns (-want +got):\n%s", d)
					}
					finish(t, w.program("ticket-42")).ok(t).wantLines(t, answer, "(saved answer of run ticket-42: the model was not asked, and no money moved)\n")
					if n := len(w.turns()); n != len(c.turns) {
						t.Errorf("%d requests for a saved answer", n-len(c.turns))
					}
					if n := w.refunds(); n != refunds {
						t.Errorf("%d refunds, want %d", n, refunds)
					}
				})
			}
		}
	}
}

// TestALookupThatFindsNothingWaitsForTheDeadline: the request of the killed program may still be on its way.
func TestALookupThatFindsNothingWaitsForTheDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, forms[0], provider.Lookup)
	w.kill("ticket-42", arrived)
	finish(t, w.program("ticket-42")).ok(t).wantLines(t, "issue_refund is held: outcome_unknown", "I cannot tell whether order 1001 was refunded.")
	if n := w.refunds(); n != 0 {
		t.Fatalf("%d refunds while a request may be on its way", n)
	}
	w.timePasses()
	finish(t, w.program("ticket-43")).ok(t)
	if n := w.refunds(); n != 1 {
		t.Errorf("%d refunds, want 1", n)
	}
}

// TestSettledByAPersonTheSameRunGoesOn kills a run before the model has read that nobody knows. Once a person has settled
// it, the model reads that.
func TestSettledByAPersonTheSameRunGoesOn(t *testing.T) {
	for _, f := range forms {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, f, provider.Plain)
			w.kill("ticket-42", paid)
			w.kill("ticket-42", asked3)
			shown := finish(t, w.program("ticket-43")).ok(t)
			m := regexp.MustCompile(`(?m)^  if the provider has it:  go run \./cmd/toolonce resolve (\S+) --happened --by `).FindStringSubmatch(shown.out)
			if m == nil {
				t.Fatalf("no command in:\n%s", shown.out)
			}
			happened(t, filepath.Join(w.dir, onceFile), m[1], "ann", "it is in the books")
			finish(t, w.program("ticket-42")).ok(t).wantLines(t, "guard     issue_refund is not run again: already_done", "Order 1001 was refunded before. I have not refunded it again.\n")
			if n := w.refunds(); n != 1 {
				t.Errorf("%d refunds, want 1", n)
			}
		})
	}
}

// TestAStreamIsPrintedAsItArrives holds the answer back until its first half is printed.
func TestAStreamIsPrintedAsItArrives(t *testing.T) {
	for _, f := range forms {
		if !f.stream {
			continue
		}
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, f, provider.Lookup)
			out := &awaited{want: "Order 10", seen: make(chan struct{})}
			w.when(half3, func() {
				select {
				case <-out.seen:
				case <-time.After(20 * time.Second):
					t.Error("nothing of the answer was printed before its end")
				}
			})
			cmd := w.program("ticket-42")
			cmd.Stdout = out
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			if text := out.String(); !strings.HasSuffix(text, "\nOrder 1001: 129.00 refunded (re_1001_1).\n") {
				t.Errorf("printed:\n%s", text)
			}
		})
	}
}

// awaited is an output; seen is closed when it has what is wanted.
type awaited struct {
	strings.Builder
	want string
	seen chan struct{}
}

func (a *awaited) Write(b []byte) (int, error) {
	before := strings.Contains(a.String(), a.want)
	n, err := a.Builder.Write(b)
	if !before && strings.Contains(a.String(), a.want) {
		close(a.seen)
	}
	return n, err
}

// TestTwoProcessesOnOneRun has a second one come while the first waits for the model.
func TestTwoProcessesOnOneRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, forms[0], provider.Lookup)
	var second ran
	w.when(asked1, func() { second = finish(t, w.program("ticket-42")) })
	finish(t, w.program("ticket-42")).ok(t).wantLines(t, "Order 1001: 129.00 refunded (re_1001_1).\n")
	const want = ": the run is going on in another process or call: wait for it, then give the same command again to see its answer\n"
	if second.code != exitFailed || !strings.HasPrefix(second.err, `refund-bot: agent: beginning run "ticket-42": `) ||
		!strings.HasSuffix(second.err, want) || strings.Count(second.err, "\n") != 1 {
		t.Errorf("the second: exit code %d, %s", second.code, second.err)
	}
	if d := cmp.Diff([]int{1, 2, 3}, w.turns()); d != "" {
		t.Errorf("asked for turns (-want +got):\n%s", d)
	}
}
