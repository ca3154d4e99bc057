package provider_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
)

// start opens a provider that knows order 1001, paid with 30.00.
func start(t *testing.T, opts provider.Options) (*provider.Provider, *httptest.Server) {
	t.Helper()
	p, err := provider.Open(t.Context(), filepath.Join(t.TempDir(), "provider.db"), opts)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p)
	t.Cleanup(func() {
		s.Close()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.AddOrder(t.Context(), "1001", 3000); err != nil {
		t.Fatal(err)
	}
	return p, s
}

func post(t *testing.T, s *httptest.Server, path, key, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	return do(t, req)
}

func get(t *testing.T, s *httptest.Server, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, req)
}

func do(t *testing.T, req *http.Request) string {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join([]string{resp.Status[:3], strings.TrimSpace(string(body))}, " ")
}

func wantRefunds(t *testing.T, p *provider.Provider, ids ...string) {
	t.Helper()
	got, err := p.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(ids, got.Refunds["1001"]); d != "" {
		t.Errorf("refunds of 1001 (-want +got):\n%s", d)
	}
	if want := int64(len(ids)) * 1000; got.Cents != want {
		t.Errorf("moved %d, want %d", got.Cents, want)
	}
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

const ten = `{"order_id":"1001","cents":1000}`

func TestKeyedReplaysTheFirstAnswer(t *testing.T) {
	p, s := start(t, provider.Options{Kind: provider.Keyed})
	for range 2 {
		want(t, post(t, s, "/refunds", "k1", ten), `200 {"id":"re_1001_1","cents":1000}`)
	}
	wantRefunds(t, p, "re_1001_1")
	want(t, post(t, s, "/refunds", "k2", ten), `200 {"id":"re_1001_2","cents":1000}`)
	want(t, post(t, s, "/refunds", "", ten), `200 {"id":"re_1001_3","cents":1000}`)
	wantRefunds(t, p, "re_1001_1", "re_1001_2", "re_1001_3")
	want(t, post(t, s, "/refunds", "k1", `{"order_id":"1001","cents":999}`), `422 {"error":"the key was used for another request"}`)
	want(t, get(t, s, "/refunds?order_id=1001"), "405 Method Not Allowed")
}

func TestLookupFindsWhatItDid(t *testing.T) {
	p, s := start(t, provider.Options{Kind: provider.Lookup})
	want(t, get(t, s, "/refunds?order_id=1001"), `200 []`)
	post(t, s, "/refunds", "k1", ten)
	want(t, get(t, s, "/refunds?order_id=1001"), `200 [{"id":"re_1001_1","cents":1000}]`)
	post(t, s, "/refunds", "k1", ten) // it does not look at keys
	wantRefunds(t, p, "re_1001_1", "re_1001_2")
}

func TestPlainMovesTwice(t *testing.T) {
	p, s := start(t, provider.Options{Kind: provider.Plain})
	post(t, s, "/refunds", "k1", ten)
	want(t, post(t, s, "/refunds", "k1", ten), `200 {"id":"re_1001_2","cents":1000}`)
	wantRefunds(t, p, "re_1001_1", "re_1001_2")
	want(t, get(t, s, "/refunds?order_id=1001"), "405 Method Not Allowed")
}

func TestARefusalMovesNothing(t *testing.T) {
	p, s := start(t, provider.Options{})
	for body, answer := range map[string]string{
		`{"order_id":"1001","cents":3001}`: `422 {"error":"the refunds of an order cannot be more than what was paid"}`,
		`{"order_id":"1001","cents":0}`:    `422 {"error":"the refunds of an order cannot be more than what was paid"}`,
		`{"order_id":"9","cents":1}`:       `404 {"error":"there is no such order"}`,
		`{"order_id":`:                     `400 {"error":"the body is no JSON as it is wanted here"}`,
	} {
		want(t, post(t, s, "/refunds", "", body), answer)
	}
	wantRefunds(t, p)
	for range 3 {
		post(t, s, "/refunds", "", ten)
	}
	want(t, post(t, s, "/refunds", "", ten), `422 {"error":"the refunds of an order cannot be more than what was paid"}`)
	wantRefunds(t, p, "re_1001_1", "re_1001_2", "re_1001_3")
}

func TestOrdersAndNotes(t *testing.T) {
	p, s := start(t, provider.Options{})
	want(t, get(t, s, "/orders/1001"), `200 {"order_id":"1001","cents":3000}`)
	want(t, get(t, s, "/orders/9"), `404 {"error":"there is no such order"}`)
	for _, id := range []string{"note_1", "note_2"} {
		want(t, post(t, s, "/notes", "", `{"order_id":"1001","text":"called"}`), `200 {"id":"`+id+`"}`)
	}
	want(t, post(t, s, "/notes", "", `{"order_id":"9","text":"called"}`), `404 {"error":"there is no such order"}`)
	got, err := p.Count(t.Context())
	if err != nil || got.Notes["1001"] != 2 {
		t.Errorf("%d notes, want 2; %v", got.Notes["1001"], err)
	}
}

func TestTheMoneyHasMovedWhenTheClientHasGone(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan struct{})
	p, s := start(t, provider.Options{Committed: func(gone context.Context, order string) {
		want(t, order, "1001")
		leave()
		<-gone.Done()
		close(answered)
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/refunds", strings.NewReader(ten))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultClient.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Error("the client got an answer")
	}
	<-answered
	wantRefunds(t, p, "re_1001_1")
}

func TestWhatItDoesIsSaid(t *testing.T) {
	var said []string
	_, s := start(t, provider.Options{Kind: provider.Lookup, Say: func(text string) { said = append(said, text) }})
	get(t, s, "/refunds?order_id=1001")
	post(t, s, "/refunds", "", ten)
	get(t, s, "/refunds?order_id=1001")
	if d := cmp.Diff([]string{
		"is asked what it did for order 1001: finds nothing",
		"MOVES 10.00 for order 1001 (re_1001_1)",
		"is asked what it did for order 1001: finds re_1001_1",
	}, said); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestTheFileOutlivesTheProvider(t *testing.T) {
	path := filepath.Join(t.TempDir(), "provider.db")
	for i := range 2 {
		p, err := provider.Open(t.Context(), path, provider.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.AddOrder(t.Context(), "1001", 3000+int64(i)); err != nil { // the first stays
			t.Fatal(err)
		}
		s := httptest.NewServer(p)
		want(t, get(t, s, "/orders/1001"), `200 {"order_id":"1001","cents":3000}`)
		s.Close()
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAForeignFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bad.db")
	if err := os.WriteFile(path, []byte("this is no database, and long enough to be none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := provider.Open(t.Context(), path, provider.Options{}); err == nil || !strings.Contains(err.Error(), "bad.db") {
		t.Errorf("error %v, want one that names the file", err)
	}
	if _, err := provider.Open(t.Context(), filepath.Join(t.TempDir(), "none", "x.db"), provider.Options{}); err == nil {
		t.Error("a missing directory is no error")
	}
}

func TestParseKind(t *testing.T) {
	for _, k := range []provider.Kind{provider.Keyed, provider.Lookup, provider.Plain} {
		if got, err := provider.ParseKind(string(k)); got != k || err != nil {
			t.Errorf("%q: %q, %v", k, got, err)
		}
	}
	if _, err := provider.ParseKind("stripe"); err == nil || err.Error() != `no such provider "stripe": use keyed, lookup or plain` {
		t.Errorf("error %v", err)
	}
}
