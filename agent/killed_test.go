//go:build unix && cgo

package agent_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/transcript"
)

// killedSteps is a run of three answers, in which an id comes back for another call.
var killedSteps = []transcript.Step{
	{Reasoning: "Two orders.", Calls: []transcript.ToolCall{refundCall("call_a", "1001"), refundCall("call_b", "1002")}},
	{Calls: []transcript.ToolCall{refundCall("call_a", "1001")}},
	{Text: "Both are on their way."},
}

// modelServer is a model server that remembers what it was asked, reached by a child over a socket.
type modelServer struct {
	*transcript.Server
	held chan func() // receives once request hold is there
	free chan struct{}
}

// aServer answers by killedSteps. The first request for answer hold, 0 for none, is held until free is closed; meanwhile
// is called then.
func aServer(hold int, meanwhile func()) *modelServer {
	m := &modelServer{held: make(chan func(), 1), free: make(chan struct{})}
	steps := transcript.Steps(killedSteps...)
	held := false
	m.Server = transcript.NewServer(func(r transcript.Request) transcript.Step {
		if r.Turn == hold && !held {
			held = true
			m.held <- meanwhile
			<-m.free
		}
		return steps(r)
	}, nil)
	return m
}

// asked are the turns that were asked for.
func (m *modelServer) asked() string {
	var turns []string
	for _, r := range m.Requests() {
		turns = append(turns, fmt.Sprint(r.Turn))
	}
	return strings.Join(turns, " ")
}

// killed kills a process at its point, or where it waits for the model.
func (m *modelServer) killed(t *testing.T, v victim) {
	t.Helper()
	s := httptest.NewServer(m)
	defer s.Close()
	defer close(m.free)
	v.URL = s.URL + "/v1"
	v.killed(t, m.held)
}

// verdicts are those of the calls of killedSteps.
func verdicts(first, second, repeat string) []string {
	return []string{"1.0 issue_refund " + first, "1.1 issue_refund " + second, "2.0 issue_refund " + repeat}
}

const both = "1001 500, 1002 500"

type killing struct {
	point, provider string
	asked           string // of both processes together
	moved           string
	verdicts        []string
}

var killings = []killing{
	{"before request 1", "hold", "1 2 3", both, verdicts("executed", "executed", "already_done")},
	{"answer 1 arrives", "hold", "1 1 2 3", both, verdicts("executed", "executed", "already_done")},
	{"before turn 1 is stored", "hold", "1 1 2 3", both, verdicts("executed", "executed", "already_done")},
	{"turn 1 is stored", "hold", "1 2 3", both, verdicts("executed", "executed", "already_done")},
	{"before the claim", "hold", "1 2 3", both, verdicts("executed", "executed", "already_done")},
	{"before the effect", "hold", "1 2 3", "1002 500", verdicts("outcome_unknown", "executed", "outcome_unknown")},
	// Its absence proves nothing before the deadline: what the dead process has sent may still arrive.
	{"before the effect", "lookup", "1 2 3", "1002 500", verdicts("outcome_unknown", "executed", "outcome_unknown")},
	{"before the effect", "keyed", "1 2 3", both, verdicts("executed", "executed", "already_done")},
	{"after the effect", "hold", "1 2 3", both, verdicts("outcome_unknown", "executed", "outcome_unknown")},
	{"after the effect", "lookup", "1 2 3", both, verdicts("replayed", "executed", "already_done")},
	{"after the effect", "keyed", "1 2 3", both, verdicts("executed", "executed", "already_done")},
	// Each of its calls is one to be run, and may run again.
	{"after the effect", "idempotent", "1 2 3", "1001 500, 1001 500, 1002 500, 1001 500", verdicts("executed", "executed", "executed")},
	{"result 1 is saved", "idempotent", "1 2 3", "1001 500, 1002 500, 1001 500", verdicts("replayed", "executed", "executed")},
	{"result 1 is saved", "hold", "1 2 3", both, verdicts("replayed", "executed", "already_done")},
	{"result 2 is saved", "hold", "1 2 3", both, verdicts("replayed", "replayed", "already_done")},
	{"before request 2", "hold", "1 2 3", both, verdicts("replayed", "replayed", "already_done")},
	{"request 2 is sent", "hold", "1 2 2 3", both, verdicts("replayed", "replayed", "already_done")},
	{"answer 2 arrives", "hold", "1 2 2 3", both, verdicts("replayed", "replayed", "already_done")},
	{"turn 2 is stored", "hold", "1 2 3", both, verdicts("executed", "executed", "already_done")},
	{"before request 3", "hold", "1 2 3", both, verdicts("executed", "executed", "already_done")},
	{"before turn 3 is stored", "hold", "1 2 3 3", both, verdicts("executed", "executed", "already_done")},
	{"turn 3 is stored", "hold", "1 2 3", both, verdicts("executed", "executed", "already_done")},
}

