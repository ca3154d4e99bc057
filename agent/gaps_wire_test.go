package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

const (
	refundArgs = `"arguments":"{\"order_id\":\"1\",\"cents\":500}"`
	chatRefund = `{"id":"call_a","type":"function","function":{"name":"issue_refund",` + refundArgs + `}}`
	itemRefund = `{"type":"function_call","id":"fc_1","call_id":"call_a","name":"issue_refund",` + refundArgs + `}`
	says       = `{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hi."}]}`
)

// behind gives a run a history of messages, or items, in front of the user's message.
func behind(history ...string) asking {
	all := append(slices.Clone(history), `{"role":"user","content":"`+request+`"}`)
	return asking{
		chat: func(p *openai.ChatCompletionNewParams) { p.Messages = historyParams(all).Messages },
		response: func(p *responses.ResponseNewParams) {
			p.Input.OfInputItemList = historyItems(all).Input.OfInputItemList
		},
	}
}

// answered runs a request whose first answer has one refund, which is made, and gives what was sent behind it.
func (f form) answered(t *testing.T, first transcript.Step, a asking) (o outcome, s *transcript.Server, second []string) {
	t.Helper()
	var b bank
	s = transcript.NewServer(func(r transcript.Request) transcript.Step {
		if last := r.Messages[len(r.Messages)-1]; last.Role == "user" {
			return first
		}
		return transcript.Step{Text: "Done."}
	}, nil)
	o = f.with(t.Context(), t, agent.New(onceClient(s), b.tools(), memory(), nil), run, a)
	allAccepted(t, s)
	if o.err != nil || o.text != "Done." || b.total() != "1 500" || len(s.Requests()) != 2 {
		t.Fatalf("%q, %v, moved %q, %d requests", o.text, o.err, b.total(), len(s.Requests()))
	}
	return o, s, sent(s.Requests()[1])
}

// A server that counts its ids from the same number in each conversation says call_a, and fc_1, once more.
func TestIDsOfTheCallersHistoryAreNotUsedAgain(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		first, a := f.answers("tool_calls", assistantMessage(chatRefund)), behind(assistantMessage(goodCall), toolSays("call_a", "ok"))
		if f.api == "responses" {
			first, a = f.answers("completed", "["+itemRefund+"]"), behind(goodItem, itemSays("call_a", "ok"))
		}
		o, s, second := f.answered(t, first, a)
		calls, outputs := wireIDs(s.Requests()[1])
		if same(t, "outputs", calls, outputs); len(calls) != 2 || calls[0] != "call_a" || calls[1] == "call_a" || o.report.Calls[0].CallID != "call_a" {
			t.Errorf("ids on the wire %q, reported %+v", calls, o.report.Calls)
		}
		if f.api == "responses" && strings.Count(strings.Join(second, ""), `"fc_1"`) != 1 {
			t.Errorf("sent %q", second)
		}
	})
}

func TestACallThatIsDeliveredTwiceIsOneCallOfTheRun(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		first := f.answers("tool_calls", assistantMessage(chatRefund, chatRefund))
		want := []string{"call_a"}
		if f.api == "responses" { // and what the model thought before the second goes with it
			rs := strings.ReplaceAll(reasoning, "rs_1", "rs_2")
			first = f.answers("completed", "["+strings.Join([]string{reasoning, itemRefund, rs, strings.Replace(itemRefund, "fc_1", "fc_2", 1)}, ",")+"]")
		}
		o, s, second := f.answered(t, first, asking{})
		wantVerdicts(t, o, "1.0 issue_refund executed")
		calls, outputs := wireIDs(s.Requests()[1])
		same(t, "calls", want, calls)
		same(t, "outputs", want, outputs)
		if all := strings.Join(second, ""); strings.Contains(all, "rs_2") || f.api == "responses" && !strings.Contains(all, "rs_1") {
			t.Errorf("sent %q", second)
		}
	})
}

