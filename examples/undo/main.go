// Undo shows a tool that takes back another's operation. The same booking again is already_done for as long as it stands;
// once it is cancelled, it is a new operation. The two tools are linked by the booking's id, tagged once:"resource", and
// cancelling twice cancels once.
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

type stay struct {
	Room  string `json:"room"`
	Night string `json:"night" jsonschema:"format=date"`
}

type booking struct {
	ID string `json:"booking_id" once:"resource"` // in the result of book_room, and in the input of cancel_booking
}

// hotel is the outside world.
type hotel struct{ booked, cancelled int }

func (h *hotel) book(_ context.Context, in stay) (booking, error) {
	h.booked++
	return booking{fmt.Sprintf("B%d", h.booked)}, nil
}

func (h *hotel) cancel(context.Context, booking) (string, error) {
	h.cancelled++
	return "cancelled", nil
}

func main() {
	var h hotel
	tools := registry.New()
	registry.Add(tools, registry.Tool[stay, booking]{
		Name: "book_room", Description: "Book a room for a night.", Effect: registry.NonIdempotentWrite, Run: h.book,
	})
	registry.Add(tools, registry.Tool[booking, string]{
		Name: "cancel_booking", Description: "Cancel a booking.", Effect: registry.NonIdempotentWrite, Run: h.cancel,
		Undoes: "book_room",
	})
	store := struct { // sqlitestore.Open in production
		*middleware.MemoryLedger
		*journal.MemoryJournal
	}{middleware.Memory(), journal.Memory()}
	client := openai.NewClient(option.WithAPIKey("any"), option.WithHTTPClient(model().Client()))
	loop := agent.New(client, tools, store, &agent.Options{On: tell})

	var chat []openai.ChatCompletionMessageParamUnion
	for i, text := range []string{
		"Book the blue room for May 4.", "Is it booked?", "Please cancel it.", "Is it cancelled?", "Book it again after all.",
	} {
		fmt.Println("user: ", text)
		run := agent.Run{ID: fmt.Sprint("message-", i+1), Conversation: "chat-7"}
		reply, err := loop.Chat(context.Background(), run, openai.ChatCompletionNewParams{
			Model: "scripted", Messages: append(chat, openai.UserMessage(text)),
		})
		if err != nil {
			log.Fatal(err)
		}
		chat = reply.Messages
	}
	fmt.Printf("the hotel has booked %d times and cancelled %d\n", h.booked, h.cancelled)
}

// tell prints what happens.
func tell(e agent.Event) {
	switch e.Kind {
	case agent.ResultGiven:
		var repeat registry.Envelope // has the first result; a tool's own output is none
		if json.Unmarshal([]byte(e.Text), &repeat) == nil && repeat.Status == registry.AlreadyDone {
			e.Text = string(repeat.Output)
		}
		fmt.Printf("  %s is %s: %s\n", e.Tool, e.Verdict, e.Text)
	case agent.TextDelta:
		fmt.Println("model:", e.Text)
	default: // there are more
	}
}

// model is the script: it calls a tool again where the user only asks.
func model() *transcript.Server {
	const book, cancel = `{"room":"blue","night":"2026-05-04"}`, `{"booking_id":"B1"}`
	call := func(id, tool, arguments string) transcript.Step {
		return transcript.Step{Calls: []transcript.ToolCall{{ID: id, Name: tool, Arguments: arguments}}}
	}
	return transcript.NewServer(transcript.Steps(
		call("call_1", "book_room", book), transcript.Step{Text: "It is booked, as B1."},
		call("call_2", "book_room", book), transcript.Step{Text: "It is, as B1."},
		call("call_3", "cancel_booking", cancel), transcript.Step{Text: "B1 is cancelled."},
		call("call_4", "cancel_booking", cancel), transcript.Step{Text: "It is."},
		call("call_5", "book_room", book), transcript.Step{Text: "It is booked, as B2."},
	), nil)
}
