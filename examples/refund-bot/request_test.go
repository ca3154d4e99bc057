package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
	"github.com/toolonce/toolonce/transcript"
)

const broken = "refund order 1001, it arrived broken"

func wantMoved(t *testing.T, dir string, want map[string][]string) {
	t.Helper()
	if d := cmp.Diff(want, moved(t, filepath.Join(dir, providerFile)).Refunds); d != "" {
		t.Errorf("refunds (-want +got):\n%s", d)
	}
}

func TestTheSameRunAgainMovesNoMoney(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			first := runIn(t, dir, "-provider", string(kind), "-run", "ticket-42", broken).ok(t)
			first.wantLines(t, "run ticket-42, model scripted", "calls get_order(order 1001)", "provider  MOVES 129.00 for order 1001 (re_1001_1)", "Order 1001: 129.00 refunded (re_1001_1).\n")
			again := runIn(t, dir, "-provider", string(kind), "-run", "ticket-42", broken).ok(t)
			want := "run ticket-42, model scripted (chat), provider " + string(kind) + ", file once.db\n" +
				"Order 1001: 129.00 refunded (re_1001_1).\n(saved answer of run ticket-42: the model was not asked, and no money moved)\n"
			if d := cmp.Diff(want, again.out); d != "" {
				t.Errorf("again (-want +got):\n%s", d)
			}
			other := runIn(t, dir, "-provider", string(kind), "-run", "ticket-43", "Refund order #1001 again!").ok(t)
			other.wantLines(t, "guard     issue_refund is not run again: already_done", "Order 1001 was refunded before. I have not refunded it again.\n")
			wantMoved(t, dir, map[string][]string{"1001": {"re_1001_1"}})
			runIn(t, dir, "-provider", string(kind), "refund order 1002").ok(t)
			wantMoved(t, dir, map[string][]string{"1001": {"re_1001_1"}, "1002": {"re_1002_1"}})
		})
	}
}

func TestTheRunIsMadeOfTheRequest(t *testing.T) {
	none := func(string) string { return "" }
	run := func(args ...string) string {
		o, err := parse(args, none)
		if err != nil {
			t.Fatal(err)
		}
		return o.run
	}
	if a, b := run(broken), run(" "+broken+"\n"); a != b || !strings.HasPrefix(a, "request-") {
		t.Errorf("%q and %q", a, b)
	}
	if run(broken) == run("refund order 1002") || run(broken) == run("-api", responsesAPI, broken) || run("-run", "x", broken) != "x" {
		t.Error("two requests have one run, or -run is not heard")
	}
}

func TestARequestThatCannotBeDoneMovesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runIn(t, dir, "refund order 99").ok(t).wantLines(t, "I cannot look up order 99, so I have refunded nothing (the payment provider answered 404: there is no such order).")
	runIn(t, dir, "hello").ok(t).wantLines(t, "Which order? Please name it")
	wantMoved(t, dir, map[string][]string{})
}

func TestAnotherModelAndAnotherProvider(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := provider.Open(t.Context(), filepath.Join(dir, "elsewhere.db"), provider.Options{Kind: provider.Lookup})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if err := p.AddOrder(t.Context(), "2001", 700); err != nil {
		t.Fatal(err)
	}
	pay := httptest.NewServer(p)
	defer pay.Close()
	script := transcript.NewServer(script(nil), nil)
	model := httptest.NewServer(script)
	defer model.Close()
	runIn(t, dir, "-base-url", model.URL+"/v1", "-model", "my-model", "-provider-url", pay.URL+"/", "refund order 2001").ok(t).
		wantLines(t, "model my-model", "Order 2001: 7.00 refunded (re_2001_1).")
	if got := files(t, dir); strings.Contains(got, providerFile) {
		t.Errorf("a provider of our own was made: %s", got)
	}
	for _, r := range script.Requests() {
		if r.API == "chat" && (r.Status != 200 || r.Model != "my-model") {
			t.Errorf("asked %s, answered %d %s", r.Model, r.Status, r.Refusal)
		}
	}
}

