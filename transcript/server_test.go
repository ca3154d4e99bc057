package transcript_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/toolonce/toolonce/transcript"
)

// onWire is the real SDK client against the server over a real connection.
func onWire(t *testing.T, s *transcript.Server, opts ...option.RequestOption) *openai.Client {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	return client(append([]option.RequestOption{option.WithBaseURL(h.URL + "/v1")}, opts...)...)
}

// inProcess is the real SDK client without a socket.
func inProcess(s *transcript.Server, opts ...option.RequestOption) *openai.Client {
	return client(append([]option.RequestOption{
		option.WithBaseURL("http://model.invalid/v1"), option.WithHTTPClient(s.Client()),
	}, opts...)...)
}

func client(opts ...option.RequestOption) *openai.Client {
	c := openai.NewClient(append([]option.RequestOption{option.WithAPIKey("test"), option.WithMaxRetries(0)}, opts...)...)
	return &c
}

const noteSchema = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`

func schema(t *testing.T) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(noteSchema), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func chatTools(t *testing.T) []openai.ChatCompletionToolUnionParam {
	return []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "add_note", Strict: openai.Bool(true), Parameters: schema(t),
	})}
}

func chatParams(t *testing.T, messages ...openai.ChatCompletionMessageParamUnion) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "demo-model", Messages: messages, Tools: chatTools(t), ParallelToolCalls: openai.Bool(false)}
}

func responseParams(t *testing.T, items ...responses.ResponseInputItemUnionParam) responses.ResponseNewParams {
	return responses.ResponseNewParams{
		Model: "demo-model", Input: responses.ResponseNewParamsInputUnion{OfInputItemList: items},
		Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction("add_note", schema(t), true)},
	}
}

func userItem(text string) responses.ResponseInputItemUnionParam {
	return responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleUser)
}

func outputItem(callID, output string) responses.ResponseInputItemUnionParam {
	it := responses.ResponseInputItemParamOfFunctionCallOutput(output)
	it.OfFunctionCallOutput.CallID = param.NewOpt(callID)
	return it
}

// sentBack is a response's output as input, byte for byte.
func sentBack(r *responses.Response) []responses.ResponseInputItemUnionParam {
	var out []responses.ResponseInputItemUnionParam
	for _, it := range r.Output {
		out = append(out, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(it.RawJSON())))
	}
	return out
}

// twoNotes says something and calls twice, then ends.
func twoNotes() transcript.Script {
	return transcript.Steps(
		transcript.Step{
			Text: "Two notes, ein Gruß.",
			Calls: []transcript.ToolCall{
				{ID: "call_a", Name: "add_note", Arguments: `{"text":"Grüße, 12345678901234567890"}`},
				{ID: "call_b", Name: "add_note", Arguments: `{"text":"b"}`},
			},
			Model:     "demo-model-2026-01-01",
			Reasoning: "They want two notes.",
		},
		transcript.Step{Text: "Done."},
	)
}

func TestChatAnswersTheScriptTurnByTurn(t *testing.T) {
	s := transcript.NewServer(twoNotes(), nil)
	c := onWire(t, s)
	params := chatParams(t, openai.UserMessage("Two notes please."))
	first, err := c.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	m := first.Choices[0].Message
	check(t, "first turn", []string{first.Model, first.Choices[0].FinishReason, m.Content, m.ToolCalls[0].ID, m.ToolCalls[0].Function.Arguments, m.ToolCalls[1].ID},
		[]string{"demo-model-2026-01-01", "tool_calls", "Two notes, ein Gruß.", "call_a", `{"text":"Grüße, 12345678901234567890"}`, "call_b"})
	params.Messages = append(params.Messages, m.ToParam(), openai.ToolMessage("ok a", "call_a"), openai.ToolMessage("ok b", "call_b"))
	second, err := c.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "second turn", []string{second.Model, second.Choices[0].FinishReason, second.Choices[0].Message.Content}, []string{"demo-model", "stop", "Done."})

	got := s.Requests()
	check(t, "turns", []int{got[0].Turn, got[1].Turn}, []int{1, 2})
	check(t, "statuses", []int{got[0].Status, got[1].Status}, []int{200, 200})
	check(t, "history", got[1].Messages, []transcript.Message{
		{Role: "user", Content: "Two notes please."},
		{Role: "assistant", Content: "Two notes, ein Gruß.", ToolCalls: []transcript.ToolCall{
			{ID: "call_a", Name: "add_note", Arguments: `{"text":"Grüße, 12345678901234567890"}`},
			{ID: "call_b", Name: "add_note", Arguments: `{"text":"b"}`},
		}},
		{Role: "tool", ToolCallID: "call_a", Content: "ok a"},
		{Role: "tool", ToolCallID: "call_b", Content: "ok b"},
	})
	check(t, "outputs", got[1].Outputs(), got[1].Messages[2:])
	if !strings.Contains(string(got[0].Body), `"parallel_tool_calls":false`) || got[0].Path != "/v1/chat/completions" || got[0].API != "chat" {
		t.Errorf("journal: %s %s %s", got[0].API, got[0].Path, got[0].Body)
	}
}

// streamed is a chat stream put together by hand.
type streamed struct {
	Content, Finish string
	Calls           []transcript.ToolCall
	Chunks, Usage   int64
}

func accumulate(t *testing.T, c *openai.Client, params openai.ChatCompletionNewParams) (streamed, error) {
	t.Helper()
	st := c.Chat.Completions.NewStreaming(t.Context(), params)
	defer func() { _ = st.Close() }()
	var out streamed
	for st.Next() {
		chunk := st.Current()
		out.Chunks++
		out.Usage = max(out.Usage, chunk.Usage.TotalTokens)
		for _, ch := range chunk.Choices {
			out.Content += ch.Delta.Content
			out.Finish += ch.FinishReason
			for _, d := range ch.Delta.ToolCalls {
				for int64(len(out.Calls)) <= d.Index {
					out.Calls = append(out.Calls, transcript.ToolCall{})
				}
				out.Calls[d.Index].ID += d.ID
				out.Calls[d.Index].Name += d.Function.Name
				out.Calls[d.Index].Arguments += d.Function.Arguments
			}
		}
	}
	return out, st.Err()
}

func TestChatStreamDeliversTheSameInPieces(t *testing.T) {
	params := chatParams(t, openai.UserMessage("Two notes please."))
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	got, err := accumulate(t, onWire(t, transcript.NewServer(twoNotes(), nil)), params)
	if err != nil {
		t.Fatal(err)
	}
	if got.Chunks < 10 || got.Usage == 0 {
		t.Errorf("%d chunks, usage %d", got.Chunks, got.Usage)
	}
	got.Chunks, got.Usage = 0, 0
	check(t, "stream", got, streamed{
		Content: "Two notes, ein Gruß.", Finish: "tool_calls",
		Calls: []transcript.ToolCall{
			{ID: "call_a", Name: "add_note", Arguments: `{"text":"Grüße, 12345678901234567890"}`},
			{ID: "call_b", Name: "add_note", Arguments: `{"text":"b"}`},
		},
	})
}

func TestChatStreamHasNoUsageUnlessAsked(t *testing.T) {
	got, err := accumulate(t, inProcess(transcript.NewServer(twoNotes(), nil)), chatParams(t, openai.UserMessage("x")))
	if err != nil || got.Usage != 0 {
		t.Errorf("usage %d, error %v", got.Usage, err)
	}
}

func TestIDsGoOutAsScripted(t *testing.T) {
	calls := []transcript.ToolCall{{ID: "", Name: "add_note", Arguments: "{}"}, {ID: "", Name: "add_note", Arguments: "no JSON"}}
	s := transcript.NewServer(transcript.Steps(transcript.Step{Calls: calls}), nil)
	whole, err := inProcess(s).Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x")))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range whole.Choices[0].Message.ToolCalls {
		check(t, "call", transcript.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}, calls[i])
	}
	if whole.Choices[0].Message.JSON.Content.Raw() != "null" {
		t.Errorf("content %s, want null", whole.Choices[0].Message.JSON.Content.Raw())
	}
	got, err := accumulate(t, inProcess(s), chatParams(t, openai.UserMessage("x")))
	if err != nil {
		t.Fatal(err)
	}
	check(t, "streamed", got.Calls, calls)
	resp, err := inProcess(s).Responses.New(t.Context(), responseParams(t, userItem("x")))
	if err != nil {
		t.Fatal(err)
	}
	if id := resp.Output[0].CallID; id != "" {
		t.Errorf("call_id %q, want none", id)
	}
}

func TestFinishReasonAndTextMayContradictTheCalls(t *testing.T) {
	for reason, step := range map[string]transcript.Step{
		"stop":       {FinishReason: "stop"},
		"tool_calls": {FinishReason: "tool_calls"},
	} {
		chat, err := inProcess(transcript.NewServer(transcript.Steps(step), nil)).Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x")))
		if err != nil || chat.Choices[0].FinishReason != reason || len(chat.Choices[0].Message.ToolCalls) != 0 {
			t.Errorf("%s: %v, %v", reason, chat, err)
		}
	}
}

func TestRawGoesOutAsItIs(t *testing.T) {
	s := transcript.NewServer(transcript.Steps(transcript.Step{Raw: "data: {\"choices\":[]}\n\n"}), nil)
	got, err := accumulate(t, inProcess(s), chatParams(t, openai.UserMessage("x")))
	if err != nil || got.Chunks != 1 {
		t.Errorf("%d chunks, error %v", got.Chunks, err)
	}
}

func TestEqualRequestsGetEqualAnswers(t *testing.T) {
	answer := func(s *transcript.Server) string {
		st, body := post(t, s, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}]}`)
		if st != 200 {
			t.Fatalf("status %d: %s", st, body)
		}
		return body
	}
	s := transcript.NewServer(twoNotes(), nil)
	first := answer(s)
	check(t, "retried", answer(s), first)
	check(t, "another server", answer(transcript.NewServer(twoNotes(), nil)), first)
	check(t, "attempts", []int{s.Requests()[0].Attempt, s.Requests()[1].Attempt}, []int{1, 2})
}

