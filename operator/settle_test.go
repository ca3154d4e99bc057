package operator_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/operator"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

func happened(why string) url.Values { return url.Values{"outcome": {"happened"}, "why": {why}} }

func notHappened(why string) url.Values { return url.Values{"outcome": {"not"}, "why": {why}} }

// follow goes where a form that was taken leads.
func (p page) follow(t *testing.T, from string) page {
	t.Helper()
	p.want(t, http.StatusSeeOther)
	base, err := url.Parse(from)
	if err != nil {
		t.Fatal(err)
	}
	to, err := base.Parse(p.header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	return get(t, to.String())
}

func TestWhatIsInDoubtIsFoundAndSettled(t *testing.T) {
	w := newWorld(t, operator.Options{})
	get(t, w.url).want(t, http.StatusOK, w.ops["doubt"])
	address := w.operation("doubt")
	get(t, address+"&said=1").lacks(t, "Settled")
	form := happened(" re_1 is\n in the dashboard ")
	form.Set("result", `{"id":"re_1"}`)
	p := post(t, address, get(t, address), form).follow(t, address)
	p.want(t, http.StatusOK, `role="status"`, "Settled: it is done now.", "verdict: happened", "re_1 is in the dashboard").lacks(t, "What became of it?")
	row := w.row("doubt")
	if row.State != middleware.Done || row.Result != `{"id":"re_1"}` || row.SettledBy != "ann" || row.SettledWhy != "re_1 is in the dashboard" {
		t.Errorf("%+v", row)
	}
	get(t, w.url).lacks(t, w.ops["doubt"])
	acts, err := w.store.Acts(t.Context())
	if last := acts[len(acts)-1]; err != nil || last.By != "ann" || last.Kind != middleware.ActHappened || last.Target != w.ops["doubt"] {
		t.Error(last, err)
	}
}

func TestWhatDidNotHappenIsFreeWithTheKeyThatIsAskedFor(t *testing.T) {
	for _, newKey := range []string{"", "1"} {
		w := newWorld(t, operator.Options{})
		address, before := w.operation("doubt"), w.row("doubt")
		form := notHappened("nothing there")
		if newKey != "" {
			form.Set("new-key", newKey)
		}
		post(t, address, get(t, address), form).follow(t, address).want(t, http.StatusOK, "Settled: it is free now. The next call may do it")
		if row := w.row("doubt"); row.State != middleware.Free || !row.ByPerson || (row.Generation > before.Generation) != (newKey != "") {
			t.Errorf("%+v", row)
		}
	}
}

func TestTooEarlyIsRefusedAndSaysUntilWhen(t *testing.T) {
	w := newWorld(t, operator.Options{})
	address := w.operation("early")
	p := post(t, address, get(t, address), notHappened("nothing <there>"))
	until := w.row("early").Deadline.UTC().Format("2006-01-02 15:04:05 UTC")
	p.want(t, http.StatusConflict, "Too early to say that it did not happen: a request may still land until "+until, "in 59m", "nothing &lt;there&gt;</textarea>", `value="not" required checked`)
	if row := w.row("early"); row.State != middleware.InDoubt {
		t.Errorf("%+v", row)
	}
	post(t, address, p, happened("it is there")).want(t, http.StatusSeeOther) // that can be said at any time
}

func TestAVerdictIsBoundToWhatWasShown(t *testing.T) {
	w := newWorld(t, operator.Options{})
	address := w.operation("doubt")
	looked, row := get(t, address), w.row("doubt")
	_, err := w.store.Change(t.Context(), middleware.Transition{Step: middleware.NotHappened, Operation: row.Operation, Token: row.Token, Attempt: 1, By: "bob", Why: "no"})
	w.try(err)
	post(t, address, looked, happened("late")).want(t, http.StatusConflict, "There is nothing to settle: it is free, by the verdict of bob.").lacks(t, "What became of it?")
	free := w.row("doubt")
	again, won, err := w.store.Claim(t.Context(), middleware.Claim{Identity: free.Identity, Token: "another", Call: middleware.Alias{Tool: free.Tool, Run: "later", Turn: 1}, Seen: free, KeyWindow: time.Hour})
	if err != nil || !won {
		t.Fatal(won, err)
	}
	w.step(again, middleware.Transition{Step: middleware.Doubt})
	p := post(t, address, looked, happened("later")).want(t, http.StatusConflict, "It has moved on since you looked.", "What became of it?")
	if row := w.row("doubt"); row.State != middleware.InDoubt {
		t.Errorf("%+v", row)
	}
	post(t, address, p, happened("looked again")).want(t, http.StatusSeeOther) // the refusal has shown what it is now
}

// overtaken is a store in which somebody else is always faster.
type overtaken struct {
	*sqlitestore.Store
	first middleware.Transition
}

func (s overtaken) Change(ctx context.Context, t middleware.Transition) (middleware.Row, error) {
	if _, err := s.Store.Change(ctx, s.first); err != nil {
		return middleware.Row{}, err
	}
	return s.Store.Change(ctx, t)
}

func TestWhoIsOvertakenIsToldWhatItIsNow(t *testing.T) {
	w := newWorld(t, operator.Options{})
	row := w.row("doubt")
	address := serve(t, overtaken{w.store, middleware.Transition{Step: middleware.Happened, Operation: row.Operation, Token: row.Token, Attempt: 1, By: "bob", Why: "seen"}}, operator.Options{})
	address += "operation?id=" + row.Operation
	post(t, address, get(t, address), notHappened("nothing there")).want(t, http.StatusConflict, "There is nothing to settle: it is done, by the verdict of bob.")
	if row := w.row("doubt"); row.SettledBy != "bob" {
		t.Errorf("%+v", row)
	}
}

func TestARunningOperationIsSettledOnlyIfItsOwnerIsGone(t *testing.T) {
	w := newWorld(t, operator.Options{})
	shown := get(t, w.operation("doubt")) // a running one has no form
	get(t, w.operation("running")).want(t, http.StatusOK, "its process lives").lacks(t, "What became of it?")
	post(t, w.operation("running"), shown, happened("?")).want(t, http.StatusConflict, "its process lives: wait for it")
	address := w.operation("orphan")
	post(t, address, get(t, address), happened("seen")).follow(t, address).want(t, http.StatusOK, "Settled: it is done now.")
	if row := w.row("running"); row.State != middleware.Running {
		t.Errorf("%+v", row)
	}
}

func TestAnOperationOfACopiedFileIsSettledByWhoKnowsThatItsProcessHasEnded(t *testing.T) {
	w := newWorld(t, operator.Options{})
	copied := filepath.Join(t.TempDir(), "once.db") // without the folder of lock files beside it
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(w.path + suffix)
		w.try(err)
		w.try(os.WriteFile(copied+suffix, b, 0o600))
	}
	c := &world{t: t, path: copied, ops: w.ops}
	c.store = c.open()
	c.url = serve(t, c.store, operator.Options{})
	get(t, c.url).want(t, http.StatusOK, "owner unknown", w.ops["running"])
	deaf := serve(t, bare{c.store, c.store}, operator.Options{}) + "operation?id=" + c.ops["running"]
	post(t, deaf, get(t, deaf).lacks(t, "I know that"), happened("seen")).want(t, http.StatusConflict, "this store cannot be told")
	address := c.operation("running")
	shown := get(t, address).want(t, http.StatusOK, "I know that the process that ran it has ended")
	p := post(t, address, shown, happened("seen")).want(t, http.StatusConflict, "Say that you know that it has ended")
	form := notHappened("nothing there")
	form.Set("gone", "1")
	post(t, address, p, form).want(t, http.StatusConflict, "Too early")
	if row := c.row("running"); !row.OwnerUnknown {
		t.Error("what was refused has changed something")
	}
	form.Set("outcome", "happened")
	post(t, address, p, form).want(t, http.StatusSeeOther)
	if row := c.row("running"); row.State != middleware.Done {
		t.Errorf("%+v", row)
	}
}

