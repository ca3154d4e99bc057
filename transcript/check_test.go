package transcript_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/transcript"
)

// post sends a raw body with a key and returns status and body of the answer.
func post(t *testing.T, s *transcript.Server, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer test")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	b, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(b)
}

// wantRefusal checks an error of the SDK, member by member.
func wantRefusal(t *testing.T, err error, status int, message, param, code string) {
	t.Helper()
	var apiErr *openai.Error
	if !errors.As(err, &apiErr) {
		t.Fatalf("error %v, want an API error", err)
	}
	check(t, "status", apiErr.StatusCode, status)
	check(t, "message, param, code", []string{apiErr.Message, apiErr.Param, apiErr.Code}, []string{message, param, code})
}

// refused is a request body and the error it meets; the good body differs from
// it in nothing else and is answered.
type refused struct {
	name, good, bad      string
	message, param, code string
}

func runRefused(t *testing.T, path string, cases []refused) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := transcript.NewServer(func(transcript.Request) transcript.Step { return transcript.Step{Text: "ok"} }, nil)
			if status, body := post(t, s, path, c.good); status != http.StatusOK {
				t.Errorf("good request: %d %s", status, body)
			}
			status, body := post(t, s, path, c.bad)
			var got struct {
				Error map[string]any `json:"error"`
			}
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatalf("body %s: %v", body, err)
			}
			check(t, "status", status, http.StatusBadRequest)
			check(t, "error", got.Error, map[string]any{
				"message": c.message, "type": "invalid_request_error", "param": orNull(c.param), "code": orNull(c.code),
			})
			check(t, "journal", s.Requests()[1].Refusal, c.message)
			lenient := transcript.NewServer(func(transcript.Request) transcript.Step { return transcript.Step{Text: "ok"} }, &transcript.Options{Lenient: true})
			if status, body := post(t, lenient, path, c.bad); status != http.StatusOK {
				t.Errorf("lenient: %d %s", status, body)
			}
		})
	}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// chat is a Chat Completions body with these messages after a user's.
func chat(messages string) string {
	return `{"model":"m","messages":[{"role":"user","content":"x"}` + messages + `]}`
}

func chatCalls(ids ...string) string {
	var out []string
	for _, id := range ids {
		out = append(out, `{"id":"`+id+`","type":"function","function":{"name":"f","arguments":"{}"}}`)
	}
	return `,{"role":"assistant","content":null,"tool_calls":[` + strings.Join(out, ",") + `]}`
}

func chatOutput(id string) string {
	return `,{"role":"tool","tool_call_id":"` + id + `","content":"ok"}`
}

const nextUser = `,{"role":"user","content":"y"}`

