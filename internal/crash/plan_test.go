//go:build unix && cgo

package crash_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// point is where a process is killed, and what must be durable there.
type point struct {
	letter    string // a to m as they are known for loops, "" for a write that is none of them
	at        string
	phase     phase
	or        phase  // may be durable instead, "" for no other
	then      string // where the process that goes on is killed, "" for nowhere
	thenPhase phase
}

// Where the provider holds a refund.
const (
	isLost     = "the refund is lost on its way"
	lands      = "the refund arrives when its sender is dead"
	landsLate  = "the refund arrives when the run has ended"
	refundMade = "refund made"
)

// inTheTool is in its handler. One that is Local is in the store's transaction there, and where its refund is made.
const inTheTool = "in the tool"

// inMaking is in the opening of a store that is not there yet. Nobody can have it open then.
const inMaking = "in the making of the store"

// places are the points that are no write.
var places = []point{
	{letter: "a", at: "before request 1", phase: noTurn},
	{letter: "j", at: "request 1 is sent", phase: noTurn},
	{letter: "b", at: "answer 1 arrives", phase: noTurn},
	{letter: "e", at: inTheTool, phase: claimed},
	{letter: "f", at: isLost, phase: claimed},
	{letter: "f", at: lands, phase: effected},
	{letter: "f", at: landsLate, phase: claimed},
	{letter: "g", at: refundMade, phase: effected},
	{letter: "h", at: "in the read", phase: saved},
	{letter: "i", at: "before request 2", phase: saved},
	{letter: "j", at: "request 2 is sent", phase: saved},
	{letter: "b", at: "answer 2 arrives", phase: saved},
	{letter: "i", at: "before request 3", phase: told},
	{letter: "j", at: "request 3 is sent", phase: told},
	{letter: "b", at: "answer 3 arrives", phase: told},
}

// around are the phases before and after each write of a run, and the letters of these points.
var around = map[string]struct {
	before, after             phase
	letterBefore, letterAfter string
}{
	"begin":    {noTurn, noTurn, "", "a"},
	"turn 1":   {noTurn, unbegun, "b", "c"},
	"claim":    {unbegun, claimed, "d", "e"},
	"complete": {effected, saved, "g", "h"},
	"turn 2":   {saved, told, "b", "c"},
	"note":     {told, told, "", ""},
	"turn 3":   {told, finished, "b", ""},
	// Of a process that goes on behind an effect whose result is not saved.
	"doubt": {effected, effected, "", ""},
	"take":  {effected, effected, "", ""},
	"again": {effected, effected, "", ""},
	"found": {effected, saved, "", ""},
}

// stored is the phase where the effect, if it is Local, is only there with its result.
func (s setting) stored(p phase) phase {
	if s.Kind == local && p == effected {
		return claimed
	}
	return p
}

// pointsOf are the points of a run, those where each way to run it is killed and those where some are.
func pointsOf(s setting, writes, writesAfter []string) (full, some []point, err error) {
	for _, p := range places {
		if s.Kind != local || !slices.Contains([]string{isLost, lands, landsLate}, p.at) {
			p.phase = s.stored(p.phase)
			full = append(full, p)
		}
	}
	for _, w := range writes {
		a, ok := around[w]
		if !ok {
			return nil, nil, fmt.Errorf("the run writes %q, of which nothing is known here: say in around what is durable before and after it", w)
		}
		full = append(full, point{letter: a.letterBefore, at: beforeIt + w, phase: s.stored(a.before)}, point{letter: a.letterAfter, at: afterIt + w, phase: a.after})
	}
	some = append(some, point{letter: "k", at: inMaking, phase: noTurn, then: refundMade, thenPhase: s.stored(effected)})
	for _, way := range ways[s.Store] {
		for _, w := range writes {
			some = append(some, s.inside(point{letter: way.letter, at: way.at + w, phase: s.stored(around[w].before)}, w))
		}
	}
	for _, w := range writesAfter {
		a, ok := around[w]
		if !ok {
			return nil, nil, fmt.Errorf("the run that goes on writes %q, of which nothing is known here: say in around what is durable before and after it", w)
		}
		before, after := a.before, a.after
		switch {
		case w == "begin":
			before, after = effected, effected
		case w == "turn 2" && s.Kind == "plain": // what it tells is the doubt
			before = effected
		}
		p := point{letter: "g", at: refundMade, phase: s.stored(effected)}
		p.then, p.thenPhase = beforeIt+w, s.stored(before)
		some = append(some, p)
		p.then, p.thenPhase = afterIt+w, s.stored(after)
		some = append(some, p)
	}
	return full, some, nil
}

