package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/registry"
)

// bare is a loop as many are written: the model is asked, its calls are run, until it calls no more. It remembers nothing.
func bare(ctx context.Context, j job) error {
	client, tools := j.client(), j.tools()
	turn := bareChat(client, tools, j)
	if j.API == responsesAPI {
		turn = bareResponses(client, tools, j)
	}
	for range maxTurns {
		if end, err := turn(ctx); end || err != nil {
			return err
		}
	}
	return fmt.Errorf("the model did not come to an end in %d turns", maxTurns)
}

// bareTurn asks the model once and runs its calls. Without calls it is the end.
type bareTurn func(ctx context.Context) (end bool, err error)

func bareChat(client openai.Client, tools *registry.Registry, j job) bareTurn {
	handle, params := tools.Handler(), j.chat()
	params.Tools = agent.ChatTools(tools)
	ask := client.Chat.Completions.New
	if j.Stream {
		ask = func(ctx context.Context, p openai.ChatCompletionNewParams, opts ...option.RequestOption) (*openai.ChatCompletion, error) {
			var all openai.ChatCompletionAccumulator
			s := client.Chat.Completions.NewStreaming(ctx, p, opts...)
			for s.Next() {
				all.AddChunk(s.Current())
			}
			return &all.ChatCompletion, errors.Join(s.Err(), s.Close())
		}
	}
	return func(ctx context.Context) (bool, error) {
		answer, err := ask(ctx, params)
		if err != nil {
			return false, err
		}
		next, err := agent.AnswerChat(ctx, handle, agent.Run{ID: j.Run}, agent.ChatTurn(params.Messages), answer, params.Messages...)
		if err != nil {
			return false, err
		}
		params.Messages = append(params.Messages, next...)
		return len(next) == 0, nil
	}
}

func bareResponses(client openai.Client, tools *registry.Registry, j job) bareTurn {
	handle, params, turns := tools.Handler(), j.response(), 0
	params.Tools = agent.ResponseTools(tools)
	ask := client.Responses.New
	if j.Stream {
		ask = func(ctx context.Context, p responses.ResponseNewParams, opts ...option.RequestOption) (last *responses.Response, err error) {
			s := client.Responses.NewStreaming(ctx, p, opts...)
			for s.Next() {
				e := s.Current()
				last = &e.Response
			}
			return last, errors.Join(s.Err(), s.Close())
		}
	}
	return func(ctx context.Context) (bool, error) {
		answer, err := ask(ctx, params)
		if err != nil {
			return false, err
		}
		turns++
		items := &params.Input.OfInputItemList
		next, err := agent.AnswerResponse(ctx, handle, agent.Run{ID: j.Run}, turns, answer, *items...)
		if err != nil {
			return false, err
		}
		*items = append(*items, next...)
		return len(next) == 0, nil
	}
}
