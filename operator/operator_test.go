package operator_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/operator"
	"github.com/toolonce/toolonce/sqlitestore"
)

func TestEveryPageShowsWhatItIsFor(t *testing.T) {
	w := newWorld(t, operator.Options{Name: "acme"})
	for _, c := range []struct {
		path string
		want []string
	}{
		{"", []string{"3 operations are in doubt", w.ops["doubt"], w.ops["orphan"], w.asked["pending"], "operations?state=done&amp;tool=issue_refund", "9 begun", `aria-current="page">Overview`}},
		{"operations", []string{w.ops["done"], w.ops["running"], w.ops["released"], "settled by bob &lt;b&gt;"}},
		{"operations?state=released", []string{w.ops["released"], "book"}},
		{"operations?tool=cancel", []string{w.ops["undo"]}},
		{"operations?tool=none", []string{"No operation is like that."}},
		{"operations?run=" + url.QueryEscape(script), []string{w.ops["done"], w.ops["doubt"]}},
		{"operation?id=" + w.ops["done"], []string{"call_1", "call_2", "claimed it", "asked again, and was answered", "bytes, hidden"}},
		{"operation?id=" + w.ops["said"], []string{"verdict: happened", "bob &lt;b&gt;", `it is \u200bin the books`}},
		{"operation?id=" + w.ops["undo"], []string{"Undoes", "operation?id=" + w.ops["released"]}},
		{"operation?id=" + w.ops["early"], []string{"Too early to say so until"}},
		{"operation?id=" + w.ops["orphan"], []string{"has died", "What became of it?"}},
		{"approvals", []string{w.asked["pending"], w.asked["deny"], "expired", "seen"}},
		{"approval?id=" + w.asked["pending"], []string{"May it run?", "The arguments are hidden here"}},
		{"approval?id=" + w.asked["expired"], []string{"The question has expired at"}},
		{"approval?id=" + w.asked["deny"], []string{"Bob has denied it at"}},
		{"runs", []string{"ticket-7", "finished", "left", "runs?conversation=chat%267"}},
		{"runs?unfinished=1", []string{"ticket-7"}},
		{"runs?conversation=none", []string{"No run is like that."}},
		{"run?id=" + url.QueryEscape(script), []string{"Turn 2", "already done", "another call had done the same", "outcome unknown", "refused", `<p>Operation <a href="operation?id=` + w.ops["done"], `<p>Operation <a href="operation?id=` + w.ops["doubt"]}},
		{"run?id=ticket-7", []string{"unanswered", "A person was asked: pending", w.asked["pending"]}},
		{"run?id=" + another, []string{"No journal here has this run", w.ops["free"]}},
		{"acts", []string{"happened", "approved", "denied", "bob &lt;b&gt;"}},
	} {
		t.Run(c.path, func(t *testing.T) {
			p := get(t, w.url+c.path).want(t, http.StatusOK, c.want...).want(t, http.StatusOK, "<html lang=", `class="skip"`, "acme", "ann")
			p.lacks(t, secret, "refunded", "I look after") // nobody has asked for it
		})
	}
}

func TestListsAreNarrowed(t *testing.T) {
	w := newWorld(t, operator.Options{})
	get(t, w.url+"operations?state=released").lacks(t, w.ops["done"], w.ops["doubt"])
	get(t, w.url+"operations?tool=cancel").lacks(t, w.ops["released"])
	get(t, w.url+"operations?run="+another).lacks(t, w.ops["done"])
	get(t, w.url+"runs?unfinished=1").lacks(t, "&lt;script")
	get(t, w.url).lacks(t, w.ops["done"], w.ops["running"], w.ops["free"], w.asked["deny"], w.asked["expired"])
}

func TestWhatIsInDoubtComesBeforeWhatItsProcessHasLeft(t *testing.T) {
	w := &world{t: t, path: t.TempDir() + "/once.db", ops: map[string]string{}}
	w.store = w.open()
	died, err := sqlitestore.Open(w.path, nil)
	w.try(err)
	w.claim(died, "orphan", middleware.Claim{})
	w.try(died.Close())
	for _, name := range []string{"first", "second"} {
		w.step(w.claim(w.store, name, middleware.Claim{}), middleware.Transition{Step: middleware.Doubt})
	}
	body := get(t, serve(t, w.store, operator.Options{})).want(t, http.StatusOK, "3 operations are in doubt").body
	at := func(name string) int { return strings.Index(body, w.ops[name]) }
	if at("first") > at("second") || at("second") > at("orphan") {
		t.Error(body)
	}
}

