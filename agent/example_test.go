package agent_test

import (
	"context"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// repeating is a model that asks for the same refund twice in one answer.
func repeating() option.RequestOption {
	const args = `{"order":"R-7","cents":500}`
	server := transcript.NewServer(transcript.Steps(
		transcript.Step{Calls: []transcript.ToolCall{{ID: "call_a", Name: "refund", Arguments: args}, {ID: "call_b", Name: "refund", Arguments: args}}},
		transcript.Step{Text: "Refunded."},
	), nil)
	return option.WithHTTPClient(server.Client())
}

func refunds(paid *int) *registry.Registry {
	tools := registry.New()
	registry.Add(tools, registry.Tool[order, string]{
		Name: "refund", Description: "Refund an order.", Effect: registry.NonIdempotentWrite,
		Run: func(context.Context, order) (string, error) {
			*paid++
			return "refunded", nil
		},
	})
	return tools
}

// An own loop on Chat Completions.
func ExampleAnswerChat() {
	ctx, paid := context.Background(), 0
	tools := refunds(&paid)
	handle := tools.Handler(middleware.Once(middleware.Memory(), nil)) // the guard
	client := openai.NewClient(option.WithAPIKey("any"), repeating(), agent.SerialToolCalls())

	params := openai.ChatCompletionNewParams{
		Model: "gpt-4.1-nano", Tools: agent.ChatTools(tools),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Refund order R-7.")},
	}
	for {
		turn := agent.ChatTurn(params.Messages)
		c, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			fmt.Println(err)
			return
		}
		next, err := agent.AnswerChat(ctx, handle, agent.Run{ID: "ticket-42"}, turn, c, params.Messages...)
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(next) == 0 {
			fmt.Println(c.Choices[0].Message.Content, "Paid:", paid)
			return
		}
		params.Messages = append(params.Messages, next...)
	}
	// Output: Refunded. Paid: 1
}

// An own loop on the Responses API.
func ExampleAnswerResponse() {
	ctx, paid := context.Background(), 0
	tools := refunds(&paid)
	handle := tools.Handler(middleware.Once(middleware.Memory(), nil)) // the guard
	client := openai.NewClient(option.WithAPIKey("any"), repeating(), agent.SerialToolCalls())

	params := responses.ResponseNewParams{Model: "gpt-4.1-nano", Tools: agent.ResponseTools(tools)}
	params.Input.OfInputItemList = responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("Refund order R-7.", "user")}
	for turn := 1; ; turn++ {
		r, err := client.Responses.New(ctx, params)
		if err != nil {
			fmt.Println(err)
			return
		}
		next, err := agent.AnswerResponse(ctx, handle, agent.Run{ID: "ticket-42"}, turn, r, params.Input.OfInputItemList...)
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(next) == 0 {
			fmt.Println(r.OutputText(), "Paid:", paid)
			return
		}
		params.Input.OfInputItemList = append(params.Input.OfInputItemList, next...)
	}
	// Output: Refunded. Paid: 1
}

// Rules of one's own, before the table: a deployment whose model is not in its name.
func ExampleSerialToolCalls() {
	client := openai.NewClient(option.WithAPIKey("any"), agent.SerialToolCalls(
		agent.ParallelRule{Model: "team-bot-o4", Action: agent.OmitParallel},
		agent.ParallelRule{Model: "team-bot-*"}, // never several calls at once
	))
	_ = client
}
