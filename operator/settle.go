package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// settling is the form of a verdict, as it is shown and as it was sent.
type settling struct {
	Shown   string // the claim and the attempt that were looked at
	Outcome string // "happened" or "not"
	Result  string
	NewKey  bool
	Gone    bool // who settles it knows that its process has ended
	Why     string

	Refused string // why it was not taken
	Over    bool   // there is nothing to settle any more
	Early   string // until when it is too early for "not"
	Key     string // of the operation at the provider
	Unknown bool   // nothing shows whether its process lives
}

// fill sets what a form shows of a row.
func (s *site) fill(f *settling, r *middleware.Row) {
	f.Shown, f.Over, f.Key = r.Shown(), !unsettled(r), r.Key
	f.Unknown = r.State == middleware.Running && r.OwnerUnknown && s.mourner != nil
	if r.Now.Before(r.Deadline) {
		f.Early = until(r.Deadline, r.Now)
	}
}

func until(t, now time.Time) string {
	return fmt.Sprintf("%s, in %s", stamp(t), age(t.Sub(now)+time.Second))
}

// settle takes a person's verdict. What is refused changes nothing, except that an operation whose process has died may be in
// doubt after it.
func (s *site) settle(v *visit) error {
	if err := v.ParseForm(); err != nil {
		return badForm(err)
	}
	row, err := s.row(v)
	if err != nil {
		return err
	}
	f := settling{
		Shown: v.PostForm.Get("shown"), Outcome: v.PostForm.Get("outcome"), Result: strings.TrimSpace(v.PostForm.Get("result")),
		NewKey: v.PostForm.Get("new-key") != "", Gone: v.PostForm.Get("gone") != "", Why: oneLine(v.PostForm.Get("why")),
	}
	if f.Refused = f.wrong(); f.Refused != "" {
		return s.showOperation(v, http.StatusUnprocessableEntity, &row, f)
	}
	now, err := s.verdict(v.Context(), row, f, v.by)
	no, refused := errors.AsType[*refusal](err)
	switch {
	case refused:
		f.Refused = no.reason
		return s.showOperation(v, no.status, &now, f)
	case err != nil:
		return err
	}
	v.seeOther(to("operation", "id", row.Operation, "said", "1"))
	return nil
}

// wrong says what is missing in a form.
func (f *settling) wrong() string {
	switch {
	case f.Outcome != "happened" && f.Outcome != "not":
		return "Say whether it happened."
	case f.Why == "":
		return "Say why: what you have seen at the provider."
	case f.Result != "" && f.Outcome != "happened":
		return "What did not happen has no result: leave it empty."
	case f.NewKey && f.Outcome != "not":
		return "A new key goes with “It did not happen”."
	case f.Result != "" && !json.Valid([]byte(f.Result)):
		return `The result is not JSON. A text goes in double quotes, as in "re_1".`
	}
	return ""
}

// verdict changes the row. It returns it as it is then. What is refused is a refusal.
func (s *site) verdict(ctx context.Context, row middleware.Row, f settling, by string) (middleware.Row, error) {
	no := func(reason string) (middleware.Row, error) { return row, &refusal{http.StatusConflict, reason} }
	running, unknown := row.State == middleware.Running, row.State == middleware.Running && row.OwnerUnknown
	switch {
	case !unsettled(&row):
		return no(nothingToSettle(&row))
	case f.Shown != row.Shown():
		return no("It has moved on since you looked. This is what it is now: look again, and say it once more if it still holds.")
	case f.Result != "" && row.Unreadable != nil:
		return no("This page has not the key of what is sealed, so its programs could not read the result: leave it empty, or have this page open it.")
	case unknown && s.mourner == nil:
		return no("Nothing shows whether its process lives, and this store cannot be told.")
	case unknown && !f.Gone:
		return no("Nothing shows whether its process lives. Say that you know that it has ended, if you do.")
	case running && f.Outcome == "not" && row.Now.Before(row.Deadline):
		return no(refusedBecause(&row, &middleware.EarlyError{Until: row.Deadline}))
	case unknown:
		if err := s.mourner.DeclareGone(ctx, row.Owner); err != nil {
			return row, err
		}
	}
	t := middleware.Transition{Step: middleware.Doubt, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, Owner: row.Owner}
	if running {
		now, err := s.change(ctx, row, t)
		if err != nil {
			return now, err
		}
	}
	t.Step, t.Owner, t.By, t.Why = middleware.Happened, "", by, f.Why
	if f.Outcome == "happened" {
		t.Result, t.HasResult, t.Resource = f.Result, f.Result != "", registry.ResourceHash(row.ResourceOut, f.Result)
	} else {
		t.Step, t.NewKey = middleware.NotHappened, f.NewKey
	}
	return s.change(ctx, row, t)
}

// change makes a transition, and says as a refusal why it cannot.
func (s *site) change(ctx context.Context, row middleware.Row, t middleware.Transition) (middleware.Row, error) {
	now, err := s.store.Change(ctx, t)
	if err == nil {
		return now, nil
	}
	if now.Operation == "" { // it has gone, or the store gives none
		now = row
	}
	if reason := refusedBecause(&now, err); reason != "" {
		return now, &refusal{http.StatusConflict, reason}
	}
	return now, err
}

// refusedBecause says why a store has refused a verdict, "" where it has not.
func refusedBecause(r *middleware.Row, err error) string {
	early, ok := errors.AsType[*middleware.EarlyError](err)
	switch {
	case ok && early.Until.IsZero():
		return "Too early to say that it did not happen: its handler still runs in this process."
	case ok:
		return "Too early to say that it did not happen: a request may still land until " + until(early.Until, r.Now) + "."
	case !errors.Is(err, middleware.ErrLost):
		return ""
	case unsettled(r):
		return "It has changed meanwhile. This is what it is now: look again, and say it once more if it still holds."
	}
	return nothingToSettle(r)
}

func nothingToSettle(r *middleware.Row) string {
	switch {
	case r.SettledBy != "":
		return fmt.Sprintf("There is nothing to settle: it is %s, by the verdict of %s.", words(string(r.State)), r.SettledBy)
	case r.State == middleware.Running:
		return "It is running, and its process lives: wait for it, or stop that process first."
	}
	return fmt.Sprintf("There is nothing to settle: it is %s.", words(string(r.State)))
}

// oneLine is what a person wrote, with single blanks.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// seeOther sends the browser to another page. http.Redirect would make the address one below the root, which is not that
// below which the pages are mounted.
func (v *visit) seeOther(href string) {
	v.w.Header().Set("Location", href)
	v.w.WriteHeader(http.StatusSeeOther)
}