func TestAnswersCarryTheHeadersThatKeepOthersOut(t *testing.T) {
	w := newWorld(t, operator.Options{})
	for _, path := range []string{"", "style.css", "script.js", "icon.svg", "nothing", "operation?id=none"} {
		p := get(t, w.url+path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff",
			"Referrer-Policy":         "no-referrer",
			"Cache-Control":           "no-store",
		} {
			if got := p.header.Get(name); got != want {
				t.Errorf("%q: %s is %q", path, name, got)
			}
		}
	}
	for path, want := range map[string]string{"": "text/html; charset=utf-8", "style.css": "text/css; charset=utf-8", "script.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		if got := get(t, w.url+path).want(t, http.StatusOK).header.Get("Content-Type"); got != want {
			t.Errorf("%q is %q", path, got)
		}
	}
}

// TestNothingFromTheStoreIsTakenForThePage looks at what the policy would have to stop, too.
func TestNothingFromTheStoreIsTakenForThePage(t *testing.T) {
	w := newWorld(t, operator.Options{ShowData: true})
	run := "run?id=" + url.QueryEscape(script)
	for _, path := range []string{"", "operations", "operations?run=" + url.QueryEscape(script), "operation?id=" + w.ops["done"], "operation?id=" + w.ops["said"], "runs", run, "acts"} {
		p := get(t, w.url+path).want(t, http.StatusOK)
		p.lacks(t, script, "bob <b>", "\u202e", "\u202c", "\u200b", "style=", "onclick", "http://", "https://")
		if strings.Count(p.body, "<script") != 1 {
			t.Errorf("%q has more than its one script:\n%s", path, p.body)
		}
	}
	get(t, w.url+run).want(t, http.StatusOK, `refunded \u202e00.5\u202c`, "&lt;script&gt;")
	get(t, w.operation("done")).want(t, http.StatusOK, `refunded \u202e00.5\u202c`)
	get(t, w.url+"nothing\u202e<i>").want(t, http.StatusNotFound).lacks(t, "<i>", "\u202e")
	get(t, w.url+"operation?id="+url.QueryEscape("\u202e<b>")).want(t, http.StatusNotFound, `\u202e&lt;b&gt;`)
}

func TestDataIsShownOnlyWhereItIsAskedFor(t *testing.T) {
	w := newWorld(t, operator.Options{ShowData: true})
	for _, path := range []string{"operation?id=" + w.ops["done"], "approval?id=" + w.asked["pending"], "run?id=ticket-7"} {
		get(t, w.url+path).want(t, http.StatusOK, secret).lacks(t, "hidden")
	}
	get(t, w.url+"run?id="+url.QueryEscape(script)).want(t, http.StatusOK, "I look after "+secret)
}

func TestARunThatWasForgottenSaysSo(t *testing.T) {
	w := newWorld(t, operator.Options{ShowData: true})
	_, err := w.store.Forget(t.Context(), "ticket-7", middleware.Act{By: "bob", Why: "asked to"})
	w.try(err)
	get(t, w.url+"run?id=ticket-7").want(t, http.StatusOK, "forgotten", "What was said in it was erased.").lacks(t, secret)
	get(t, w.url+"runs").want(t, http.StatusOK, "forgotten")
	get(t, w.url+"acts").want(t, http.StatusOK, "forgot", "asked to", "run?id=ticket-7")
	get(t, w.approval("pending")).want(t, http.StatusOK).lacks(t, secret, "May it run?")
}

func TestWhoHasRecoveredAnOperationIsShown(t *testing.T) {
	w := newWorld(t, operator.Options{})
	_, err := w.store.Record(t.Context(), middleware.Act{Kind: "recovered", Target: w.ops["doubt"], By: "bob", Why: "its worker is gone"})
	w.try(err)
	get(t, w.operation("doubt")).want(t, http.StatusOK, "recovered", "its worker is gone").lacks(t, "verdict: recovered")
	get(t, w.url+"acts").want(t, http.StatusOK, `href="operation?id=`+w.ops["doubt"])
}