func TestChatRefusesBrokenHistories(t *testing.T) {
	pair := chatCalls("a") + chatOutput("a")
	long := strings.Repeat("i", 41)
	const unanswered = "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
	const orphan = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
	runRefused(t, "/v1/chat/completions", []refused{
		{"unanswered call", chat(pair), chat(chatCalls("a")), unanswered + "a", "messages.[2].role", ""},
		{"unanswered before the next user", chat(chatCalls("a", "b") + chatOutput("b") + chatOutput("a") + nextUser), chat(chatCalls("a", "b", "c") + chatOutput("b") + nextUser), unanswered + "a, c", "messages.[3].role", ""},
		{"answered too late", chat(pair + nextUser), chat(chatCalls("a") + nextUser + chatOutput("a")), unanswered + "a", "messages.[2].role", ""},
		{"orphan output", chat(nextUser), chat(chatOutput("a")), orphan, "messages.[1].role", ""},
		{"output before its call", chat(pair), chat(chatOutput("a") + chatCalls("a")), orphan, "messages.[1].role", ""},
		{"output for another call", chat(pair), chat(chatCalls("a") + chatOutput("b")), "Invalid parameter: 'tool_call_id' of 'b' not found in 'tool_calls' of previous message.", "messages.[2].tool_call_id", ""},
		{"answered twice", chat(pair), chat(pair + chatOutput("a")), "Invalid parameter: Duplicate value for 'tool_call_id' of 'a', in messages[2] and messages[3].", "messages.[3].tool_call_id", ""},
		{"id twice in a turn", chat(chatCalls("a", "b") + chatOutput("a") + chatOutput("b")), chat(chatCalls("a", "a") + chatOutput("a")), "Invalid parameter: Duplicate value for 'tool_call_id' of 'a', in messages[1] and messages[1].", "messages[1].tool_calls[1].id", ""},
		{"id again in a later turn", chat(pair + chatCalls("b") + chatOutput("b")), chat(pair + pair), "Invalid parameter: Duplicate value for 'tool_call_id' of 'a', in messages[1] and messages[3].", "messages[3].tool_calls[0].id", ""},
		{"id too long", chat(chatCalls(long[:40]) + chatOutput(long[:40])), chat(chatCalls(long) + chatOutput(long)), "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead.", "messages[1].tool_calls[0].id", "string_above_max_length"},
		{"empty id", chat(pair), chat(chatCalls("") + chatOutput("")), "Invalid 'messages[1].tool_calls[0].id': empty string. Expected a string with minimum length 1, but got an empty string instead.", "messages[1].tool_calls[0].id", "empty_string"},
		{"no id", chat(pair), chat(strings.Replace(pair, `"id":"a",`, "", 1)), "Missing required parameter: 'messages[1].tool_calls[0].id'.", "messages[1].tool_calls[0].id", "missing_required_parameter"},
		{"no type", chat(pair), chat(strings.Replace(pair, `"type":"function",`, "", 1)), "Missing required parameter: 'messages[1].tool_calls[0].type'.", "messages[1].tool_calls[0].type", "missing_required_parameter"},
		{"no tool_call_id", chat(pair), chat(strings.Replace(pair, `"tool_call_id":"a",`, "", 1)), "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.", "messages.[2].tool_call_id", ""},
		{"tool content null", chat(pair), chat(strings.Replace(pair, `"ok"`, "null", 1)), "Invalid value for 'content': expected a string, got null.", "messages.[2].content", ""},
		{"assistant without anything", chat(`,{"role":"assistant","content":""}`), chat(`,{"role":"assistant","content":null}`), "Invalid value for 'content': expected a string, got null.", "messages.[1].content", ""},
		{"no calls", chat(`,{"role":"assistant","content":"y"}`), chat(`,{"role":"assistant","content":"y","tool_calls":[]}`), "Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.", "messages[1].tool_calls", "empty_array"},
		{"tool name in history", chat(pair), chat(strings.Replace(pair, `"f"`, `"functions.f"`, 1)), "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", "messages[1].tool_calls[0].function.name", "invalid_value"},
		{"cut arguments", chat(pair), chat(strings.Replace(pair, `"{}"`, `"{\"p\":\"x"`, 1)), "Invalid 'messages[1].tool_calls[0].function.arguments': expected a string that holds a JSON object.", "messages[1].tool_calls[0].function.arguments", "invalid_value"},
		{"empty arguments", chat(pair), chat(strings.Replace(pair, `"{}"`, `""`, 1)), "Invalid 'messages[1].tool_calls[0].function.arguments': expected a string that holds a JSON object.", "messages[1].tool_calls[0].function.arguments", "invalid_value"},
		{"null arguments", chat(pair), chat(strings.Replace(pair, `"{}"`, `"null"`, 1)), "Invalid 'messages[1].tool_calls[0].function.arguments': expected a string that holds a JSON object.", "messages[1].tool_calls[0].function.arguments", "invalid_value"},
		{"unknown role", chat(""), chat(`,{"role":"robot","content":"y"}`), "Invalid value: 'robot'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", "messages[1].role", "invalid_value"},
		{"no messages", chat(""), `{"model":"m"}`, "Missing required parameter: 'messages'.", "messages", "missing_required_parameter"},
		{"empty messages", chat(""), `{"model":"m","messages":[]}`, "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.", "messages", "empty_array"},
		{"no model", chat(""), strings.Replace(chat(""), `"m"`, `""`, 1), "you must provide a model parameter", "", ""},
	})
}

