// Approve shows refunds over a limit that wait for a person: the run pauses, and goes on in another process once somebody
// has answered. What is approved is done once; a denial is told to the model, with its reason. Without arguments it tells
// the story; ask, pending, approve POSITION and deny POSITION play one act of it, on once.db in the folder they are run in.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
	"github.com/toolonce/toolonce/transcript"
)

type refund struct {
	OrderID string `json:"order_id" once:"key"`
	Cents   int    `json:"cents" jsonschema:"minimum=1"`
}

func main() {
	if err := act(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "approve:", err)
		os.Exit(1)
	}
}

// story plays the acts, each in a process of its own.
func story(ctx context.Context) error {
	self, err := os.Executable()
	dir, tempErr := os.MkdirTemp("", "approve-")
	defer func() { _ = os.RemoveAll(dir) }()
	if err := errors.Join(err, tempErr); err != nil {
		return err
	}
	for _, line := range []string{"ask", "pending", "approve 1", "deny 2", "ask", "ask"} {
		fmt.Println("$ approve", line)
		cmd := exec.CommandContext(ctx, self, strings.Fields(line)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return nil
}

func act(ctx context.Context, args []string) (err error) {
	if len(args) == 0 {
		return story(ctx)
	}
	store, err := sqlitestore.Open("once.db", &sqlitestore.Options{MustExist: args[0] != "ask"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	switch verb := args[0]; {
	case verb == "ask" && len(args) == 1:
		return ask(ctx, store)
	case verb == "pending" && len(args) == 1:
		questions, err := store.Approvals(ctx, middleware.Pending)
		for _, q := range questions {
			fmt.Printf("  %s, turn %d, position %d: %s %s\n", q.Call.Run, q.Call.Turn, q.Call.Position, q.Call.Tool, q.Shown())
		}
		return err
	case (verb == "approve" || verb == "deny") && len(args) == 2:
		d := middleware.Decision{Run: "ticket-42", Turn: 1, Approve: verb == "approve", By: "ann", Why: "ann has looked at the photos"}
		if d.Position, err = strconv.Atoi(args[1]); err == nil {
			_, err = store.Decide(ctx, d)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w: pending lists what can be answered", verb, args[1], err)
		}
		return nil
	}
	return errors.New("say ask, pending, approve POSITION or deny POSITION")
}

// ask gives the run to the loop: it starts, later goes on, and in the end is its saved answer.
func ask(ctx context.Context, store *sqlitestore.Store) error {
	tools := registry.New()
	registry.Add(tools, registry.Tool[refund, string]{
		Name: "issue_refund", Description: "Refund an order to its card.", Effect: registry.NonIdempotentWrite,
		NeedsApproval: func(_ context.Context, in refund) (bool, error) { return in.Cents > 5000, nil },
		Run: func(_ context.Context, in refund) (string, error) {
			fmt.Printf("  MONEY MOVES: %d cents for order %s\n", in.Cents, in.OrderID)
			return "refunded", nil
		},
	})
	client := openai.NewClient(option.WithAPIKey("any"), option.WithHTTPClient(transcript.NewServer(script, nil).Client()))
	reply, err := agent.New(client, tools, store, nil).Chat(ctx, agent.Run{ID: "ticket-42"}, openai.ChatCompletionNewParams{
		Model: "scripted", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Refund orders 1001, 1002 and 1003.")},
	})
	if paused, ok := errors.AsType[*middleware.PausedError](err); ok {
		_, err = fmt.Printf("  paused: %d calls wait for a person\n", len(paused.Waiting))
	} else if err == nil {
		_, err = fmt.Println("  model:", reply.Choices[0].Message.Content)
	}
	return err
}

// script is the model: it asks for three refunds, and says what it has read about each.
func script(r transcript.Request) (step transcript.Step) {
	if outs := r.Outputs(); len(outs) > 0 {
		return transcript.Step{Text: fmt.Sprintf("1001: %s. 1002: %s. 1003: %s", outs[0].Content, outs[1].Content, outs[2].Content)}
	}
	for i, cents := range []int{2000, 9000, 12000} {
		arguments := fmt.Sprintf(`{"order_id":"100%d","cents":%d}`, i+1, cents)
		step.Calls = append(step.Calls, transcript.ToolCall{ID: fmt.Sprint("call_", i), Name: "issue_refund", Arguments: arguments})
	}
	return step
}
