//go:build unix && cgo

package crash_test

import (
	"fmt"

	"github.com/toolonce/toolonce/registry"
)

// phase is how far a run had come when its process was killed, by what is durable: the store's rows and the provider's
// money.
type phase string

const (
	noTurn   phase = "no answer is stored"
	unbegun  phase = "answer 1 is stored, nothing is claimed"
	claimed  phase = "claimed, no effect"
	effected phase = "effect, no result is saved"
	saved    phase = "the result is saved, the model has not read it"
	told     phase = "what the model reads is stored"
	finished phase = "the run is finished"
	foreign  phase = "the other run has claimed it"
)

var phases = []phase{noTurn, unbegun, claimed, effected, saved, told, finished, foreign}

// pair are the verdicts of a refund and of its repeat in a later turn.
type pair [2]registry.Verdict

var (
	doneHere     = pair{registry.Executed, registry.AlreadyDone}
	doneBefore   = pair{registry.Replayed, registry.AlreadyDone}
	doneByOthers = pair{registry.AlreadyDone, registry.AlreadyDone}
	inDoubt      = pair{registry.OutcomeUnknown, registry.OutcomeUnknown}
)

// demand is what must come of a kill.
type demand struct {
	alone   pair // what the run is told that goes on
	other   pair // what another run is told that asks for the same refund before this one goes on
	behind  pair // what this one is told then
	effects int  // at the provider, before anything in doubt is settled
}

const anyKind = ""

// demands are the rules: what is demanded of the phase, by the kind of the provider.
var demands = map[phase]map[string]demand{
	noTurn:  {anyKind: {doneHere, doneHere, doneByOthers, 1}},
	unbegun: {anyKind: {doneHere, doneHere, doneByOthers, 1}},
	claimed: {
		local:    {doneHere, doneByOthers, doneBefore, 1},
		"keyed":  {doneHere, doneByOthers, doneBefore, 1},
		"lookup": {inDoubt, inDoubt, inDoubt, 0}, // before the deadline absence proves nothing
		"plain":  {inDoubt, inDoubt, inDoubt, 0},
	},
	effected: {
		"keyed":  {doneHere, doneByOthers, doneBefore, 1},
		"lookup": {doneBefore, doneByOthers, doneBefore, 1},
		"plain":  {inDoubt, inDoubt, inDoubt, 1},
	},
	saved:    {anyKind: {doneBefore, doneByOthers, doneBefore, 1}},
	told:     {anyKind: {doneHere, doneByOthers, doneHere, 1}},
	finished: {anyKind: {doneHere, doneByOthers, doneHere, 1}},
	foreign:  {anyKind: {effects: 1, other: doneHere, behind: doneByOthers}},
}

func demanded(p phase, kind string) (demand, error) {
	if d, ok := demands[p][kind]; ok {
		return d, nil
	}
	if d, ok := demands[p][anyKind]; ok {
		return d, nil
	}
	return demand{}, fmt.Errorf("nothing is demanded of phase %q", p)
}

// fact is what a store says of the run, and of the operation.
type fact struct {
	turns      int
	finished   bool
	operations int
	state      string // of the last operation
	claimer    string // its run
	attempt    int
	deadline   int64  // nanoseconds
	settledBy  string // the person
	refunds    int    // that are Local
}

// phase is that of the run that was killed. effects are those of its process.
func (f fact) phase(effects int) phase {
	switch {
	case f.claimer != "" && f.claimer != first:
		return foreign
	case f.finished:
		return finished
	case f.turns > 1:
		return told
	case f.turns == 0:
		return noTurn
	case f.operations == 0:
		return unbegun
	case f.state == "done":
		return saved
	case effects > 0:
		return effected
	default:
		return claimed
	}
}
