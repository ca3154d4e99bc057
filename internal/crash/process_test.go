//go:build unix && cgo

package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// patience is how long anything may take before a process counts as hanging.
const patience = 30 * time.Second

// process is one that works on the story's store. It has a server of its own, so that what it has sent has either arrived
// or never will once that is closed.
type process struct {
	s        *story
	name     string
	cmd      *exec.Cmd
	out      bytes.Buffer // read once it has ended
	server   *httptest.Server
	events   chan event
	commands chan command
	ended    chan struct{}
	released chan struct{} // what is held goes on
	landing  sync.Once

	mu   sync.Mutex
	stop string    // where it is to be held
	lock io.Closer // of the store
}

// event is what a process does: "next" when it wants a command, "begun", "waits", or "here" where it is to stop.
type event struct {
	what string
	said report
}

var errHangs = errors.New("nothing has happened for " + patience.String())

// start starts a process. Its first event is a "next", before it has opened the store.
func (s *story) start(ctx context.Context) (*process, error) {
	p := &process{
		s: s, name: fmt.Sprintf("p%d", len(s.processes)+1), events: make(chan event, 16), commands: make(chan command),
		ended: make(chan struct{}), released: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /control/{what}", p.control)
	mux.HandleFunc("POST /refunds", p.refund)
	mux.HandleFunc("GET /refunds", p.refunds)
	mux.Handle("/"+p.name+"/v1/", s.model)
	p.server = httptest.NewServer(mux)
	text, err := json.Marshal(job{DB: fmt.Sprint(s.db), Name: p.name, URL: p.server.URL, Model: p.server.URL + "/" + p.name + "/v1", setting: s.setting})
	if err != nil {
		return nil, err
	}
	p.cmd = exec.CommandContext(ctx, os.Args[0])
	p.cmd.Env = append(os.Environ(), jobEnv+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.processes = append(s.processes, p)
	s.mu.Unlock()
	go func() {
		_ = p.cmd.Wait() // how it ended is asked where that matters
		close(p.ended)
	}()
	_, err = p.await("next")
	return p, err
}

// opened starts a process and waits until it has opened the store.
func (s *story) opened(ctx context.Context) (*process, error) {
	p, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	p.tell(command{})
	if _, err = p.await("next"); err == nil {
		err = s.db.opened(ctx, p.name)
	}
	return p, err
}

// await waits for one of some events, and drops others.
func (p *process) await(what ...string) (event, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case e := <-p.events:
			if slices.Contains(what, e.what) {
				return e, nil
			}
			if e.what == "next" || e.what == "here" {
				return e, fmt.Errorf("process %s has not come to %q: %+v", p.name, what, e.said)
			}
		case <-p.ended:
			return event{}, fmt.Errorf("process %s has ended before %q: %s\n%s", p.name, what, p.cmd.ProcessState, p.out.String())
		case <-timer.C:
			return event{}, fmt.Errorf("process %s: %w", p.name, errHangs)
		}
	}
}

// tell gives the process a command, which it waits for.
func (p *process) tell(c command) {
	p.mu.Lock()
	p.stop = c.At
	p.mu.Unlock()
	select {
	case p.commands <- c:
	case <-p.ended:
	}
}

// do has the process do a run to its end.
func (p *process) do(run string) (report, error) {
	p.tell(command{Run: run})
	e, err := p.await("next")
	return e.said, err
}

// leave ends the process as it ends by itself.
func (p *process) leave() error {
	p.tell(command{})
	select {
	case <-p.ended:
	case <-time.After(patience):
		return fmt.Errorf("process %s: %w", p.name, errHangs)
	}
	p.land()
	if !p.cmd.ProcessState.Success() {
		return fmt.Errorf("process %s has failed: %s\n%s", p.name, p.cmd.ProcessState, p.out.String())
	}
	return nil
}

// kill ends the process by SIGKILL. When it returns, all that the process has sent has arrived, but for a refund that
// lands late. It is false where the process had come to its end before.
func (p *process) kill(ctx context.Context) (bool, error) {
	open := p.s.quiet(p)
	defer open()
	_ = p.cmd.Process.Kill() // how it has ended tells
	<-p.ended
	p.mu.Lock()
	late, lock := p.stop == landsLate, p.lock
	p.mu.Unlock()
	if lock != nil {
		if err := lock.Close(); err != nil {
			return true, err
		}
	}
	if !late {
		p.land()
	}
	if err := p.s.db.ended(ctx, p.name); err != nil {
		return true, err
	}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signal() == syscall.SIGKILL {
		return true, nil
	}
	if !p.cmd.ProcessState.Success() {
		return false, fmt.Errorf("process %s has failed before it was killed: %s\n%s", p.name, p.cmd.ProcessState, p.out.String())
	}
	return false, nil
}

// land lets what is held go on, and waits until all that the process has sent has come to an end.
func (p *process) land() {
	p.landing.Do(func() {
		close(p.released)
		p.server.Close()
	})
}

// abandon ends what still runs.
func (w *world) abandon() {
	for _, p := range w.processes {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
		p.land()
	}
}

// control is what the process tells.
func (p *process) control(rw http.ResponseWriter, r *http.Request) {
	e := event{what: r.PathValue("what")}
	if err := json.NewDecoder(r.Body).Decode(&e.said); err != nil && e.what == "next" {
		return // it was killed
	}
	_, _ = io.Copy(io.Discard, r.Body) // only then does the server see its end
	if e.what == "lock" {
		if err := p.keepLock(r.Context()); err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
		}
		return
	}
	select {
	case p.events <- e:
	case <-r.Context().Done():
	}
	switch e.what {
	case "next":
		select {
		case c := <-p.commands:
			_ = json.NewEncoder(rw).Encode(c) // it may have been killed
		case <-r.Context().Done():
		}
	case "here":
		<-r.Context().Done()
	}
}

// keepLock takes a lock of the store until the process has gone.
func (p *process) keepLock(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	lock, err := p.s.db.lock(ctx, p.stop == inMaking)
	p.lock = lock
	return err
}

// hold holds a request of the process where that is to stop. It reports whether it was held.
func (p *process) hold(point string) bool {
	p.mu.Lock()
	here := p.stop == point
	p.mu.Unlock()
	if here {
		p.events <- event{what: "here"}
		<-p.released
	}
	return here
}

// refund is the provider's: it moves money, once for each key where it is keyed.
func (p *process) refund(rw http.ResponseWriter, r *http.Request) {
	var in refundInput
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return // it has not arrived whole
	}
	_, _ = io.Copy(io.Discard, r.Body)
	if p.hold(isLost) {
		return
	}
	_ = p.hold(lands) || p.hold(landsLate)
	made := p.s.pay(p.s.Kind, p.name, in.Order, r.Header.Get("Idempotency-Key"))
	p.hold(refundMade)
	_ = json.NewEncoder(rw).Encode(made) // the process may have gone
}

// refunds is the provider's list.
func (p *process) refunds(rw http.ResponseWriter, r *http.Request) {
	p.s.await(p)
	_ = json.NewEncoder(rw).Encode(p.s.paid(r.URL.Query().Get("order_id")))
}
