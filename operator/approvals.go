package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/toolonce/toolonce/middleware"
)

// waiting are the questions that can be answered, the oldest first.
func (s *site) waiting(ctx context.Context) ([]middleware.Approval, error) {
	all, err := s.approver.Approvals(ctx, middleware.Pending)
	return slices.DeleteFunc(all, func(a middleware.Approval) bool { return !a.Now.Before(a.Expires) }), err
}

func approvalTable(caption string, all []middleware.Approval) table {
	t := table{Caption: caption, Head: []string{"Approval", "Tool", "Run", "Turn", "Asked", "Expires"}}
	for i := range all {
		a := &all[i]
		t.add(id(a.ID, "approval"), name(a.Call.Tool), id(a.Call.Run, "run"), text(place(a.Call.Turn, a.Call.Position)), ago(a.Asked, a.Now), ago(a.Expires, a.Now))
	}
	return t
}

// approvals is the list of what waits, and of what was answered.
func (s *site) approvals(v *visit) error {
	waiting, err := s.waiting(v.Context())
	if err != nil {
		return err
	}
	all, err := s.approver.Approvals(v.Context())
	if err != nil {
		return err
	}
	open := approvalTable("Waiting for a person, the oldest first", waiting)
	open.Empty = "Nothing waits for approval."
	rest := table{
		Caption: "Answered, or past, the last one first",
		Head:    []string{"Approval", "State", "Tool", "Run", "Turn", "Asked", "By", "Why"},
		Empty:   "Nothing was answered yet.",
	}
	for i := len(all) - 1; i >= 0; i-- {
		a := &all[i]
		if slices.ContainsFunc(waiting, func(w middleware.Approval) bool { return w.ID == a.ID }) {
			continue
		}
		if len(rest.Rows) == most {
			rest.More = fmt.Sprintf("There are more than these %d.", most)
			break
		}
		rest.add(id(a.ID, "approval"), approvalState(a, false), name(a.Call.Tool), id(a.Call.Run, "run"), text(place(a.Call.Turn, a.Call.Position)),
			ago(a.Asked, a.Now), text(a.By), text(a.Why))
	}
	s.render(v, http.StatusOK, "approvals", "Approvals", []table{open, rest})
	return nil
}

// approvalState is the state as a person should take it.
func approvalState(a *middleware.Approval, open bool) cell {
	switch {
	case a.State != middleware.Pending || open:
		return badge(a.State)
	case !a.Now.Before(a.Expires):
		return badge("expired")
	}
	return badge("closed")
}

// approvalPage is one question, and the form that answers it.
type approvalPage struct {
	ID       string
	State    cell
	Answered string // what an answer that was just given has done
	Closed   string // why it cannot be answered; "" where it can be
	Facts    []fact
	Data     []data
	Locked   string // why the arguments could not be opened
	Form     deciding
	ReadOnly bool
	Hidden   bool // who answers does not see the arguments
}

// deciding is the form of an answer, as it was sent.
type deciding struct{ Answer, Why, Refused string }

func (s *site) approval(v *visit) error {
	return s.showApproval(v, http.StatusOK, deciding{})
}

// question is the approval that a request is about, and whether it can be answered.
func (s *site) question(v *visit) (a middleware.Approval, open bool, err error) {
	wanted := v.URL.Query().Get("id")
	is := func(a middleware.Approval) bool { return a.ID == wanted }
	all, err := s.approver.Approvals(v.Context())
	if err != nil {
		return a, false, err
	}
	waiting, err := s.waiting(v.Context())
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], slices.ContainsFunc(waiting, is), err
	}
	return a, false, errors.Join(err, &refusal{http.StatusNotFound, "There is no approval " + wanted + " here. It may have been pruned."})
}

func (s *site) showApproval(v *visit, status int, form deciding) error {
	a, open, err := s.question(v)
	if err != nil {
		return err
	}
	page := approvalPage{ID: a.ID, State: approvalState(&a, open), Form: form, ReadOnly: s.ReadOnly, Hidden: !s.ShowData}
	if !open {
		page.Closed = sentence(a.Closed())
	}
	if v.URL.Query().Get("said") != "" && !a.Decided.IsZero() && form.Refused == "" {
		page.Answered = fmt.Sprintf("It is %s. Start the run again.", a.State)
	}
	if a.Unreadable != nil {
		page.Locked = locked(a.Unreadable)
	} else {
		page.Data = []data{s.dataOf("Arguments", string(a.Input))}
	}
	page.Facts = slices.DeleteFunc([]fact{
		{"Approval", id(a.ID, "")},
		{"Tool", cell{Text: a.Call.Tool, Href: to("operations", "tool", a.Call.Tool)}},
		{"Run", id(a.Call.Run, "run")},
		{"Turn", text(place(a.Call.Turn, a.Call.Position))},
		{"Conversation", id(a.Conversation, "")},
		{"Repeats on purpose", id(a.RepeatOf, "operation")},
		{"Asked", moment(a.Asked, a.Now)},
		{"Expires", moment(a.Expires, a.Now)},
		{"Answered", moment(a.Decided, a.Now)},
		{"By", text(a.By)},
		{"Why", text(a.Why)},
		{"Spent on", id(a.Operation, "operation")},
	}, func(f fact) bool { return f.Text == "" })
	s.render(v, status, "approval", a.Call.Tool+": "+page.State.Text, page)
	return nil
}

// decide takes a person's answer.
func (s *site) decide(v *visit) error {
	if err := v.ParseForm(); err != nil {
		return badForm(err)
	}
	f := deciding{Answer: v.PostForm.Get("answer"), Why: oneLine(v.PostForm.Get("why"))}
	switch {
	case f.Answer != "approve" && f.Answer != "deny":
		f.Refused = "Say whether it may run."
	case f.Why == "":
		f.Refused = "Say why. Of a denial the model is told it."
	}
	if f.Refused != "" {
		return s.showApproval(v, http.StatusUnprocessableEntity, f)
	}
	a, _, err := s.question(v)
	if err != nil {
		return err
	}
	if f.Answer == "approve" && a.Unreadable != nil {
		f.Refused = "It cannot be approved: nobody can see what would run. Deny it, or have this page open it."
		return s.showApproval(v, http.StatusConflict, f)
	}
	now, err := s.approver.Decide(v.Context(), middleware.Decision{
		Run: a.Call.Run, Turn: a.Call.Turn, Position: a.Call.Position, ID: a.ID, Approve: f.Answer == "approve", By: v.by, Why: f.Why,
	})
	switch {
	case errors.Is(err, middleware.ErrLost) && now.ID == a.ID:
		f.Refused = "It cannot be answered: " + now.Closed() + "."
	case errors.Is(err, middleware.ErrLost):
		f.Refused = "It is replaced by a later question: look at those that wait."
	case err != nil:
		return err
	default:
		v.seeOther(to("approval", "id", a.ID, "said", "1"))
		return nil
	}
	return s.showApproval(v, http.StatusConflict, f)
}
