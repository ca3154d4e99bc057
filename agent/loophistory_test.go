package agent_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/transcript"
)

// answers is a step with an answer that no scripted server makes: a message of Chat Completions, or output items.
func (f form) answers(end, body string) transcript.Step {
	raw := fmt.Sprintf(`{"id":"x","object":"chat.completion","choices":[{"index":0,"message":%s,"finish_reason":%q}]}`, body, end)
	if f.api == "responses" {
		raw = fmt.Sprintf(`{"id":"resp_x","object":"response","status":%q,"output":%s}`, end, body)
	}
	switch {
	case f.stream && f.api == "chat":
		raw = sse(fmt.Sprintf(`{"choices":[{"index":0,"delta":%s}]}`, body), fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, end), "[DONE]")
	case f.stream:
		raw = sse(fmt.Sprintf(`{"type":"response.completed","response":%s}`, raw))
	}
	return transcript.Step{Raw: raw}
}

// running answers the first request with a step, and any other with text.
func running(first transcript.Step) transcript.Script {
	return func(r transcript.Request) transcript.Step {
		if len(r.Outputs()) == 0 {
			return first
		}
		return transcript.Step{Text: "Done."}
	}
}

// A rule is one that servers have about histories and requests: what the loop sends after an answer is taken, where the
// answer and its outputs as they are would be refused.
type rule struct {
	name, api string
	// history is what the caller gives in front of his message.
	history []string
	// answer is the model's first answer: its message, or its items.
	answer string
	// naive is the refused request's history, behind the caller's message; "" for nothing.
	naive []string
	says  string
}

const (
	goodCall  = `{"id":"call_a","type":"function","function":{"name":"look_up","arguments":"{\"order_id\":\"1\"}"}}`
	goodItem  = `{"type":"function_call","id":"fc_1","call_id":"call_a","name":"look_up","arguments":"{\"order_id\":\"1\"}"}`
	reasoning = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"enc"}`
)

func assistantMessage(calls ...string) string {
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`
}

func rules() []rule {
	re := strings.NewReplacer
	id := func(s, id string) string { return re(`call_a`, id).Replace(s) }
	named := func(s, name string) string { return re(`look_up`, name).Replace(s) }
	text := func(s, args string) string { return re(`"{\"order_id\":\"1\"}"`, args).Replace(s) }
	long := strings.Repeat("i", 70)
	chat := func(name, answer, says string, naive ...string) rule {
		return rule{name: name, api: "chat", answer: answer, naive: append([]string{answer}, naive...), says: says}
	}
	item := func(name, answer, says string, naive ...string) rule {
		return rule{name: name, api: "responses", answer: "[" + answer + "]", naive: append([]string{answer}, naive...), says: says}
	}
	past := func(name, api, says string, history ...string) rule {
		r := rule{name: name, api: api, history: history, answer: assistantMessage(id(goodCall, "call_n")), says: says}
		if api == "responses" {
			r.answer = "[" + re("fc_1", "fc_n").Replace(id(goodItem, "call_n")) + "]"
		}
		return r
	}
	chatSays, itemSays := toolSays("call_a", "ok"), itemSays("call_a", "ok")
	return []rule{
		chat("an empty id", assistantMessage(id(goodCall, "")), "empty string", toolSays("", "ok")),
		chat("an id over 40", assistantMessage(id(goodCall, long)), "too long", toolSays(long, "ok")),
		chat("one id on two calls", assistantMessage(goodCall, text(goodCall, `"{\"order_id\":\"2\"}"`)), "Duplicate value", chatSays),
		chat("a call without output", assistantMessage(goodCall), "did not have response messages"),
		chat("arguments that are no object", assistantMessage(text(goodCall, `"{\"order"`)), "JSON object", chatSays),
		chat("a name that no tool can have", assistantMessage(named(goodCall, "functions.look_up")), "does not match pattern", chatSays),
		chat("a name over 64", assistantMessage(named(goodCall, long)), "too long", chatSays),
		past("an output without call", "chat", "must be a response to a preceeding message", chatSays),
		past("a call without output, in the past", "chat", "did not have response messages", assistantMessage(goodCall)),
		past("an id that came before", "chat", "Duplicate value", assistantMessage(goodCall), chatSays, assistantMessage(goodCall), chatSays),
		past("two outputs", "chat", "Duplicate value", assistantMessage(goodCall), chatSays, chatSays),
		past("content null", "chat", "expected a string, got null", `{"role":"assistant","content":null}`),
		item("an empty id", id(goodItem, ""), "empty string", strings.ReplaceAll(itemSays, "call_a", "")),
		item("an id over 64", id(goodItem, long), "too long", strings.ReplaceAll(itemSays, "call_a", long)),
		item("one id on two calls", goodItem+","+re("fc_1", "fc_2").Replace(text(goodItem, `"{\"order_id\":\"2\"}"`)), "Duplicate value", itemSays),
		item("a call without output", goodItem, "No tool output found"),
		item("arguments that are no object", text(goodItem, `"{\"order"`), "JSON object", itemSays),
		item("a name that no tool can have", named(goodItem, "functions.look_up"), "does not match pattern", itemSays),
		item("an id of the wrong kind", re("fc_1", "call_a").Replace(goodItem), "begins with 'fc'", itemSays),
		item("an item id that comes back", goodItem, "Duplicate item found", itemSays,
			id(goodItem, "call_b"), strings.ReplaceAll(itemSays, "call_a", "call_b")),
		item("reasoning without what follows", goodItem+","+reasoning, "without its required following item", itemSays),
		past("an output without call", "responses", "No tool call found", itemSays),
		past("a call without output, in the past", "responses", "No tool output found", goodItem),
		past("an item that is there twice", "responses", "Duplicate item found", goodItem, itemSays, re("call_a", "call_b").Replace(goodItem), re("call_a", "call_b").Replace(itemSays)),
		past("two outputs", "responses", "Duplicate value", goodItem, itemSays, itemSays),
		past("an id of the wrong kind", "responses", "begins with 'fc'", re("fc_1", "call_a").Replace(goodItem), itemSays),
		past("reasoning alone", "responses", "without its required following item", reasoning),
	}
}

