package uitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

type refund struct {
	OrderID string `json:"order_id" once:"key"`
	Cents   int    `json:"cents"`
}

// longRun is the run that waits for a person.
const longRun = "a-run-with-a-name-that-is-long-enough-to-need-more-than-one-line-on-a-telephone"

// handler is the program's tool, as each of its processes has it.
func handler(s *sqlitestore.Store) registry.Handler {
	tools := registry.New()
	registry.Add(tools, registry.Tool[refund, string]{
		Name: "issue_refund", Effect: registry.NonIdempotentWrite,
		NeedsApproval: func(_ context.Context, in refund) (bool, error) { return in.Cents > 5000, nil },
		Run: func(_ context.Context, in refund) (string, error) {
			switch in.OrderID {
			case "1001", "1004":
				return "", errors.New("the provider did not answer")
			case "1009":
				return "", registry.NoEffect(errors.New("there is no such order"))
			}
			return "re_" + in.OrderID + " \u202e00.5", nil
		},
	})
	return tools.Handler(middleware.Once(s, &middleware.OnceOptions{Logger: slog.New(slog.DiscardHandler)}))
}

// newStore is a store after a day's work: a refund in doubt, one that waits for a person, and a run in which calls were stopped.
func newStore(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "once.db")
	s, err := sqlitestore.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := handler(s)
	w := &teller{t: t, store: s, handle: h}
	w.run(registry.Run{ID: "ticket-42", Conversation: "chat-7"}, [][]string{
		{`{"order_id":"1002","cents":500}`, `{"order_id":"1002","cents":500}`, `{"order_id":"1002","cents":900}`},
		{`{"order_id":"1009","cents":500}`, `{"order_id":"1001","cents":189}`},
	})
	for i := range 12 {
		w.run(registry.Run{ID: fmt.Sprintf("ticket-%d", 100+i)}, [][]string{{fmt.Sprintf(`{"order_id":"2%03d","cents":700}`, i)}})
	}
	w.run(registry.Run{ID: longRun}, [][]string{{`{"order_id":"1003","cents":12000}`}})
	w.run(registry.Run{ID: "ticket-43"}, [][]string{{`{"order_id":"1004","cents":250}`}})
	rows, err := s.Select(t.Context(), middleware.Selection{Run: "ticket-43"})
	w.try(err)
	_, err = s.Change(t.Context(), middleware.Transition{
		Step: middleware.Happened, Operation: rows[0].Operation, Token: rows[0].Token, Attempt: 1, By: "bob", Why: "re_1004 is in the dashboard",
	})
	w.try(err)
	w.try(s.Close())
	return path
}

// teller stores runs as the loop does.
type teller struct {
	t      *testing.T
	store  *sqlitestore.Store
	handle registry.Handler
}

// run stores a run with the calls of each turn. It ends where a call waits for a person.
func (w *teller) run(run registry.Run, turns [][]string) {
	w.t.Helper()
	ctx := w.t.Context()
	rec, err := w.store.Begin(ctx, journal.Start{Run: run, API: "chat", Input: []byte(run.ID)})
	w.try(err)
	var outputs []journal.Output
	for i, arguments := range append(turns, nil) {
		e := journal.Entry{Run: run.ID, Token: rec.Token, Turn: journal.Turn{Number: i + 1, Answer: answer(i, arguments)}, Outputs: outputs, Final: arguments == nil}
		_, err := w.store.Append(ctx, e)
		w.try(err)
		outputs = nil
		for k, a := range arguments {
			res, err := w.handle(ctx, &registry.Call{Run: run, Turn: i + 1, Position: k, ID: fmt.Sprintf("call_%d%d", i, k), Tool: "issue_refund", Arguments: a, Asked: time.Now()})
			if _, paused := errors.AsType[*middleware.PausedError](err); paused {
				w.try(w.store.Leave(ctx, journal.Leaving{Run: run.ID, Token: rec.Token}))
				return
			}
			w.try(err)
			outputs = append(outputs, journal.Output{Position: k, Content: res.Content, Verdict: res.Verdict, Operation: res.Operation})
		}
	}
}

func (w *teller) try(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func answer(turn int, arguments []string) json.RawMessage {
	var calls []string
	for k, a := range arguments {
		calls = append(calls, fmt.Sprintf(`{"id":"call_%d%d","type":"function","function":{"name":"issue_refund","arguments":%q}}`, turn, k, a))
	}
	text := "I refund it."
	if len(calls) == 0 {
		text = "Your money is on its way.\nIs there anything else?"
	}
	return json.RawMessage(fmt.Sprintf(`{"choices":[{"message":{"content":%q,"tool_calls":[%s]}}]}`, text, strings.Join(calls, ",")))
}