func TestACallInAnOldOrOddFormRunsAndGoesBackInTheFormOfToday(t *testing.T) {
	function := `{"name":"issue_refund",` + refundArgs + `}`
	for name, c := range map[string]struct{ end, message, id string }{
		"the old form":               {"function_call", `{"role":"assistant","content":null,"function_call":` + function + `}`, ""},
		"the old form, and no calls": {"function_call", `{"role":"assistant","content":null,"tool_calls":[],"function_call":` + function + `}`, ""},
		"both forms":                 {"tool_calls", strings.Replace(assistantMessage(chatRefund), `{"role"`, `{"function_call":`+function+`,"role"`, 1), "call_a"},
		"one call without a list":    {"tool_calls", `{"role":"assistant","content":null,"tool_calls":` + chatRefund + `}`, "call_a"},
	} {
		f := form{"chat", false}
		o, s, second := f.answered(t, f.answers(c.end, c.message), asking{})
		wantVerdicts(t, o, "1.0 issue_refund executed")
		list := gjson.Get(second[1], "tool_calls")
		if calls, outputs := wireIDs(s.Requests()[1]); !list.IsArray() || len(list.Array()) != 1 || len(outputs) != 1 || calls[0] != outputs[0] {
			t.Errorf("%s: sent %q", name, second)
		}
		if got := o.report.Calls[0].CallID; got != c.id {
			t.Errorf("%s: reported %q", name, got)
		}
		if strings.Contains(second[1], "function_call") && name != "both forms" {
			t.Errorf("%s: sent %q", name, second)
		}
	}
}

func TestAWholeAnswerNeedsNoFinishReason(t *testing.T) {
	f := form{"chat", false}
	for _, end := range []string{`"finish_reason":null,`, ""} {
		raw := `{"id":"x","choices":[{"index":0,` + end + `"message":` + assistantMessage(chatRefund) + `}]}`
		f.answered(t, transcript.Step{Raw: raw}, asking{})
	}
}

// A bad answer runs nothing and is not stored, so that it is asked for again.
func TestAnAnswerThatMayNotBeUsedIsAskedForAgain(t *testing.T) {
	choice := `{"index":0,"finish_reason":"tool_calls","message":` + assistantMessage(chatRefund) + `}`
	for name, c := range map[string]struct{ raw, want string }{
		"two choices":           {`{"id":"x","choices":[` + choice + `,` + choice + `]}`, "2 choices"},
		"no choice":             {`{"id":"x","choices":[]}`, "0 choices"},
		"an error at its end":   {form{"chat", false}.answers("error", `{"role":"assistant","content":"Sor"}`).Raw, "error"},
		"an error behind calls": {form{"chat", false}.answers("error", assistantMessage(chatRefund)).Raw, "error"},
	} {
		var b bank
		raw := c.raw
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			if r.Attempt == 1 {
				return transcript.Step{Raw: raw}
			}
			return transcript.Step{Text: "Done."}
		}, nil)
		l, f := agent.New(onceClient(s), b.tools(), memory(), nil), form{"chat", false}
		bad, ok := errors.AsType[*agent.IncompleteError](f.do(t, l, run, request).err)
		if !ok || bad.Reason != c.want || b.total() != "" {
			t.Errorf("%s: %v, moved %q", name, bad, b.total())
		}
		if o := f.do(t, l, run, request); o.err != nil || o.report.Resumed {
			t.Errorf("%s: %v", name, o.err)
		}
	}
	streamed := form{"chat", true}
	s := transcript.NewServer(running(streamed.answers("error", `{"role":"assistant","content":"Sor"}`)), nil)
	bad, ok := errors.AsType[*agent.IncompleteError](streamed.do(t, agent.New(onceClient(s), registry.New(), memory(), nil), run, request).err)
	if !ok || bad.Reason != "error" {
		t.Error(bad)
	}
}

// spare is a slice of one element that has room for more.
func spare[T any](one, mine T) (given, all []T) {
	all = []T{one, mine, mine, mine, mine, mine, mine, mine}
	return all[:1], all
}

