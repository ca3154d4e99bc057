//go:build unix && cgo

package crash_test

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/toolonce/toolonce/registry"
)

// outcome is a cell that has happened.
type outcome struct {
	cell
	result
	differs bool
}

// tally is what came of a point with one kind of provider.
type tally struct {
	stories, kills int
	wanted, seen   int
	verdicts       map[registry.Verdict]int
	finished       int
	settled, then  int
	differences    int
}

func (t *tally) add(o outcome) {
	t.stories++
	t.kills += o.kills
	t.wanted += o.wanted
	t.seen += o.seen
	t.verdicts[o.verdict]++
	if o.finished {
		t.finished++
	}
	if o.settled {
		t.settled++
		t.then += o.then
	}
	if o.differs {
		t.differences++
	}
}

func (t *tally) String() string {
	if t == nil {
		return "-"
	}
	var verdicts []string
	for v, n := range t.verdicts {
		verdicts = append(verdicts, fmt.Sprintf("%s %d", v, n))
	}
	slices.Sort(verdicts)
	text := fmt.Sprintf("%d: effects %d/%d, %s, finished %d/%d", t.kills, t.seen, t.wanted, strings.Join(verdicts, " "), t.finished, t.stories)
	if t.settled > 0 {
		text += fmt.Sprintf("; settled %d, effects %d/%d", t.settled, t.then, t.settled)
	}
	if t.differences > 0 {
		text += fmt.Sprintf(", DIFFERENCES %d", t.differences)
	}
	return text
}

const legend = "Each cell: kills: refunds made / wanted when the run had ended, what it was told of its refund and how often, runs " +
	"finished / wanted; and where it was told that nobody knows, how many were settled then, and the refunds made / wanted after that. " +
	"Half of the kills of each cell had a second process on the same store: one that wanted the same run (l), or a run with the same refund. " +
	"A local tool makes its effect in the store's own transaction."

// print prints the table, and gives it in Markdown.
func (m *matrix) print(byPoint [][]cell) string {
	var rows []string
	for _, cells := range byPoint {
		rows = append(rows, cells[0].label())
	}
	for _, ph := range phases {
		rows = append(rows, atRandom(ph))
	}
	tallies, cells, differences := map[string]*tally{}, map[string]bool{}, 0
	for _, o := range m.outcomes {
		at := o.row + "\t" + o.Kind
		if tallies[at] == nil {
			tallies[at] = &tally{verdicts: map[registry.Verdict]int{}}
		}
		tallies[at].add(o)
		cells[o.String()] = true
		if o.differs {
			differences++
		}
	}
	var text, markdown strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(columns ...string) {
		_, _ = fmt.Fprintln(w, strings.Join(columns, "\t"))
		_, _ = fmt.Fprintf(&markdown, "| %s |\n", strings.Join(columns, " | "))
	}
	store := m.settings[0].Store
	line(append([]string{"killed on " + store}, kinds...)...)
	_, _ = fmt.Fprintf(&markdown, "|%s\n", strings.Repeat(" --- |", len(kinds)+1))
	for _, r := range rows {
		columns := []string{r}
		for _, k := range kinds {
			columns = append(columns, tallies[r+"\t"+k].String())
		}
		if strings.Join(columns[1:], "") != strings.Repeat("-", len(kinds)) {
			line(columns...)
		}
	}
	_ = w.Flush() // to memory
	sum := fmt.Sprintf("store=%s kills=%d cells=%d differences=%d", store, m.kills, len(cells), differences)
	m.t.Logf("%s\n\n%s\nseed=%d, tried again: %d that had ended before their kill, %d that were too slow\n%s", legend, text.String(), m.seed, m.missed, m.slow, sum)
	return markdown.String() + "\n" + sum + "\n"
}