// goesOn kills a process that runs in one form, and ends its run in another.
func (k killing) goesOn(t *testing.T, first, then form) {
	hold := 0
	if k.point == "request 2 is sent" {
		hold = 2
	}
	m := aServer(hold, func() {})
	v := victim{Dir: t.TempDir(), API: first.api, Stream: first.stream, User: request, Provider: k.provider, Die: k.point}
	m.killed(t, v)
	v.Die = ""
	l := v.loop(t, after, onceClient(m.Server))
	o := then.under(t, after, l, request)
	if o.err != nil || o.text != "Both are on their way." {
		t.Fatalf("%q, %v", o.text, o.err)
	}
	if diff := cmp.Diff(k.verdicts, o.verdicts()); diff != "" {
		t.Error(diff)
	}
	again := then.under(t, after, l, request)
	if diff := cmp.Diff(o.history, again.history); diff != "" || again.err != nil {
		t.Errorf("the finished run again: %v, %s", again.err, diff)
	}
	if got := m.asked(); got != k.asked {
		t.Errorf("the model was asked for %s, want %s", got, k.asked)
	}
	if got := v.moved(t); got != k.moved {
		t.Errorf("moved %s, want %s", got, k.moved)
	}
}

func TestKilledAtEachPointTheRunGoesOnWithNothingTwice(t *testing.T) {
	for _, k := range killings {
		for _, f := range forms {
			t.Run(k.point+", "+k.provider+", "+f.String(), func(t *testing.T) {
				t.Parallel()
				k.goesOn(t, f, f)
			})
		}
	}
}

func TestKilledWhileStreamedTheRunGoesOnUnstreamedAndTheOtherWayRound(t *testing.T) {
	for _, k := range killings {
		if k.provider != "hold" || strings.HasPrefix(k.point, "before") {
			continue
		}
		for _, f := range forms {
			t.Run(k.point+", first "+f.String(), func(t *testing.T) {
				t.Parallel()
				k.goesOn(t, f, form{f.api, !f.stream})
			})
		}
	}
}

// One process waits for the model; another starts the same run, and goes on with it once the first is dead.
func TestKilledOnlyAfterASecondProcessWasRefused(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		t.Parallel()
		v := victim{Dir: t.TempDir(), API: f.api, Stream: f.stream, User: request, Provider: "hold"}
		var m *modelServer
		var second func() outcome
		m = aServer(2, func() {
			o := second()
			if !errors.Is(o.err, journal.ErrRunTaken) || m.asked() != "1 2" {
				t.Errorf("the second process got %v; the model was asked for %s", o.err, m.asked())
			}
		})
		l := v.loop(t, after, onceClient(m.Server))
		second = func() outcome { return f.under(t, after, l, request) }
		m.killed(t, v)
		o := second()
		if o.err != nil || o.text != "Both are on their way." || v.moved(t) != both || m.asked() != "1 2 2 3" {
			t.Fatalf("%q, %v, moved %s, the model was asked for %s", o.text, o.err, v.moved(t), m.asked())
		}
		if diff := cmp.Diff(verdicts("replayed", "replayed", "already_done"), o.verdicts()); diff != "" {
			t.Error(diff)
		}
	})
}