func TestTheLoopProvokesNoRefusalWhereANaiveOneWould(t *testing.T) {
	user := `{"role":"user","content":"` + request + `"}`
	for _, r := range rules() {
		t.Run(r.api+" "+r.name, func(t *testing.T) {
			for _, f := range forms {
				if f.api != r.api {
					continue
				}
				var b bank
				end := map[string]string{"chat": "tool_calls", "responses": "completed"}[f.api]
				n := 0
				s := transcript.NewServer(func(transcript.Request) transcript.Step {
					if n++; n <= 2 { // twice, as servers do that count ids in each answer anew
						return f.answers(end, r.answer)
					}
					return transcript.Step{Text: "Done."}
				}, nil)
				l := agent.New(onceClient(s), b.tools(), memory(), nil)
				o := f.with(t.Context(), t, l, run, asking{
					chat: func(p *openai.ChatCompletionNewParams) {
						p.Messages = historyParams(slices.Concat(r.history, []string{user})).Messages
					},
					response: func(p *responses.ResponseNewParams) {
						p.Input.OfInputItemList = historyItems(slices.Concat(r.history, []string{user})).Input.OfInputItemList
					},
				})
				if o.err != nil || o.text != "Done." {
					t.Errorf("%v: %q, %v", f, o.text, o.err)
				}
				allAccepted(t, s)
			}
			path, list := "/v1/chat/completions", "messages"
			if r.api == "responses" {
				path, list = "/v1/responses", "input"
			}
			body := fmt.Sprintf(`{"model":"m","%s":[%s]}`, list, strings.Join(slices.Concat(r.history, []string{user}, r.naive), ","))
			s := transcript.NewServer(transcript.Steps(), &transcript.Options{})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model.invalid"+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer any")
			res, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if got := s.Requests()[0]; got.Status != http.StatusBadRequest || !strings.Contains(got.Refusal, r.says) {
				t.Errorf("the naive loop got %d %q", got.Status, got.Refusal)
			}
		})
	}
}