// inside is a point in the middle of a write. A server goes on with what it was sent before the kill, but for a transaction
// that stays open.
func (s setting) inside(p point, write string) point {
	switch after := around[write].after; {
	case s.Store != onPostgres, s.Kind == local && write == "complete":
	case s.Stream: // it is sent at once
		p.phase = after
	default: // or the server is asked about it before
		p.or = after
	}
	return p
}

func (p point) name() string {
	if p.then != "" {
		return p.at + ", then " + p.then
	}
	return p.at
}

// label is the point's in the table.
func (p point) label() string { return strings.TrimSpace(p.letter + " " + p.name()) }

func (p point) kills() int {
	if p.then != "" {
		return 2
	}
	return 1
}

// locks reports that nobody else can write while the process is there.
func (c cell) locks() bool {
	inside := c.Store == onSQLite && c.Kind == local && (c.at == inTheTool || c.at == refundMade)
	return inside || strings.HasPrefix(c.at, checkpoint) || strings.HasPrefix(c.at, busy)
}

// begun reports that the run is the process's there.
func (p point) begun() bool { return !strings.HasSuffix(p.at, " begin") || p.at == afterIt+"begin" }

// atStop is the phase while the process still lives.
func (p point) atStop() phase {
	if p.at == lands {
		return claimed
	}
	return p.phase
}

// settingsOn are all ways to do a run on a store.
func settingsOn(store string) (all []setting) {
	for _, kind := range kinds {
		for _, api := range []string{"chat", "responses"} {
			all = append(all, setting{store, kind, api, false}, setting{store, kind, api, true})
		}
	}
	return all
}

const local = "local"

var kinds = []string{"keyed", "lookup", "plain", local}

// ways are those of the stores to end in the middle of a write.
var ways = map[string][]struct{ letter, at string }{
	onSQLite:   {{"k", checkpoint}, {"m", busy}, {"m", refused}},
	onPostgres: {{"m", busy}},
}

// plan are the cells of all points, those of each point together. At each point each setting is killed alone and with a
// second process, which takes turns at wanting the same run and at asking for the same refund in another one; at those that
// are the store's alone and at second kills, each kind of provider is killed alone once and, where that can be, with a
// second process once.
func plan(settings []setting, counted map[setting]count) ([][]cell, error) {
	var cells [][]cell
	at := map[string]int{} // where the cells of a point are
	both := []string{sameRun, sameKey}
	for i, s := range settings {
		full, some, err := pointsOf(s, counted[s].writes, counted[s].writesAfter)
		if err != nil {
			return nil, err
		}
		for j, p := range slices.Concat(full, some) {
			n, ok := at[p.name()]
			if !ok {
				n = len(cells)
				at[p.name()], cells = n, append(cells, nil)
			}
			with := both[(i%4+i%4/2+i/4+j)%2] // each with both APIs, whole and streamed
			if p.then != "" {                 // else the other run would have settled what is to be killed
				with = sameRun
			}
			if j < len(full) || (i+j)%4 == 0 {
				cells[n] = append(cells[n], cell{setting: s, point: p, workers: alone})
			}
			if j < len(full) || (i+j)%4 == 3 && p.at != inMaking { // another API, and whole where the other is streamed
				cells[n] = append(cells[n], cell{setting: s, point: p, workers: with})
			}
		}
	}
	return cells, nil
}

// spread puts cells in an order, always the same, in which each beginning of the list has as many points as it can, and
// ways to run as they fall.
func spread(byPoint [][]cell) (all []cell) {
	r := rand.New(rand.NewPCG(1, 1))
	shuffled := make([][]cell, len(byPoint))
	for to, from := range r.Perm(len(byPoint)) {
		for _, i := range r.Perm(len(byPoint[from])) {
			shuffled[to] = append(shuffled[to], byPoint[from][i])
		}
	}
	for round, more := 0, true; more; round++ {
		more = false
		for _, c := range shuffled {
			if round < len(c) {
				all, more = append(all, c[round]), true
			}
		}
	}
	return all
}

// total is the kills of some cells.
func total(cells []cell) (n int) {
	for _, c := range cells {
		n += c.kills()
	}
	return n
}
