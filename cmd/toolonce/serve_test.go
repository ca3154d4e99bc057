package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// serving is the command at work.
type serving struct {
	t    *testing.T
	link string       // that it has printed
	in   *http.Client // that opens links as a browser does, with its cookies
}

// serve starts the command. It ends with the test, and must end well.
func (f *fixture) serve(args ...string) *serving {
	f.t.Helper()
	r, w := io.Pipe()
	e := &env{out: w, getenv: func(string) string { return "" }}
	var stop func()
	e.ctx, stop = context.WithCancel(context.Background())
	done := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		code := run(e, append([]string{"serve", "-store", "sqlite:" + f.path, "-by", "ann"}, args...), &errs)
		_ = w.Close() // never fails
		done <- code
	}()
	lines := bufio.NewScanner(r)
	if !lines.Scan() {
		f.t.Fatal("it has printed nothing", errs.String())
	}
	link := lines.Text()
	go func() { _, _ = io.Copy(io.Discard, r) }()
	f.t.Cleanup(func() {
		if stop(); <-done != 0 {
			f.t.Errorf("it did not end well: %s", errs.String())
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return &serving{f.t, link, &http.Client{Jar: jar}}
}

// got is what came back.
type got struct {
	status  int
	to      string // where a redirect leads
	cookies []*http.Cookie
}

// ask sends a request.
func (s *serving) ask(c *http.Client, method, address string, edit func(*http.Request)) (g got, body string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, address, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if edit != nil {
		edit(r)
	}
	res, err := c.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		s.t.Error(err)
	}
	return got{res.StatusCode, res.Header.Get("Location"), res.Cookies()}, string(b)
}

// home is the printed address without its token.
func (s *serving) home() string {
	home, _, _ := strings.Cut(s.link, "?")
	return home
}

func TestTheAddressOfThePageLetsInOnce(t *testing.T) {
	f := inDoubt(t)
	s := f.serve()
	once := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"", "operations", "operation?id=" + f.op, "runs", "acts", "../", "../elsewhere", "?token=wrong"} {
		res, body := s.ask(&http.Client{}, http.MethodGet, s.home()+path, nil)
		if res.status != http.StatusForbidden || !strings.Contains(body, "that toolonce serve has printed") || strings.Contains(body, "issue_refund") {
			t.Errorf("%q without a cookie: %d\n%s", path, res.status, body)
		}
	}
	var in sync.WaitGroup
	cookies := make(chan *http.Cookie, 8)
	for range cap(cookies) { // several at a time: one of them is let in
		in.Go(func() {
			res, _ := s.ask(&once, http.MethodGet, s.link, nil)
			if res.status != http.StatusSeeOther || strings.Contains(res.to, "token") {
				t.Errorf("%d to %q", res.status, res.to)
			}
			for _, c := range res.cookies {
				cookies <- c
			}
		})
	}
	in.Wait()
	if len(cookies) != 1 {
		t.Fatalf("%d were let in", len(cookies))
	}
	c := <-cookies
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || len(c.Path) < 9 || !strings.HasSuffix(s.home(), c.Path) {
		t.Errorf("%v", c)
	}
	res, body := s.ask(&once, http.MethodGet, s.home(), func(r *http.Request) { r.AddCookie(c) })
	if res.status != http.StatusOK || !strings.Contains(body, f.op) || strings.Contains(body, secret) {
		t.Errorf("%d\n%s", res.status, body)
	}
	c.Value += "x"
	if res, _ := s.ask(&once, http.MethodGet, s.home(), func(r *http.Request) { r.AddCookie(c) }); res.status != http.StatusForbidden {
		t.Errorf("another cookie gets %d", res.status)
	}
}

func TestThePageIsServedUnderItsOwnNameAlone(t *testing.T) {
	f := inDoubt(t)
	s := f.serve()
	port := regexp.MustCompile(`:\d+/`).FindString(s.link)
	port = strings.TrimSuffix(port, "/")
	for host, want := range map[string]int{
		"127.0.0.1" + port: http.StatusSeeOther, "localhost" + port: http.StatusSeeOther,
		"evil.example": http.StatusMisdirectedRequest, "evil.example" + port: http.StatusMisdirectedRequest, "127.0.0.1": http.StatusMisdirectedRequest,
		"127.0.0.1" + port + ".evil.example": http.StatusMisdirectedRequest, "127.0.0.2" + port: http.StatusMisdirectedRequest,
	} {
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		if res, _ := s.ask(client, http.MethodGet, s.link, func(r *http.Request) { r.Host = host }); res.status != want {
			t.Errorf("%s: %d, want %d", host, res.status, want)
		}
	}
}

func TestWhatIsSettledOnThePageIsInTheStore(t *testing.T) {
	f := inDoubt(t)
	settle := func(s *serving) (int, string) {
		s.ask(s.in, http.MethodGet, s.link, nil)
		address := s.home() + "operation?id=" + f.op
		_, body := s.ask(s.in, http.MethodGet, address, nil)
		form := url.Values{"outcome": {"happened"}, "why": {"seen"}, "shown": {""}}
		if m := regexp.MustCompile(`name="shown" value="([^"]+)"`).FindStringSubmatch(body); m != nil {
			form.Set("shown", m[1])
		}
		res, body := s.ask(s.in, http.MethodPost, address, func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		})
		return res.status, body
	}
	if code, body := settle(f.serve("-read-only")); code != http.StatusForbidden {
		t.Errorf("%d\n%s", code, body)
	}
	f.want(0, "in_doubt", "show", f.op)
	if code, body := settle(f.serve()); code != http.StatusOK || !strings.Contains(body, "Settled: it is done now.") {
		t.Errorf("%d\n%s", code, body)
	}
	f.want(0, "settled by      ann", "show", f.op)
	s, err := sqlitestore.Open(f.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	acts, err := s.Acts(t.Context())
	if err != nil || len(acts) != 1 || acts[0].By != "ann" || acts[0].Kind != middleware.ActHappened {
		t.Error(acts, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestDataIsOnThePageWhereItIsAskedFor(t *testing.T) {
	f := inDoubt(t)
	s := f.serve("-show-data", "-namespace", "acme", "-json")
	s.link = s.link[strings.Index(s.link, "http") : len(s.link)-len(`"}`)]
	_, body := s.ask(s.in, http.MethodGet, s.link, nil)
	if !strings.Contains(body, "namespace &#34;acme&#34;") || !strings.Contains(body, "Others in the store: 1") {
		t.Error(body)
	}
	op := regexp.MustCompile(`operation\?id=\w+`).FindString(body)
	if _, body = s.ask(s.in, http.MethodGet, s.home()+op, nil); !strings.Contains(body, secret) {
		t.Error(body)
	}
}

func TestOthersCannotReachThePage(t *testing.T) {
	f := inDoubt(t)
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0"} {
		f.want(2, "others could reach it there", "serve", "-by", "ann", "-addr", addr)
	}
	f.want(2, "say host and port", "serve", "-by", "ann", "-addr", "127.0.0.1")
	f.want(2, "say who you are", "serve")
	f.want(1, "listening on 127.0.0.1:99999", "serve", "-by", "ann", "-addr", "127.0.0.1:99999")
}