// What the SDK does not know of, and what only the server can read, goes back as it came.
func TestAnAnswerGoesBackByteForByte(t *testing.T) {
	chat := `{"role":"assistant","content":null,"refusal":null,"reasoning_content":"Hm, <1> & 2",` +
		`"vendor":{"n":12345678901234567890,"z":1,"a":[1.0,1e2]},"tool_calls":[{"id":"call_a","type":"function","extra_content":{"sig":"a+/="},"function":{"name":"look_up","arguments":"{\"order_id\": \"1\"}"}}]}`
	list := []string{
		`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAA+/=<>&","status":null}`,
		`{"id":"msg_1","type":"message","role":"assistant","phase":"commentary","status":"completed","content":[{"type":"output_text","text":"One <moment>","annotations":[],"logprobs":[]}]}`,
		`{"id":"zz_1","type":"from_the_future","n":12345678901234567890,"b":1,"a":1.0}`,
		`{"id":"fc_1","type":"function_call","call_id":"call_a","namespace":"orders","caller":{"type":"program","caller_id":"prog_1"},"name":"look_up","arguments":"{\"order_id\": \"1\"}","status":"completed"}`,
	}
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		first, want := f.answers("tool_calls", chat), []string{chat}
		if f.api == "responses" {
			first, want = f.answers("completed", "["+strings.Join(list, ",")+"]"), list
		}
		s := transcript.NewServer(running(first), nil)
		off := openai.Bool(false)
		o := f.with(t.Context(), t, agent.New(onceClient(s), b.tools(), memory(), nil), run, asking{
			chat:     func(p *openai.ChatCompletionNewParams) { p.Store = off },
			response: func(p *responses.ResponseNewParams) { p.Store = off },
		})
		if o.err != nil || o.text != "Done." {
			t.Fatal(o.err)
		}
		rs := s.Requests()
		same(t, "store", []string{"false", "false"}, members(s, "store"))
		got := sent(rs[1])
		before := sent(rs[0])
		if f.api == "chat" && f.stream { // the server has not said it in one piece
			const extra, function = `"extra_content":{"sig":"a+/="}`, `"function":{"name":"look_up","arguments":"{\"order_id\": \"1\"}"}`
			want = []string{strings.Replace(chat, extra+","+function, function+","+extra, 1)}
		}
		same(t, "the request", slices.Concat(before, want), got[:len(got)-1])
		if f.api == "responses" && gjson.Get(got[len(got)-1], "caller").Raw != `{"type":"program","caller_id":"prog_1"}` {
			t.Errorf("the output has another caller: %s", got[len(got)-1])
		}
		same(t, "the history", got, o.history[:len(got)])
	})
}

func TestAPreviousResponseStaysThatOfTheParams(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		if f.api == "chat" {
			return
		}
		var b bank
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			last := r.Messages[len(r.Messages)-1]
			if last.Role == "user" && last.Content != "Hello." {
				return transcript.Step{Reasoning: "Hm.", Calls: []transcript.ToolCall{refundCall("call_a", "1")}}
			}
			return transcript.Step{Text: "Done."}
		}, nil)
		client := onceClient(s)
		l := agent.New(client, b.tools(), memory(), nil)
		first, err := client.Responses.New(t.Context(), responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hello.")}})
		if err != nil {
			t.Fatal(err)
		}
		previous := func(p *responses.ResponseNewParams) { p.PreviousResponseID = openai.String(first.ID) }
		if o := f.with(t.Context(), t, l, run, asking{response: previous}); o.err != nil || o.text != "Done." || b.total() != "1 500" {
			t.Fatal(o.err)
		}
		id := `"` + first.ID + `"`
		same(t, "previous", []string{"-", id, id}, members(s, "previous_response_id"))
		if got := sent(s.Requests()[2]); len(got) != 4 { // the message, reasoning, call, output
			t.Errorf("sent %q", got)
		}
		allAccepted(t, s)
	})
}

// The caller's history lacks the output of a call that the ledger knows.
func TestAHoleInTheCallersHistoryIsFilledFromTheLedger(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			if r.FirstUser() == "Well?" || len(r.Outputs()) > 0 {
				return transcript.Step{Text: "Done."}
			}
			return transcript.Step{Calls: []transcript.ToolCall{refundCall("call_p", "1")}}
		}, nil)
		l := agent.New(onceClient(s), b.tools(), memory(), nil)
		if o := f.do(t, l, run, request); o.err != nil {
			t.Fatal(o.err)
		}
		p, q := refundCall("call_p", "1"), refundCall("call_q", "2")
		item := func(c transcript.ToolCall) string {
			return fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":%q,"arguments":%s}`, c.ID, c.Name, quote(c.Arguments))
		}
		hole := func(history ...string) asking {
			return asking{
				chat: func(p *openai.ChatCompletionNewParams) { p.Messages = historyParams(history).Messages },
				response: func(p *responses.ResponseNewParams) {
					p.Input.OfInputItemList = historyItems(history).Input.OfInputItemList
				},
			}
		}
		a := hole(item(p), item(q), `{"role":"user","content":"Well?"}`)
		if f.api == "chat" {
			a = hole(calling([3]string{p.ID, p.Name, p.Arguments}, [3]string{q.ID, q.Name, q.Arguments}), `{"role":"user","content":"Well?"}`)
		}
		if o := f.with(t.Context(), t, l, agent.Run{ID: "ticket-43"}, a); o.err != nil || b.total() != "1 500" {
			t.Fatal(o.err, b.total())
		}
		var told []string
		for _, m := range s.Requests()[2].Messages {
			if m.Role == "tool" {
				told = append(told, m.ToolCallID+" "+gjson.Get(m.Content, "status").String())
			}
		}
		same(t, "told", []string{"call_p already_done", "call_q outcome_unknown"}, told)
	})
}