func TestEveryLinkLeadsSomewhere(t *testing.T) {
	w := newWorld(t, operator.Options{ShowData: true})
	start, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	link, seen, todo := regexp.MustCompile(`(?:href|src)="([^"]*)"`), map[string]bool{}, []string{w.url}
	for len(todo) > 0 {
		from := todo[0]
		todo = todo[1:]
		p := get(t, from)
		if p.status != http.StatusOK {
			t.Errorf("%s: %d", from, p.status)
		}
		base, err := url.Parse(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(p.body, -1) {
			to, err := base.Parse(html.UnescapeString(m[1]))
			if err != nil {
				t.Fatal(from, err)
			}
			if id := to.Fragment; id != "" && !strings.Contains(p.body, `id="`+id+`"`) {
				t.Errorf("%s: there is no #%s", from, id)
			}
			to.Fragment = ""
			if to.Host != start.Host || !strings.HasPrefix(to.Path, start.Path) {
				t.Errorf("%s leads out to %s", from, to)
			}
			if !seen[to.String()] {
				seen[to.String()], todo = true, append(todo, to.String())
			}
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d addresses were found", len(seen))
	}
}

func TestAnEmptyStoreSaysSo(t *testing.T) {
	w := &world{t: t, path: t.TempDir() + "/once.db"}
	address := serve(t, w.open(), operator.Options{})
	get(t, address).want(t, http.StatusOK, "Nothing is in doubt.", "Nothing waits for approval.", "Nothing was begun or done.", "There are no operations yet.", "Nothing needs you, ann.")
	get(t, address+"operations").want(t, http.StatusOK, "There are no operations yet.")
	get(t, address+"approvals").want(t, http.StatusOK, "Nothing waits for approval.", "Nothing was answered yet.")
	get(t, address+"runs").want(t, http.StatusOK, "There are no runs yet.")
	get(t, address+"acts").want(t, http.StatusOK, "Nobody has done anything yet.")
	for path, status := range map[string]int{"run?id=none": 404, "run": 404, "operation": 400, "operation?id=none": 404, "approval?id=none": 404, "operations?state=lost": 400, "nothing": 404} {
		get(t, address+path).want(t, status, `role="alert"`)
	}
}

// bare is a ledger that can be looked through, and nothing else.
type bare struct {
	middleware.Ledger
	middleware.Lister
}

func TestWhatAStoreDoesNotKeepIsLeftOut(t *testing.T) {
	w := newWorld(t, operator.Options{})
	address := serve(t, bare{w.store, w.store}, operator.Options{})
	get(t, address).want(t, http.StatusOK, w.ops["doubt"], w.ops["orphan"], "operations?state=done&amp;tool=issue_refund", "9 begun").lacks(t, "Approvals", "Runs", "Acts", "Waiting for approval")
	for _, path := range []string{"approvals", "approval?id=" + w.asked["pending"], "runs", "acts"} {
		get(t, address+path).want(t, http.StatusNotFound)
	}
	get(t, address+"operations?tool=cancel&state=done").want(t, http.StatusOK, w.ops["undo"]).lacks(t, w.ops["done"])
	get(t, address+"operation?id="+w.ops["said"]).want(t, http.StatusOK, "verdict", "bob &lt;b&gt;")
	get(t, address+"run?id="+another).want(t, http.StatusOK, w.ops["free"]).lacks(t, w.ops["done"])
}

func TestAPageOfItsJournalAloneShowsARunInMemory(t *testing.T) {
	store := struct {
		*middleware.MemoryLedger
		*journal.MemoryJournal
	}{middleware.Memory(), journal.Memory()}
	address := serve(t, memory{store.MemoryLedger, store.MemoryJournal}, operator.Options{})
	if _, err := store.Begin(t.Context(), journal.Start{API: "chat"}); err != nil {
		t.Fatal(err)
	}
	get(t, address+"runs").want(t, http.StatusOK, "going on")
}

// memory is both, seen by one tenant.
type memory struct {
	*middleware.MemoryLedger
	journal.Reader
}