func TestAFormThatIsWrongChangesNothing(t *testing.T) {
	w := newWorld(t, operator.Options{})
	address := w.operation("doubt")
	for _, c := range []struct {
		want string
		form url.Values
	}{
		{"Say whether it happened.", url.Values{"why": {"seen"}}},
		{"Say why", happened(" \n")},
		{"leave it empty", url.Values{"outcome": {"not"}, "why": {"seen"}, "result": {"1"}}},
		{"A new key goes with", url.Values{"outcome": {"happened"}, "why": {"seen"}, "new-key": {"1"}}},
		{"The result is not JSON", url.Values{"outcome": {"happened"}, "why": {"seen"}, "result": {"re_<1>"}}},
	} {
		p := post(t, address, get(t, address), c.form).want(t, http.StatusUnprocessableEntity, c.want, `role="alert"`, "What became of it?")
		if c.form.Get("why") == "seen" {
			p.want(t, http.StatusUnprocessableEntity, "seen</textarea>")
		}
	}
	post(t, address, get(t, address), url.Values{"outcome": {"happened"}, "why": {strings.Repeat("long", 1<<19)}}).want(t, http.StatusRequestEntityTooLarge, "The form is too large: more than 1024 KiB.")
	post(t, w.url+"operation?id=none", page{}, happened("seen")).want(t, http.StatusNotFound)
	if row := w.row("doubt"); row.State != middleware.InDoubt {
		t.Errorf("%+v", row)
	}
}