// What an answer says of its end decides what becomes of it.
func TestTheEndOfAnAnswerDecidesWhetherItsCallsRun(t *testing.T) {
	chatCall := assistantMessage(`{"id":"call_a","type":"function","function":{"name":"issue_refund","arguments":"{\"order_id\":\"1\",\"cents\":500}"}}`)
	withText := strings.Replace(chatCall, `null`, `"One moment."`, 1)
	item := `[{"type":"function_call","id":"fc_1","call_id":"call_a","name":"issue_refund","arguments":"{\"order_id\":\"1\",\"cents\":500}"}]`
	const says, said = `{"role":"assistant","content":"Hi."}`, `[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hi."}]}]`
	for _, c := range []struct{ api, end, body, text, moved, err string }{
		{"chat", "stop", chatCall, "Done.", "1 500", ""},
		{"chat", "tool_calls", withText, "Done.", "1 500", ""},
		{"chat", "tool_calls", says, "Hi.", "", ""},
		{"chat", "length", says, "Hi.", "", ""},
		{"chat", "length", chatCall, "", "", "length"},
		{"chat", "content_filter", withText, "", "", "content_filter"},
		{"chat", "stop", `{"role":"assistant","content":null,"refusal":"I won't."}`, "", "", ""},
		{"responses", "completed", item, "Done.", "1 500", ""},
		{"responses", "completed", strings.Replace(said, `"role"`, `"phase":"final_answer","role"`, 1), "Hi.", "", ""},
		{"responses", "completed", strings.TrimSuffix(said, "]") + "," + item[1:], "Done.", "1 500", ""},
		{"responses", "incomplete", said, "Hi.", "", ""},
		{"responses", "incomplete", item, "", "", "incomplete"},
		{"responses", "failed", item, "", "", "failed"},
		{"responses", "failed", said, "", "", "failed"},
		{"responses", "cancelled", said, "", "", "cancelled"},
		{"responses", "cancelled", item, "", "", "cancelled"},
		{"responses", "in_progress", item, "", "", "in_progress"},
		{"responses", "completed", `[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"refusal","refusal":"I won't."}]}]`, "", "", ""},
		{"responses", "completed", `[{"type":"computer_call","id":"cu_1","call_id":"call_c"}]`, "", "", ""},
		{"responses", "completed", `[{"type":"computer_call","id":"cu_1","call_id":"call_c"},` + item[1:], "", "", "computer_call"},
		{"responses", "completed", `null`, "", "", "no output"},
	} {
		for _, f := range forms {
			if f.api != c.api {
				continue
			}
			var b bank
			s := transcript.NewServer(running(f.answers(c.end, c.body)), nil)
			o := f.do(t, agent.New(onceClient(s), b.tools(), memory(), nil), run, request)
			name := fmt.Sprintf("%v, %s, %.60s", f, c.end, c.body)
			if o.text != c.text || b.total() != c.moved || (o.err == nil) != (c.err == "") || o.err != nil && !strings.Contains(o.err.Error(), c.err) {
				t.Errorf("%s: %q, %v, moved %q", name, o.text, o.err, b.total())
			}
			if n := len(s.Requests()); n != 1+len(o.report.Calls) {
				t.Errorf("%s: %d requests", name, n)
			}
			if c.err != "" && len(o.report.Usage) != 0 {
				t.Errorf("%s: the turn is stored", name)
			}
		}
	}
}

// A model may think for a while and say nothing: the loop goes on, but not for ever.
func TestAnAnswerThatSaysNothingIsGoneOnWithThreeTimes(t *testing.T) {
	commentary := `{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Let me see."}]}`
	eachForm(t, func(t *testing.T, f form) {
		if f.api == "chat" {
			return
		}
		for _, silent := range []string{reasoning, commentary, reasoning + "," + commentary, commentary + "," + reasoning, `{"type":"program","id":"prog_1"}`, ""} {
			for quiet := 1; quiet <= 3; quiet++ {
				var b bank
				n := 0
				s := transcript.NewServer(func(r transcript.Request) transcript.Step {
					if n++; n <= quiet {
						return f.answers("completed", "["+silent+"]")
					}
					return transcript.Step{Text: "Done."}
				}, nil)
				l := agent.New(onceClient(s), b.tools(), memory(), nil)
				o := f.do(t, l, run, request)
				if quiet < 3 && (o.err != nil || o.text != "Done.") || quiet == 3 && (o.err == nil || len(s.Requests()) != 3) {
					t.Errorf("%s, %d times: %q, %v", silent, quiet, o.text, o.err)
				}
				if quiet == 3 {
					if next := f.goOn(t, l, agent.Run{ID: "ticket-43"}, o, "Well?"); next.err != nil || next.text != "Done." {
						t.Errorf("%s: gone on with: %v", silent, next.err)
					}
				}
				allAccepted(t, s)
			}
		}
	})
}
