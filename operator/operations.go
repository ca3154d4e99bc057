package operator

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

// most is how many things a list shows.
const most = 200

// operations is the list, by state, tool and run.
func (s *site) operations(v *visit) error {
	q := v.URL.Query()
	sel := middleware.Selection{Tool: q.Get("tool"), Run: q.Get("run"), Limit: most + 1}
	state := middleware.State(q.Get("state"))
	if state != "" {
		if !slices.Contains(states(), state) {
			return &refusal{http.StatusBadRequest, "There is no such state. Those that there are: in_doubt, running, done, free, released."}
		}
		sel.States = []middleware.State{state}
	}
	rows, err := s.find(v.Context(), sel)
	if err != nil {
		return err
	}
	more := ""
	if len(rows) > most {
		rows, more = rows[:most], fmt.Sprintf("These are the %d that changed last. Narrow the list to see others.", most)
	}
	t := operationTable("Operations, the last change first", rows)
	t.More, t.Empty = more, "There are no operations yet."
	filtered := sel.Tool != "" || sel.Run != "" || state != ""
	if filtered {
		t.Empty = "No operation is like that."
	}
	type option struct {
		Value, Name string
		Chosen      bool
	}
	page := struct {
		States    []option
		Tool, Run string
		Filtered  bool
		List      table
	}{[]option{{"", "any", state == ""}}, sel.Tool, sel.Run, filtered, t}
	for _, st := range states() {
		page.States = append(page.States, option{string(st), words(string(st)), st == state})
	}
	s.render(v, http.StatusOK, "operations", "Operations", page)
	return nil
}

func operationTable(caption string, rows []middleware.Row) table {
	t := table{Caption: caption, Head: []string{"Operation", "State", "Tool", "Run", "Turn", "Since", "Note"}}
	for i := range rows {
		r := &rows[i]
		t.add(id(r.Operation, "operation"), stateOf(r), name(r.Tool), id(r.Claimer.Run, "run"),
			text(place(r.Claimer.Turn, r.Claimer.Position)), ago(r.Since, r.Now), text(note(r)))
	}
	return t
}

// stateOf is the state as a person should take it.
func stateOf(r *middleware.Row) cell {
	switch {
	case r.State == middleware.Running && r.OwnerGone:
		return badge("orphan")
	case r.State == middleware.Running && r.OwnerUnknown:
		return badge("owner_unknown")
	}
	return badge(r.State)
}

func note(r *middleware.Row) string {
	var notes []string
	if r.State == middleware.Running && r.OwnerGone {
		notes = append(notes, "its process has died")
	}
	if r.State == middleware.Running && r.OwnerUnknown {
		notes = append(notes, "nothing shows whether its process lives")
	}
	if r.Late {
		notes = append(notes, "a late result could not be stored")
	}
	if r.SettledBy != "" {
		notes = append(notes, "settled by "+r.SettledBy)
	}
	return strings.Join(notes, "; ")
}

// operationPage is one operation with its history, and the form that settles it.
type operationPage struct {
	ID       string
	State    cell
	Meaning  string
	Settled  string // what a verdict that was just given has done
	Facts    []fact
	Data     []data
	Locked   string // why arguments and result could not be opened
	Calls    table
	History  table
	Form     *settling // nil: there is nothing to settle
	ReadOnly bool
}

func (s *site) operation(v *visit) error {
	row, err := s.row(v)
	if err != nil {
		return err
	}
	return s.showOperation(v, http.StatusOK, &row, settling{})
}

// row is the operation that a request is about.
func (s *site) row(v *visit) (middleware.Row, error) {
	wanted := v.URL.Query().Get("id")
	if wanted == "" {
		return middleware.Row{}, &refusal{http.StatusBadRequest, "Say which operation."}
	}
	row, ok, err := s.store.Find(v.Context(), middleware.Query{Operation: wanted})
	if err == nil && !ok {
		err = &refusal{http.StatusNotFound, "There is no operation " + wanted + " here. It may have been pruned."}
	}
	return row, err
}

// showOperation shows an operation, with the form as it was filled in.
func (s *site) showOperation(v *visit, status int, r *middleware.Row, form settling) error {
	page := operationPage{ID: r.Operation, State: stateOf(r), Meaning: meaning(r), Facts: operationFacts(r), ReadOnly: s.ReadOnly}
	if v.URL.Query().Get("said") != "" && r.SettledBy != "" && form.Refused == "" {
		page.Settled = fmt.Sprintf("Settled: it is %s now.", words(string(r.State)))
		if r.State == middleware.Free {
			page.Settled += " The next call may do it: start a run that has stopped again."
		}
	}
	switch {
	case r.Unreadable != nil:
		page.Locked = locked(r.Unreadable)
	case len(r.Input) > 0 || r.HasResult:
		page.Data = []data{s.dataOf("Arguments", string(r.Input))}
		if r.HasResult {
			page.Data = append(page.Data, s.dataOf("Result", r.Result))
		}
	}
	if unsettled(r) || form.Refused != "" {
		s.fill(&form, r)
		page.Form = &form
	}
	var err error
	if page.Calls, err = s.callTable(v.Context(), r); err != nil {
		return err
	}
	if page.History, err = s.history(v.Context(), r); err != nil {
		return err
	}
	s.render(v, status, "operation", r.Tool+": "+page.State.Text, page)
	return nil
}

