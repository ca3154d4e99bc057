package transcript_test

import (
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/transcript"
)

func TestResponsesAnswerTheScriptTurnByTurn(t *testing.T) {
	s := transcript.NewServer(twoNotes(), nil)
	c := onWire(t, s)
	params := responseParams(t, userItem("Two notes please."))
	params.Store = openai.Bool(false)
	params.Instructions = openai.String("Keep notes.")
	first, err := c.Responses.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, it := range first.Output {
		prefix, _, _ := strings.Cut(it.ID, "_")
		kinds = append(kinds, it.Type+" "+prefix)
	}
	check(t, "items", kinds, []string{"reasoning rs", "message msg", "function_call fc", "function_call fc"})
	call := first.Output[2].AsFunctionCall()
	check(t, "call", []string{call.CallID, call.Name, call.Arguments, string(call.Status)},
		[]string{"call_a", "add_note", `{"text":"Grüße, 12345678901234567890"}`, "completed"})
	if first.Output[0].EncryptedContent == "" || first.OutputText() != "Two notes, ein Gruß." || first.Status != "completed" {
		t.Errorf("response %s", first.RawJSON())
	}
	items := append(params.Input.OfInputItemList, sentBack(first)...)
	params.Input.OfInputItemList = append(items, outputItem("call_a", "ok a"), outputItem("call_b", "ok b"))
	second, err := c.Responses.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "second turn", second.OutputText(), "Done.")
	last := s.Requests()[1]
	check(t, "turn", last.Turn, 2)
	check(t, "history", last.Messages, []transcript.Message{
		{Role: "system", Content: "Keep notes."},
		{Role: "user", Content: "Two notes please."},
		{Role: "assistant", Content: "Two notes, ein Gruß.", ToolCalls: []transcript.ToolCall{
			{ID: "call_a", Name: "add_note", Arguments: `{"text":"Grüße, 12345678901234567890"}`},
			{ID: "call_b", Name: "add_note", Arguments: `{"text":"b"}`},
		}},
		{Role: "tool", ToolCallID: "call_a", Content: "ok a"},
		{Role: "tool", ToolCallID: "call_b", Content: "ok b"},
	})
}

func TestPreviousResponseIDStandsForTheHistory(t *testing.T) {
	s := transcript.NewServer(twoNotes(), nil)
	c := inProcess(s)
	params := responseParams(t)
	params.Input = responses.ResponseNewParamsInputUnion{OfString: openai.String("Two notes please.")}
	first, err := c.Responses.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	next := responseParams(t, outputItem("call_a", "ok a"), outputItem("call_b", "ok b"))
	next.PreviousResponseID = openai.String(first.ID)
	second, err := c.Responses.New(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "second turn", second.OutputText(), "Done.")
	check(t, "first user", s.Requests()[1].FirstUser(), "Two notes please.")

	params.Store = openai.Bool(false)
	unstored, err := c.Responses.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	next.PreviousResponseID = openai.String(unstored.ID)
	_, err = c.Responses.New(t.Context(), next)
	wantRefusal(t, err, 400, "Previous response with id '"+unstored.ID+"' not found.", "previous_response_id", "previous_response_not_found")
}

