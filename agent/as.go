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
// The error is a [*RefusalError] where the model refuses, an [*IncompleteError] where its answer was cut off, and a
// *registry.ArgumentError where it is no T; the reply is given beside each. With Options.Repair the model is asked once
// more in that last case, in a run of its own behind this one, in which no tools are called; the report is of both.
func ChatAs[T any](ctx context.Context, l *Loop, run Run, params openai.ChatCompletionNewParams, opts ...option.RequestOption) (T, *ChatReply, error) {
	f := newForm[T]()
	params.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
		JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: f.info.Name, Strict: openai.Bool(f.info.Strict), Schema: schema(f.info, string(params.Model))},
	}}
	r, err := l.Chat(ctx, run, params, opts...)
	if err != nil {
		return f.value, nil, err
	}
	err = f.readChat(ctx, r)
	if wrong, ok := errors.AsType[*registry.ArgumentError](err); ok && l.opts.Repair {
		params.Messages = append(slices.Clone(r.Messages), openai.SystemMessage(f.problem(wrong)), openai.UserMessage(again))
		params.Tools, params.ToolChoice = nil, openai.ChatCompletionToolChoiceOptionUnionParam{}
		first := r.Report
		if r, err = l.bare().Chat(ctx, repair(run), params, opts...); err != nil {
			return f.value, nil, err
		}
		r.Report = first.and(r.Report)
		err = f.readChat(ctx, r)
	}
	return f.value, r, err
}

func (f *form[T]) readChat(ctx context.Context, r *ChatReply) error {
	c := r.Choices[0]
	if c.Message.Refusal == "" && !finished(c.FinishReason, true) {
		return &IncompleteError{Reason: c.FinishReason}
	}
	return f.read(ctx, c.Message.Content, c.Message.Refusal)
}

// RespondAs is [ChatAs] on the Responses API.
func RespondAs[T any](ctx context.Context, l *Loop, run Run, params responses.ResponseNewParams, opts ...option.RequestOption) (T, *ResponseReply, error) {
	f := newForm[T]()
	params.Text.Format = responses.ResponseFormatTextConfigUnionParam{OfJSONSchema: &responses.ResponseFormatTextJSONSchemaConfigParam{
		Name: f.info.Name, Strict: openai.Bool(f.info.Strict), Schema: schema(f.info, string(params.Model)),
	}}
	r, err := l.Respond(ctx, run, params, opts...)
	if err != nil {
		return f.value, nil, err
	}
	err = f.readResponse(ctx, r)
	if wrong, ok := errors.AsType[*registry.ArgumentError](err); ok && l.opts.Repair {
		params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: append(slices.Clone(r.Items),
			responses.ResponseInputItemParamOfMessage(f.problem(wrong), responses.EasyInputMessageRoleSystem),
			responses.ResponseInputItemParamOfMessage(again, responses.EasyInputMessageRoleUser))}
		params.Tools, params.ToolChoice = nil, responses.ResponseNewParamsToolChoiceUnion{}
		first := r.Report
		if r, err = l.bare().Respond(ctx, repair(run), params, opts...); err != nil {
			return f.value, nil, err
		}
		r.Report = first.and(r.Report)
		err = f.readResponse(ctx, r)
	}
	return f.value, r, err
}

func (f *form[T]) readResponse(ctx context.Context, r *ResponseReply) error {
	refusal := refusalIn(r.Response)
	if err := incomplete(r.Response, 0); err != nil && refusal == "" {
		return err
	}
	return f.read(ctx, r.OutputText(), refusal)
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

// answerName is the name of a format: that of its type, without what a generic one has in brackets, as the API takes it.
func answerName(name string) string {
	name, _, _ = strings.Cut(name, "[")
	if name == "" || len(name) > maxChatName || name != (naming{maxName: maxChatName}).name(name) {
		return "answer"
	}
	return name
}

// read makes the value, or says what is wrong with the answer.
func (f *form[T]) read(ctx context.Context, text, refusal string) error {
	if refusal != "" {
		return &RefusalError{Text: refusal}
	}
	if !object(text) { // as arguments, nothing at all would be an empty object
		return fmt.Errorf("agent: the answer does not fit %s: %w", f.info.Name, &registry.ArgumentError{
			Tool: f.info.Name, Rule: "type", Message: "must be one JSON object, and nothing else",
		})
	}
	if _, err := f.handle(ctx, &registry.Call{Tool: f.info.Name, Arguments: text}); err != nil {
		return err
	}
	if f.refused != nil {
		return fmt.Errorf("agent: the answer does not fit %s: %w", f.info.Name, f.refused)
	}
	return nil
}

// again is the user's message of a repair. It is always the same, so that the run is found again by a program whose checks
// word their findings otherwise; what is wrong stands in a system message before it.
const again = "Answer again, with JSON that fits the schema and nothing else."

// problem says what is wrong with the answer that stands before it.
func (f *form[T]) problem(wrong *registry.ArgumentError) string {
	where := "it"
	if wrong.Path != "" {
		where = wrong.Path
	}
	return fmt.Sprintf("The last answer does not fit the schema of %s: %s: %s.", f.info.Name, where, wrong.Message)
}
