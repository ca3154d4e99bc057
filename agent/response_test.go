package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

type items = responses.ResponseInputParam

func respond(t *testing.T, h registry.Handler, turn int, r *responses.Response, history ...responses.ResponseInputItemUnionParam) items {
	t.Helper()
	out, err := agent.AnswerResponse(t.Context(), h, run, turn, r, history...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func call(id, callID, args string) string {
	return fmt.Sprintf(`{"id":%s,"type":"function_call","status":"completed","call_id":%s,"name":"f","arguments":%s}`, quote(id), quote(callID), quote(args))
}

// pairs are the call ids of the calls and of the outputs.
func pairs(t *testing.T, in items) (calls, outputs []string) {
	t.Helper()
	for _, raw := range wire(t, in) {
		id := gjson.Get(raw, "call_id").String()
		switch gjson.Get(raw, "type").String() {
		case "function_call", "custom_tool_call":
			calls = append(calls, id)
		case "function_call_output", "custom_tool_call_output":
			outputs = append(outputs, id)
		}
	}
	return calls, outputs
}

func TestAResponseGoesBackAsItCameWithAnOutputPerCall(t *testing.T) {
	in := []string{
		`{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"a < b & c"}],"encrypted_content":"gAAAA==","x_new":{"n":12345678901234567890}}`,
		`{"id":"msg_1","type":"message","role":"assistant","status":"completed","phase":"commentary","content":[{"type":"output_text","text":"I look.","annotations":[],"logprobs":[]}]}`,
		`{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"f","namespace":"crm","arguments":"{\"acct\":12345678901234567890}","caller":{"type":"program","caller_id":"prog_<1>"}}`,
		`{"id":"new_1","type":"a_type_of_tomorrow","n":98765432109876543210}`,
		`{"id":"fc_2","type":"function_call","status":"completed","call_id":"call_2","name":"f","arguments":"{ }","caller":null}`,
	}
	s := &spy{}
	got := wire(t, respond(t, s.handle, 2, response(t, "completed", "["+strings.Join(in, ",")+"]")))
	want := append(in,
		`{"output":"ok 1","call_id":"call_1","caller":{"type":"program","caller_id":"prog_<1>"},"type":"function_call_output"}`,
		`{"output":"ok 2","call_id":"call_2","type":"function_call_output"}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`2.0 call_1 f {"acct":12345678901234567890}`, `2.1 call_2 f { }`}, s.seen()); diff != "" {
		t.Error(diff)
	}
}

func TestAReasoningItemAndItsCallsAreAcceptedOnTheNextTurn(t *testing.T) {
	output := `[{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAA=="},` +
		call("fc_1", "call_1", `{"n":1}`) + "," + call("fc_2", "call_2", `{"n":12345678901234567890}`) + `]`
	server := transcript.NewServer(transcript.Steps(
		transcript.Step{Raw: `{"id":"resp_1","object":"response","status":"completed","output":` + output + `}`},
		transcript.Step{Text: "done"},
	), nil)
	client := clientOf(server)
	s := &spy{}
	params := responses.ResponseNewParams{Model: "demo-model", Store: openai.Bool(false)}
	params.Input.OfInputItemList = items{responses.ResponseInputItemParamOfMessage("go", responses.EasyInputMessageRoleUser)}
	for turn := 1; ; turn++ {
		r, err := client.Responses.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		next := respond(t, s.handle, turn, r, params.Input.OfInputItemList...)
		if next == nil {
			break
		}
		params.Input.OfInputItemList = append(params.Input.OfInputItemList, next...)
	}
	reqs := server.Requests()
	sent := gjson.GetBytes(reqs[len(reqs)-1].Body, "input").Raw
	if !strings.Contains(sent, strings.Trim(output, "[]")) || len(s.calls) != 2 {
		t.Error(sent)
	}
}

func TestAResponseWithoutCallsEndsTheLoop(t *testing.T) {
	s := &spy{}
	for _, output := range []string{`[]`, `[{"id":"msg_1","type":"message","role":"assistant","content":[]}]`, `[{"id":"cu_1","type":"computer_call","call_id":"c"}]`} {
		if got := respond(t, s.handle, 1, response(t, "completed", output)); got != nil || s.calls != nil {
			t.Errorf("%s: %v", output, got)
		}
	}
}

func TestNothingRunsOfAResponseThatIsNotCompleted(t *testing.T) {
	for _, c := range []struct{ status, more, reason, message string }{
		{"incomplete", `,"incomplete_details":{"reason":"max_output_tokens"}`, "max_output_tokens", ""},
		{"incomplete", `,"incomplete_details":{"reason":"content_filter"}`, "content_filter", ""},
		{"incomplete", ``, "incomplete", ""},
		{"failed", `,"error":{"code":"server_error","message":"The server had an error."}`, "failed, server_error", "The server had an error."},
		{"cancelled", ``, "cancelled", ""},
		{"queued", ``, "queued", ""},
		{"in_progress", ``, "in_progress", ""},
	} {
		for calls, output := range []string{`[]`, "[" + call("fc_1", "call_1", "{}") + "]"} {
			s := &spy{}
			r := response(t, c.status, output+c.more)
			got, err := agent.AnswerResponse(t.Context(), s.handle, run, 1, r)
			var ie *agent.IncompleteError
			if got != nil || s.calls != nil || !errors.As(err, &ie) {
				t.Fatalf("%s: %v, %v", c.status, got, err)
			}
			if diff := cmp.Diff(&agent.IncompleteError{Reason: c.reason, Message: c.message, Calls: calls}, ie); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(err.Error(), c.reason) || !strings.Contains(err.Error(), c.message) {
				t.Error(err)
			}
		}
	}
}

func TestAnAnnouncedCallIsTheCallThatConfirmsIt(t *testing.T) {
	s := &spy{}
	got := respond(t, s.handle, 1, response(t, "completed", "["+call("fc_1", "c1", "")+","+call("fc_2", "c1", `{"n":1}`)+","+call("fc_3", "c2", `{"n":2}`)+"]"))
	if diff := cmp.Diff([]string{`1.0 c1 f {"n":1}`, `1.1 c2 f {"n":2}`}, s.seen()); diff != "" {
		t.Error(diff)
	}
	calls, outputs := pairs(t, got)
	if diff := cmp.Diff([]string{"c1", "c2"}, calls); diff != "" || !cmp.Equal(calls, outputs) || gjson.Get(wire(t, got)[0], "id").String() != "fc_2" {
		t.Error(calls, outputs)
	}
}

func TestACallThatTheModelDidNotFinishIsNotRun(t *testing.T) {
	s := &spy{}
	cut := strings.Replace(call("fc_1", "c1", `{"n":1}`), "completed", "incomplete", 1)
	got := wire(t, respond(t, s.handle, 1, response(t, "completed", "["+cut+","+call("fc_2", "c2", `{"n":1}`)+"]")))
	if out := gjson.Get(got[2], "output").String(); gjson.Get(out, "status").String() != "refused" {
		t.Error(out)
	}
	if diff := cmp.Diff([]string{`1.1 c2 f {"n":1}`}, s.seen()); diff != "" {
		t.Error(diff)
	}
}

// The server refuses ids that are empty, longer than 64 or used before, item ids that do not begin with fc, names that no
// tool can have and arguments that are no object.
func TestWhatTheResponsesAPIRefusesIsMendedOnTheWireAlone(t *testing.T) {
	long := strings.Repeat("x", 70)
	server := transcript.NewServer(func(r transcript.Request) transcript.Step {
		if r.Turn > 2 {
			return transcript.Step{Text: "done"}
		}
		return transcript.Step{Reasoning: "hm", Calls: []transcript.ToolCall{
			{ID: "call_0", Name: "f", Arguments: `{"n":1}`}, {ID: "call_0", Name: "f", Arguments: `{"n":2}`},
			{ID: "", Name: "functions.f", Arguments: `{"p":"x`}, {ID: long + "a", Name: "f", Arguments: ``}, {ID: long + "b", Name: "f", Arguments: `{}`},
			{ID: long[:64], Name: "f", Arguments: `"{\"n\":2}"`},
		}}
	}, nil)
	client := clientOf(server)
	s := &spy{}
	params := responses.ResponseNewParams{Model: "demo-model"}
	params.Input.OfInputItemList = items{responses.ResponseInputItemParamOfMessage("go", responses.EasyInputMessageRoleUser)}
	for turn := 1; ; turn++ {
		r, err := client.Responses.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		next := respond(t, s.handle, turn, r, params.Input.OfInputItemList...)
		if next == nil {
			break
		}
		params.Input.OfInputItemList = append(params.Input.OfInputItemList, next...)
	}
	calls, outputs := pairs(t, params.Input.OfInputItemList)
	if !cmp.Equal(calls, outputs) || len(calls) != 12 || calls[0] != "call_0" || calls[5] != long[:64] {
		t.Error(calls, outputs)
	}
	if diff := cmp.Diff([]string{`1.0 call_0 f {"n":1}`, `1.1 call_0 f {"n":2}`, `1.2  functions.f {"p":"x`, `1.3 ` + long + `a f `}, s.seen()[:4]); diff != "" {
		t.Error(diff)
	}
}

func TestWithAPreviousResponseTheOutputsAloneAreSent(t *testing.T) {
	server := transcript.NewServer(transcript.Steps(
		transcript.Step{Reasoning: "hm", Calls: []transcript.ToolCall{{ID: "call_1", Name: "f", Arguments: `{"n":1}`}, {ID: "call_2", Name: "f", Arguments: `{}`}}},
		transcript.Step{Text: "done"},
	), nil)
	client := clientOf(server)
	s := &spy{}
	params := responses.ResponseNewParams{Model: "demo-model", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("go")}}
	for turn := 1; ; turn++ {
		r, err := client.Responses.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		next := respond(t, s.handle, turn, r)
		if next == nil {
			break
		}
		params.PreviousResponseID = openai.String(r.ID)
		params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: agent.ResponseOutputs(next)}
	}
	reqs := server.Requests()
	if len(reqs) != 2 || gjson.GetBytes(reqs[1].Body, "input.#").Int() != 2 || len(s.calls) != 2 {
		t.Errorf("%s", reqs[len(reqs)-1].Body)
	}
}

func TestCustomToolCallsOfAResponseAreRefusedInASentence(t *testing.T) {
	custom := `{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"a","name":"shell","input":"ls","caller":{"type":"direct"}}`
	s := &spy{}
	got := respond(t, s.handle, 1, response(t, "completed", "["+custom+"]"))
	w := wire(t, got)
	if w[0] != custom || s.calls != nil || len(agent.ResponseOutputs(got)) != 1 {
		t.Error(w)
	}
	want := `{"call_id":"a","output":"{\"toolonce\":1,\"status\":\"refused\",\"tool\":\"shell\",\"reason\":\"free text tools are not answered here; call a function tool with JSON arguments\"}","caller":{"type":"direct"},"type":"custom_tool_call_output"}`
	if diff := cmp.Diff(want, w[1]); diff != "" {
		t.Error(diff)
	}
}

func TestTheLoopsOwnChangesToAResponseAreWhatRuns(t *testing.T) {
	r := response(t, "completed", "["+call("fc_1", "c1", `{"n":1}`)+"]")
	r.Output[0].Arguments.OfString = `{"n":7}`
	s := &spy{}
	got := wire(t, respond(t, s.handle, 1, r))
	if diff := cmp.Diff([]string{`1.0 c1 f {"n":7}`}, s.seen()); diff != "" || got[0] != call("fc_1", "c1", `{"n":7}`) {
		t.Error(diff, got)
	}
}

func TestArgumentsSentAsAnObjectAreThoseArguments(t *testing.T) {
	s := &spy{}
	got := wire(t, respond(t, s.handle, 1, response(t, "completed", `[{"type":"function_call","call_id":"c","name":"f","arguments":{"n":12345678901234567890}}]`)))
	if diff := cmp.Diff([]string{`1.0 c f {"n":12345678901234567890}`}, s.seen()); diff != "" || got[0] != `{"type":"function_call","call_id":"c","name":"f","arguments":"{\"n\":12345678901234567890}"}` {
		t.Error(diff, got)
	}
}

func TestAnErrorWithResultsReturnsTheItemsOfAResponseToo(t *testing.T) {
	limit := errors.New("too often")
	r := response(t, "completed", "["+call("fc_1", "c1", "{}")+"]")
	for _, v := range []registry.Verdict{registry.AlreadyDone, ""} {
		s := &spy{say: func(int, registry.Call) (registry.Result, error) {
			return registry.Result{Content: "x", Verdict: v}, limit
		}}
		got, err := agent.AnswerResponse(t.Context(), s.handle, run, 1, r)
		if !errors.Is(err, limit) || (got != nil) != (v != "") {
			t.Error(got, err)
		}
	}
	if _, err := agent.AnswerResponse(t.Context(), (&spy{}).handle, run, 1, nil); err == nil {
		t.Error("no error without a response")
	}
	if _, err := agent.AnswerResponse(t.Context(), (&spy{}).handle, agent.Run{}, 1, r); err == nil {
		t.Error("no error without a run")
	}
}

func TestAResponseThatTheSDKHasNotDecodedIsAnError(t *testing.T) {
	r := &responses.Response{Status: "completed", Output: []responses.ResponseOutputItemUnion{{Type: "function_call", CallID: "c", Name: "f"}}}
	s := &spy{}
	if _, err := agent.AnswerResponse(t.Context(), s.handle, run, 1, r); err == nil || s.calls != nil || !strings.Contains(err.Error(), "output item 0 has no JSON") {
		t.Error(err)
	}
	r.Status = ""
	var ie *agent.IncompleteError
	if _, err := agent.AnswerResponse(t.Context(), s.handle, run, 1, r); !errors.As(err, &ie) {
		t.Error(err)
	}
}
