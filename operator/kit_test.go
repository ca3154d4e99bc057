package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/operator"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

const (
	secret  = "order-1001"                    // what a user wrote
	script  = "<script>alert('run')</script>" // the id of a run
	turned  = "refunded \u202e00.5\u202c"     // what a tool has said
	prefix  = "/on/call"                      // where the pages are mounted
	another = "worker-9"                      // a run that no journal has
)

// world is a store with rows of all kinds, and its pages.
type world struct {
	t     *testing.T
	path  string
	store *sqlitestore.Store
	url   string // of the overview
	ops   map[string]string
	asked map[string]string // questions by answer
}

func newWorld(t *testing.T, opts operator.Options) *world {
	t.Helper()
	w := &world{t: t, path: filepath.Join(t.TempDir(), "once.db"), ops: map[string]string{}, asked: map[string]string{}}
	w.store = w.open()
	w.rows()
	w.questions()
	w.story()
	w.url = serve(t, w.store, opts)
	return w
}

// serve mounts the pages of a store below a prefix, and gives their address.
func serve(t *testing.T, store operator.Store, opts operator.Options) string {
	t.Helper()
	if opts.Authorize == nil {
		opts.Authorize = func(*http.Request) (string, error) { return "ann", nil }
	}
	opts.Logger = slog.New(slog.DiscardHandler)
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, operator.Handler(store, opts)))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + prefix + "/"
}

func (w *world) open() *sqlitestore.Store {
	w.t.Helper()
	s, err := sqlitestore.Open(w.path, nil)
	w.try(err)
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return s
}

