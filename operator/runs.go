package operator

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/said"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// runs is the list of stored runs.
func (s *site) runs(v *visit) error {
	q := journal.RunsQuery{Conversation: v.URL.Query().Get("conversation"), Unfinished: v.URL.Query().Get("unfinished") != "", Limit: most + 1}
	found, err := s.reader.Runs(v.Context(), q)
	if err != nil {
		return err
	}
	t := table{Caption: "Runs, the last one first", Head: []string{"Run", "State", "Turns", "API", "Conversation", "Begun"}, Empty: "There are no runs yet."}
	if q.Conversation != "" || q.Unfinished {
		t.Empty = "No run is like that."
	}
	if len(found) > most {
		found, t.More = found[:most], fmt.Sprintf("These are the last %d.", most)
	}
	for _, r := range found {
		conversation := cell{Text: r.Run.Conversation, Class: "id"}
		if r.Run.Conversation != "" {
			conversation.Href = to("runs", "conversation", r.Run.Conversation)
		}
		t.add(id(r.Run.ID, "run"), runState(&r), cell{Text: number(r.Turns), Class: "number"}, text(r.API), conversation, ago(r.Created, time.Now()))
	}
	s.render(v, http.StatusOK, "runs", "Runs", struct {
		journal.RunsQuery
		List table
	}{q, t})
	return nil
}

func runState(r *journal.Summary) cell {
	switch {
	case r.Forgotten:
		return badge("forgotten")
	case r.Finished:
		return badge("finished")
	case r.Taken:
		return badge("going_on")
	case r.OwnerUnknown:
		return badge("owner_unknown")
	}
	return badge("left")
}

// runPage is one run as it went.
type runPage struct {
	ID         string
	Facts      []fact
	Locked     string // why its content could not be opened
	Stored     bool   // a journal has it
	Forgotten  bool   // what was said in it was erased
	Turns      []turn
	Operations table
	Waiting    table
}

type turn struct {
	Number int
	Text   *data // nil where the model said nothing
	Calls  []turnCall
}

type turnCall struct {
	Place     string
	Tool      string
	Verdict   cell
	Why       string // what the verdict means
	Operation *cell  // nil where it means none that is still known
	Now       *cell  // the state of that by now
	Question  *cell  // the approval that it waits for
	Data      []data
	Stopped   bool // it did not run
}

// sealed leaves out what was not opened, and looks as if it were empty.
func (t *turn) sealed() {
	for i := range t.Calls {
		c := &t.Calls[i]
		c.Data = slices.DeleteFunc(c.Data, func(d data) bool { return d.Bytes == 0 })
		if c.Tool == "" {
			c.Tool = "sealed"
		}
	}
}

// run is one run, as a timeline of its turns. Of a run that no journal has, what its calls left is shown.
func (s *site) run(v *visit) error {
	wanted := v.URL.Query().Get("id")
	rows, err := s.find(v.Context(), middleware.Selection{Run: wanted, Limit: most})
	if err != nil {
		return err
	}
	asked, err := s.askedBy(v.Context(), wanted)
	if err != nil {
		return err
	}
	page := runPage{ID: wanted, Operations: operationTable("Operations that its calls mean", rows), Waiting: approvalTable("What it asked a person", asked)}
	page.Operations.Empty = "It has no guarded calls."
	var rec journal.Record
	if s.reader != nil {
		rec, page.Stored, err = s.reader.Read(v.Context(), wanted)
		if err != nil && !page.Stored {
			return err
		}
		if err != nil {
			page.Locked = locked(err)
		}
	}
	if !page.Stored && len(rows)+len(asked) == 0 || wanted == "" {
		return &refusal{http.StatusNotFound, "There is no run of that name here."}
	}
	if page.Stored {
		page.Forgotten = rec.Forgotten
		state := "not_finished"
		switch {
		case rec.Forgotten:
			state = "forgotten"
		case rec.Finished:
			state = "finished"
		}
		page.Facts = []fact{{"State", badge(state)}, {"Begun", moment(rec.Created, time.Now())}, {"API", text(rec.API)}}
		if c := rec.Run.Conversation; c != "" {
			page.Facts = append(page.Facts, fact{"Conversation", cell{Text: c, Class: "id", Href: to("runs", "conversation", c)}})
		}
	}
	for i := range rec.Turns {
		t, err := s.turn(v.Context(), &rec, &rec.Turns[i], asked)
		if err != nil {
			return err
		}
		if page.Locked != "" {
			t.sealed()
		}
		page.Turns = append(page.Turns, t)
	}
	s.render(v, http.StatusOK, "run", "Run "+wanted, page)
	return nil
}

