package registry

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Transport is an http.RoundTripper for the clients that handlers use. Inside a guarded call it stamps an
// Idempotency-Key header on unsafe methods, derived from the operation's key, the method, the host and the path, and
// refuses to send after the attempt's time or the provider's key window is over, with a *NotSentError. A header that is
// set is left alone. Two requests of one handler to the same path share a key: set the header yourself, from
// IdempotencyKey(ctx, "part"), where both are meant. Outside a guarded call it changes nothing.
type Transport struct {
	// Base sends the request. nil: http.DefaultTransport.
	Base http.RoundTripper
}

// NotSentError says that Transport did not send a request because its time was over.
type NotSentError struct {
	// Over is when the time was over.
	Over time.Time
	// KeyWindow: it was the provider's key window, not the attempt's own time.
	KeyWindow bool

	noEffect bool
}

func (e *NotSentError) Error() string {
	what := "the attempt's time"
	if e.KeyWindow {
		what = "the provider's key window"
	}
	return fmt.Sprintf("registry: request not sent: %s was over at %s", what, e.Over.UTC().Format(time.RFC3339))
}

// NoEffect is true on the first attempt of a claim if no unsafe request of it has gone out before.
func (e *NotSentError) NoEffect() bool { return e.noEffect }

// RoundTrip sends the request.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	a := attemptOf(req.Context())
	if a == nil || safe(req.Method) {
		return base.RoundTrip(req)
	}
	now := time.Now()
	over, window := a.SendBefore, false
	if !a.WindowEnd.IsZero() && a.WindowEnd.Before(over) {
		over, window = a.WindowEnd, true
	}
	if !over.IsZero() && !now.Before(over) {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, &NotSentError{Over: over, KeyWindow: window, noEffect: a.Number == 1 && !a.sent.Load()}
	}
	a.sent.Store(true)
	return base.RoundTrip(stamped(req, a))
}

// stamped is the request with its key. The header's name is written in lower case on purpose (names of headers are
// case-insensitive): under the canonical name net/http would take the request for one that it may send again by itself
// after a broken connection, which a provider that does not honour the key would carry out twice.
func stamped(req *http.Request, a *Attempt) *http.Request {
	if a.Key == "" || req.Header.Get("Idempotency-Key") != "" {
		return req
	}
	r := req.Clone(req.Context())
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header[strings.ToLower("Idempotency-Key")] = []string{derive(a.Key, "request", req.Method, req.URL.Host, req.URL.Path)}
	return r
}

func safe(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
