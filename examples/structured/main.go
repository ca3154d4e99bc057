// Structured shows the answer of a run as a Go value. Its schema goes with the request, and the answer is checked here too,
// for servers that do not hold their model to it. One that does not fit is asked for once more, without tools: the refund
// is not made again. The same run again gives the mended value without a request.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

type refund struct {
	OrderID string `json:"order_id"`
	Cents   int    `json:"cents" jsonschema:"minimum=1"`
}

// Outcome is what the program wants to know in the end.
type Outcome struct {
	OrderID  string `json:"order_id"`
	Refunded bool   `json:"refunded"`
	Mood     string `json:"mood" jsonschema:"enum=calm,enum=angry" jsonschema_description:"How the customer sounds"`
}

func main() {
	tools := registry.New()
	registry.Add(tools, registry.Tool[refund, string]{
		Name: "issue_refund", Description: "Refund an order to its card.", Effect: registry.NonIdempotentWrite,
		Run: func(_ context.Context, in refund) (string, error) {
			fmt.Printf("  MONEY MOVES: %d cents for order %s\n", in.Cents, in.OrderID)
			return "refunded", nil
		},
	})
	store := struct { // sqlitestore.Open in production
		*middleware.MemoryLedger
		*journal.MemoryJournal
	}{middleware.Memory(), journal.Memory()}
	model := transcript.NewServer(script, nil) // openai.NewClient() asks a real one
	client := openai.NewClient(option.WithAPIKey("any"), option.WithHTTPClient(model.Client()))
	loop := agent.New(client, tools, store, &agent.Options{Repair: true})

	const request = "My cup of order 1001 is broken!!! I want 5.00 back."
	params := openai.ChatCompletionNewParams{
		Model: "scripted", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(request)},
	}
	for range 2 {
		outcome, _, err := agent.ChatAs[Outcome](context.Background(), loop, agent.Run{ID: "ticket-42"}, params)
		if err != nil {
			log.Fatal(err) // a *registry.ArgumentError where the second answer does not fit either
		}
		fmt.Printf("%+v after %d requests\n", outcome, len(model.Requests()))
	}
}

// script is the model, which prints what it is asked and says.
func script(r transcript.Request) transcript.Step {
	said := 0
	for i, m := range r.Messages {
		if m.Role == "assistant" {
			said = i + 1
		}
	}
	for _, m := range r.Messages[said:] {
		fmt.Printf("  %-9s  %s\n", m.Role, m.Content)
	}
	if r.Turn == 1 {
		call := transcript.ToolCall{ID: "call_1", Name: "issue_refund", Arguments: `{"order_id":"1001","cents":500}`}
		return transcript.Step{Calls: []transcript.ToolCall{call}}
	}
	answer := `{"order_id":"1001","refunded":true,"mood":"furious"}`
	if r.Turn == 3 {
		answer = `{"order_id":"1001","refunded":true,"mood":"angry"}`
	}
	fmt.Printf("  %-9s  %s\n", "assistant", answer)
	return transcript.Step{Text: answer}
}
