package agent

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/registry"
)

// RefusalError says that the model refuses to answer.
type RefusalError struct {
	// Text is what it says.
	Text string
}

func (e *RefusalError) Error() string {
	return "agent: the model refuses to answer: " + clipText(e.Text)
}

// ChatAs is [Loop.Chat] with the answer as a Go value. T is a struct; its schema is made and its value is checked as a
// tool's input is, so that a T that cannot be a strict schema panics at the first call.
//
// The error is a [*RefusalError] where the model refuses, and a *registry.ArgumentError where its answer is no T; the
// reply is given beside both. With Options.Repair the model is asked once more then, in a run of its own behind this one,
// in which no tools are called.
func ChatAs[T any](ctx context.Context, l *Loop, run Run, params openai.ChatCompletionNewParams, opts ...option.RequestOption) (T, *ChatReply, error) {
	f := newForm[T]()
	params.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: f.info.Name, Strict: openai.Bool(f.info.Strict), Schema: schema(f.info)},
	}}
	r, err := l.Chat(ctx, run, params, opts...)
	if err != nil {
		return f.value, nil, err
	}
	err = f.read(ctx, r.Choices[0].Message.Content, r.Choices[0].Message.Refusal)
	if wrong, ok := errors.AsType[*registry.ArgumentError](err); ok && l.opts.Repair {
		params.Messages = append(slices.Clone(r.Messages), openai.UserMessage(f.again(wrong)))
		params.Tools, params.ToolChoice = nil, openai.ChatCompletionToolChoiceOptionUnionParam{}
		if r, err = l.bare().Chat(ctx, repair(run), params, opts...); err != nil {
			return f.value, nil, err
		}
		err = f.read(ctx, r.Choices[0].Message.Content, r.Choices[0].Message.Refusal)
	}
	return f.value, r, err
}

// RespondAs is [ChatAs] on the Responses API.
func RespondAs[T any](ctx context.Context, l *Loop, run Run, params responses.ResponseNewParams, opts ...option.RequestOption) (T, *ResponseReply, error) {
	f := newForm[T]()
	params.Text.Format = responses.ResponseFormatTextConfigUnionParam{OfJSONSchema: &responses.ResponseFormatTextJSONSchemaConfigParam{
		Name: f.info.Name, Strict: openai.Bool(f.info.Strict), Schema: schema(f.info),
	}}
	r, err := l.Respond(ctx, run, params, opts...)
	if err != nil {
		return f.value, nil, err
	}
	err = f.read(ctx, r.OutputText(), refusalIn(r.Response))
	if wrong, ok := errors.AsType[*registry.ArgumentError](err); ok && l.opts.Repair {
		params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: append(slices.Clone(r.Items),
			responses.ResponseInputItemParamOfMessage(f.again(wrong), responses.EasyInputMessageRoleUser))}
		params.Tools, params.ToolChoice = nil, responses.ResponseNewParamsToolChoiceUnion{}
		if r, err = l.bare().Respond(ctx, repair(run), params, opts...); err != nil {
			return f.value, nil, err
		}
		err = f.read(ctx, r.OutputText(), refusalIn(r.Response))
	}
	return f.value, r, err
}

func refusalIn(r *responses.Response) string {
	var text strings.Builder
	for _, part := range gjson.Get(r.RawJSON(), `output.#.content.#(type=="refusal")#.refusal|@flatten`).Array() {
		text.WriteString(part.String())
	}
	return text.String()
}

// repair is the run in which the model is asked to mend its answer: it is resumed like any other.
func repair(run Run) Run {
	return Run{ID: run.ID + "/repair", Conversation: run.Conversation}
}

// bare is the loop without tools: whatever the model calls is refused.
func (l *Loop) bare() *Loop { return New(l.client, registry.New(), l.store, &l.opts) }

// form makes a T of an answer, by the means that make a tool's input.
type form[T any] struct {
	info    *registry.Info
	handle  registry.Handler
	value   T
	refused error
}

func newForm[T any]() *form[T] {
	f := &form[T]{}
	tools := registry.New()
	registry.Add(tools, registry.Tool[T, string]{
		Name: answerName(reflect.TypeFor[T]().Name()), Effect: registry.Read,
		Run: func(_ context.Context, v T) (string, error) {
			f.value = v
			return "", nil
		},
	})
	f.info = tools.Tools()[0]
	f.handle = tools.Handler(func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
			f.refused = c.Refusal()
			return next(ctx, c)
		}
	})
	return f
}

// answerName is the name of a format: that of its type, without what a generic one has in brackets.
func answerName(name string) string {
	name, _, _ = strings.Cut(name, "[")
	if name == "" || len(name) > maxChatName {
		return "answer"
	}
	return name
}

// read makes the value, or says what is wrong with the answer.
func (f *form[T]) read(ctx context.Context, text, refusal string) error {
	if refusal != "" {
		return &RefusalError{Text: refusal}
	}
	if _, err := f.handle(ctx, &registry.Call{Tool: f.info.Name, Arguments: text}); err != nil {
		return err
	}
	if f.refused != nil {
		return fmt.Errorf("agent: the answer does not fit %s: %w", f.info.Name, f.refused)
	}
	return nil
}

// again asks for another answer. It does not repeat the wrong one, which stands before it.
func (f *form[T]) again(wrong *registry.ArgumentError) string {
	return fmt.Sprintf("Your answer does not fit the schema of %s: at %s: %s. Answer again, with JSON that fits and nothing else.", f.info.Name, wrong.Path, wrong.Message)
}
