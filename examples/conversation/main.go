// Conversation shows one chat of three messages, a run each. "Did it go through?" makes the model refund again, as models
// do, and it is told already_done. "Please do it again" is a wish: the model names the operation to repeat, and the
// repeat is itself made once. This tool lets it freely; with RepeatApproved a person is asked first, as in approve.
package main

import (
	"context"
	"encoding/json"
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

func main() {
	tools := registry.New()
	registry.Add(tools, registry.Tool[refund, string]{
		Name: "refund_item", Description: "Refund one item of an order.", Effect: registry.NonIdempotentWrite,
		Repeat: registry.RepeatFreely, // the model gets an argument repeat_of, which counts only after a newer message
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
	loop := agent.New(client, tools, store, &agent.Options{On: tell})

	var chat []openai.ChatCompletionMessageParamUnion
	for i, text := range []string{
		"Refund 5.00 of order 1001, a cup arrived broken.", "Did it go through?", "Now a second cup broke. Please do it again.",
	} {
		fmt.Println("user: ", text)
		run := agent.Run{ID: fmt.Sprint("message-", i+1), Conversation: "chat-7"} // one scope for all messages of the chat
		reply, err := loop.Chat(context.Background(), run, openai.ChatCompletionNewParams{
			Model: "scripted", Messages: append(chat, openai.UserMessage(text)),
		})
		if err != nil {
			log.Fatal(err)
		}
		chat = reply.Messages
	}
}

// tell prints what happens.
func tell(e agent.Event) {
	switch e.Kind {
	case agent.VerdictGiven:
		fmt.Printf("  %s is %s\n", e.CallID, e.Verdict)
	case agent.TextDelta:
		fmt.Println("model:", e.Text)
	default: // there are more
	}
}

// script is the model.
func script(r transcript.Request) transcript.Step {
	call := func(id, repeatOf string) transcript.ToolCall {
		arguments := fmt.Sprintf(`{"order_id":"1001","cents":500,"repeat_of":%s}`, repeatOf)
		return transcript.ToolCall{ID: id, Name: "refund_item", Arguments: arguments}
	}
	switch r.Turn {
	case 1:
		return transcript.Step{Calls: []transcript.ToolCall{call("first", "null")}}
	case 2:
		return transcript.Step{Text: "Your 5.00 are on their way."}
	case 3:
		return transcript.Step{Calls: []transcript.ToolCall{call("checking", "null")}}
	case 4:
		return transcript.Step{Text: "Yes. It was refunded once."}
	case 5:
		return transcript.Step{Calls: []transcript.ToolCall{call("again", done(r)), call("twice", done(r))}}
	default:
		return transcript.Step{Text: "Another 5.00 are on their way."}
	}
}

// done is the operation that already_done has named, as JSON.
func done(r transcript.Request) string {
	for _, m := range r.Messages {
		var e registry.Envelope
		if m.Role == "tool" && json.Unmarshal([]byte(m.Content), &e) == nil && e.Status == registry.AlreadyDone {
			return `"` + e.Operation + `"`
		}
	}
	return "null"
}
