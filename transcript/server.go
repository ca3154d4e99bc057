package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 64 << 20

// Options change what a [Server] checks. The zero value checks everything.
type Options struct {
	// Lenient switches all checks off: whatever is JSON is answered.
	Lenient bool
	// RepeatedIDs accepts a call id that an earlier turn of the history used
	// for another call. OpenAI's own server does; others refuse it, and so does
	// this one by default. Twice in one turn is refused always.
	RepeatedIDs bool
	// NoParallel names further models, or Azure deployments, that refuse the
	// parameter parallel_tool_calls; "*" at the end stands for any rest. The
	// built-in ones are o1*, o3* and o4-mini*.
	NoParallel []string
}

// Server is a scripted model server: an [http.Handler] for
// POST …/chat/completions and POST …/responses under any prefix, such as /v1 or
// /openai/deployments/NAME, with a JSON answer or, for "stream": true, server
// sent events. Anything else is 404. It wants an API key, any, as
// "Authorization: Bearer KEY" or "Api-Key: KEY".
//
// Before the script is asked, the request is checked and refused with 400 where
// the API would. Where the two APIs or several servers differ, the stricter one
// is the model. Ids, times and token counts in answers depend on nothing but the
// request, so that equal requests get equal answers.
//
// A Server is safe for concurrent use, as far as its script is. It remembers
// every request and stored response for as long as it lives.
type Server struct {
	script Script
	opts   Options

	mu       sync.Mutex
	requests []Request
	attempts map[string]int
	stored   map[string][]json.RawMessage // response id to its history and output
}

// NewServer returns a server that answers by script. Nil opts are the zero
// Options.
func NewServer(script Script, opts *Options) *Server {
	s := &Server{script: script, attempts: map[string]int{}, stored: map[string][]json.RawMessage{}}
	if opts != nil {
		s.opts = *opts
	}
	return s
}

// Requests are the requests received so far, refused ones too, in the order of
// their arrival. The caller must not change what they point to.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return // the client has gone
	}
	x := &exchange{
		opts: s.opts,
		Request: Request{
			API: apiOf(r.URL.Path), Path: r.URL.Path, Header: r.Header.Clone(), Body: body, Turn: 1,
		},
	}
	x.Attempt = s.attempt(r, body)
	refused := x.check(r.Method, s.history)
	n := s.journal(x.Request)
	if refused != nil {
		s.note(n, refused.status, refused.Message)
		refused.send(w)
		return
	}
	step := s.script(x.Request)
	if step.empty() {
		e := unscripted(x.Request)
		s.note(n, e.status, e.Message)
		e.send(w)
		return
	}
	x.answer(w, r, faultFor(step.Faults, x.Attempt), step, func(status int) { s.note(n, status, "") }, s.keep)
}

// apiOf tells the API by the end of the path.
func apiOf(path string) string {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return "chat"
	case strings.HasSuffix(path, "/responses"):
		return "responses"
	}
	return ""
}

// attempt counts equal requests.
func (s *Server) attempt(r *http.Request, body []byte) int {
	h := sha256.New()
	for _, part := range []string{r.Header.Get("Authorization"), r.Header.Get("Api-Key"), r.URL.Path, string(body)} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	key := hex.EncodeToString(h.Sum(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[key]++
	return s.attempts[key]
}

// journal enters a request and returns its index.
func (s *Server) journal(r Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	return len(s.requests) - 1
}

// note enters what a request was answered with.
func (s *Server) note(n, status int, refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[n].Status, s.requests[n].Refusal = status, refusal
}

// history is what a previous_response_id stands for.
func (s *Server) history(id string) ([]json.RawMessage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items, ok := s.stored[id]
	return items, ok
}

// keep remembers a response for a later previous_response_id.
func (s *Server) keep(id string, items []json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored[id] = items
}
