package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
	"github.com/toolonce/toolonce/transcript"
)

// Where a program is killed, in the order of a run.
const (
	asked1   = "the model is asked"
	reading  = "the first answer is stored, and its read is under way"
	half2    = "half of the second answer has come"
	checking = "the second answer is stored, and its check is under way"
	arrived  = "the provider has the request, and has not moved the money"
	paid     = "the provider has moved the money"
	asked3   = "the result is saved, and the model is asked for the last answer"
	half3    = "half of the last answer has come"
	printed  = "the last answer is stored and printed"
)

// form is one of the four ways to ask a model.
type form struct {
	api    string
	stream bool
}

var forms = []form{{chatAPI, false}, {chatAPI, true}, {responsesAPI, false}, {responsesAPI, true}}

func (f form) String() string { return options{api: f.api, stream: f.stream}.wire() }

// args are the flags.
func (f form) args() []string {
	if f.stream {
		return []string{"-api", f.api, "-stream"}
	}
	return []string{"-api", f.api}
}

// world is what lives on when the program is killed: the model server and the provider.
type world struct {
	t     *testing.T
	dir   string
	args  []string
	bank  *provider.Provider
	model *transcript.Server

	mu    sync.Mutex
	point string // where then is called, once; "" for nowhere
	then  func()
	looks int
}

func newWorld(t *testing.T, f form, kind provider.Kind) *world {
	w := &world{t: t, dir: t.TempDir()}
	var err error
	w.bank, err = provider.Open(t.Context(), filepath.Join(w.dir, providerFile), provider.Options{
		Kind: kind, Committed: func(_ context.Context, _ string) { w.at(paid) },
	})
	if err == nil {
		err = w.bank.AddOrder(t.Context(), "1001", 12900)
	}
	if err != nil {
		t.Fatal(err)
	}
	said := script(nil)
	w.model = transcript.NewServer(func(r transcript.Request) transcript.Step {
		w.at(map[int]string{1: asked1, 3: asked3}[r.Turn])
		return said(r)
	}, nil)
	pay, model := httptest.NewServer(http.HandlerFunc(w.pay)), httptest.NewServer(http.HandlerFunc(w.ask))
	t.Cleanup(func() {
		pay.Close()
		model.Close()
		if err := w.bank.Close(); err != nil {
			t.Error(err)
		}
	})
	w.args = append(f.args(), "-provider", string(kind), "-base-url", model.URL+"/v1", "-provider-url", pay.URL)
	return w
}

// at is called at a point of the run. It tells whether that was the one waited for.
func (w *world) at(point string) bool {
	w.mu.Lock()
	then, here := w.then, point != "" && point == w.point
	if here {
		w.point = ""
	}
	w.mu.Unlock()
	if here {
		then()
	}
	return here
}

// when has something happen at a point of the run, while the program waits for an answer.
func (w *world) when(point string, then func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.point, w.then = point, then
}

func (w *world) pay(rw http.ResponseWriter, r *http.Request) {
	point := arrived
	if r.Method == http.MethodGet {
		point = ""
		if strings.HasPrefix(r.URL.Path, "/orders/") {
			point = map[int]string{1: reading, 2: checking}[w.looked()]
		}
	}
	if !w.at(point) { // else what was asked for is lost
		w.bank.ServeHTTP(rw, r)
	}
}

// looked counts the questions about the order: the first is the model's, the second that of the refund's check.
func (w *world) looked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	return w.looks
}

// ask answers as the model.
func (w *world) ask(rw http.ResponseWriter, r *http.Request) {
	w.model.ServeHTTP(&pieces{ResponseWriter: rw, sent: func(piece []byte) {
		switch {
		case bytes.Contains(piece, []byte("call_1001_2")):
			w.at(half2)
		case bytes.Contains(piece, []byte("Order 10")):
			w.at(half3)
		}
	}}, r)
}

// pieces is a stream of which each piece is told once it is sent.
type pieces struct {
	http.ResponseWriter
	last []byte
	sent func(piece []byte)
}

func (p *pieces) Write(b []byte) (int, error) {
	p.last = bytes.Clone(b)
	return p.ResponseWriter.Write(b)
}

func (p *pieces) Flush() {
	p.ResponseWriter.(http.Flusher).Flush()
	p.sent(p.last)
}

// turns are the answers that the model was asked for, over all processes.
func (w *world) turns() []int {
	var turns []int
	for _, r := range w.model.Requests() {
		turns = append(turns, r.Turn)
	}
	return turns
}

func (w *world) program(run string) *exec.Cmd {
	return program(w.t, w.dir, nil, slices.Concat(w.args, []string{"-run", run, broken})...)
}

// kill runs the program and kills it at a point.
func (w *world) kill(run, point string) {
	w.t.Helper()
	cmd, started, ended := w.program(run), make(chan struct{}), make(chan struct{})
	w.when(point, func() {
		<-started
		_ = cmd.Process.Kill() // its state tells below
		<-ended
	})
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	close(started)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if point == printed && strings.HasPrefix(lines.Text(), "Order 1001: ") {
			_ = cmd.Process.Kill() // it may have come to its end by itself
		}
	}
	_ = cmd.Wait()
	close(ended)
	if point != printed && cmd.ProcessState.Exited() {
		w.t.Fatalf("not killed where %s: exit code %d", point, cmd.ProcessState.ExitCode())
	}
}

func (w *world) refunds() int {
	w.t.Helper()
	tally, err := w.bank.Count(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return len(tally.Refunds["1001"])
}

// timePasses lets the deadlines of all attempts be over.
func (w *world) timePasses() {
	w.t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(w.dir, onceFile))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(w.t.Context(), "UPDATE operations SET deadline = 1"); err != nil {
		w.t.Fatal(err)
	}
}
