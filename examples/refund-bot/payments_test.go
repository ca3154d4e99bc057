package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// answering is a provider that always answers the same.
func answering(t *testing.T, status int, body string) *payments {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return newPayments(s.URL)
}

// gone is a provider that does not run.
func gone() *payments { return newPayments("http://127.0.0.1:1") }

var ten = RefundInput{OrderID: "1001", Cents: 1000}

func TestOnlyProofIsMarkedAsNoEffect(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server see that the client has gone
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	late := newPayments(silent.URL)
	late.http.Timeout = time.Millisecond
	for name, c := range map[string]struct {
		pay  *payments
		mark bool
	}{
		"connection refused": {gone(), true},
		"400":                {answering(t, 400, `{"error":"x"}`), true},
		"404":                {answering(t, 404, `{"error":"x"}`), true},
		"422":                {answering(t, 422, `{"error":"x"}`), true},
		"409":                {answering(t, 409, `{"error":"a request with this key is under way"}`), false},
		"500":                {answering(t, 500, ``), false},
		"no JSON":            {answering(t, 200, `<html>`), false},
		"timeout":            {late, false},
	} {
		_, err := c.pay.refund(t.Context(), ten)
		if err == nil || registry.HasNoEffect(err) != c.mark {
			t.Errorf("%s: NoEffect %t, want %t: %v", name, !c.mark, c.mark, err)
		}
	}
}

func TestALookupSaysSurelyNotOnlyWhereTheProviderSaysSo(t *testing.T) {
	for name, c := range map[string]struct {
		pay  *payments
		id   string
		mark bool
	}{
		"found":          {answering(t, 200, `[{"id":"re_1","cents":1000}]`), "re_1", false},
		"none":           {answering(t, 200, `[]`), "", true},
		"another amount": {answering(t, 200, `[{"id":"re_1","cents":999}]`), "", false},
		"two":            {answering(t, 200, `[{"id":"re_1","cents":1000},{"id":"re_2","cents":1000}]`), "", false},
		"down":           {gone(), "", false},
		"404":            {answering(t, 404, `{}`), "", false},
	} {
		got, err := c.pay.findRefund(t.Context(), ten)
		if got.ID != c.id || (err == nil) != (c.id != "") || registry.HasNoEffect(err) != c.mark {
			t.Errorf("%s: %+v, NoEffect %t, %v", name, got, registry.HasNoEffect(err), err)
		}
	}
}

func TestMayRefund(t *testing.T) {
	for name, c := range map[string]struct {
		pay *payments
		ok  bool
	}{
		"paid more":   {answering(t, 200, `{"order_id":"1001","cents":1001}`), true},
		"paid less":   {answering(t, 200, `{"order_id":"1001","cents":999}`), false},
		"unknown":     {answering(t, 404, `{"error":"there is no such order"}`), false},
		"unreachable": {gone(), false},
	} {
		if err := c.pay.mayRefund(t.Context(), ten); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestErrorsHoldNoArguments(t *testing.T) {
	_, err := gone().refund(t.Context(), RefundInput{OrderID: "secret-77", Cents: 1})
	if err == nil || err.Error() != "asking the payment provider: dial tcp 127.0.0.1:1: connect: connection refused" {
		t.Error(err)
	}
	if _, err = answering(t, 500, "").order(t.Context(), OrderInput{OrderID: "secret-77"}); err == nil || err.Error() != "the payment provider answered 500: " {
		t.Error(err)
	}
	if _, ok := errors.AsType[*refusal](err); !ok {
		t.Errorf("%T", err)
	}
}
