//go:build unix && cgo

package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// The runs of a story. first is the one that is killed and gone on with, other works at the same time, and last comes
// when all is settled.
const (
	first = "run-1"
	other = "run-2"
	last  = "run-3"
)

// world is what outlives the processes of a story: the store's database, the provider and the model.
type world struct {
	db    database
	model *transcript.Server

	mu        sync.Mutex
	processes []*process
	money     []payment
	keys      map[string]bool // that refunds came with
	dying     *process        // is being killed
	calm      chan struct{}   // closed when nobody is
}

// payment is money that moved.
type payment struct {
	refunded
	order, key, process string
}

const answer = "The refund was looked after."

// steps are what the model says. A refund is asked for twice, under two ids and in other words.
var steps = transcript.Steps(
	transcript.Step{Calls: []transcript.ToolCall{
		{ID: "call_1", Name: "issue_refund", Arguments: `{"order_id":"` + order + `","cents":500,"reason":"it arrived broken"}`},
		{ID: "call_2", Name: "get_order", Arguments: `{"order_id":"` + order + `"}`},
	}},
	transcript.Step{Calls: []transcript.ToolCall{
		{ID: "call_3", Name: "issue_refund", Arguments: `{"cents":500,"order_id":"` + order + `","reason":"the customer asks for the refund"}`},
	}},
	transcript.Step{Text: answer},
)

func newWorld(db database) *world {
	w := &world{db: db, keys: map[string]bool{}, calm: make(chan struct{})}
	close(w.calm)
	w.model = transcript.NewServer(func(r transcript.Request) transcript.Step {
		if p := w.process(r.Path); p != nil {
			p.hold(fmt.Sprintf("request %d is sent", r.Turn))
		}
		return steps(r)
	}, nil)
	return w
}

// process is the one that has sent a request to the model.
func (w *world) process(path string) *process {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.processes {
		if strings.HasPrefix(path, "/"+p.name+"/") {
			return p
		}
	}
	return nil
}

// pay makes a refund.
func (w *world) pay(kind, process, order, key string) refunded {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys[key] = true
	for _, m := range w.money {
		if kind == "keyed" && m.key == key {
			return m.refunded
		}
	}
	m := payment{refunded{fmt.Sprintf("re_%d", len(w.money)+1)}, order, key, process}
	w.money = append(w.money, m)
	return m.refunded
}

// paid are the refunds of an order.
func (w *world) paid(order string) []refunded {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := []refunded{}
	for _, m := range w.money {
		if m.order == order {
			list = append(list, m.refunded)
		}
	}
	return list
}

// effects counts the refunds, those of one process where it is named.
func (w *world) effects(process string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.money {
		if process == "" || m.process == process {
			n++
		}
	}
	return n
}

// quiet keeps others from looking at the provider's list while a process is killed, so that what it has sent has arrived
// by then or never will.
func (w *world) quiet(p *process) (over func()) {
	calm := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dying, w.calm = p, calm
	return func() { close(calm) }
}

// await waits until nobody else is being killed.
func (w *world) await(p *process) {
	w.mu.Lock()
	dying, calm := w.dying, w.calm
	w.mu.Unlock()
	if dying == p {
		return
	}
	<-calm
}

// asked are the turns that a process has asked the model for in a run.
func (w *world) asked(p *process, run string) (turns []int) {
	for _, r := range w.model.Requests() {
		if strings.HasPrefix(r.Path, "/"+p.name+"/") && strings.HasSuffix(r.FirstUser(), run) {
			turns = append(turns, r.Turn)
		}
	}
	return turns
}

// read checks what the model has read in a run: the refund itself, or a verdict.
func (w *world) read(run string, want pair) error {
	for _, r := range slices.Backward(w.model.Requests()) {
		if r.Turn != len(want)+1 || !strings.HasSuffix(r.FirstUser(), run) {
			continue
		}
		var got pair
		for _, m := range r.Messages {
			if i := slices.Index([]string{"call_1", "call_3"}, m.ToolCallID); i >= 0 && m.Role == "tool" {
				got[i] = statusOf(m.Content)
			}
		}
		for i, v := range want {
			if v == registry.Replayed { // it reads the same
				want[i] = registry.Executed
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("the model has read of %s (-want +got):\n%s", run, diff)
		}
		return nil
	}
	return fmt.Errorf("the model was never asked for the end of %s", run)
}

// statusOf is executed for the refund itself.
func statusOf(content string) registry.Verdict {
	if content == `{"id":"re_1"}` {
		return registry.Executed
	}
	var e registry.Envelope
	if err := json.Unmarshal([]byte(content), &e); err != nil || e.Version == 0 {
		return registry.Verdict(content)
	}
	return e.Status
}

// look reads what is stored.
func (w *world) look(ctx context.Context) (fact, error) { return w.db.look(ctx, w.open()) }

// open reports whether a process may have the store open.
func (w *world) open() bool {
	return slices.ContainsFunc(w.processes, func(p *process) bool {
		select {
		case <-p.ended:
			return false
		default:
			return true
		}
	})
}
