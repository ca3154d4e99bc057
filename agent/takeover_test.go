package agent_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// process is one of several on one store in memory.
type process struct {
	*middleware.MemoryLedger
	*journal.MemoryJournal
}

func newProcess() process { return process{middleware.Memory(), journal.Memory()} }

// Die makes the process count as gone, for whatever reason.
func (p process) Die() {
	p.MemoryLedger.Die()
	p.MemoryJournal.Die()
}

// Peer is another process.
func (p process) Peer() process { return process{p.MemoryLedger.Peer(), p.MemoryJournal.Peer()} }

// killedStore is what a process has that is killed before it can leave its run.
type killedStore struct{ agent.Store }

func (killedStore) Leave(context.Context, journal.Leaving) error { return nil }

// diesAfterItsCalls runs the first turn of a run, in a process that is killed before the next turn and stores no output.
func (f form) diesAfterItsCalls(t *testing.T, s agent.Store, tools *registry.Registry, calls ...transcript.ToolCall) {
	t.Helper()
	m := transcript.NewServer(transcript.Steps(
		transcript.Step{Calls: calls}, transcript.Step{Faults: []transcript.Fault{{Times: -1, Status: 500}}},
	), nil)
	if o := f.do(t, agent.New(onceClient(m), tools, killedStore{s}, nil), run, request); o.err == nil {
		t.Fatal("the run has not ended early")
	}
}

// endsWith is a model that asks for nothing more.
func endsWith(text string) *transcript.Server {
	return transcript.NewServer(func(transcript.Request) transcript.Step { return transcript.Step{Text: text} }, nil)
}

func wantVerdicts(t *testing.T, o outcome, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, o.verdicts()); diff != "" || o.err != nil {
		t.Errorf("%v, %s", o.err, diff)
	}
}

// A process is slow, is taken for dead while its handler runs, and another ends the run. What it knows afterwards is too
// late for the run, though not for the ledger.
func TestASlowProcessThatWasTakenForDeadStoresAndRunsNothingMore(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		m := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1001"), refundCall("call_b", "1002")}},
			transcript.Step{Text: "One of them must be looked at."},
		), nil)
		slow := newProcess()
		other := slow.Peer()
		var b bank
		var second outcome
		takeOver := func() { second = f.do(t, agent.New(onceClient(m), b.tools(), other, nil), run, request) }
		b.during = func(context.Context, refundInput) error {
			if b.total() == "1001 500" {
				slow.Die()
				takeOver()
			}
			return nil
		}
		first := f.do(t, agent.New(onceClient(m), b.tools(), slow, nil), run, request)
		wantVerdicts(t, second, "1.0 issue_refund outcome_unknown", "1.1 issue_refund executed")
		if e, ok := asRunError(first.err); !ok || e.Turn != 2 || !errors.Is(e, journal.ErrLost) {
			t.Errorf("the slow one ends with %v", first.err)
		}
		if diff := cmp.Diff([]string{"1.0 issue_refund executed", "1.1 issue_refund replayed"}, first.verdicts()); diff != "" {
			t.Error(diff)
		}
		if b.total() != "1001 500, 1002 500" {
			t.Errorf("moved %s", b.total())
		}
		again := f.do(t, agent.New(onceClient(m), b.tools(), other, nil), run, request)
		if diff := cmp.Diff(second.history, again.history); diff != "" || again.err != nil {
			t.Errorf("the run is not as it was told: %v, %s", again.err, diff)
		}
	})
}

// The same while the slow one waits for the model's answer: its calls are never run.
func TestASlowProcessRunsNothingOfATurnThatItCannotStore(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		slow := newProcess()
		other := slow.Peer()
		var b bank
		var second outcome
		taken := false
		var m *transcript.Server
		m = transcript.NewServer(func(r transcript.Request) transcript.Step {
			if !taken {
				taken = true
				slow.Die()
				second = f.do(t, agent.New(onceClient(m), b.tools(), other, nil), run, request)
				return transcript.Step{Calls: []transcript.ToolCall{refundCall("call_z", "9999")}}
			}
			return transcript.Step{Text: "Nothing to do."}
		}, nil)
		first := f.do(t, agent.New(onceClient(m), b.tools(), slow, nil), run, request)
		if second.err != nil || second.text != "Nothing to do." {
			t.Errorf("%q, %v", second.text, second.err)
		}
		if e, ok := asRunError(first.err); !ok || e.Turn != 1 || !errors.Is(e, journal.ErrLost) || b.total() != "" {
			t.Errorf("the slow one ends with %v, moved %q", first.err, b.total())
		}
		if n := len(m.Requests()); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// A slow process gives up while the one that took its run over waits for the model, which has been told something else.
func TestAnOutputOfASlowProcessDoesNotReplaceWhatTheModelWasTold(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		slow := newProcess()
		other := slow.Peer()
		asked, left := make(chan struct{}), make(chan struct{})
		m := transcript.NewServer(func(r transcript.Request) transcript.Step {
			if r.Turn == 1 {
				return transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1001")}}
			}
			close(asked)
			<-left
			return transcript.Step{Text: "It must be looked at."}
		}, nil)
		var b bank
		ends := make(chan outcome, 1)
		takeOver := func() { ends <- f.do(t, agent.New(onceClient(m), b.tools(), other, nil), run, request) }
		b.during = func(context.Context, refundInput) error {
			slow.Die()
			go takeOver()
			<-asked
			return nil
		}
		ctx, leave := context.WithCancel(t.Context())
		leaves := func(next registry.Handler) registry.Handler {
			return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
				defer leave() // with the output in hand
				return next(ctx, c)
			}
		}
		l := agent.New(onceClient(m), b.tools(), slow, &agent.Options{Middleware: []registry.Middleware{leaves}})
		if o := f.doContext(ctx, t, l, run, request); !errors.Is(o.err, context.Canceled) {
			t.Errorf("the slow one ends with %v", o.err)
		}
		close(left)
		second := <-ends
		wantVerdicts(t, second, "1.0 issue_refund outcome_unknown")
		again := f.do(t, agent.New(onceClient(m), b.tools(), other, nil), run, request)
		if diff := cmp.Diff(second.history, again.history); diff != "" || again.err != nil {
			t.Errorf("the run is not as it was told: %v, %s", again.err, diff)
		}
	})
}
