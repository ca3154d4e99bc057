package transcript

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/toolonce/toolonce/registry"
)

// Expected has the right verdicts of saved runs by their id, for an [Audit], which notes in it which runs it has met. nil
// expects nothing. It serves one audit at a time.
type Expected struct{ runs map[string]*expectedRun }

type expectedRun struct {
	calls map[place]expectedCall
	seen  bool
}

// place is where a call is in its run.
type place struct{ turn, position int }

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.position, b.position))
}

type expectedCall struct {
	tool    string
	verdict registry.Verdict
}

// ReadExpected reads JSON Lines, a run a line: {"id": …, "calls": [[turn, position, tool, verdict], …]}, with turns from 1
// and positions from 0. The verdicts are "execute" and "execute_failed" for a call that must reach its tool, "already_done",
// "conflict" and "refused". A line that cannot be read is an error with its number.
func ReadExpected(r io.Reader) (*Expected, error) {
	all := map[string]*expectedRun{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxRun)
	n := 1
	for ; lines.Scan(); n++ {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		var saved struct {
			ID    string
			Calls []expectedPlace
		}
		err := json.Unmarshal(lines.Bytes(), &saved)
		if err == nil && all[saved.ID] != nil {
			err = fmt.Errorf("run %q came before", saved.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("transcript: reading expected verdicts, line %d: %w", n, err)
		}
		run := &expectedRun{calls: map[place]expectedCall{}}
		for _, c := range saved.Calls {
			run.calls[c.place] = c.expectedCall
		}
		all[saved.ID] = run
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("transcript: reading expected verdicts, line %d: %w", n, err)
	}
	return &Expected{all}, nil
}

// Unmet are the runs that no audit has met, in order, and how many calls they have.
func (e *Expected) Unmet() (runs []string, calls int) {
	if e == nil {
		return nil, 0
	}
	for _, id := range slices.Sorted(maps.Keys(e.runs)) {
		if r := e.runs[id]; !r.seen {
			runs, calls = append(runs, id), calls+len(r.calls)
		}
	}
	return runs, calls
}

// differences are a line for each call that was decided otherwise than expected, is not expected at all, or is missing.
func (e *Expected) differences(run string, ds []Decision) (all []string) {
	if e == nil {
		return nil
	}
	differ := func(p place, tool string, got, want registry.Verdict) {
		all = append(all, fmt.Sprintf("turn %d position %d %s: %s, want %s", p.turn, p.position, tool, got, want))
	}
	r := e.runs[run]
	if r == nil {
		r = &expectedRun{}
	}
	r.seen = true
	decided := map[place]bool{}
	for _, d := range ds {
		p := place{d.Turn, d.Position}
		decided[p] = true
		want, ok := r.calls[p]
		switch {
		case !ok:
			differ(p, d.Name, d.Verdict, "no call")
		case want.tool != d.Name:
			differ(p, d.Name, d.Verdict, "a call of "+registry.Verdict(want.tool))
		case want.verdict != d.Verdict:
			differ(p, d.Name, d.Verdict, want.verdict)
		}
	}
	for _, p := range slices.SortedFunc(maps.Keys(r.calls), comparePlaces) {
		if !decided[p] {
			differ(p, r.calls[p].tool, "no call", r.calls[p].verdict)
		}
	}
	return all
}

// expectedPlace is one call as saved.
type expectedPlace struct {
	place
	expectedCall
}

func (c *expectedPlace) UnmarshalJSON(b []byte) error {
	var verdict string
	fields := []any{&c.turn, &c.position, &c.tool, &verdict}
	want := len(fields)
	if err := json.Unmarshal(b, &fields); err != nil {
		return err
	}
	if len(fields) != want {
		return errors.New("a call is not [turn, position, tool, verdict]")
	}
	switch c.verdict = registry.Verdict(verdict); c.verdict {
	case "execute", "execute_failed", registry.Executed:
		c.verdict = registry.Executed
	case registry.AlreadyDone, registry.Conflict, registry.Refused:
	default:
		return fmt.Errorf("verdict %q is unknown: say execute, execute_failed, already_done, conflict or refused", verdict)
	}
	return nil
}
