package operator

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

// recent is how many of the last changed operations the picture of the last day is made from.
const recent = 500

func states() []middleware.State {
	return []middleware.State{middleware.InDoubt, middleware.Running, middleware.Done, middleware.Free, middleware.Released}
}

// overview is the first page: what needs somebody, and how much there is.
func (s *site) overview(v *visit) error {
	ctx := v.Context()
	urgent, err := s.urgent(ctx)
	if err != nil {
		return err
	}
	var page struct {
		Quiet          bool
		Note           string
		Doubts         table
		Waiting        *table // nil: the store keeps no approvals
		Counts         table
		Day            *day // nil: nothing happened
		Doubt, Unknown int
	}
	page.Note = s.Note
	page.Doubts = operationTable("Operations whose outcome is unknown", urgent)
	page.Doubts.Empty = "Nothing is in doubt."
	if s.approver != nil {
		waiting, err := s.waiting(ctx)
		if err != nil {
			return err
		}
		t := approvalTable("Calls that wait for a person", waiting)
		t.Empty = "Nothing waits for approval."
		page.Waiting = &t
	}
	page.Quiet = len(urgent) == 0 && (page.Waiting == nil || len(page.Waiting.Rows) == 0)
	counts, err := s.counts(ctx)
	if err != nil {
		return err
	}
	page.Counts = countTable(counts)
	rows, err := s.find(ctx, middleware.Selection{Limit: recent})
	if err != nil {
		return err
	}
	page.Day = dayOf(rows)
	title := "Nothing is in doubt"
	if n := len(urgent); n > 0 {
		title = plural(n, "operation is", "operations are") + " in doubt"
	}
	s.render(v, http.StatusOK, "overview", title, page)
	return nil
}

// urgent are the operations that need somebody: in doubt, or left by a process that died. Those in doubt come first, of each
// kind the one that has waited longest.
func (s *site) urgent(ctx context.Context) ([]middleware.Row, error) {
	rows, err := s.find(ctx, middleware.Selection{States: []middleware.State{middleware.InDoubt, middleware.Running}})
	rows = slices.DeleteFunc(rows, func(r middleware.Row) bool { return !unsettled(&r) })
	slices.SortStableFunc(rows, func(a, b middleware.Row) int {
		return cmp.Or(cmp.Compare(a.State, b.State), a.Since.Compare(b.Since)) // "in_doubt" is before "running"
	})
	return rows, err
}

// unsettled reports whether a person can say what became of an operation.
func unsettled(r *middleware.Row) bool {
	return r.State == middleware.InDoubt || r.State == middleware.Running && (r.OwnerGone || r.OwnerUnknown)
}

// find lists operations. A store that is no Inspector is looked through.
func (s *site) find(ctx context.Context, sel middleware.Selection) ([]middleware.Row, error) {
	if s.inspector != nil {
		return s.inspector.Select(ctx, sel)
	}
	of := sel.States
	if len(of) == 0 {
		of = states()
	}
	rows, err := s.store.List(ctx, of, 0)
	rows = slices.DeleteFunc(rows, func(r middleware.Row) bool {
		return sel.Tool != "" && r.Tool != sel.Tool || sel.Run != "" && r.Claimer.Run != sel.Run
	})
	if sel.Limit > 0 && len(rows) > sel.Limit {
		rows = rows[:sel.Limit]
	}
	return rows, err
}

// counts are how many operations of each tool are in each state.
func (s *site) counts(ctx context.Context) ([]middleware.Count, error) {
	if s.inspector != nil {
		return s.inspector.Counts(ctx)
	}
	rows, err := s.store.List(ctx, states(), 0)
	var counts []middleware.Count
	for i := range rows {
		counts = append(counts, middleware.Count{Tool: rows[i].Tool, State: rows[i].State, N: 1})
	}
	return counts, err
}

func countTable(counts []middleware.Count) table {
	t := table{Caption: "Operations by tool and state", Head: []string{"Tool"}, Empty: "There are no operations yet."}
	for _, state := range states() {
		t.Head = append(t.Head, words(string(state)))
	}
	tools := map[string]map[middleware.State]int{}
	for _, c := range counts {
		if tools[c.Tool] == nil {
			tools[c.Tool] = map[middleware.State]int{}
		}
		tools[c.Tool][c.State] += c.N
	}
	for _, tool := range slices.Sorted(maps.Keys(tools)) {
		row := []cell{{Text: tool, Class: "id", Href: to("operations", "tool", tool)}}
		for _, state := range states() {
			c := cell{Text: number(tools[tool][state]), Class: "number"}
			if tools[tool][state] > 0 {
				c.Href = to("operations", "tool", tool, "state", string(state))
			}
			row = append(row, c)
		}
		t.add(row...)
	}
	return t
}

// day is the last day in hours.
type day struct {
	Begun, Done int
	Since       time.Time
	Hours       []hour
	Cut         int // it is made from so many operations, and there were more; 0: from all
}

// hour is one bar of the picture, which is 96 high.
type hour struct {
	X, BegunY, BegunH, DoneY, DoneH int
	Begun, Done                     int
	From                            string
}

const (
	hours     = 24
	barWidth  = 20
	barHeight = 96
)

// dayOf counts what was begun and what was done in the last day, on the store's clock. It is nil where that is nothing.
func dayOf(rows []middleware.Row) *day {
	if len(rows) == 0 {
		return nil
	}
	now := rows[0].Now
	d := day{Since: now.Truncate(time.Hour).Add(-(hours - 1) * time.Hour), Hours: make([]hour, hours)}
	at := func(t time.Time) *hour {
		if i := int(t.Sub(d.Since) / time.Hour); !t.Before(d.Since) && i < hours {
			return &d.Hours[i]
		}
		return &hour{}
	}
	for i := range rows {
		at(rows[i].Created).Begun++
		if !rows[i].DoneAt.IsZero() {
			at(rows[i].DoneAt).Done++
		}
	}
	most := 1
	for _, h := range d.Hours {
		most = max(most, h.Begun, h.Done)
		d.Begun, d.Done = d.Begun+h.Begun, d.Done+h.Done
	}
	if d.Begun+d.Done == 0 {
		return nil
	}
	for i := range d.Hours {
		h := &d.Hours[i]
		h.X, h.From = i*barWidth, d.Since.Add(time.Duration(i)*time.Hour).UTC().Format("15:04")
		h.BegunH, h.DoneH = h.Begun*barHeight/most, h.Done*barHeight/most
		h.BegunY, h.DoneY = barHeight-h.BegunH, barHeight-h.DoneH
	}
	if len(rows) == recent && rows[len(rows)-1].Since.After(d.Since) {
		d.Cut = recent
	}
	return &d
}
