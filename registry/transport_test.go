package registry_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// seen is a server that keeps the keys it is sent.
func seen(t *testing.T) (*httptest.Server, func() []string) {
	var keys []string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
	}))
	t.Cleanup(s.Close)
	return s, func() []string { return keys }
}

func send(ctx context.Context, t *testing.T, method, url string, change func(*http.Request)) error {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(req)
	}
	resp, err := (&http.Client{Transport: &registry.Transport{}}).Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

func attempt(n int) *registry.Attempt {
	return &registry.Attempt{Key: "k", Number: n, SendBefore: time.Now().Add(time.Hour)}
}

func TestUnsafeRequestsOfAGuardedCallCarryAKeyOfTheirOwn(t *testing.T) {
	s, keys := seen(t)
	ctx := attempt(1).Context(t.Context())
	again := attempt(2).Context(t.Context())
	set := func(r *http.Request) { r.Header.Set("Idempotency-Key", "mine") }
	for _, err := range []error{
		send(ctx, t, "POST", s.URL+"/refunds", nil),
		send(again, t, "POST", s.URL+"/refunds", nil), // another attempt: the same
		send(ctx, t, "POST", s.URL+"/refunds?x=1", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("other")) }), // not from the body
		send(ctx, t, "POST", s.URL+"/mails", nil),
		send(ctx, t, "PUT", s.URL+"/refunds", nil),
		send(ctx, t, "GET", s.URL+"/refunds", nil),
		send(ctx, t, "POST", s.URL+"/refunds", set),
		send(t.Context(), t, "POST", s.URL+"/refunds", nil), // no guarded call
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	k := keys()
	if len(k[0]) != 64 || k[0] != k[1] || k[0] != k[2] {
		t.Errorf("one request on three attempts: %q", k[:3])
	}
	if k[3] == k[0] || k[4] == k[0] || k[3] == k[4] || k[3] == "" {
		t.Errorf("other path and other method share a key: %q", k)
	}
	if k[5] != "" || k[6] != "mine" || k[7] != "" {
		t.Errorf("a GET, a header that was set, no guarded call: %q", k[5:])
	}
}

func TestNothingUnsafeIsSentAfterItsTimeOrTheKeyWindow(t *testing.T) {
	s, keys := seen(t)
	past, future := time.Now().Add(-time.Second), time.Now().Add(time.Hour)
	for _, c := range []struct {
		name     string
		attempt  *registry.Attempt
		before   bool // an unsafe request has gone out before
		window   bool
		noEffect bool
	}{
		{"late, first attempt", &registry.Attempt{Key: "k", Number: 1, SendBefore: past}, false, false, true},
		{"late, second attempt", &registry.Attempt{Key: "k", Number: 2, SendBefore: past}, false, false, false},
		{"window over", &registry.Attempt{Key: "k", Number: 1, SendBefore: future, WindowEnd: past}, false, true, true},
		{"late after a first request", attempt(1), true, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := c.attempt.Context(t.Context())
			if c.before {
				if err := send(ctx, t, "POST", s.URL, nil); err != nil {
					t.Fatal(err)
				}
				c.attempt.SendBefore = past
			}
			n := len(keys())
			err := send(ctx, t, "POST", s.URL, nil)
			var not *registry.NotSentError
			if !errors.As(err, &not) || not.KeyWindow != c.window || registry.HasNoEffect(err) != c.noEffect {
				t.Errorf("error %v, window %v, no effect %v", err, not != nil && not.KeyWindow, registry.HasNoEffect(err))
			}
			if len(keys()) != n {
				t.Error("it was sent")
			}
			if err := send(ctx, t, "GET", s.URL, nil); err != nil {
				t.Errorf("a GET is refused: %v", err)
			}
		})
	}
}

func TestTheHTTPClientDoesNotSendAStampedRequestAgainByItself(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	var posts atomic.Int32
	go func() { // carries the second request of a connection out and drops the connection
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				buf := make([]byte, 4096)
				for n := 0; ; n++ {
					if _, err := conn.Read(buf); err != nil {
						return
					}
					posts.Add(1)
					if n > 0 {
						return
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}()
		}
	}()
	client := &http.Client{Transport: &registry.Transport{Base: &http.Transport{}}}
	do := func() error {
		ctx := attempt(1).Context(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "POST", "http://"+ln.Addr().String(), strings.NewReader("{}"))
		resp, err := client.Do(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		return err
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if err := do(); err == nil {
		t.Error("the broken connection was not told")
	}
	if n := posts.Load(); n != 2 {
		t.Errorf("the server carried out %d requests of 2", n)
	}
}

func TestKeysAreTheSameOnEveryAttemptAndDifferByPart(t *testing.T) {
	ctx := attempt(1).Context(t.Context())
	if k := registry.IdempotencyKey(ctx); k != "k" {
		t.Errorf("key %q", k)
	}
	a, b, ab := registry.IdempotencyKey(ctx, "a"), registry.IdempotencyKey(ctx, "b"), registry.IdempotencyKey(ctx, "a", "b")
	if a == b || a == ab || len(a) != 64 || a != registry.IdempotencyKey(ctx, "a") {
		t.Errorf("parts: %q %q %q", a, b, ab)
	}
	if k := registry.IdempotencyKey(t.Context(), "a"); k != "" {
		t.Errorf("outside a guarded call: %q", k)
	}
	const golden = "8747006a71e264c02d4833188f0cbeab1c2b12fb251b110dc7e381f8a43e50f8"
	if k := registry.DownstreamKey("acme", "id", 1); k != golden {
		t.Errorf("the key of a known operation has changed: %s", k)
	}
	if registry.DownstreamKey("ac", "meid", 1) == registry.DownstreamKey("acme", "id", 1) {
		t.Error("namespace and identity run together")
	}
}
