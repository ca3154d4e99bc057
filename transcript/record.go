package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/openai/openai-go/v3/option"
)

// Exchange is one attempt at a request and what came of it: a line of JSON in a recorded file. It has no header but those
// named here.
type Exchange struct {
	// At is when the request was sent.
	At time.Time `json:"at"`
	// API is "chat" or "responses", Path the URL's path.
	API  string `json:"api"`
	Path string `json:"path"`
	// Attempt counts the SDK's attempts at a request, from 1.
	Attempt int `json:"attempt"`
	// Request is the body sent.
	Request json.RawMessage `json:"request"`
	// Status is the HTTP status, 0 where there was no answer.
	Status int `json:"status"`
	// RequestID is the server's X-Request-Id.
	RequestID string `json:"request_id,omitempty"`
	// Stream tells that the answer came as server sent events.
	Stream bool `json:"stream,omitempty"`
	// Response is the body of the answer, as far as it was read, byte for byte.
	Response string `json:"response"`
	// Complete tells that the answer came with its end mark: all of a JSON body, or of a stream [DONE], a finish_reason and
	// the end, or a response.completed, incomplete or failed.
	Complete bool `json:"complete"`
}

// RecordOptions adjust [Record]. nil and the zero value work.
type RecordOptions struct {
	// Redact changes an exchange before it is written: customers' names, tool outputs. It may be called by several
	// goroutines at once.
	Redact func(*Exchange)
	// OnError is told what could not be recorded; the request itself is not disturbed. nil: a warning by slog.Default().
	OnError func(error)
}

// Record has a client append its exchanges of both APIs to the file at path, a line an attempt, written when its answer has
// been read or closed. Requests and answers go through unchanged. Give it as the last option of openai.NewClient, so that
// it sees what is sent:
//
//	client := openai.NewClient(transcript.Record("session.jsonl", nil))
//
// The file is made with mode 0600, and an existing one is set to it: it holds what users said. No header is recorded, and
// what was sent as a key or cookie is replaced by [secret] wherever an answer echoes it. Several clients and processes may
// append to one file. An exchange of more than 64 MiB is recorded without its answer, as not complete. Responses over
// WebSocket are not seen. [Serve] answers from the file.
func Record(path string, opts *RecordOptions) option.RequestOption {
	r := &recorder{path: path}
	if opts != nil {
		r.RecordOptions = *opts
	}
	if r.OnError == nil {
		r.OnError = func(err error) { slog.Default().Warn("transcript: an exchange was not recorded", "error", err) }
	}
	return option.WithMiddleware(r.record)
}

// maxError bounds what is read of an error that nobody reads, in bytes.
const maxError = 1 << 20

type recorder struct {
	RecordOptions
	path string
	mu   sync.Mutex // one line at a time
}

func (r *recorder) record(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	api := apiOf(req.URL.Path)
	if api == "" || req.Method != http.MethodPost || req.Body == nil {
		return next(req)
	}
	body, err := io.ReadAll(req.Body)
	if err := errors.Join(err, req.Body.Close()); err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	retries, err := strconv.Atoi(req.Header.Get("X-Stainless-Retry-Count"))
	if err != nil {
		retries = 0
	}
	x := &Exchange{At: time.Now().UTC(), API: api, Path: req.URL.Path, Attempt: retries + 1, Request: body}
	if !json.Valid(body) {
		x.Request = encode(string(body))
	}
	secrets := secretsOf(req.Header)
	res, err := next(req)
	if err != nil || res == nil {
		r.write(x, secrets)
		return res, err
	}
	x.Status, x.RequestID = res.StatusCode, res.Header.Get("X-Request-Id")
	x.Stream = strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream")
	for _, c := range res.Cookies() {
		secrets = append(secrets, c.Value)
	}
	res.Body = &recording{ReadCloser: res.Body, drain: res.StatusCode >= http.StatusBadRequest, done: func(read []byte, ended bool) {
		x.Response, x.Complete = string(read), whole(x, read, ended)
		r.write(x, secrets)
	}}
	return res, nil
}

// secretsOf are the keys and cookies of a request.
func secretsOf(h http.Header) []string {
	var all []string
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Api-Key", "X-Api-Key"} {
		for _, v := range h.Values(name) {
			_, token, ok := strings.Cut(v, " ") // Bearer, Basic
			if !ok {
				token = v
			}
			all = append(all, token)
		}
	}
	for _, c := range (&http.Request{Header: h}).Cookies() {
		all = append(all, c.Value)
	}
	return all
}

// whole tells whether an answer has its end mark.
func whole(x *Exchange, read []byte, ended bool) bool {
	if !x.Stream {
		return ended && (json.Valid(read) || x.Status >= http.StatusBadRequest)
	}
	finished := false
	for line := range bytes.Lines(read) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if !ok {
			continue
		}
		if string(bytes.TrimSpace(data)) == "[DONE]" {
			return true
		}
		var event struct {
			Type    string
			Choices []struct {
				FinishReason string `json:"finish_reason"`
			}
		}
		if json.Unmarshal(data, &event) != nil {
			continue
		}
		if slices.Contains([]string{"response.completed", "response.incomplete", "response.failed"}, event.Type) {
			return true
		}
		for _, c := range event.Choices {
			finished = finished || c.FinishReason != ""
		}
	}
	return finished && ended // servers that send no [DONE]
}

// write appends a line.
func (r *recorder) write(x *Exchange, secrets []string) {
	if r.Redact != nil {
		r.Redact(x)
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	err := enc.Encode(x)
	if err == nil && line.Len() > maxRun {
		x.Response, x.Complete = "", false
		line.Reset()
		err = enc.Encode(x)
	}
	if err == nil {
		err = r.append(hide(line.Bytes(), secrets))
	}
	if err != nil {
		r.OnError(fmt.Errorf("transcript: recording to %q: %w", r.path, err))
	}
}

// hide replaces secrets. Shorter ones are no keys, and would tear words apart.
func hide(line []byte, secrets []string) []byte {
	for _, s := range secrets {
		if len(s) >= 8 {
			line = bytes.ReplaceAll(line, []byte(s), []byte("[secret]"))
		}
	}
	return line
}

func (r *recorder) append(line []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	const mode = 0o600
	f, err := os.OpenFile(r.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	err = f.Chmod(mode)
	if err == nil {
		_, err = f.Write(line)
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// recording keeps what is read of a body, up to a line's limit, and tells it once.
type recording struct {
	io.ReadCloser
	read  []byte
	long  bool
	drain bool // read the rest when it is closed: the SDK does not look at errors that it retries
	told  sync.Once
	done  func(read []byte, ended bool)
}

func (b *recording) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.long = b.long || len(b.read)+n > maxRun; b.long {
		b.read = nil
	} else {
		b.read = append(b.read, p[:n]...)
	}
	if err != nil {
		b.tell(errors.Is(err, io.EOF))
	}
	return n, err
}

func (b *recording) Close() error {
	if b.drain {
		_, _ = io.CopyN(io.Discard, b, maxError) // what cannot be read is not complete
	}
	b.tell(false)
	return b.ReadCloser.Close()
}

func (b *recording) tell(ended bool) {
	b.told.Do(func() { b.done(b.read, ended && !b.long) })
}