// askedBy are the questions of a run, the oldest first.
func (s *site) askedBy(ctx context.Context, run string) ([]middleware.Approval, error) {
	if s.approver == nil {
		return nil, nil
	}
	all, err := s.approver.Approvals(ctx)
	return slices.DeleteFunc(all, func(a middleware.Approval) bool { return a.Call.Run != run }), err
}

// turn is an answer of the model, with what became of its calls.
func (s *site) turn(ctx context.Context, rec *journal.Record, t *journal.Turn, asked []middleware.Approval) (turn, error) {
	words, calls := said.In(rec.API, t.Answer)
	out := turn{Number: t.Number}
	if words != "" {
		d := s.dataOf("The model says", words)
		out.Text = &d
	}
	for _, o := range t.Outputs { // of calls that could not be read, too
		for len(calls) <= o.Position {
			calls = append(calls, said.Call{})
		}
	}
	for i, c := range calls {
		call := turnCall{Place: place(t.Number, i), Tool: c.Tool, Data: []data{s.dataOf("Arguments", c.Arguments)}}
		query := middleware.Query{Run: rec.Run.ID, Turn: t.Number, Position: i}
		if k := slices.IndexFunc(t.Outputs, func(o journal.Output) bool { return o.Position == i }); k >= 0 {
			o := &t.Outputs[k]
			call.Verdict, call.Why, call.Stopped = badge(o.Verdict), why(o.Verdict), stopped(o.Verdict)
			call.Data = append(call.Data, s.dataOf("The model was told", o.Content))
			query = middleware.Query{Operation: o.Operation}
		} else {
			call.Verdict, call.Why = badge("unanswered"), "No output is stored for it yet."
			call.Question = questionAt(asked, t.Number, i)
		}
		if query != (middleware.Query{}) {
			row, ok, err := s.store.Find(ctx, query)
			if err != nil {
				return out, err
			}
			if ok {
				state, link := stateOf(&row), id(row.Operation, "operation")
				call.Operation, call.Now = &link, &state
			}
		}
		out.Calls = append(out.Calls, call)
	}
	return out, nil
}

// questionAt is the last question about a call that is not answered.
func questionAt(asked []middleware.Approval, turn, position int) (c *cell) {
	for i := range asked {
		if a := &asked[i]; a.Call.Turn == turn && a.Call.Position == position {
			c = &cell{Text: "A person was asked: " + string(a.State), Href: to("approval", "id", a.ID)}
		}
	}
	return c
}

// stopped reports whether a call was kept from running.
func stopped(v registry.Verdict) bool {
	return v != registry.Executed && v != registry.Replayed && v != registry.Failed && v != registry.OutcomeUnknown
}

// why says what a verdict means.
func why(v registry.Verdict) string {
	switch v {
	case registry.Executed:
		return "It ran."
	case registry.Replayed:
		return "It had run before; the saved result was given, and it did not run again."
	case registry.AlreadyDone:
		return "Stopped: another call had done the same. Its result was given."
	case registry.InProgress:
		return "Stopped: another call was at the same operation."
	case registry.OutcomeUnknown:
		return "Nobody knows whether it happened. It does not run again until that is settled."
	case registry.Conflict:
		return "Stopped: the same operation was asked for with other arguments."
	case registry.Failed:
		return "It surely had no effect, and may be tried again."
	case registry.Refused:
		return "Stopped before it ran: a rule or a person said no."
	}
	return ""
}