func TestAFunctionOfTheHistoryServesManyConversations(t *testing.T) {
	s := transcript.NewServer(func(r transcript.Request) transcript.Step {
		if r.Turn == 1 {
			return transcript.Step{Calls: []transcript.ToolCall{{ID: "c", Name: "add_note", Arguments: `{"text":"` + r.FirstUser() + `"}`}}}
		}
		return transcript.Step{Text: r.FirstUser() + ": " + r.Outputs()[0].Content}
	}, nil)
	c := inProcess(s)
	done := make(chan string)
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, name := range names {
		go func() {
			text, err := converse(context.Background(), c, chatParams(t, openai.UserMessage(name)))
			if err != nil {
				text = err.Error()
			}
			done <- text
		}()
	}
	got := map[string]bool{}
	for range names {
		got[<-done] = true
	}
	for _, name := range names {
		if !got[name+": noted "+name] {
			t.Errorf("no answer for %s in %v", name, got)
		}
	}
	check(t, "requests", len(s.Requests()), 16)
}

// converse is a loop of two turns whose tool notes the first user message.
func converse(ctx context.Context, c *openai.Client, params openai.ChatCompletionNewParams) (string, error) {
	name := params.Messages[0].OfUser.Content.OfString.Value
	first, err := c.Chat.Completions.New(ctx, params)
	if err != nil {
		return "", err
	}
	params.Messages = append(params.Messages, first.Choices[0].Message.ToParam(), openai.ToolMessage("noted "+name, "c"))
	second, err := c.Chat.Completions.New(ctx, params)
	if err != nil {
		return "", err
	}
	return second.Choices[0].Message.Content, nil
}

func TestAScriptWithoutAnAnswerIsNamedAndNotRetried(t *testing.T) {
	s := transcript.NewServer(transcript.Steps(), nil)
	_, err := inProcess(s, option.WithMaxRetries(2)).Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("Lost?")))
	wantRefusal(t, err, http.StatusNotImplemented, `transcript: no step for turn 1 of the conversation that begins "Lost?"`, "", "unscripted")
	check(t, "requests", len(s.Requests()), 1)
}

func TestPiecesOfAStreamKeepCharactersWhole(t *testing.T) {
	for n := range 12 {
		text := strings.Repeat("ß€", n) + "😀"
		s := transcript.NewServer(transcript.Steps(transcript.Step{Text: text}), nil)
		got, err := accumulate(t, inProcess(s), chatParams(t, openai.UserMessage("x")))
		if err != nil {
			t.Fatal(err)
		}
		check(t, "text", got.Content, text)
	}
}
