package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/registry"
)

// play gives a recorded answer to the SDK and what it hands on to the accumulators: it is the answer as JSON. Where the
// answer was streamed, it must not be had before its last words.
func play(t *testing.T, r recorded) json.RawMessage {
	t.Helper()
	kind := "application/json"
	if r.stream() {
		kind = "text/event-stream"
	}
	client := playing(kind, io.NopCloser(strings.NewReader(r.response)))
	switch {
	case r.chat() && r.stream():
		stream := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{})
		return playStream(t, stream, func(c openai.ChatCompletionChunk) string { return c.RawJSON() }, func() accumulator { return &chatStream{} })
	case r.stream():
		stream := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{})
		return playStream(t, stream, func(e responses.ResponseStreamEventUnion) string { return e.RawJSON() }, func() accumulator { return &responseStream{} })
	case r.chat():
		c, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{})
		if err != nil {
			t.Fatal(err)
		}
		return json.RawMessage(c.RawJSON())
	}
	c, err := client.Responses.New(t.Context(), responses.ResponseNewParams{})
	if err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(c.RawJSON())
}

func playStream[T any](t *testing.T, stream *ssestream.Stream[T], raw func(T) string, fresh func() accumulator) json.RawMessage {
	t.Helper()
	var events []string
	ended := 0
	for stream.Next() {
		e := raw(stream.Current())
		events = append(events, e)
		if ended == 0 && (gjson.Get(e, "choices.0.finish_reason").String() != "" || gjson.Get(e, "type").String() == "response.completed") {
			ended = len(events)
		}
	}
	if stream.Err() != nil || ended == 0 {
		t.Fatal(stream.Err(), ended)
	}
	for n := range len(events) + 1 {
		a := fresh()
		for _, e := range events[:n] {
			if _, err := a.add(e); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := a.answer()
		if (err == nil) != (n >= ended) {
			t.Fatalf("after %d of %d events: %v", n, len(events), err)
		}
		if n == len(events) {
			return answer
		}
	}
	return nil
}

// recordedCall is a call as the recording itself shows it.
type recordedCall struct{ ID, Name, Arguments string }

// callsOf are the calls of an answer, read by nothing but encoding/json.
func callsOf(t *testing.T, raw json.RawMessage) []recordedCall {
	t.Helper()
	var answer struct {
		Choices []struct{ Message recordedMessage }
		Output  []recordedItem
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	calls := itemCalls(answer.Output)
	for _, c := range answer.Choices {
		calls = append(calls, c.Message.calls()...)
	}
	return calls
}

type recordedMessage struct {
	ToolCalls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func (m recordedMessage) calls() (calls []recordedCall) {
	for _, c := range m.ToolCalls {
		calls = append(calls, recordedCall{c.ID, c.Function.Name, c.Function.Arguments})
	}
	return calls
}

type recordedItem struct {
	Type, Name string
	CallID     string `json:"call_id"`
	Arguments  any    // a string in a function_call
}

func itemCalls(items []recordedItem) (calls []recordedCall) {
	for _, i := range items {
		if i.Type == "function_call" {
			calls = append(calls, recordedCall{i.CallID, i.Name, i.Arguments.(string)})
		}
	}
	return calls
}

// history are the calls that the recording client has sent in a request. They begin with those of the turns before.
func history(t *testing.T, request json.RawMessage) (calls []recordedCall) {
	t.Helper()
	var body struct {
		Messages []recordedMessage
		Input    json.RawMessage
	}
	if err := json.Unmarshal(request, &body); err != nil {
		t.Fatal(err)
	}
	for _, m := range body.Messages {
		calls = append(calls, m.calls()...)
	}
	var items []recordedItem
	if len(body.Input) > 0 && body.Input[0] == '[' {
		if err := json.Unmarshal(body.Input, &items); err != nil {
			t.Fatal(err)
		}
	}
	return append(calls, itemCalls(items)...)
}

// announcedIDs are the ids of calls in a streamed or whole answer, each once, in order, found without any reader of streams.
func announcedIDs(body string) []string {
	var ids []string
	seen := map[string]bool{"": true}
	note := func(v gjson.Result) {
		if id := v.String(); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data:"); ok {
			for _, id := range gjson.Get(data, "choices.0.delta.tool_calls.#.id").Array() {
				note(id)
			}
			if gjson.Get(data, "item.type").String() == "function_call" {
				note(gjson.Get(data, "item.call_id"))
			}
		}
	}
	return ids
}

// answered gives an answer to a handler that says its arguments again: the calls it saw and the ids that were answered.
func answered(t *testing.T, r recorded, raw json.RawMessage) (calls []recordedCall, ids []string) {
	t.Helper()
	echo := func(_ context.Context, c *registry.Call) (registry.Result, error) {
		calls = append(calls, recordedCall{c.ID, c.Tool, c.Arguments})
		return registry.Result{Content: c.Arguments, Verdict: registry.Executed}, nil
	}
	var out any
	var err error
	if r.chat() {
		var c openai.ChatCompletion
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		out, err = AnswerChat(t.Context(), echo, Run{ID: "r"}, 1, &c)
	} else {
		var c responses.Response
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatal(err)
		}
		out, err = AnswerResponse(t.Context(), echo, Run{ID: "r"}, 1, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	sent, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range gjson.ParseBytes(sent).Array() {
		if m.Get("role").String() == "tool" || m.Get("type").String() == "function_call_output" {
			ids = append(ids, m.Get("tool_call_id").String()+m.Get("call_id").String())
		}
	}
	return calls, ids
}

func TestFieldCassettesReadAsTheirClientsReadThem(t *testing.T) {
	streams, whole, calls, histories := 0, 0, 0, 0
	for name, list := range cassettes(t) {
		before := 0 // calls of the turns before
		for i, r := range list {
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				raw := play(t, r)
				got := callsOf(t, raw)
				if r.stream() {
					streams++
					var ids []string
					for _, c := range got {
						ids = append(ids, c.ID)
					}
					if diff := cmp.Diff(announcedIDs(r.response), ids); diff != "" {
						t.Error(diff)
					}
				} else {
					whole++
				}
				seen, ids := answered(t, r, raw)
				if diff := cmp.Diff(got, seen); diff != "" {
					t.Error(diff)
				}
				for i, c := range got {
					if len(ids) != len(got) || ids[i] != c.ID {
						t.Errorf("answered %q for %v", ids, got)
						break
					}
				}
				calls += len(got)
				if i+1 == len(list) {
					return
				}
				want := history(t, list[i+1].request)[before:]
				histories += len(want)
				before += len(want)
				sameCalls(t, want, got)
			})
		}
	}
	t.Logf("%d streams and %d whole answers with %d calls, %d of them also in the history that their client sent", streams, whole, calls, histories)
	if streams < 10 || whole < 7 || calls < 12 || histories < 10 {
		t.Error("too few to show anything")
	}
}

// sameCalls compares with the history that a client has sent. One client replaced the arguments by text of its own.
func sameCalls(t *testing.T, want, got []recordedCall) {
	t.Helper()
	for i := range min(len(want), len(got)) {
		if !json.Valid([]byte(want[i].Arguments)) {
			want[i].Arguments = got[i].Arguments
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
