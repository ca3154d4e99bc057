package agent_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// The whole loop. The model asks for the same refund twice; the money moves once. The same run again is answered from
// the record, without a request.
func ExampleLoop_Chat() {
	ctx, paid := context.Background(), 0
	client := openai.NewClient(option.WithAPIKey("any"), repeating())
	trial := struct { // sqlitestore.Open in production
		middleware.Ledger
		journal.Journal
	}{middleware.Memory(), journal.Memory()}
	loop := agent.New(client, refunds(&paid), trial, nil)

	params := openai.ChatCompletionNewParams{
		Model:    "gpt-4.1-nano",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Refund order R-7.")},
	}
	for range 2 {
		reply, err := loop.Chat(ctx, agent.Run{ID: "ticket-42"}, params)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(reply.Choices[0].Message.Content, "Paid:", paid, "Resumed:", reply.Report.Resumed)
		for _, c := range reply.Report.Calls {
			fmt.Println(" ", c.Tool, c.CallID, c.Verdict)
		}
	}
	// Output:
	// Refunded. Paid: 1 Resumed: false
	//   refund call_a executed
	//   refund call_b already_done
	// Refunded. Paid: 1 Resumed: true
	//   refund call_a executed
	//   refund call_b already_done
}

// A run as it happens.
func ExampleLoop_StreamChat() {
	ctx, paid := context.Background(), 0
	client := openai.NewClient(option.WithAPIKey("any"), repeating())
	trial := struct {
		middleware.Ledger
		journal.Journal
	}{middleware.Memory(), journal.Memory()}
	loop := agent.New(client, refunds(&paid), trial, nil)

	params := openai.ChatCompletionNewParams{
		Model:    "gpt-4.1-nano",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Refund order R-7.")},
	}
	for event, err := range loop.StreamChat(ctx, agent.Run{ID: "ticket-42"}, params) {
		if err != nil {
			fmt.Println(err) // the same run again goes on behind its last turn
			return
		}
		switch event.Kind {
		case agent.ArgumentsComplete:
			fmt.Println("the model asks for", event.Tool, event.Text)
		case agent.VerdictGiven:
			fmt.Println(event.CallID, "is", event.Verdict)
		case agent.TextDelta:
			fmt.Print(event.Text)
		case agent.Answered:
			fmt.Println("\nturns:", len(event.Chat.Report.Usage), "paid:", paid)
		default: // there are more
		}
	}
	// Output:
	// the model asks for refund {"order":"R-7","cents":500}
	// the model asks for refund {"order":"R-7","cents":500}
	// call_a is executed
	// call_b is already_done
	// Refunded.
	// turns: 2 paid: 1
}

// A history that broke off in the middle of a tool call, which the API would refuse.
func ExampleCheckChat() {
	params := openai.ChatCompletionNewParams{Messages: []openai.ChatCompletionMessageParamUnion{
		openai.UserMessage("Refund order R-7."),
		{OfAssistant: &openai.ChatCompletionAssistantMessageParam{ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: "call_a", Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "refund", Arguments: `{"order":"R-7"`},
			},
		}}}},
		openai.UserMessage("Well?"),
	}}
	params, mends := agent.CheckChat(params)
	for _, m := range mends {
		fmt.Println(m)
	}
	fmt.Println(len(params.Messages), "messages")
	// Output:
	// 1: call "call_a": its arguments are no JSON object: an object stands for them
	// 1: call "call_a": it has no output: an output stands there that says that its outcome is not known
	// 4 messages
}

// A call that a person must allow. The run pauses, and goes on, here or in another process, once somebody has answered.
func ExampleLoop_Approve() {
	ctx := context.Background()
	tools := registry.New()
	registry.Add(tools, registry.Tool[order, string]{
		Name: "refund", Description: "Refund an order.", Effect: registry.NonIdempotentWrite,
		NeedsApproval: func(_ context.Context, in order) (bool, error) { return in.Cents >= 500, nil },
		Run:           func(context.Context, order) (string, error) { return "refunded", nil },
	})
	trial := struct { // sqlitestore.Open in production
		*middleware.MemoryLedger
		*journal.MemoryJournal
	}{middleware.Memory(), journal.Memory()}
	loop := agent.New(openai.NewClient(option.WithAPIKey("any"), repeating()), tools, trial, nil)

	params := openai.ChatCompletionNewParams{
		Model:    "gpt-4.1-nano",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Refund order R-7.")},
	}
	_, err := loop.Chat(ctx, agent.Run{ID: "ticket-42"}, params)
	paused, ok := errors.AsType[*middleware.PausedError](err)
	if !ok {
		fmt.Println(err)
		return
	}
	first := paused.Waiting[0]
	fmt.Println("waiting:", first.Call.Tool, string(first.Input))
	if err := loop.Approve(ctx, first, "ann", "the photos show it"); err != nil {
		fmt.Println(err)
		return
	}
	reply, err := loop.Chat(ctx, agent.Run{ID: "ticket-42"}, params)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range reply.Report.Calls {
		fmt.Println(c.CallID, c.Verdict)
	}
	fmt.Println(reply.Choices[0].Message.Content)
	// Output:
	// waiting: refund {"cents":500,"order":"R-7"}
	// call_a executed
	// call_b already_done
	// Refunded.
}
