package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// clientTimeout is how long the tools wait for the provider. One that answers later may have moved the money or not.
const clientTimeout = time.Second

// payments is the provider as the tools see it.
type payments struct {
	base string
	http *http.Client
}

// newPayments uses registry.Transport, which stamps the key of a guarded call on what is sent and sends nothing after the
// call's time.
func newPayments(base string) *payments {
	return &payments{strings.TrimSuffix(base, "/"), &http.Client{Timeout: clientTimeout, Transport: &registry.Transport{}}}
}

// post asks for an effect. What surely had none is marked by NoEffect: a connection that was refused, an answer that says
// so. Any other error may mean that the money has moved.
func (p *payments) post(ctx context.Context, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return registry.NoEffect(err)
	}
	err = p.send(ctx, http.MethodPost, path, body, out)
	if nothingHappened(err) {
		return registry.NoEffect(err)
	}
	return err
}

// get reads. Its errors are never marked: that a question did not arrive says nothing about what happened before.
func (p *payments) get(ctx context.Context, path string, out any) error {
	return p.send(ctx, http.MethodGet, path, nil, out)
}

func (p *payments) send(ctx context.Context, method, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, p.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.http.Do(req)
	if u, ok := errors.AsType[*url.Error](err); ok {
		if u.Timeout() {
			return fmt.Errorf("no answer from the payment provider within %v", clientTimeout)
		}
		err = u.Err // without the address
	}
	if err != nil {
		return fmt.Errorf("asking the payment provider: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("the payment provider's answer broke off: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return newRefusal(resp.StatusCode, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("the payment provider's answer is no JSON: %w", err)
	}
	return nil
}

func nothingHappened(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	r, ok := errors.AsType[*refusal](err)
	return ok && (r.status == http.StatusBadRequest || r.status == http.StatusNotFound || r.status == http.StatusUnprocessableEntity)
}

// refusal is an answer other than 200.
type refusal struct {
	status int
	text   string
}

func newRefusal(status int, body []byte) *refusal {
	var said struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(body, &said) // the status says enough
	return &refusal{status, said.Error}
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the payment provider answered %d: %s", r.status, r.text)
}