func TestAKeyMeansARealModel(t *testing.T) {
	env := map[string]string{"OPENAI_API_KEY": "sk-1"}
	get := func(name string) string { return env[name] }
	o, err := parse([]string{broken}, get)
	if err != nil || o.model != "gpt-4.1-mini" || o.baseURL != "https://api.openai.com/v1" || o.apiKey != "sk-1" {
		t.Errorf("%+v, %v", o, err)
	}
	env["OPENAI_BASE_URL"] = "http://gateway.example/v1"
	if o, err = parse([]string{"-model", "m", broken}, get); err != nil || o.model != "m" || o.baseURL != "http://gateway.example/v1" {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err = parse(nil, get); err != nil || o.baseURL != "" {
		t.Errorf("the story asks %q, %v", o.baseURL, err)
	}
}

func TestWhatTheModelServerSaysIsTold(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error"}}`))
	}))
	defer model.Close()
	r := runIn(t, t.TempDir(), "-base-url", model.URL, "-run", "ticket-42", broken)
	const want = "refund-bot: agent: run \"ticket-42\", turn 1: asking the model: the API answered 401 Unauthorized: Incorrect API key provided.; " +
		"the same command again goes on from here\n"
	if r.err != want || r.code != exitFailed {
		t.Errorf("%d %s", r.code, r.err)
	}
}

func TestHelp(t *testing.T) {
	runIn(t, t.TempDir(), "-h").ok(t).wantLines(t, "refund-bot: an agent", "Examples:", `go run ./examples/refund-bot "refund order 1001, it arrived broken"`, "-provider KIND", "-keep DIR", "-provider-url URL")
	for _, name := range sceneNames() {
		if !strings.Contains(usage, name) {
			t.Errorf("the help does not name %s", name)
		}
	}
}

// TestBadInputIsOneClearError: what, where, how to mend; and nothing is written.
func TestBadInputIsOneClearError(t *testing.T) {
	for _, c := range []struct {
		name string
		code int
		err  string
		args []string
	}{
		{"model without a server", exitUsage, "-model gpt-5 is a real model, and there is no way to reach it: set OPENAI_API_KEY, or give -base-url, or drop -model for the scripted one", []string{"-model", "gpt-5", broken}},
		{"no directory", exitFailed, `-db: sqlitestore: opening "none/once.db": there is no such file or directory: check the path, or make the directory first`, []string{"-db", "none/once.db", broken}},
		{"damaged", exitFailed, `-db: sqlitestore: opening "damaged.db": the file is damaged`, []string{"-db", "damaged.db", broken}},
		{"foreign", exitFailed, `-db: sqlitestore: opening "foreign.db": the file is a database of another program: choose another path`, []string{"-db", "foreign.db", broken}},
		{"provider's file", exitUsage, "-db provider.db: that is the name of the provider's own file: choose another", []string{"-db", "provider.db", broken}},
		{"unknown failure", exitUsage, `-only: no such failure "fire": use one of late-answer, twice-in-a-turn, asked-again, killed, second-order, notes`, []string{"-only", "fire"}},
		{"unknown provider", exitUsage, `-provider: no such provider "stripe": use keyed, lookup or plain`, []string{"-provider", "stripe"}},
		{"unknown API", exitUsage, `-api: no such API "assistants": use chat or responses`, []string{"-api", "assistants"}},
		{"unknown flag", exitUsage, "flag provided but not defined: -fast: -h shows what there is", []string{"-fast"}},
		{"seed", exitUsage, `invalid value "x" for flag -seed: parse error: -h shows what there is`, []string{"-seed", "x"}},
		{"flag of a request", exitUsage, "-db goes with a request only: add one in quotes, or drop the flag", []string{"-db", "x.db"}},
		{"flag of the story", exitUsage, "-json goes without a request only: drop one of the two", []string{"-json", broken}},
		{"no quotes", exitUsage, "one request at a time, in quotes, behind the flags: got 3 words", []string{"refund", "order", "1001"}},
		{"no request", exitUsage, `the request is empty: say what to do, as in "refund order 1001, it arrived broken"`, []string{" "}},
		{"no address", exitUsage, `-base-url: "localhost" is no address: give one such as http://localhost:8080/v1`, []string{"-base-url", "localhost", broken}},
		{"no address of the provider", exitUsage, `-provider-url: "x" is no address: give one such as http://localhost:8081`, []string{"-provider-url", "x", broken}},
		{"keep in a file", exitFailed, "making the directory of -keep: mkdir ", []string{"-keep", "damaged.db"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "damaged.db"), []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
			p, err := provider.Open(t.Context(), filepath.Join(dir, "foreign.db"), provider.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			r := runIn(t, dir, c.args...)
			if r.code != c.code || !strings.HasPrefix(r.err, "refund-bot: "+c.err) || strings.Count(r.err, "\n") != 1 || r.out != "" {
				t.Errorf("exit code %d, want %d\n%s%s", r.code, c.code, r.out, r.err)
			}
			if got := files(t, dir); got != "damaged.db foreign.db" {
				t.Errorf("files: %s", got)
			}
		})
	}
}

func TestADamagedProviderFileIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, providerFile), []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runIn(t, dir, broken)
	if want := `refund-bot: provider: opening "provider.db": file is not a database`; r.code != exitFailed || !strings.HasPrefix(r.err, want) || strings.Count(r.err, "\n") != 1 {
		t.Errorf("%d %s", r.code, r.err)
	}
}

// TestWhatIsDownStopsTheRunUntilItIsThere: the model is not told, so that the run does not end with an excuse.
func TestWhatIsDownStopsTheRunUntilItIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct{ flag, url, err string }{
		{"-base-url", "http://127.0.0.1:1/v1", `asking the model: Post "http://127.0.0.1:1/v1/chat/completions": dial tcp 127.0.0.1:1: connect: connection refused: check -base-url and that the model server runs`},
		{"-provider-url", "http://127.0.0.1:1", `call 0 (get_order): the payment provider at http://127.0.0.1:1 cannot be reached: dial tcp 127.0.0.1:1: connect: connection refused: start it, or drop -provider-url to use one of our own`},
	} {
		r := runIn(t, dir, c.flag, c.url, "-run", "ticket-42", broken)
		if want := `refund-bot: agent: run "ticket-42", turn 1: ` + c.err + "; the same command again goes on from here\n"; r.code != exitFailed || r.err != want {
			t.Errorf("%s: %d %s", c.flag, r.code, r.err)
		}
	}
	runIn(t, dir, "-run", "ticket-42", broken).ok(t).wantLines(t, "Order 1001: 129.00 refunded (re_1001_1).\n")
	wantMoved(t, dir, map[string][]string{"1001": {"re_1001_1"}})
	// What is saved needs neither.
	runIn(t, dir, "-base-url", "http://127.0.0.1:1", "-provider-url", "http://127.0.0.1:1", "-run", "ticket-42", broken).ok(t).
		wantLines(t, "Order 1001: 129.00 refunded (re_1001_1).\n(saved answer of run ticket-42: ")
}

func TestARunIsOneRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	runIn(t, dir, "-run", "ticket-42", "hello").ok(t)
	const want = "refund-bot: run ticket-42 is another request, or one by another -api: give each request a -run of its own\n"
	for _, args := range [][]string{{broken}, {"-api", responsesAPI, "hello"}} {
		if r := runIn(t, dir, append([]string{"-run", "ticket-42"}, args...)...); r.code != exitFailed || r.err != want {
			t.Errorf("%d %s", r.code, r.err)
		}
	}
	wantMoved(t, dir, map[string][]string{})
}
