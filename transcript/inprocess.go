package transcript

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Client returns an HTTP client whose every request, whatever its host, is
// answered by s in this process, without a socket: for tests inside
// testing/synctest and for fast ones. Streams arrive as they are written, and a
// dropped connection is an error as on a network.
//
// An answer's body must be read to its end or closed, as with any client.
func (s *Server) Client() *http.Client {
	return &http.Client{Transport: inProcess{s}}
}

type inProcess struct{ handler http.Handler }

// RoundTrip runs the handler in a goroutine that ends with the response's body.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	in := r.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	body, pw := io.Pipe()
	w := &pipeWriter{header: http.Header{}, body: pw, started: make(chan struct{}), failed: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { pw.CloseWithError(context.Cause(ctx)) })
	go func() {
		defer stop()
		w.run(t.handler, in)
	}()
	select {
	case <-w.started:
		return w.response(r, body), nil
	case <-w.failed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// pipeWriter is a ResponseWriter whose body is a pipe.
type pipeWriter struct {
	header  http.Header
	body    *io.PipeWriter
	once    sync.Once
	started chan struct{} // closed with the header sent
	failed  chan struct{} // closed if the handler broke off before that

	status int
	sent   http.Header
}

// run serves one request. A handler that panics with http.ErrAbortHandler, or
// leaves by runtime.Goexit as a failing test does, breaks the connection.
func (w *pipeWriter) run(h http.Handler, r *http.Request) {
	finished := false
	defer func() {
		_ = r.Body.Close()
		p := recover()
		if err, ok := p.(error); p != nil && (!ok || !errors.Is(err, http.ErrAbortHandler)) {
			panic(p)
		}
		if finished {
			w.WriteHeader(http.StatusOK) // for a handler that wrote nothing
			_ = w.body.Close()
			return
		}
		w.body.CloseWithError(io.ErrUnexpectedEOF)
		w.once.Do(func() { close(w.failed) })
	}()
	h.ServeHTTP(w, r)
	finished = true
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.started)
	})
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush does nothing: a pipe holds nothing back.
func (w *pipeWriter) Flush() {}

func (w *pipeWriter) response(r *http.Request, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status:     fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)),
		StatusCode: w.status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: body, ContentLength: -1, Request: r,
	}
}