// items is a Responses body with these items after a user's.
func items(list string) string {
	return `{"model":"m","input":[{"role":"user","content":"x"}` + list + `]}`
}

func fc(id, callID string) string {
	return `,{"type":"function_call","id":"` + id + `","call_id":"` + callID + `","name":"f","arguments":"{}"}`
}

func fco(callID string) string {
	return `,{"type":"function_call_output","call_id":"` + callID + `","output":"ok"}`
}

func TestResponsesRefuseBrokenInput(t *testing.T) {
	pair := fc("fc_1", "a") + fco("a")
	long := strings.Repeat("i", 65)
	const rs = `,{"type":"reasoning","id":"rs_1","summary":[]}`
	runRefused(t, "/v1/responses", []refused{
		{"unanswered call", items(pair), items(fc("fc_1", "a") + nextUser), "No tool output found for function call a.", "input", ""},
		{"orphan output", items(nextUser), items(fco("a")), "No tool call found for function call output with call_id a.", "input", ""},
		{"output before its call", items(pair), items(fco("a") + fc("fc_1", "a")), "No tool call found for function call output with call_id a.", "input", ""},
		{"answered twice", items(pair), items(pair + fco("a")), "Invalid parameter: Duplicate value for 'call_id' of 'a', in input[2] and input[3].", "input[3].call_id", ""},
		{"call_id twice in a turn", items(fc("fc_1", "a") + fc("fc_2", "b") + fco("a") + fco("b")), items(fc("fc_1", "a") + fc("fc_2", "a") + fco("a")), "Invalid parameter: Duplicate value for 'call_id' of 'a', in input[1] and input[2].", "input[2].call_id", ""},
		{"call_id again in a later turn", items(pair + fc("fc_2", "b") + fco("b")), items(pair + fc("fc_2", "a") + fco("a")), "Invalid parameter: Duplicate value for 'call_id' of 'a', in input[1] and input[3].", "input[3].call_id", ""},
		{"item id twice", items(pair + fc("fc_2", "b") + fco("b")), items(pair + fc("fc_1", "b") + fco("b")), "Duplicate item found with id fc_1. Remove duplicate items from your input and try again.", "input", ""},
		{"item id of a call", items(pair), items(fc("call_1", "a") + fco("a")), "Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.", "input[1].id", "invalid_value"},
		{"item id of a message", items(`,{"type":"message","id":"msg_1","role":"assistant","content":[]}`), items(`,{"type":"message","id":"m","role":"assistant","content":[]}`), "Invalid 'input[1].id': 'm'. Expected an ID that begins with 'msg'.", "input[1].id", "invalid_value"},
		{"empty item id", items(strings.Replace(pair, `"id":"fc_1",`, "", 1)), items(fc("", "a") + fco("a")), "Invalid 'input[1].id': ''. Expected an ID that contains letters, numbers, underscores, or dashes, but this value contained additional characters.", "input[1].id", "invalid_value"},
		{"item id too long", items(fc("fc"+long[:62], "a") + fco("a")), items(fc("fc"+long[:63], "a") + fco("a")), "Invalid 'input[1].id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.", "input[1].id", "string_above_max_length"},
		{"call_id too long", items(fc("fc_1", long[:64]) + fco(long[:64])), items(fc("fc_1", long) + fco(long)), "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.", "input[1].call_id", "string_above_max_length"},
		{"empty call_id", items(pair), items(fc("fc_1", "") + fco("")), "Invalid 'input[1].call_id': empty string. Expected a string with minimum length 1, but got an empty string instead.", "input[1].call_id", "empty_string"},
		{"output without call_id", items(pair), items(fc("fc_1", "a") + strings.Replace(fco("a"), `"call_id":"a",`, "", 1)), "Missing required parameter: 'input[2].call_id'.", "input[2].call_id", "missing_required_parameter"},
		{"output null", items(pair), items(strings.Replace(pair, `"ok"`, "null", 1)), "Missing required parameter: 'input[2].output'.", "input[2].output", "missing_required_parameter"},
		{"output an object", items(strings.Replace(pair, `"ok"`, `[{"type":"input_text","text":"ok"}]`, 1)), items(strings.Replace(pair, `"ok"`, `{}`, 1)), "Invalid type for 'input[2].output': expected one of a string or an array of objects.", "input[2].output", "invalid_type"},
		{"cut arguments", items(pair), items(strings.Replace(pair, `"{}"`, `"{\"p\":"`, 1)), "Invalid 'input[1].arguments': expected a string that holds a JSON object.", "input[1].arguments", "invalid_value"},
		{"tool name in history", items(pair), items(strings.Replace(pair, `"f"`, `"functions.f"`, 1)), "Invalid 'input[1].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", "input[1].name", "invalid_value"},
		{"reasoning at the end", items(rs + pair), items(rs), "Item 'rs_1' of type 'reasoning' was provided without its required following item.", "input", ""},
		{"reasoning before a user", items(rs + `,{"role":"assistant","content":"y"}`), items(rs + nextUser), "Item 'rs_1' of type 'reasoning' was provided without its required following item.", "input", ""},
		{"no type", items(pair), items(fc("fc_1", "a") + `,{"call_id":"a","output":"ok"}`), "Missing required parameter: 'input[2].type'.", "input[2].type", "missing_required_parameter"},
	})
	s := transcript.NewServer(twoNotes(), &transcript.Options{Lenient: true})
	for body, want := range map[string]string{
		`{"model":"m"}`:           "Missing required parameter: 'input'.",
		`{"model":"m","input":3}`: "Invalid type for 'input': expected a string or an array of input items.",
		`{"model":"m","input":"x","conversation":"conv_1"}`: "transcript: conversations are not served here; use previous_response_id or send the whole input",
	} {
		if status, got := post(t, s, "/v1/responses", body); status != 400 || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s", body, status, got)
		}
	}
}