func TestAnApprovalIsAnsweredOnce(t *testing.T) {
	for answer, want := range map[string]middleware.ApprovalState{"approve": middleware.Approved, "deny": middleware.Denied} {
		w := newWorld(t, operator.Options{})
		address := w.approval("pending")
		shown := get(t, address)
		post(t, address, shown, url.Values{"why": {"seen"}}).want(t, http.StatusUnprocessableEntity, "Say whether it may run.", "seen</textarea>")
		post(t, address, shown, url.Values{"answer": {answer}}).want(t, http.StatusUnprocessableEntity, "Say why.")
		p := post(t, address, shown, url.Values{"answer": {answer}, "why": {"the photos show it"}}).follow(t, address)
		p.want(t, http.StatusOK, "It is "+string(want)+". Start the run again.", "the photos show it").lacks(t, "May it run?")
		post(t, address, shown, url.Values{"answer": {answer}, "why": {"again"}}).want(t, http.StatusConflict, "It cannot be answered: ann has "+string(want)+" it at").lacks(t, "May it run?")
		get(t, w.url).lacks(t, w.asked["pending"])
		acts, err := w.store.Acts(t.Context())
		if last := acts[len(acts)-1]; err != nil || last.By != "ann" || last.Kind != string(want) || last.Target != w.asked["pending"] {
			t.Error(last, err)
		}
	}
}

func TestAnExpiredQuestionIsNotAnswered(t *testing.T) {
	w := newWorld(t, operator.Options{})
	address := w.approval("expired")
	post(t, address, get(t, address), url.Values{"answer": {"approve"}, "why": {"seen"}}).want(t, http.StatusConflict, "the question has expired")
	post(t, w.url+"approval?id=none", page{}, url.Values{"answer": {"approve"}, "why": {"seen"}}).want(t, http.StatusNotFound)
}

// untouched fails where anything has changed since.
func (w *world) untouched(t *testing.T) {
	t.Helper()
	acts, err := w.store.Acts(t.Context())
	if err != nil || len(acts) != 3 || w.row("doubt").State != middleware.InDoubt {
		t.Error("something has changed", acts, err)
	}
}

func TestAPageThatOnlyShowsTakesNoForm(t *testing.T) {
	w := newWorld(t, operator.Options{ReadOnly: true})
	for _, address := range []string{w.operation("doubt"), w.approval("pending")} {
		shown := get(t, address).want(t, http.StatusOK, "This page only shows").lacks(t, "<form", "<textarea")
		form := happened("seen")
		form.Set("answer", "approve")
		post(t, address, shown, form).want(t, http.StatusForbidden, "This page only shows")
	}
	w.untouched(t)
}

func TestFormsOfOtherOriginsAreRefused(t *testing.T) {
	w := newWorld(t, operator.Options{})
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.operation("doubt"), strings.NewReader(happened("seen").Encode()))
		w.try(err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set(name, value)
		send(t, r).want(t, http.StatusForbidden, "another origin")
	}
	w.untouched(t)
}

func TestOtherMethodsAreRefused(t *testing.T) {
	w := newWorld(t, operator.Options{})
	for method, path := range map[string]string{http.MethodPut: "operation", http.MethodDelete: "", http.MethodPost: "operations"} {
		r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, nil)
		w.try(err)
		if allow := send(t, r).want(t, http.StatusMethodNotAllowed).header.Get("Allow"); allow != "GET, HEAD" {
			t.Error(allow)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, w.url, nil)
	w.try(err)
	if p := send(t, r).want(t, http.StatusOK); p.body != "" {
		t.Error(p.body)
	}
}

