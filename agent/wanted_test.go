//go:build unix && cgo

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// others are the tools of the providers that are no bank: a hotel, and an office that pays out with approvals. nil for a
// bank's.
func (v victim) others() *registry.Registry {
	tools := registry.New()
	switch v.Provider {
	case "hotel":
		registry.Add(tools, registry.Tool[bookInput, bookOutput]{
			Name: "book", Description: "Book a room.", Effect: registry.NonIdempotentWrite,
			Run: func(_ context.Context, in bookInput) (bookOutput, error) {
				return bookOutput{"room 1"}, v.enter("book " + in.Guest) // the room gets the same number again
			},
		})
		for _, name := range []string{"cancel", "void"} {
			registry.Add(tools, registry.Tool[cancelInput, string]{
				Name: name, Description: "Cancel a room.", Effect: registry.NonIdempotentWrite, Undoes: "book",
				Run: func(_ context.Context, in cancelInput) (string, error) {
					return "cancelled", v.enter(name + " " + in.Number)
				},
			})
		}
	case "office":
		registry.Add(tools, registry.Tool[payout, string]{
			Name: "pay_out", Description: "Pay out.", Effect: registry.NonIdempotentWrite, Repeat: registry.RepeatApproved,
			NeedsApproval: func(_ context.Context, in payout) (bool, error) { return in.Cents >= 1000, nil },
			Run: func(_ context.Context, in payout) (string, error) {
				return "paid", v.enter(fmt.Sprintf("%s %d", in.Order, in.Cents))
			},
		})
	default:
		return nil
	}
	return tools
}

// enter makes an effect: a line in the book.
func (v victim) enter(line string) error {
	f, err := os.OpenFile(v.book(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return registry.NoEffect(err)
	}
	_, err = fmt.Fprintln(f, line)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	b, err := os.ReadFile(v.book())
	v.at("after effect %d", strings.Count(string(b), "\n"))
	return err
}

// Ask is where a process dies whose question is stored.
func (m *mortal) Ask(ctx context.Context, a middleware.Approval, expires time.Duration) (middleware.Approval, error) {
	a, err := m.Store.Ask(ctx, a, expires)
	m.at("the question is stored")
	return a, err
}

// repeatCall pays order 7 once more.
func repeatCall(id, operation string) transcript.ToolCall {
	return transcript.ToolCall{ID: id, Name: "pay_out", Arguments: fmt.Sprintf(`{"cents":5000,"order":"7","repeat_of":%q}`, operation)}
}

// operationOf is the operation that an already_done names.
func operationOf(m transcript.Message) string { return gjson.Get(m.Content, "operation").String() }

// payingTwice is a model that pays order 7 on the first message, twice in one breath, makes sure that it has, and pays it
// again on the second. Then it tries to go on: by the operation that it has just made, and by the one before. Its last
// answer is cut off the first time.
func payingTwice(r transcript.Request) (step transcript.Step) {
	outs := r.Outputs()
	switch {
	case r.FirstUser() == firstMessage:
		return transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{
				payCall("a", "7", 5000), {ID: "twice", Name: "pay_out", Arguments: `{"cents": 5000, "repeat_of": null, "order": "7"}`}, payCall("b", "8", 500),
			}},
			transcript.Step{Calls: []transcript.ToolCall{payCall("c", "7", 5000)}},
			transcript.Step{Text: "Order 7 is paid."},
		)(r)
	case r.Turn == 1:
		step.Calls = []transcript.ToolCall{payCall("a", "7", 5000)}
	case r.Turn == 2:
		step.Calls = []transcript.ToolCall{repeatCall("b", operationOf(outs[0]))}
	case r.Turn == 3: // what it has made reads "paid" alone: to learn its id, the model asks again
		step.Calls = []transcript.ToolCall{repeatCall("c", operationOf(r.Messages[3]))}
	case r.Turn == 4:
		step.Calls = []transcript.ToolCall{repeatCall("d", operationOf(outs[0])), repeatCall("e", operationOf(r.Messages[3]))}
	default:
		step.Text, step.Faults = "Order 7 is paid twice.", []transcript.Fault{{Drop: true, After: 120}}
		if gjson.GetBytes(r.Body, "stream").Bool() {
			step.Faults = []transcript.Fault{{Truncate: true, After: 2}}
		}
	}
	return step
}

const firstMessage, secondMessage = "Pay order 7.", "Pay order 7 once more."

// wanted is what the two messages come to.
type wanted struct {
	Moved         string
	Questions     []string
	First, Second []string
	Asked         int64 // requests
}

var paidTwice = wanted{
	Moved:     "7 5000, 8 500, 7 5000",
	Questions: []string{"msg-1 1.0, repeats: false, spent", "msg-2 2.0, repeats: true, spent"},
	First:     []string{"1.0 pay_out replayed", "1.1 pay_out already_done", "1.2 pay_out executed", "2.0 pay_out already_done"},
	Second: []string{
		"1.0 pay_out already_done", "2.0 pay_out replayed", "3.0 pay_out already_done", "4.0 pay_out refused", "4.1 pay_out already_done",
	},
	Asked: 10, // answer 3 of the first message was lost, and answer 5 of the second cut off
}

