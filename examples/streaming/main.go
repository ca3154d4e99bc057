// Streaming shows a run as it happens, on both APIs: the model's words, a call as it is announced, what was decided for it
// and what the model will read, the end of each turn, and the answer. Nothing runs before its turn is complete and stored:
// a stream that breaks off has run no call of it.
package main

import (
	"context"
	"fmt"
	"iter"
	"log"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

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
	client := openai.NewClient(option.WithAPIKey("any"), option.WithHTTPClient(model().Client()))
	loop := agent.New(client, tools, store, nil)

	const request = "Refund 5.00 of order 1001."
	ctx := context.Background()
	fmt.Println("chat")
	show(loop.StreamChat(ctx, agent.Run{ID: "ticket-42"}, openai.ChatCompletionNewParams{
		Model: "scripted", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(request)},
	}))
	fmt.Println("responses")
	show(loop.StreamRespond(ctx, agent.Run{ID: "ticket-43"}, responses.ResponseNewParams{
		Model: "scripted", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(request)},
	}))
}

// show prints events as they come.
func show(events iter.Seq2[agent.Event, error]) {
	for e, err := range events {
		if err != nil {
			log.Fatal(err) // the same run again goes on behind its last turn
		}
		switch e.Kind {
		case agent.ReasoningDelta:
			fmt.Printf("  %d reasoning %q\n", e.Turn, e.Text)
		case agent.TextDelta:
			fmt.Printf("  %d text      %q\n", e.Turn, e.Text)
		case agent.CallAnnounced:
			fmt.Printf("  %d announced %s %s\n", e.Turn, e.CallID, e.Tool)
		case agent.ArgumentsComplete:
			fmt.Printf("  %d arguments %s %s\n", e.Turn, e.CallID, e.Text)
		case agent.VerdictGiven:
			fmt.Printf("  %d verdict   %s %s\n", e.Turn, e.CallID, e.Verdict)
		case agent.ResultGiven:
			fmt.Printf("  %d result    %s %q\n", e.Turn, e.CallID, e.Text)
		case agent.TurnEnded:
			fmt.Printf("  %d ended\n", e.Turn)
		case agent.Answered:
			if e.Chat != nil {
				fmt.Printf("answer: %s\n", e.Chat.Choices[0].Message.Content)
			} else {
				fmt.Printf("answer: %s\n", e.Response.OutputText())
			}
		default: // there are more
		}
	}
}

// model is the script: it says what it does, calls, and answers.
func model() *transcript.Server {
	return transcript.NewServer(transcript.Steps(
		transcript.Step{
			Reasoning: "The user wants money back.", Text: "I will see to it.",
			Calls: []transcript.ToolCall{{ID: "call_1", Name: "issue_refund", Arguments: `{"order_id":"1001","cents":500}`}},
		},
		transcript.Step{Text: "Your 5.00 are on their way."},
	), nil)
}
