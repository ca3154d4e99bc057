package main

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/examples/refund-bot/provider"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// job is one message to answer.
type job struct {
	Run      string // the same on every attempt at the same message
	Message  string
	Guarded  bool
	DB       string // the file of ledger and journal
	API      string // chatAPI or responsesAPI
	Stream   bool
	Model    string
	BaseURL  string // of the model
	APIKey   string
	Pay      string // the provider's address
	Provider provider.Kind
}

const (
	chatAPI      = "chat"
	responsesAPI = "responses"
)

const (
	maxTurns = 12
	system   = "You refund orders with the tools given; amounts are in cents. Refund an order once. " +
		"If a tool says already_done or outcome_unknown, do not call it again: tell the user."
)

// work answers one message, and says the answer, in pieces as they arrive where it is streamed. asked is how many
// requests that took, none for an answer that was saved before. Further middleware goes outside the guard.
func work(ctx context.Context, store agent.Store, j job, say func(string), chain ...registry.Middleware) (asked int, err error) {
	count := func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		asked++
		return next(r)
	}
	loop := agent.New(j.client(option.WithMiddleware(count)), j.tools(), store, &agent.Options{
		MaxTurns: maxTurns, Middleware: chain,
		Once: &middleware.OnceOptions{Wait: 5 * time.Second, Margin: time.Second},
	})
	err = j.ask(ctx, loop, say)
	return asked, err
}

func (j job) client(opts ...option.RequestOption) openai.Client {
	return openai.NewClient(append(opts, option.WithBaseURL(j.BaseURL), option.WithAPIKey(j.APIKey))...)
}

func (j job) tools() *registry.Registry { return newTools(newPayments(j.Pay), j.Provider) }

// ask puts the message to the loop, in one of four ways.
func (j job) ask(ctx context.Context, loop *agent.Loop, say func(string)) error {
	run := agent.Run{ID: j.Run}
	switch {
	case j.Stream && j.API == responsesAPI:
		return listen(loop.StreamRespond(ctx, run, j.response()), say)
	case j.Stream:
		return listen(loop.StreamChat(ctx, run, j.chat()), say)
	case j.API == responsesAPI:
		reply, err := loop.Respond(ctx, run, j.response())
		if err == nil {
			say(reply.OutputText())
		}
		return err
	}
	reply, err := loop.Chat(ctx, run, j.chat())
	if err == nil {
		say(reply.Choices[0].Message.Content)
	}
	return err
}

// listen says the text as it arrives.
func listen(events iter.Seq2[agent.Event, error], say func(string)) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if e.Kind == agent.TextDelta {
			say(e.Text)
		}
	}
	return nil
}

func (j job) chat() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    j.Model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(system), openai.UserMessage(j.Message)},
	}
}

func (j job) response() responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: j.Model, Instructions: openai.String(system),
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
			responses.ResponseInputItemParamOfMessage(j.Message, responses.EasyInputMessageRoleUser),
		}},
	}
}