func TestWhoIsNotLetInSeesNothing(t *testing.T) {
	for name, authorize := range map[string]func(*http.Request) (string, error){
		"You may not see this: you are &lt;not&gt; on call.": func(*http.Request) (string, error) { return "mallory", errors.New("you are <not> on call") },
		"You may not see this: who are you?</p>":             func(*http.Request) (string, error) { return "", errors.New("who are you?") },
		"You may not see this: nothing says who you are.":    func(*http.Request) (string, error) { return "", nil },
	} {
		w := newWorld(t, operator.Options{Authorize: authorize, ShowData: true})
		for _, path := range []string{"", "operations", "operation?id=" + w.ops["doubt"], "approvals", "runs", "run?id=ticket-7", "acts", "nothing"} {
			get(t, w.url+path).want(t, http.StatusForbidden, name).lacks(t, "issue_refund", "<nav", "mallory", secret)
		}
		post(t, w.operation("doubt"), page{}, happened("seen")).want(t, http.StatusForbidden, name)
		post(t, w.approval("pending"), page{}, url.Values{"answer": {"approve"}, "why": {"seen"}}).want(t, http.StatusForbidden, name)
		get(t, w.url+"style.css").want(t, http.StatusOK)
		w.untouched(t)
	}
}

func TestNobodyToAskIsAMistakeOfTheProgram(t *testing.T) {
	defer func() {
		if r, _ := recover().(string); !strings.Contains(r, "Options.Authorize is nil") {
			t.Errorf("%q", r)
		}
	}()
	operator.Handler(bare{}, operator.Options{})
}

func TestAStoreThatCannotBeReadIsSaid(t *testing.T) {
	w := &world{t: t, path: filepath.Join(t.TempDir(), "once.db")}
	s, err := sqlitestore.Open(w.path, nil)
	w.try(err)
	address := serve(t, s, operator.Options{})
	w.try(s.Close())
	for _, path := range []string{"", "operations", "operation?id=x", "approvals", "approval?id=x", "runs", "run?id=x", "acts"} {
		get(t, address+path).want(t, http.StatusInternalServerError, "The store could not be used")
	}
}

func TestContentThatCannotBeOpenedIsSaid(t *testing.T) {
	w := newWorld(t, operator.Options{})
	address := serve(t, locked{w.store}, operator.Options{ShowData: true})
	get(t, address+"operation?id="+w.ops["doubt"]).want(t, http.StatusOK, "cannot be opened", "no key k1", "TOOLONCE_KEYS", "What became of it?").lacks(t, secret)
	settle := address + "operation?id=" + w.ops["doubt"]
	form := happened("seen")
	form.Set("result", "1")
	p := post(t, settle, get(t, settle), form).want(t, http.StatusConflict, "leave it empty, or have this page open it")
	form.Set("result", "")
	post(t, settle, p, form).want(t, http.StatusSeeOther)
	get(t, address+"run?id=ticket-7").want(t, http.StatusOK, "cannot be opened: no key k1", "sealed").lacks(t, secret, "Nothing.")
}

func TestWhatNobodyCanSeeIsNotApproved(t *testing.T) {
	w := newWorld(t, operator.Options{})
	address := serve(t, locked{w.store}, operator.Options{ShowData: true}) + "approval?id=" + w.asked["pending"]
	shown := get(t, address).want(t, http.StatusOK, "no key k1", `value="deny"`, "It cannot be approved here").lacks(t, `value="approve"`)
	post(t, address, shown, url.Values{"answer": {"approve"}, "why": {"seen"}}).want(t, http.StatusConflict, "nobody can see what would run")
	w.untouched(t)
	post(t, address, shown, url.Values{"answer": {"deny"}, "why": {"seen"}}).want(t, http.StatusSeeOther)
}

// locked is a store whose content nobody can open.
type locked struct{ *sqlitestore.Store }

func (s locked) Find(ctx context.Context, q middleware.Query) (middleware.Row, bool, error) {
	row, ok, err := s.Store.Find(ctx, q)
	row.Unreadable, row.Input, row.Result = errors.New("no key k1"), nil, ""
	return row, ok, err
}

func (s locked) Approvals(ctx context.Context, states ...middleware.ApprovalState) ([]middleware.Approval, error) {
	all, err := s.Store.Approvals(ctx, states...)
	for i := range all {
		all[i].Unreadable, all[i].Input = errors.New("no key k1"), nil
	}
	return all, err
}

func (s locked) Read(ctx context.Context, run string) (journal.Record, bool, error) {
	rec, ok, err := s.Store.Read(ctx, run)
	for i := range rec.Turns {
		rec.Turns[i].Answer, rec.Turns[i].Outputs = nil, []journal.Output{{Verdict: registry.Executed}}
	}
	return rec, ok, errors.Join(err, errors.New("no key k1"))
}