// Callers keep what they give, and give it to several runs at once.
func TestNothingIsWrittenBehindWhatTheCallerGives(t *testing.T) {
	const mine = "mine"
	ms, allMessages := spare(openai.UserMessage(request), openai.UserMessage(mine))
	is, allItems := spare(responses.ResponseInputItemParamOfMessage(request, "user"), responses.ResponseInputItemParamOfMessage(mine, "user"))
	var b bank
	tools := b.tools()
	chatTools, allChatTools := spare(agent.ChatTools(tools)[0], openai.ChatCompletionToolUnionParam{})
	itemTools, allItemTools := spare(agent.ResponseTools(tools)[0], responses.ToolUnionParam{})
	opts, allOpts := spare[option.RequestOption](option.WithHeader("X-Mine", mine), nil)
	was := slices.Concat(wire(t, allMessages), wire(t, allItems), wire(t, allChatTools), wire(t, allItemTools))
	eachForm(t, func(t *testing.T, f form) {
		s := transcript.NewServer(refundAndEnd, nil)
		l := agent.New(onceClient(s), b.tools(), memory(), nil)
		o := f.with(t.Context(), t, l, run, asking{
			chat:     func(p *openai.ChatCompletionNewParams) { p.Messages, p.Tools = ms, chatTools },
			response: func(p *responses.ResponseNewParams) { p.Input.OfInputItemList, p.Tools = is, itemTools },
		})
		if o.err != nil {
			t.Fatal(o.err)
		}
		same(t, "given", was, slices.Concat(wire(t, allMessages), wire(t, allItems), wire(t, allChatTools), wire(t, allItemTools)))
		if o = f.do(t, l, agent.Run{ID: "ticket-43"}, request, opts...); o.err != nil || s.Requests()[2].Header.Get("X-Mine") != mine {
			t.Fatal(o.err)
		}
		for i, opt := range allOpts[1:] {
			if opt != nil {
				t.Errorf("an option is written at %d", i)
			}
		}
	})
}

func TestAToolThatTheCallerDescribesStaysAsHeDoes(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		tool, path := `"name":"look_up","description":"Mine.","parameters":{"type":"object","properties":{}}`, "tools.#.description"
		if f.api == "chat" {
			tool, path = `"function":{`+tool+`}`, "tools.#.function.description"
		}
		_, s, _ := f.answered(t, transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1")}}, adding(t, f.api, `{"tools":[{"type":"function",`+tool+`}]}`))
		want := `["Mine.","Refund an order."]`
		same(t, "tools", []string{want, want}, members(s, path))
	})
}

// JSON in place of params can be sent, and nothing can be added to it: no tools, and no second turn.
func TestParamsThatAreJSONAsAWholeAreRefused(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		j := &begins{Journal: journal.Memory()}
		s := transcript.NewServer(refundAndEnd, nil)
		raw := json.RawMessage(`{"model":"m","messages":[{"role":"user","content":"Hi"}],"input":"Hi"}`)
		o := f.with(t.Context(), t, agent.New(onceClient(s), b.tools(), store{memory().Ledger, j}, nil), run, asking{
			chat:     func(p *openai.ChatCompletionNewParams) { *p = param.Override[openai.ChatCompletionNewParams](raw) },
			response: func(p *responses.ResponseNewParams) { *p = param.Override[responses.ResponseNewParams](raw) },
		})
		if o.err == nil || !strings.Contains(o.err.Error(), "SetExtraFields") || len(s.Requests()) != 0 || j.n != 0 {
			t.Errorf("%v, %d requests, %d begun", o.err, len(s.Requests()), j.n)
		}
	})
}

// The caller's history lacks the output of a read: it may simply be made again.
func TestAHoleWhereAReadWasIsNoMatterForAPerson(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		hole := goodItem
		if f.api == "chat" {
			hole = assistantMessage(goodCall)
		}
		_, s, _ := f.answered(t, transcript.Step{Calls: []transcript.ToolCall{refundCall("call_b", "1")}}, behind(hole))
		told := s.Requests()[0].Messages
		for _, m := range told {
			if m.Role == "tool" && gjson.Get(m.Content, "status").String()+gjson.Get(m.Content, "retryable").Raw != "failedtrue" {
				t.Errorf("told %s", m.Content)
			}
		}
		if _, outputs := wireIDs(s.Requests()[0]); len(outputs) != 1 {
			t.Errorf("outputs of %q", outputs)
		}
	})
}

func TestOutputsOfACallThatTheServerHasAreSent(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		if f.api == "chat" {
			return
		}
		var b bank
		s := transcript.NewServer(func(r transcript.Request) transcript.Step {
			if len(r.Outputs()) == 0 && r.FirstUser() == "Look it up." && r.Turn == 1 {
				return transcript.Step{Calls: []transcript.ToolCall{lookCall("call_a", "1")}}
			}
			return transcript.Step{Text: "Done."}
		}, nil)
		client := onceClient(s)
		l := agent.New(client, b.tools(), memory(), nil)
		first, err := client.Responses.New(t.Context(), responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Look it up.")}})
		if err != nil {
			t.Fatal(err)
		}
		a := behind(itemSays("call_a", "it is there"))
		o := f.with(t.Context(), t, l, run, asking{response: func(p *responses.ResponseNewParams) {
			a.response(p)
			p.PreviousResponseID = openai.String(first.ID)
		}})
		if o.err != nil || o.text != "Done." {
			t.Fatal(o.err)
		}
		if got := sent(s.Requests()[1]); len(got) != 2 || gjson.Get(got[0], "output").String() != "it is there" {
			t.Errorf("sent %q", got)
		}
	})
}