func (w *world) try(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// claim claims an operation of a tool.
func (w *world) claim(s *sqlitestore.Store, name string, c middleware.Claim) middleware.Row {
	w.t.Helper()
	c.Token, c.Identity, c.KeyWindow, c.Input = "token-"+name, fmt.Sprintf("%064x", len(w.ops)+1), time.Hour, []byte(`{"order_id":"`+secret+`"}`)
	if c.Call.Run == "" {
		c.Call.Run = another
	}
	if c.Call.Tool == "" {
		c.Call.Tool = "issue_refund"
	}
	if c.Call.Turn == 0 {
		c.Call.Turn, c.Call.Position = 1, len(w.ops)
	}
	row, won, err := s.Claim(w.t.Context(), c)
	if err != nil || !won {
		w.t.Fatal(name, won, err)
	}
	w.ops[name] = row.Operation
	return row
}

func (w *world) step(row middleware.Row, t middleware.Transition) {
	w.t.Helper()
	t.Operation, t.Token, t.Attempt = row.Operation, row.Token, row.Attempt
	_, err := w.store.Change(w.t.Context(), t)
	w.try(err)
}

// rows makes an operation in each state.
func (w *world) rows() {
	s := w.store
	done := middleware.Transition{Step: middleware.Complete, Result: turned, HasResult: true}
	w.step(w.claim(s, "done", middleware.Claim{Call: middleware.Alias{Run: script, Turn: 1, CallID: "call_1"}}), done)
	w.step(w.claim(s, "doubt", middleware.Claim{Call: middleware.Alias{Run: script, Turn: 1, Position: 3}}), middleware.Transition{Step: middleware.Doubt})
	w.step(w.claim(s, "early", middleware.Claim{Deadline: time.Hour}), middleware.Transition{Step: middleware.Doubt})
	w.step(w.claim(s, "free", middleware.Claim{}), middleware.Transition{Step: middleware.GiveBack})
	booked := w.claim(s, "released", middleware.Claim{Call: middleware.Alias{Tool: "book"}, Resource: "r"})
	w.step(booked, done)
	w.step(w.claim(s, "undo", middleware.Claim{Call: middleware.Alias{Tool: "cancel"}, Undoes: booked.Operation}), done)
	w.step(w.claim(s, "said", middleware.Claim{}), middleware.Transition{Step: middleware.Doubt})
	_, err := s.Change(w.t.Context(), middleware.Transition{
		Step: middleware.Happened, Operation: w.ops["said"], Token: "token-said", Attempt: 1, By: "bob <b>", Why: "it is \u200bin the books",
	})
	w.try(err)
	w.claim(s, "running", middleware.Claim{Deadline: time.Hour})
	died, err := sqlitestore.Open(w.path, nil)
	w.try(err)
	w.claim(died, "orphan", middleware.Claim{})
	w.try(died.Close())
	_, err = s.Note(w.t.Context(), w.ops["done"], middleware.Alias{Run: script, Turn: 1, Position: 1, Tool: "issue_refund", CallID: "call_2"})
	w.try(err)
}

// questions asks for approvals, and answers but one.
func (w *world) questions() {
	for i, answer := range []string{"pending", "deny", "approve", "expired"} {
		expires := time.Hour
		if answer == "expired" {
			expires = 1
		}
		a, err := w.store.Ask(w.t.Context(), middleware.Approval{
			Call: middleware.Alias{Run: "ticket-7", Turn: 1, Position: i, Tool: "pay", Fingerprint: fmt.Sprintf("%064x", i)}, Identity: fmt.Sprintf("%064x", 100+i),
			Input: []byte(`{"to":"` + secret + `"}`),
		}, expires)
		w.try(err)
		w.asked[answer] = a.ID
		if i == 1 || i == 2 {
			_, err = w.store.Decide(w.t.Context(), middleware.Decision{Run: a.Call.Run, Turn: 1, Position: i, ID: a.ID, Approve: answer == "approve", By: "bob", Why: "seen"})
			w.try(err)
		}
	}
}

// story stores a run in which calls were stopped, and one that waits.
func (w *world) story() {
	call := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"issue_refund","arguments":"{\"order_id\":\"%s\"}"}}`, id, secret)
	}
	answer := func(calls ...string) json.RawMessage {
		return json.RawMessage(`{"choices":[{"message":{"content":"I look after ` + secret + `","tool_calls":[` + strings.Join(calls, ",") + `]}}]}`)
	}
	start := journal.Start{Run: registry.Run{ID: script, Conversation: "chat&7"}, API: "chat", Input: []byte{1}}
	rec, err := w.store.Begin(w.t.Context(), start)
	w.try(err)
	add := func(e journal.Entry) {
		w.t.Helper()
		_, err := w.store.Append(w.t.Context(), e)
		w.try(err)
	}
	add(journal.Entry{Run: script, Token: rec.Token, Turn: journal.Turn{Number: 1, Answer: answer(call("call_1"), call("call_2"), call("call_3"), call("call_4"))}})
	add(journal.Entry{Run: script, Token: rec.Token, Turn: journal.Turn{Number: 2, Answer: answer()}, Final: true, Outputs: []journal.Output{
		{Position: 0, Content: turned, Verdict: registry.Executed, Operation: w.ops["done"]},
		{Position: 1, Content: `{"toolonce":1}`, Verdict: registry.AlreadyDone, Operation: w.ops["done"]},
		{Position: 2, Content: `{"toolonce":1}`, Verdict: registry.Refused},
		{Position: 3, Content: `{"toolonce":1}`, Verdict: registry.OutcomeUnknown, Operation: w.ops["doubt"]},
	}})
	start.Run = registry.Run{ID: "ticket-7"}
	rec, err = w.store.Begin(w.t.Context(), start)
	w.try(err)
	add(journal.Entry{Run: "ticket-7", Token: rec.Token, Turn: journal.Turn{Number: 1, Answer: answer(call("call_1"))}})
	w.try(w.store.Leave(w.t.Context(), journal.Leaving{Run: "ticket-7", Token: rec.Token}))
}

// page is what a browser got.
type page struct {
	status int
	header http.Header
	body   string
}

// send asks for a page without following a redirect.
func send(t *testing.T, r *http.Request) page {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return page{res.StatusCode, res.Header, string(b)}
}

func get(t *testing.T, address string) page {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, r)
}

// post sends a form as a browser does: with the hidden fields of the page that has it, which may have been looked at before.
func post(t *testing.T, address string, shown page, form url.Values) page {
	t.Helper()
	for _, m := range regexp.MustCompile(`type="hidden" name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(shown.body, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return send(t, r)
}

// want fails where a page is not as it should be.
func (p page) want(t *testing.T, status int, texts ...string) page {
	t.Helper()
	if p.status != status {
		t.Errorf("status %d, want %d:\n%s", p.status, status, p.body)
	}
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			t.Errorf("there is no %q in:\n%s", text, p.body)
		}
	}
	return p
}

// lacks fails where a page has a text.
func (p page) lacks(t *testing.T, texts ...string) page {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(p.body, text) {
			t.Errorf("there is %q in:\n%s", text, p.body)
		}
	}
	return p
}

func (w *world) operation(name string) string { return w.url + "operation?id=" + w.ops[name] }

func (w *world) approval(name string) string { return w.url + "approval?id=" + w.asked[name] }

func (w *world) row(name string) middleware.Row {
	w.t.Helper()
	row, ok, err := w.store.Find(w.t.Context(), middleware.Query{Operation: w.ops[name]})
	if err != nil || !ok {
		w.t.Fatal(name, ok, err)
	}
	return row
}