func TestResponsesRefuseAnOutputThatIsTooLong(t *testing.T) {
	body := items(strings.Replace(fc("fc_1", "a")+fco("a"), `"ok"`, `"`+strings.Repeat("o", 10485761)+`"`, 1))
	const want = "Invalid 'input[2].output': string too long. Expected a string with maximum length 10485760, but got a string with length 10485761 instead."
	if status, answer := post(t, transcript.NewServer(twoNotes(), nil), "/v1/responses", body); status != http.StatusBadRequest || !strings.Contains(answer, want) {
		t.Errorf("%d %s", status, answer)
	}
}

func TestRepeatedIDsAreAnOption(t *testing.T) {
	s := transcript.NewServer(twoNotes(), &transcript.Options{RepeatedIDs: true})
	pair := chatCalls("a") + chatOutput("a")
	if status, body := post(t, s, "/v1/chat/completions", chat(pair)); status != http.StatusOK {
		t.Fatal(body)
	}
	for path, bodies := range map[string][2]string{
		"/v1/chat/completions": {chat(pair + pair), chat(chatCalls("a", "a") + chatOutput("a"))},
		"/v1/responses":        {items(fc("fc_1", "a") + fco("a") + fc("fc_2", "a") + fco("a")), items(fc("fc_1", "a") + fc("fc_2", "a") + fco("a"))},
	} {
		if status, body := post(t, s, path, bodies[0]); status == http.StatusBadRequest {
			t.Errorf("later turn: %s", body)
		}
		if status, body := post(t, s, path, bodies[1]); status != http.StatusBadRequest {
			t.Errorf("same turn: %d %s", status, body)
		}
	}
}

