package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// TB is what [Serve] needs of a *testing.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Cleanup(f func())
}

// Serve answers from a file that [Record] has written, or from saved runs as [Read] takes them, each step once. It fails
// the test where a request is sent that the file has no step for, with what differs from the nearest step that is left, and
// at the test's end where steps were not asked for; what cannot be read fails it too. Give the client the server's
// [Server.Client].
//
// A recorded step serves the request with the same body, and its failed attempts are repeated: an error status, a
// connection that broke off. redact is what [RecordOptions] had, so that what is sent is compared with what was written. A
// saved run's step serves the request whose history is the one before it, on either API.
func Serve(t TB, file string, redact ...func(*Exchange)) *Server {
	t.Helper()
	s := &serving{t: t, file: file, redact: redact}
	if err := s.load(); err != nil {
		t.Errorf("%v", err)
	}
	t.Cleanup(s.unused)
	return NewServer(s.answer, &Options{Lenient: true}) // requests are compared, which says more
}

// serving is a file being answered from.
type serving struct {
	t      TB
	file   string
	redact []func(*Exchange)

	mu    sync.Mutex
	steps []savedStep // those left
}

// savedStep is one answer and the request that gets it.
type savedStep struct {
	name string // where it is
	body bool   // what is wanted is a request's body, which is another in the other API
	want any    // as decoded JSON: that body, or for either API the history
	step Step
}

// load reads the steps. A line that cannot be read does not hide the others.
func (s *serving) load() error {
	f, err := os.Open(s.file)
	if err != nil {
		return fmt.Errorf("transcript: serving from %q: %w", s.file, err)
	}
	defer func() { _ = f.Close() }() // only read from
	var errs []error
	in := &source{name: s.file, exchange: s.addExchange, yield: func(run Run, err error) bool {
		if err != nil {
			errs = append(errs, err)
		} else {
			s.addRun(run)
		}
		return true
	}}
	in.read(f)
	return errors.Join(errs...)
}

// exchangeOf reads a line that Record has written.
func exchangeOf(raw []byte) (x Exchange, ok bool) {
	err := json.Unmarshal(raw, &x)
	return x, err == nil && x.API != "" && x.Request != nil
}

// addExchange makes a step of a recorded attempt.
func (s *serving) addExchange(x Exchange, where string) {
	step := Step{Raw: x.Response}
	switch {
	case x.Status == 0:
		step.Faults = []Fault{{Times: -1, Drop: true}}
	case x.Status >= http.StatusBadRequest:
		var e struct {
			Error struct{ Message, Code string }
		}
		_ = json.Unmarshal([]byte(x.Response), &e) // another body has no message
		// The SDK tries again at once: a test does not wait.
		step.Faults = []Fault{{Times: -1, Status: x.Status, Message: e.Error.Message, Code: e.Error.Code, RetryAfter: time.Millisecond}}
	case !x.Complete:
		step.Faults = []Fault{{Times: -1, Drop: true, After: len(x.Response)}}
	}
	s.steps = append(s.steps, savedStep{name: where, body: true, want: decoded(x.Request), step: step})
}

// addRun makes a step of each answer of a saved run.
func (s *serving) addRun(run Run) {
	turn := 0
	for i, m := range run.Messages {
		if m.Role != "assistant" {
			continue
		}
		turn++
		step := Step{Text: m.Content, Calls: m.ToolCalls}
		if step.empty() {
			step.FinishReason = "stop"
		}
		name := fmt.Sprintf("run %s turn %d", run.ID, turn)
		s.steps = append(s.steps, savedStep{name: name, want: plainHistory(run.Messages[:i]), step: step})
	}
}

// answer is the script.
func (s *serving) answer(r Request) Step {
	x := Exchange{API: r.API, Path: r.Path, Attempt: r.Attempt, Request: r.Body}
	for _, f := range s.redact {
		f(&x)
	}
	body, history := decoded(x.Request), plainHistory(r.Messages)
	s.mu.Lock()
	defer s.mu.Unlock()
	var nearest []string
	which := ""
	for i, step := range s.steps {
		sent := history
		if step.body {
			sent = body
		}
		d := differences("", step.want, sent)
		if len(d) == 0 {
			s.steps = append(s.steps[:i:i], s.steps[i+1:]...)
			return step.step
		}
		if which == "" || len(d) < len(nearest) {
			nearest, which = d, step.name
		}
	}
	if which == "" {
		s.t.Errorf("transcript: %s: every step was asked for before; sent once more: turn %d of the conversation that begins %q",
			s.file, r.Turn, shorten(r.FirstUser(), 80))
		return Step{}
	}
	s.t.Errorf("transcript: %s: no step for turn %d of what was sent; it differs from the nearest, %s:\n\t%s",
		s.file, r.Turn, which, strings.Join(nearest[:min(len(nearest), maxDifferences)], "\n\t"))
	return Step{}
}

// unused tells of steps that were not asked for.
func (s *serving) unused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.steps) > 0 {
		s.t.Errorf("transcript: %s: %d steps were not asked for, the first is %s", s.file, len(s.steps), s.steps[0].name)
	}
}