func TestResponsesStreamDeliversTheSameInPieces(t *testing.T) {
	st := onWire(t, transcript.NewServer(twoNotes(), nil)).Responses.NewStreaming(t.Context(), responseParams(t, userItem("Two notes please.")))
	defer func() { _ = st.Close() }()
	args, texts, ids := map[string]string{}, map[string]string{}, map[string]string{}
	var final responses.Response
	var kinds []string
	next := int64(0)
	for st.Next() {
		ev := st.Current()
		if ev.SequenceNumber != next {
			t.Errorf("event %s has number %d, want %d", ev.Type, ev.SequenceNumber, next)
		}
		next++
		if len(kinds) == 0 || kinds[len(kinds)-1] != ev.Type {
			kinds = append(kinds, ev.Type)
		}
		switch e := ev.AsAny().(type) {
		case responses.ResponseOutputItemAddedEvent:
			ids[e.Item.ID] = e.Item.CallID
		case responses.ResponseFunctionCallArgumentsDeltaEvent:
			args[ids[e.ItemID]] += e.Delta
		case responses.ResponseTextDeltaEvent:
			texts[e.ItemID] += e.Delta
		case responses.ResponseCompletedEvent:
			final = e.Response
		}
	}
	if err := st.Err(); err != nil {
		t.Fatal(err)
	}
	check(t, "arguments", args, map[string]string{"call_a": `{"text":"Grüße, 12345678901234567890"}`, "call_b": `{"text":"b"}`})
	check(t, "text", texts, map[string]string{final.Output[1].ID: "Two notes, ein Gruß."})
	call := []string{"response.output_item.added", "response.function_call_arguments.delta", "response.function_call_arguments.done", "response.output_item.done"}
	want := []string{
		"response.created", "response.in_progress",
		"response.output_item.added", "response.reasoning_summary_part.added", "response.reasoning_summary_text.delta",
		"response.reasoning_summary_text.done", "response.reasoning_summary_part.done", "response.output_item.done",
		"response.output_item.added", "response.content_part.added", "response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done",
	}
	want = append(append(append(want, call...), call...), "response.completed")
	check(t, "events", kinds, want)
	if len(final.Output) != 4 || final.Output[3].AsFunctionCall().Arguments != `{"text":"b"}` {
		t.Errorf("final %s", final.RawJSON())
	}
}

func TestATruncatedAnswerSaysSo(t *testing.T) {
	step := transcript.Step{Calls: []transcript.ToolCall{{ID: "a", Name: "add_note", Arguments: `{"te`}}, FinishReason: "length"}
	s := transcript.NewServer(transcript.Steps(step), nil)
	chat, err := inProcess(s).Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x")))
	if err != nil || chat.Choices[0].FinishReason != "length" {
		t.Errorf("chat: %v, %v", chat, err)
	}
	resp, err := inProcess(s).Responses.New(t.Context(), responseParams(t, userItem("x")))
	if err != nil {
		t.Fatal(err)
	}
	check(t, "response", []string{string(resp.Status), resp.IncompleteDetails.Reason, string(resp.Output[0].Status)}, []string{"incomplete", "max_output_tokens", "incomplete"})
	st := inProcess(s).Responses.NewStreaming(t.Context(), responseParams(t, userItem("x")))
	defer func() { _ = st.Close() }()
	last := ""
	for st.Next() {
		last = st.Current().Type
	}
	check(t, "last event", last, "response.incomplete")
}

func TestCustomToolsAndHostedItemsPass(t *testing.T) {
	s := transcript.NewServer(transcript.Steps(transcript.Step{Text: "a"}, transcript.Step{Text: "b"}), nil)
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","tools":[{"type":"custom","custom":{"name":"free"}}],"tool_choice":{"type":"custom","custom":{"name":"free"}},
			"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"custom","custom":{"name":"free","input":"text"}}]},{"role":"tool","tool_call_id":"a","content":"ok"}]}`,
		"/v1/responses": `{"model":"m","tools":[{"type":"custom","name":"free"},{"type":"web_search"}],"input":[{"role":"user","content":[{"type":"input_text","text":"x"}]},
			{"type":"web_search_call","id":"ws_1"},{"type":"custom_tool_call","id":"ctc_1","call_id":"a","name":"free","input":"text"},{"type":"custom_tool_call_output","call_id":"a","output":[{"type":"input_text","text":"ok"}]}]}`,
	} {
		if status, answer := post(t, s, path, body); status != 200 {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	for _, r := range s.Requests() {
		check(t, r.API, r.Messages, []transcript.Message{
			{Role: "user", Content: "x"},
			{Role: "assistant", ToolCalls: []transcript.ToolCall{{ID: "a", Name: "free", Arguments: "text"}}},
			{Role: "tool", ToolCallID: "a", Content: "ok"},
		})
	}
}

func TestOneAnswerWithReasoningTextAndCallsIsOneTurn(t *testing.T) {
	s := transcript.NewServer(transcript.Steps(), nil)
	turn := `,{"type":"reasoning","id":"rs_1","summary":[]},{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"y"}]}` + fc("fc_1", "a") + fc("fc_2", "b")
	post(t, s, "/v1/responses", items(turn+fco("a")+fco("b")+fc("fc_3", "c")+fco("c")))
	check(t, "turn", s.Requests()[0].Turn, 3)
}