// meaning says what a state means for who looks at it.
func meaning(r *middleware.Row) string {
	switch r.State {
	case middleware.InDoubt:
		return "It may have happened. Nothing runs it again until somebody has said what became of it."
	case middleware.Done:
		return "It happened. Calls that mean it are answered from here, and do not run."
	case middleware.Free:
		return "It surely did not happen. The next call that means it runs."
	case middleware.Released:
		return "It happened, and was undone. The same call is a new operation."
	default:
		switch {
		case r.OwnerGone:
			return "The process that ran it has died, so it may have happened. A worker that recovers settles it, or you do."
		case r.OwnerUnknown:
			return "Nothing shows whether the process that ran it lives: its lock file is missing, as after the file was copied."
		}
		return "It runs, and its process lives."
	}
}

func operationFacts(r *middleware.Row) []fact {
	all := []fact{
		{"Operation", id(r.Operation, "")},
		{"Tool", cell{Text: r.Tool, Href: to("operations", "tool", r.Tool)}},
		{"Run", id(r.Claimer.Run, "run")},
		{"Turn", text(place(r.Claimer.Turn, r.Claimer.Position))},
		{"Conversation", id(r.Conversation, "")},
		{"Attempt", text(fmt.Sprint(r.Attempt))},
		{"Made", moment(r.Created, r.Now)},
		{"In this state since", moment(r.Since, r.Now)},
		{"Done", moment(r.DoneAt, r.Now)},
		{"A request may land until", moment(r.Deadline, r.Now)},
		{"Settled by", text(r.SettledBy)},
		{"Because", text(r.SettledWhy)},
		{"Undoes", id(r.Undoes, "operation")},
		{"Repeats on purpose", id(r.RepeatOf, "operation")},
		{"Key at the provider", id(r.Key, "")},
		{"Generation of the key", text(fmt.Sprint(r.Generation))},
		{"Process", id(r.Owner, "")},
	}
	if r.Late {
		all = append(all, fact{"Late result", text("A result came that could not be stored. Look at the provider for a second effect.")})
	}
	return slices.DeleteFunc(all, func(f fact) bool { return f.Text == "" })
}

// callTable are the calls that meant an operation.
func (s *site) callTable(ctx context.Context, r *middleware.Row) (table, error) {
	t := table{Caption: "Calls that meant it", Head: []string{"Run", "Turn", "Tool", "Call", "What it did"}, Empty: "The calls are not known any more."}
	calls := []middleware.Alias{r.Claimer}
	if s.inspector != nil {
		var err error
		if calls, err = s.inspector.Calls(ctx, r.Operation); err != nil {
			return t, err
		}
	}
	for _, c := range calls {
		did := "asked again, and was answered"
		if c.Run == r.Claimer.Run && c.Turn == r.Claimer.Turn && c.Position == r.Claimer.Position {
			did = "claimed it"
		}
		t.add(id(c.Run, "run"), text(place(c.Turn, c.Position)), name(c.Tool), id(c.CallID, ""), text(did))
	}
	return t, nil
}

// event is one thing that happened to an operation.
type event struct {
	at        time.Time
	what      string
	by, about string
}

// history is what is known of an operation, in the order in which it happened.
func (s *site) history(ctx context.Context, r *middleware.Row) (table, error) {
	t := table{Caption: "What happened", Head: []string{"When", "What", "By", "Why"}}
	events := []event{{r.Created, "claimed for the first time", "", ""}}
	if !r.DoneAt.IsZero() {
		events = append(events, event{r.DoneAt, "done", "", ""})
	}
	if r.State != middleware.Done && (r.Since.After(r.Created) || r.State != middleware.Running) {
		events = append(events, event{r.Since, fmt.Sprintf("%s, attempt %d", words(string(r.State)), r.Attempt), "", ""})
	}
	targets := []string{r.Operation}
	if s.approver != nil {
		spent, err := s.approver.Approvals(ctx, middleware.Spent)
		if err != nil {
			return t, err
		}
		for _, a := range spent {
			if a.Operation == r.Operation {
				targets = append(targets, a.ID)
				events = append(events, event{a.Asked, "a person was asked", "", ""}, event{a.Decided, "approved", a.By, a.Why})
			}
		}
	}
	acts, recorded := []middleware.Act(nil), s.recorder != nil
	if recorded {
		var err error
		if acts, err = s.recorder.Acts(ctx); err != nil {
			return t, err
		}
	}
	for _, a := range acts {
		if slices.Contains(targets, a.Target) && a.Kind != middleware.ActApproved {
			what := words(a.Kind)
			if a.Kind == middleware.ActHappened || a.Kind == middleware.ActNotHappened {
				what = "verdict: " + what
			}
			events = append(events, event{a.At, what, a.By, a.Why})
		}
	}
	if !recorded && r.SettledBy != "" {
		events = append(events, event{r.Since, "verdict", r.SettledBy, r.SettledWhy})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Or(a.at.Compare(b.at)) })
	for _, e := range events {
		t.add(moment(e.at, r.Now), text(e.what), text(e.by), text(e.about))
	}
	return t, nil
}
