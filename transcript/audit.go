package transcript

import (
	"context"
	"fmt"

	"github.com/toolonce/toolonce/registry"
)

// Audit says what a rule would have decided on saved runs. A field that is nil does nothing, except Decide.
type Audit struct {
	// Decide is the rule: [Replay] with tools, or one of [SimpleRule].
	Decide func(context.Context, Run) ([]Decision, error)
	// Expect has the verdicts that are right.
	Expect *Expected
	// OnRun is told each run, the decisions about its calls, and in which they differ from what is expected.
	OnRun func(run Run, decisions []Decision, differences []string)
	// OnBroken is told what could not be read or decided, by file and line. It hides nothing else.
	OnBroken func(error)
}

// Totals counts what was decided.
type Totals struct {
	Runs        int `json:"runs"`
	Calls       int `json:"calls"`
	Executed    int `json:"executed"` // reached the tool, which may then have refused
	AlreadyDone int `json:"already_done"`
	Conflict    int `json:"conflict"`
	Refused     int `json:"refused"`
	// IDCollisions are calls under an id that an earlier call of the run, of another tool or with other canonical
	// arguments, has used.
	IDCollisions int `json:"id_collisions"`
	// Mismatches are calls that were decided otherwise than expected; 0 where nothing is expected.
	Mismatches int `json:"mismatches"`
	// Broken are lines, elements and files that could not be read, and runs that could not be decided.
	Broken int `json:"broken"`
}

// String is one line with all counts but Broken.
func (t Totals) String() string {
	return fmt.Sprintf("runs=%d calls=%d executed=%d already_done=%d conflict=%d refused=%d id_collisions=%d mismatches=%d",
		t.Runs, t.Calls, t.Executed, t.AlreadyDone, t.Conflict, t.Refused, t.IDCollisions, t.Mismatches)
}

// Plus is the sum of both.
func (t Totals) Plus(o Totals) Totals {
	return Totals{
		Runs: t.Runs + o.Runs, Calls: t.Calls + o.Calls, Executed: t.Executed + o.Executed, AlreadyDone: t.AlreadyDone + o.AlreadyDone,
		Conflict: t.Conflict + o.Conflict, Refused: t.Refused + o.Refused, IDCollisions: t.IDCollisions + o.IDCollisions,
		Mismatches: t.Mismatches + o.Mismatches, Broken: t.Broken + o.Broken,
	}
}

// File audits the runs of a file, one at a time. The error is that of a context that has ended; everything else is told to
// OnBroken and counted.
func (a *Audit) File(ctx context.Context, path string) (Totals, error) {
	var t Totals
	for run, err := range ReadFile(path) {
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
		var ds []Decision
		if err == nil {
			ds, err = a.Decide(ctx, run)
		}
		if err != nil {
			t.Broken++
			if a.OnBroken != nil {
				a.OnBroken(err)
			}
			continue
		}
		differences := a.Expect.differences(run.ID, ds)
		t = t.Plus(count(ds))
		t.Mismatches += len(differences)
		if a.OnRun != nil {
			a.OnRun(run, ds, differences)
		}
	}
	return t, ctx.Err()
}

func count(ds []Decision) Totals {
	t := Totals{Runs: 1, Calls: len(ds)}
	for _, d := range ds {
		switch d.Verdict {
		case registry.Executed:
			t.Executed++
		case registry.AlreadyDone:
			t.AlreadyDone++
		case registry.Conflict:
			t.Conflict++
		default:
			t.Refused++
		}
		if d.Collides {
			t.IDCollisions++
		}
	}
	return t
}

// SimpleRule is a rule for comparison, by its name: "none" lets every call run, "call_id" stops those whose id was seen
// before in their run, "arguments" those of a tool that was called with equal canonical arguments. It is nil for another
// name.
func SimpleRule(name string) func(context.Context, Run) ([]Decision, error) {
	var key func(c Call, meaning string) string
	switch name {
	case "none":
		key = func(c Call, _ string) string { return fmt.Sprint(c.Turn, ".", c.Position) }
	case "call_id":
		key = func(c Call, _ string) string { return c.ID }
	case "arguments":
		key = func(_ Call, meaning string) string { return meaning }
	default:
		return nil
	}
	return func(ctx context.Context, run Run) ([]Decision, error) {
		meaning := meanings(ctx)
		seen := map[string]*Call{}
		var ds []Decision
		for c := range run.Calls() {
			k := key(c, meaning(c.ToolCall))
			d := Decision{Call: c, Verdict: registry.Executed, Repeats: seen[k]}
			if d.Repeats != nil {
				d.Verdict = registry.AlreadyDone
			} else {
				seen[k] = &c
			}
			ds = append(ds, d)
		}
		markCollisions(ds, meaning)
		return ds, nil
	}
}