func TestToolsAreChecked(t *testing.T) {
	with := func(rest string) string { return strings.TrimSuffix(chat(""), "}") + rest + "}" }
	tool := func(name string) string {
		return `,"tools":[{"type":"function","function":{"name":"` + name + `","parameters":{"type":"object","properties":{}}}}]`
	}
	model := func(name, body string) string { return strings.Replace(body, `"model":"m"`, `"model":"`+name+`"`, 1) }
	good := with(tool("f"))
	serial := good[:len(good)-1] + `,"parallel_tool_calls":false}`
	named := func(name string) string {
		return good[:len(good)-1] + `,"tool_choice":{"type":"function","function":{"name":"` + name + `"}}}`
	}
	allowed := func(name string) string {
		return good[:len(good)-1] + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"` + name + `"}}]}}}`
	}
	const refusedParallel = "Unsupported parameter: 'parallel_tool_calls' is not supported with this model."
	runRefused(t, "/v1/chat/completions", []refused{
		{"empty tools", chat(""), with(`,"tools":[]`), "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.", "tools", "empty_array"},
		{"dot in a name", good, with(tool("a.b")), "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", "tools[0].function.name", "invalid_value"},
		{"long name", with(tool(strings.Repeat("n", 64))), with(tool(strings.Repeat("n", 65))), "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.", "tools[0].function.name", "string_above_max_length"},
		{"empty name", good, with(tool("")), "Invalid 'tools[0].function.name': empty string. Expected a string with minimum length 1, but got an empty string instead.", "tools[0].function.name", "empty_string"},
		{"tool in the other API's form", good, with(`,"tools":[{"type":"function","name":"f"}]`), "Missing required parameter: 'tools[0].function'.", "tools[0].function", "missing_required_parameter"},
		{"tool without type", good, with(`,"tools":[{"function":{"name":"f"}}]`), "Missing required parameter: 'tools[0].type'.", "tools[0].type", "missing_required_parameter"},
		{"parallel without tools", chat(""), with(`,"parallel_tool_calls":false`), "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.", "parallel_tool_calls", ""},
		{"parallel on o1", serial, model("o1-2024-12-17", serial), refusedParallel, "parallel_tool_calls", "unsupported_parameter"},
		{"parallel on o3", model("gpt-4.1-nano", serial), model("o3-mini", serial), refusedParallel, "parallel_tool_calls", "unsupported_parameter"},
		{"parallel on o4", model("o4-mini", good), model("o4-mini", serial), refusedParallel, "parallel_tool_calls", "unsupported_parameter"},
		{"choice of an unknown tool", named("f"), named("g"), "Tool choice 'g' not found in 'tools' parameter.", "tool_choice", ""},
		{"allowing an unknown tool", allowed("f"), allowed("g"), "Tool choice 'g' not found in 'tools' parameter.", "tool_choice", ""},
		{"choice without tools", good[:len(good)-1] + `,"tool_choice":"required"}`, with(`,"tool_choice":"auto"`), "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.", "tool_choice", ""},
		{"unknown choice", good[:len(good)-1] + `,"tool_choice":"none"}`, good[:len(good)-1] + `,"tool_choice":"any"}`, "Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'.", "tool_choice", "invalid_value"},
	})
	respond := func(rest string) string { return strings.TrimSuffix(items(""), "}") + rest + "}" }
	flat := func(name string) string {
		return `,"tools":[{"type":"web_search"},{"type":"function","name":"` + name + `","parameters":{"type":"object","properties":{}}}]`
	}
	runRefused(t, "/v1/responses", []refused{
		{"long name", respond(flat(strings.Repeat("n", 128))), respond(flat(strings.Repeat("n", 129))), "Invalid 'tools[1].name': string too long. Expected a string with maximum length 128, but got a string with length 129 instead.", "tools[1].name", "string_above_max_length"},
		{"choice of an unknown tool", respond(flat("f") + `,"tool_choice":{"type":"function","name":"f"}`), respond(flat("f") + `,"tool_choice":{"type":"function","name":"g"}`), "Tool choice 'g' not found in 'tools' parameter.", "tool_choice", ""},
		{"allowing an unknown tool", respond(flat("f") + `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`), respond(flat("f") + `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"g"}]}`), "Tool choice 'g' not found in 'tools' parameter.", "tool_choice", ""},
		{"required without tools", respond(`,"tool_choice":"auto"`), respond(`,"tool_choice":"required"`), "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.", "tool_choice", ""},
		{"parallel on o3", respond(flat("f")), model("o3", respond(flat("f")+`,"parallel_tool_calls":true`)), refusedParallel, "parallel_tool_calls", "unsupported_parameter"},
	})
}

func TestAzureRefusesWithTheMessageAlone(t *testing.T) {
	s := transcript.NewServer(twoNotes(), &transcript.Options{NoParallel: []string{"team-bot-*"}})
	c := inProcess(s, option.WithBaseURL("http://model.invalid/openai/deployments/team-bot-prod"),
		option.WithHeaderDel("Authorization"), option.WithHeader("Api-Key", "k"))
	params := chatParams(t, openai.UserMessage("x"))
	_, err := c.Chat.Completions.New(t.Context(), params)
	wantRefusal(t, err, 400, "Unrecognized request argument supplied: parallel_tool_calls", "", "")
	params.ParallelToolCalls = param.Opt[bool]{}
	if _, err := c.Chat.Completions.New(t.Context(), params); err != nil {
		t.Error(err)
	}
	check(t, "path", s.Requests()[1].Path, "/openai/deployments/team-bot-prod/chat/completions")
}

func TestOtherRequestsAreRefused(t *testing.T) {
	s := transcript.NewServer(transcript.Steps(transcript.Step{Text: "ok"}), nil)
	send := func(method, path, body string, header http.Header) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header = header
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	key := http.Header{"Authorization": {"Bearer k"}}
	for name, c := range map[string]struct {
		method, path, body string
		header             http.Header
		status             int
		want               string
	}{
		"no key":      {"POST", "/v1/chat/completions", chat(""), http.Header{}, 401, "You didn't provide an API key."},
		"empty key":   {"POST", "/v1/responses", items(""), http.Header{"Authorization": {"Bearer "}}, 401, "You didn't provide an API key."},
		"other path":  {"POST", "/v1/embeddings", "{}", key, 404, "Invalid URL (POST /v1/embeddings)"},
		"other verb":  {"GET", "/v1/responses", "", key, 404, "Invalid URL (GET /v1/responses)"},
		"no JSON":     {"POST", "/v1/responses", "{", key, 400, "We could not parse the JSON body of your request."},
		"azure's key": {"POST", "/openai/deployments/d/chat/completions", strings.Replace(chat(""), `"model":"m",`, "", 1), http.Header{"Api-Key": {"k"}}, 200, `"model":"d"`},
	} {
		if status, body := send(c.method, c.path, c.body, c.header); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

func TestTheSDKMeetsTheRefusals(t *testing.T) {
	c := onWire(t, transcript.NewServer(twoNotes(), nil))
	call := openai.ChatCompletionMessageParamUnion{OfAssistant: &openai.ChatCompletionAssistantMessageParam{
		ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
			ID: "call_a", Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "add_note", Arguments: "{}"},
		}}},
	}}
	_, err := c.Chat.Completions.New(t.Context(), chatParams(t, openai.UserMessage("x"), call))
	wantRefusal(t, err, 400, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: call_a", "messages.[2].role", "")
	_, err = accumulate(t, c, chatParams(t, openai.UserMessage("x"), openai.ToolMessage("ok", "call_a")))
	wantRefusal(t, err, 400, "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.", "messages.[1].role", "")
	_, err = c.Responses.New(t.Context(), responseParams(t, userItem("x"), responses.ResponseInputItemParamOfFunctionCallOutput("ok")))
	wantRefusal(t, err, 400, "Missing required parameter: 'input[1].call_id'.", "input[1].call_id", "missing_required_parameter")
	_, err = c.Responses.New(t.Context(), responseParams(t, userItem("x"), responses.ResponseInputItemParamOfFunctionCall("{}", "call_a", "add_note")))
	wantRefusal(t, err, 400, "No tool output found for function call call_a.", "input", "")
	params := chatParams(t, openai.UserMessage("x"))
	params.Model = "o4-mini"
	_, err = c.Chat.Completions.New(t.Context(), params)
	wantRefusal(t, err, 400, "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.", "parallel_tool_calls", "unsupported_parameter")
	params = chatParams(t, openai.UserMessage("x"))
	params.Tools[0].OfFunction.Function.Parameters["additionalProperties"] = true
	_, err = c.Chat.Completions.New(t.Context(), params)
	wantRefusal(t, err, 400, "Invalid schema for function 'add_note': In context=(), 'additionalProperties' is required to be supplied and to be false.", "tools[0].function.parameters", "invalid_function_parameters")
}
