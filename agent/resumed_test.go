package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

type bookInput struct {
	Guest string `json:"guest"`
}

type bookOutput struct {
	Number string `json:"number" once:"resource"`
}

type cancelInput struct {
	Number string `json:"number" once:"resource"`
}

// A room is booked, the process is killed, somebody cancels the room elsewhere, and the run goes on: it is told of the
// booking that it made, and makes no second one.
func TestWhatWasUndoneBeforeItsOutputWasStoredIsNotDoneAgain(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		booked, cancelled := 0, 0
		tools := func() *registry.Registry {
			r := registry.New()
			registry.Add(r, registry.Tool[bookInput, bookOutput]{
				Name: "book", Effect: registry.NonIdempotentWrite, Run: func(context.Context, bookInput) (bookOutput, error) {
					booked++
					return bookOutput{fmt.Sprint("room ", booked)}, nil
				},
			})
			registry.Add(r, registry.Tool[cancelInput, string]{
				Name: "cancel", Effect: registry.NonIdempotentWrite, Undoes: "book", Run: func(context.Context, cancelInput) (string, error) {
					cancelled++
					return "cancelled", nil
				},
			})
			return r
		}
		book := transcript.ToolCall{ID: "call_a", Name: "book", Arguments: `{"guest":"Ada"}`}
		p := newProcess()
		f.diesAfterItsCalls(t, p, tools(), book)
		p.Die()
		p = p.Peer()
		elsewhere := tools().Handler(middleware.Once(p, nil))
		res, err := elsewhere(t.Context(), &registry.Call{Run: agent.Run{ID: "desk"}, Turn: 1, Tool: "cancel", Arguments: `{"number":"room 1"}`})
		if err != nil || res.Verdict != registry.Executed {
			t.Fatal(res, err)
		}
		book.ID = "call_b"
		m := transcript.NewServer(transcript.Steps(
			transcript.Step{}, transcript.Step{Text: "Once more.", Calls: []transcript.ToolCall{book}}, transcript.Step{Text: "Booked."},
		), nil)
		o := f.do(t, agent.New(onceClient(m), tools(), p, nil), run, request)
		// The replay is the first booking's; a new call for the same is a new booking, now that the first is undone.
		wantVerdicts(t, o, "1.0 book replayed", "2.0 book executed")
		if all := strings.Join(o.history, "\n"); !strings.Contains(all, `room 1`) || booked != 2 || cancelled != 1 {
			t.Errorf("booked %d, cancelled %d, told:\n%s", booked, cancelled, all)
		}
	})
}

// deployed are the tools of one deploy: payments without a business key, so that every argument is of the identity.
func deployed[In any](moved *[]string) *registry.Registry {
	r := registry.New()
	registry.Add(r, registry.Tool[In, string]{
		Name: "pay", Effect: registry.NonIdempotentWrite, Run: func(_ context.Context, in In) (string, error) {
			*moved = append(*moved, fmt.Sprintf("%+v", in))
			return fmt.Sprint("payment ", len(*moved)), nil
		},
	})
	return r
}