func TestKilledBetweenAWantedRepeatIsMadeOnceInEveryForm(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		t.Parallel()
		var asked atomic.Int64
		model := transcript.NewServer(payingTwice, nil)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			model.ServeHTTP(w, r)
		}))
		defer s.Close()
		v := victim{Dir: t.TempDir(), URL: s.URL + "/v1", API: f.api, Stream: f.stream, Provider: "office"}
		l := v.loop(t, before, openai.NewClient(option.WithAPIKey("any"), option.WithBaseURL(v.URL), option.WithMaxRetries(0)))
		dies := func(point string) {
			t.Helper()
			v.Die = point
			v.killed(t, nil)
		}
		// message has a process die at its question, another after the effect, and a third where told, or else lose an answer.
		message := func(id, user, then string) []string {
			v.Run, v.User = agent.Run{ID: id, Conversation: "chat-7"}, user
			dies("the question is stored")
			paused, ok := errors.AsType[*middleware.PausedError](f.runUnder(t, before, l, v.Run, user).err)
			if !ok || len(paused.Waiting) != 1 {
				t.Fatalf("%s: %v", id, paused)
			}
			if err := l.Approve(t.Context(), paused.Waiting[0], "ann", "as the customer wishes"); err != nil {
				t.Fatal(err)
			}
			dies("result 1 is saved")
			if then != "" {
				dies(then)
			}
			o := f.runUnder(t, before, l, v.Run, user)
			if then == "" {
				if e, ok := asRunError(o.err); !ok || e.Turn != 5 {
					t.Fatalf("answer 5 was not cut off: %v", o.err)
				}
				o = f.runUnder(t, before, l, v.Run, user)
			}
			if o.err != nil {
				t.Fatal(o.err)
			}
			return o.verdicts()
		}
		var got wanted
		got.First = message("msg-1", firstMessage, "before turn 3 is stored")
		got.Second = message("msg-2", secondMessage, "")
		got.Moved, got.Asked = v.moved(t), asked.Load()
		questions, err := openStore(t, v.Dir+"/once.db").Approvals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range questions {
			got.Questions = append(got.Questions, fmt.Sprintf("%s %d.%d, repeats: %v, %s", q.Call.Run, q.Call.Turn, q.Call.Position, q.RepeatOf != "", q.State))
		}
		if diff := cmp.Diff(paidTwice, got); diff != "" {
			t.Error(diff)
		}
	})
}

// staying is a run that books, cancels, books and cancels again. Once it knows that it has, it tries another tool too.
func staying() *transcript.Server {
	call := func(id, name, arguments string) transcript.Step {
		return transcript.Step{Calls: []transcript.ToolCall{{ID: id, Name: name, Arguments: arguments}}}
	}
	const ada, room = `{"guest":"Ada"}`, `{"number":"room 1"}`
	steps := transcript.Steps(
		call("a", "book", ada), call("b", "cancel", room), call("c", "book", ada), call("d", "cancel", room), call("e", "void", room),
		transcript.Step{Text: "All is cancelled."},
	)
	return transcript.NewServer(func(r transcript.Request) transcript.Step {
		if r.Turn == 5 && r.Outputs()[0].Content != "cancelled" {
			return transcript.Step{Text: "Somebody must look at it."}
		}
		return steps(r)
	}, nil)
}

// stayed are the verdicts of that run.
func stayed(book, cancel, bookAgain, cancelAgain string, void ...string) []string {
	verdicts := []string{"1.0 book " + book, "2.0 cancel " + cancel, "3.0 book " + bookAgain, "4.0 cancel " + cancelAgain}
	for _, v := range void {
		verdicts = append(verdicts, "5.0 void "+v)
	}
	return verdicts
}

func TestKilledBetweenItsWritesAnUndoIsMadeOnceAndMakesRoomForTheNext(t *testing.T) {
	const whole = "book Ada, cancel room 1, book Ada, cancel room 1"
	for _, k := range []struct {
		point, moved string
		verdicts     []string
	}{
		{"before the claim", whole, stayed("executed", "executed", "executed", "executed", "refused")},
		{"result 1 is saved", whole, stayed("replayed", "executed", "executed", "executed", "refused")},
		{"turn 2 is stored", whole, stayed("executed", "executed", "executed", "executed", "refused")},
		{"result 2 is saved", whole, stayed("executed", "replayed", "executed", "executed", "refused")},
		{"turn 3 is stored", whole, stayed("executed", "executed", "executed", "executed", "refused")},
		{"result 3 is saved", whole, stayed("executed", "executed", "replayed", "executed", "refused")},
		{"result 4 is saved", whole, stayed("executed", "executed", "executed", "replayed", "refused")},
		// Nobody knows whether the first room is cancelled: nothing is booked or cancelled on top of that.
		{"after effect 2", "book Ada, cancel room 1", stayed("executed", "outcome_unknown", "already_done", "outcome_unknown")},
		{"after effect 4", whole, stayed("executed", "executed", "executed", "outcome_unknown")},
	} {
		for _, f := range forms {
			t.Run(k.point+", "+f.String(), func(t *testing.T) {
				t.Parallel()
				m := staying()
				s := httptest.NewServer(m)
				defer s.Close()
				v := victim{Dir: t.TempDir(), URL: s.URL + "/v1", API: f.api, Stream: f.stream, User: request, Provider: "hotel", Die: k.point}
				v.killed(t, nil)
				v.Die = ""
				o := f.under(t, before, v.loop(t, before, onceClient(m)), request)
				wantVerdicts(t, o, k.verdicts...)
				if got := v.moved(t); got != k.moved {
					t.Errorf("moved %s, want %s", got, k.moved)
				}
			})
		}
	}
}
