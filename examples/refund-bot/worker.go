package main

import (
	"context"
	"fmt"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/examples/refund-bot/provider"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

// job is one message to answer.
type job struct {
	Run      string // the same on every attempt at the same message
	Message  string
	Guarded  bool
	DB       string // the ledger's file
	Model    string
	BaseURL  string // of the model
	APIKey   string
	Pay      string // the provider's address
	Provider provider.Kind
}

const (
	maxTurns = 12
	system   = "You refund orders with the tools given; amounts are in cents. Refund an order once. " +
		"If a tool says already_done or outcome_unknown, do not call it again: tell the user."
)

// work answers one message. Further middleware goes outside the guard.
func work(ctx context.Context, store *sqlitestore.Store, j job, chain ...registry.Middleware) (string, error) {
	if j.Guarded {
		chain = append(chain, middleware.Once(store, &middleware.OnceOptions{Wait: 5 * time.Second, Margin: time.Second})) // the only difference
	}
	tools := newTools(newPayments(j.Pay), j.Provider)
	client := openai.NewClient(option.WithBaseURL(j.BaseURL), option.WithAPIKey(j.APIKey), agent.SerialToolCalls(nil))
	return converse(ctx, &client, tools, tools.Handler(chain...), j)
}

// converse is the loop: the model is asked, its calls are answered, until it calls no more.
func converse(ctx context.Context, client *openai.Client, tools *registry.Registry, handle registry.Handler, j job) (string, error) {
	params := openai.ChatCompletionNewParams{
		Model:    j.Model,
		Tools:    agent.ChatTools(tools),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system), openai.UserMessage(j.Message)},
	}
	for range maxTurns {
		turn := agent.ChatTurn(params.Messages)
		answer, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			return "", modelError(err)
		}
		next, err := agent.AnswerChat(ctx, handle, agent.Run{ID: j.Run}, turn, answer, params.Messages...)
		if err != nil {
			return "", err
		}
		if len(next) == 0 {
			return answer.Choices[0].Message.Content, nil
		}
		params.Messages = append(params.Messages, next...)
	}
	return "", fmt.Errorf("the model did not come to an end in %d turns", maxTurns)
}