// A deploy changes the schema of a tool, and with it what its calls are known by. A call that has run is the same call all
// the same; one that has not is what the schema of the day makes of it.
func TestADeployThatChangesASchemaRunsNoStoredCallAgain(t *testing.T) {
	type old struct {
		Payee string `json:"payee"`
		Cents int    `json:"cents"`
	}
	type wider struct {
		Payee    string  `json:"payee"`
		Cents    float64 `json:"cents"`
		Currency *string `json:"currency,omitempty"`
	}
	type other struct {
		IBAN string `json:"iban"`
	}
	const ada, bob = `{"payee":"Ada","cents":500}`, `{"payee":"Bob","cents":700}`
	for _, c := range []struct {
		name  string
		tools func(*[]string) *registry.Registry
		bob   string
		paid  int
	}{
		{"a wider schema", deployed[wider], "executed", 2},
		{"a schema that the stored arguments do not fit", deployed[other], "refused", 1},
		{"the tool taken away", func(*[]string) *registry.Registry { return registry.New() }, "refused", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachForm(t, func(t *testing.T, f form) {
				var paid []string
				p := newProcess()
				calls := []transcript.ToolCall{{ID: "call_a", Name: "pay", Arguments: ada}, {ID: "call_b", Name: "pay", Arguments: bob}}
				// The process dies between the two calls.
				l := agent.New(onceClient(transcript.NewServer(transcript.Steps(transcript.Step{Calls: calls}), nil)), deployed[old](&paid), killedStore{p},
					&agent.Options{Once: &middleware.OnceOptions{Admit: admitOnly(ada)}})
				if o := f.do(t, l, run, request); o.err == nil {
					t.Fatal("the run has not ended early")
				}
				p.Die()
				p = p.Peer()
				o := f.do(t, agent.New(onceClient(endsWith("Paid.")), c.tools(&paid), p, nil), run, request)
				wantVerdicts(t, o, "1.0 pay replayed", "1.1 pay "+c.bob)
				if len(paid) != c.paid {
					t.Errorf("paid %v", paid)
				}
			})
		})
	}
}

// admitOnly ends the run at every other call.
func admitOnly(arguments string) func(context.Context, *registry.Call) (*registry.Result, error) {
	return func(_ context.Context, c *registry.Call) (*registry.Result, error) {
		if c.Arguments != arguments {
			return nil, fmt.Errorf("the process is killed here")
		}
		return nil, nil
	}
}

// The approval is asked for what is to run, not for what has run: else the model would be told that nothing was done.
func TestACallThatHasRunIsNotRefusedWhenItsRunGoesOn(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		p := newProcess()
		l := agent.New(onceClient(transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1001"), refundCall("call_b", "1002")}},
		), nil)), b.tools(), killedStore{p}, &agent.Options{Once: &middleware.OnceOptions{Admit: admitOnly(refundCall("", "1001").Arguments)}})
		if o := f.do(t, l, run, request); o.err == nil {
			t.Fatal("the run has not ended early")
		}
		p.Die()
		p = p.Peer()
		var asked []string
		never := func(_ context.Context, c *registry.Call) (*registry.Result, error) {
			asked = append(asked, c.ID)
			res := c.Refused(fmt.Errorf("nobody approves of it"))
			return &res, nil
		}
		l = agent.New(onceClient(endsWith("Done.")), b.tools(), p, &agent.Options{Once: &middleware.OnceOptions{Admit: never}})
		wantVerdicts(t, f.do(t, l, run, request), "1.0 issue_refund replayed", "1.1 issue_refund refused")
		if diff := cmp.Diff([]string{"call_b"}, asked); diff != "" || b.total() != "1001 500" {
			t.Errorf("moved %s, asked for %s", b.total(), diff)
		}
	})
}

// A loop without a journal has run a call under the same run id; the model of ours says another at that place.
func TestAnotherCallAtAPlaceThatIsTakenIsAConflict(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := memory()
		own := b.tools().Handler(middleware.Once(s, nil))
		if _, err := own(t.Context(), &registry.Call{Run: run, Turn: 1, ID: "call_a", Tool: "issue_refund", Arguments: refundCall("", "1001").Arguments}); err != nil {
			t.Fatal(err)
		}
		m := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1002"), refundCall("call_b", "1001"), refundCall("call_c", "1003")}},
			transcript.Step{Text: "Done."},
		), nil)
		o := f.do(t, agent.New(onceClient(m), b.tools(), s, nil), run, request)
		wantVerdicts(t, o, "1.0 issue_refund conflict", "1.1 issue_refund already_done", "1.2 issue_refund executed")
		if b.total() != "1001 500, 1003 500" {
			t.Errorf("moved %s", b.total())
		}
	})
}