func TestTheToolChoiceOfAPromptStays(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		if f.api == "chat" {
			return
		}
		s := transcript.NewServer(transcript.Steps(transcript.Step{Text: "Hello."}), nil)
		about := adding(t, f.api, `{"prompt":{"id":"pmpt_1"},"tool_choice":"none"}`)
		if o := f.with(t.Context(), t, agent.New(onceClient(s), registry.New(), memory(), nil), run, about); o.err != nil {
			t.Fatal(o.err)
		}
		same(t, "tool_choice", []string{`"none"`}, members(s, "tool_choice"))
		same(t, "tools", []string{"-"}, members(s, "tools"))
	})
}

func TestAResponseWithoutAMessageCanBeTheAnswer(t *testing.T) {
	const image = `{"type":"image_generation_call","id":"ig_1","status":"completed","result":"aGk="}`
	eachForm(t, func(t *testing.T, f form) {
		if f.api == "chat" {
			return
		}
		for _, c := range [][2]string{{"completed", "[" + image + "]"}, {"incomplete", "[" + reasoning + "]"}, {"incomplete", "[]"}} {
			s := transcript.NewServer(running(f.answers(c[0], c[1])), nil)
			l := agent.New(onceClient(s), registry.New(), memory(), nil)
			for range 2 {
				if o := f.do(t, l, run, request); o.err != nil || len(s.Requests()) != 1 {
					t.Errorf("%q: %v, %d requests", c, o.err, len(s.Requests()))
				}
			}
		}
	})
}

func TestWhatIsNoItemIsLeftOut(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		if f.api == "chat" {
			return
		}
		_, _, second := f.answered(t, f.answers("completed", `[7,null,`+itemRefund+`,"x",[]]`), asking{})
		same(t, "sent behind the message", []string{itemRefund}, second[1:2])
		if len(second) != 3 {
			t.Errorf("sent %q", second)
		}
	})
}

// unread fails the test if it is read: what stands behind the end of a stream.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the stream is read on behind its end")
	return 0, io.EOF
}

// A server that keeps the connection open would keep the run waiting.
func TestAStreamIsReadToTheEndOfItsResponseAndNoFurther(t *testing.T) {
	for end, ok := range map[string]bool{"completed": true, "incomplete": true, "failed": false} {
		stream := sse(fmt.Sprintf(`{"type":"response.%s","response":{"id":"r","object":"response","status":%q,"output":[%s]}}`, end, end, says))
		transport := roundTrip(func(q *http.Request) (*http.Response, error) {
			body := io.NopCloser(io.MultiReader(strings.NewReader(stream), unread{t}))
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body, Request: q}, nil
		})
		client := openai.NewClient(option.WithAPIKey("any"), option.WithHTTPClient(&http.Client{Transport: transport}), option.WithMaxRetries(0))
		if o := (form{"responses", true}).do(t, agent.New(client, registry.New(), memory(), nil), run, request); (o.err == nil) != ok || ok && o.text != "Hi." {
			t.Errorf("%s: %q, %v", end, o.text, o.err)
		}
	}
}

// Some servers send the names of both APIs.
func TestUsageUnderBothNamesIsCountedOnce(t *testing.T) {
	const usage = `,"usage":{"prompt_tokens":10,"input_tokens":10,"completion_tokens":null,"output_tokens":3,` +
		`"prompt_tokens_details":{"cached_tokens":4},"input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":2}}}`
	for api, body := range map[string]string{"chat": `{"role":"assistant","content":"Hi."}`, "responses": "[" + says + "]"} {
		f := form{api, false}
		step := f.answers(map[string]string{"chat": "stop", "responses": "completed"}[api], body)
		step.Raw = strings.TrimSuffix(step.Raw, "}") + usage
		o := f.do(t, agent.New(onceClient(transcript.NewServer(running(step), nil)), registry.New(), memory(), nil), run, request)
		if o.err != nil {
			t.Fatal(o.err)
		}
		same(t, api, agent.Usage{Input: 10, CachedInput: 4, Output: 3, Reasoning: 2}, o.report.Total())
	}
}
