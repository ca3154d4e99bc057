package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// A result is stored as soon as it is there, not with its turn.
func TestKilledInTheThirdCallOfATurnTheFirstTwoKeepTheirResults(t *testing.T) {
	three := func(ids string) (calls []transcript.ToolCall) {
		for i, id := range ids {
			calls = append(calls, refundCall(string(id), fmt.Sprint(i+1)))
		}
		return calls
	}
	eachForm(t, func(t *testing.T, f form) {
		m := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: three("abc")}, transcript.Step{Calls: three("xyz")}, transcript.Step{Text: "One must be looked at."},
		), nil)
		dead := newProcess()
		inside, over := make(chan struct{}), make(chan struct{})
		b := bank{during: func(_ context.Context, in refundInput) error {
			if in.OrderID == "3" {
				dead.Die()
				close(inside)
				<-over
			}
			return nil
		}}
		ends := make(chan outcome, 1)
		go func() { ends <- f.do(t, agent.New(onceClient(m), b.tools(), killedStore{dead}, nil), run, request) }()
		<-inside
		o := f.do(t, agent.New(onceClient(m), b.tools(), dead.Peer(), nil), run, request)
		wantVerdicts(t, o,
			"1.0 issue_refund replayed", "1.1 issue_refund replayed", "1.2 issue_refund outcome_unknown",
			"2.0 issue_refund already_done", "2.1 issue_refund already_done", "2.2 issue_refund outcome_unknown")
		if n := len(m.Requests()); n != 3 || b.total() != "1 500, 2 500, 3 500" {
			t.Errorf("%d requests, moved %s", n, b.total())
		}
		close(over)
		<-ends
	})
}

// A server announces a call under one item id and completes it under another. The call_id says that it is one.
func TestACallThatIsConfirmedUnderAnotherItemIDIsOneCall(t *testing.T) {
	item := func(id, arguments, status string) string {
		return fmt.Sprintf(`{"type":"function_call","id":%q,"call_id":"c1","name":"issue_refund","arguments":%s,"status":%q}`, id, quote(arguments), status)
	}
	const whole = `{"order_id":"1001","cents":500}`
	announced := `{"type":"response.output_item.added","output_index":0,"item":` + item("fc_1", "", "in_progress") + `}`
	complete := `{"type":"response.function_call_arguments.done","item_id":"fc_2","call_id":"c1","output_index":0,"arguments":` + quote(whole) + `}`
	done := `{"type":"response.output_item.done","output_index":0,"item":` + item("fc_2", whole, "completed") + `}`
	elsewhere := strings.Replace(done, `"output_index":0`, `"output_index":1`, 1)
	end := func(output ...string) string {
		return `{"type":"response.completed","response":{"id":"resp_1","object":"response","status":"completed","output":[` + strings.Join(output, ",") + `]}}`
	}
	for name, c := range map[string]struct {
		events []string
		ok     bool
	}{
		"the end has it":           {[]string{announced, complete, end(item("fc_2", whole, "completed"))}, true},
		"the end has both":         {[]string{announced, complete, end(item("fc_1", "", "in_progress"), item("fc_2", whole, "completed"))}, true},
		"an item has it":           {[]string{announced, complete, done, end()}, true},
		"an item elsewhere has it": {[]string{announced, elsewhere, end()}, true},
		"nothing has it at all":    {[]string{announced, complete, end()}, false}, // what was only announced is never run
	} {
		t.Run(name, func(t *testing.T) {
			var b bank
			s := transcript.NewServer(running(transcript.Step{Raw: sse(c.events...)}), nil)
			o := form{"responses", true}.do(t, agent.New(onceClient(s), b.tools(), memory(), nil), run, request)
			if !c.ok {
				if _, ok := asRunError(o.err); !ok || b.total() != "" || len(o.report.Usage) != 0 {
					t.Errorf("%v, moved %q", o.err, b.total())
				}
				return
			}
			wantVerdicts(t, o, "1.0 issue_refund executed")
			if o.text != "Done." || b.total() != "1001 500" {
				t.Fatalf("%q, moved %q", o.text, b.total())
			}
			calls, outputs := wireIDs(s.Requests()[1])
			same(t, "calls", []string{"c1"}, calls)
			same(t, "outputs", []string{"c1"}, outputs)
			allAccepted(t, s)
		})
	}
}

// Reads run together, each in a goroutine of its own, where a panic would end the process.
func TestAPanicOfAReadBesideOthersIsAnsweredAndTheyAreToo(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		tools := registry.New()
		registry.Add(tools, registry.Tool[lookInput, string]{
			Name: "look_up", Description: "Look up an order.", Effect: registry.Read,
			Run: func(_ context.Context, in lookInput) (string, error) {
				if in.OrderID == "2" {
					panic(errors.New("secret"))
				}
				return "order " + in.OrderID, nil
			},
		})
		s := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{lookCall("a", "1"), lookCall("b", "2"), lookCall("c", "3")}}, transcript.Step{Text: "Done."},
		), nil)
		o := f.do(t, agent.New(onceClient(s), tools, memory(), nil), run, request)
		wantVerdicts(t, o, "1.0 look_up executed", "1.1 look_up failed", "1.2 look_up executed")
		if o.text != "Done." || strings.Contains(strings.Join(o.history, ""), "secret") {
			t.Errorf("%q: %q", o.text, o.history)
		}
		allAccepted(t, s)
	})
}
