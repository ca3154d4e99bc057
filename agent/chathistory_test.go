package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
)

func TestAHistoryWithoutAProblemComesBackAsItIs(t *testing.T) {
	given := []string{
		`{"role":"system","content":"be <kind>"}`, user,
		`{"role":"assistant","content":"&","reasoning_content":"<x>","tool_calls":[{"index":0,"id":"a","type":"function","x":1e2,"function":{"name":"pay","arguments":"{\"n\":1.0}"}}]}`,
		`{"role":"tool","x":null,"tool_call_id":"a","content":[{"type":"text","text":"<ok>"}]}`,
		`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{"}}`, `{"role":"function","name":"f","content":"x"}`,
		`{"role":"assistant","content":null,"audio":{"id":"au_1"}}`, `{"role":"assistant","refusal":"no"}`,
		`{"role":"assistant","content":[{"type":"text","text":"done"}]}`,
	}
	out, mends := mendedChat(t, given...)
	if diff := cmp.Diff(given, out); diff != "" || mends != nil {
		t.Errorf("%v %s", mends, diff)
	}
	typed := []openai.ChatCompletionMessageParamUnion{openai.UserMessage("a"), openai.AssistantMessage("b")}
	got, _ := agent.CheckChat(openai.ChatCompletionNewParams{Messages: typed})
	if &got.Messages[0] != &typed[0] {
		t.Error("the messages were copied")
	}
}

func TestWhatNeedsNoMendStaysBesideWhatDoes(t *testing.T) {
	odd := `{"role":"assistant","content":"<","reasoning_content":"&","tool_calls":[{"id":"a","x":1e2,"type":"function","function":{"name":"pay","arguments":"{\"n\":1.0}"}}]}`
	says := `{"x":"<","role":"tool","tool_call_id":"a","content":"ok"}`
	out, _ := mendedChat(t, user, odd, says, toolSays("b", "orphan"), user, calling([3]string{"a", "pay", "{}"}), toolSays("a", "ok"))
	wantLines(t, out[:4], user, odd, says, user)
}

func TestCallsWithoutIDsGetOnesThatStayTheSame(t *testing.T) {
	given := []string{user, calling([3]string{"", "pay", `{"n":1}`}, [3]string{"", "pay", `{"n":2}`}), toolSays("", "one"), toolSays("", "two")}
	out, mends := mendedChat(t, given...)
	wantLines(t, problems(mends), "1 it has no id", "1 it has no id")
	calls := gjson.Get(out[1], "tool_calls.#.id").Array()
	for i, content := range []string{"one", "two"} {
		if id := gjson.Get(out[2+i], "tool_call_id").String(); id != calls[i].String() || gjson.Get(out[2+i], "content").String() != content {
			t.Errorf("output %d: %s for %s", i, out[2+i], calls[i])
		}
	}
	longer, _ := mendedChat(t, append(given, user, calling([3]string{"", "pay", `{"n":3}`}), toolSays("", "three"))...)
	wantLines(t, longer[:len(out)], out...) // what was sent once is sent so again
}

func TestAnIDThatComesBackIsAnotherOneOnTheWire(t *testing.T) {
	out, mends := mendedChat(t, user, calling([3]string{"call_0", "read", `{}`}), toolSays("call_0", "r"), calling([3]string{"call_0", "pay", `{"n":1}`}), toolSays("call_0", "p"))
	wantLines(t, problems(mends), "3 another call has its id")
	wantLines(t, out[:3], user, calling([3]string{"call_0", "read", `{}`}), toolSays("call_0", "r"))
	if id := gjson.Get(out[4], "tool_call_id").String(); id == "call_0" || id != gjson.Get(out[3], "tool_calls.0.id").String() {
		t.Errorf("output under %s", id)
	}
}

func TestAnOutputAnswersTheLatestCallBeforeItThatHasItsID(t *testing.T) {
	out, mends := mendedChat(t, user, calling([3]string{"call_0", "pay", `{"n":1}`}), user, calling([3]string{"call_0", "pay", `{"n":2}`}), toolSays("call_0", "2"))
	wantLines(t, problems(mends), "1 it has no output", "3 another call has its id")
	if got := gjson.Get(out[5], "content").String(); got != "2" {
		t.Errorf("%q", out)
	}
}

func TestLongIDsAreMappedOneToOne(t *testing.T) {
	a, b := strings.Repeat("a", 45)+"111111", strings.Repeat("a", 45)+"222222"
	out, mends := mendedChat(t, user, calling([3]string{a, "pay", `{"n":1}`}, [3]string{b, "pay", `{"n":2}`}), toolSays(b, "two"), toolSays(a, "one"))
	wantLines(t, problems(mends), "1 its id is longer than 40 bytes", "1 its id is longer than 40 bytes", "2 the output does not stand behind its call, in call order")
	if x, y := gjson.Get(out[1], "tool_calls.0.id").String(), gjson.Get(out[2], "tool_call_id").String(); x != y || gjson.Get(out[2], "content").String() != "one" {
		t.Errorf("%s %s: %s", x, y, out[2])
	}
}

func TestACancelledTurnIsClosedBeforeTheNextUserMessage(t *testing.T) {
	c := calling([3]string{"p", "pay", `{"n":1}`}, [3]string{"q", "pay", `{"n":2}`})
	out, mends := mendedChat(t, user, c, user)
	wantLines(t, problems(mends), "1 it has no output", "1 it has no output")
	if len(out) != 5 || out[1] != c || out[4] != user {
		t.Fatalf("%q", out)
	}
	for i, id := range []string{"p", "q"} {
		m := gjson.Parse(out[2+i])
		e := gjson.Parse(m.Get("content").String())
		if m.Get("tool_call_id").String() != id || e.Get("status").String() != "outcome_unknown" || e.Get("tool").String() != "pay" || !strings.Contains(e.Get("note").String(), cut) {
			t.Errorf("output %s", out[2+i])
		}
	}
}

func TestOutputsWhoseCallsWereCutOffAreLeftOut(t *testing.T) {
	system := `{"role":"system","content":"s"}`
	out, mends := mendedChat(t, system, toolSays("a", "x"), `{"role":"tool","content":"y"}`, user, toolSays("b", "z"))
	wantLines(t, out, system, user)
	wantLines(t, problems(mends), "1 no call before the output has its id", "2 no call before the output has its id", "4 no call before the output has its id")
	// An id that a server gives to the first call of every turn: the old output is none of the new call.
	out, _ = mendedChat(t, system, toolSays("call_0", "old"), calling([3]string{"call_0", "pay", "{}"}), user)
	if got := gjson.Get(out[2], "content").String(); !strings.Contains(got, cut) {
		t.Errorf("the call is answered with %s", got)
	}
}

func TestAHoleInATurnIsClosedInCallOrder(t *testing.T) {
	out, mends := mendedChat(t, user, calling([3]string{"p", "pay", `{"n":1}`}, [3]string{"q", "pay", `{"n":2}`}, [3]string{"r", "pay", `{"n":3}`}), toolSays("p", "1"), toolSays("r", "3"))
	wantLines(t, problems(mends), "1 it has no output")
	wantLines(t, []string{out[2], out[4]}, toolSays("p", "1"), toolSays("r", "3"))
	if gjson.Get(out[3], "tool_call_id").String() != "q" {
		t.Errorf("%q", out)
	}
}

func TestOutputsGoBehindTheirCallsInCallOrder(t *testing.T) {
	c := calling([3]string{"p", "pay", `{"n":1}`}, [3]string{"q", "pay", `{"n":2}`})
	for name, given := range map[string][]string{
		"in the order they finished": {user, c, toolSays("q", "2"), toolSays("p", "1"), user},
		"behind a user message":      {user, c, toolSays("p", "1"), user, toolSays("q", "2")},
		"before their call":          {user, toolSays("q", "2"), c, toolSays("p", "1"), user},
	} {
		t.Run(name, func(t *testing.T) {
			out, mends := mendedChat(t, given...)
			wantLines(t, out, user, c, toolSays("p", "1"), toolSays("q", "2"), user)
			if len(mends) != 1 || !strings.Contains(mends[0].Problem, "does not stand behind its call") {
				t.Errorf("mends %v", mends)
			}
		})
	}
}

func TestAnOutputBeforeSeveralCallsOfItsIDIsNoneOfThem(t *testing.T) {
	c := calling([3]string{"p", "pay", `{"n":1}`})
	out, _ := mendedChat(t, user, toolSays("p", "paid"), c, user, calling([3]string{"p", "pay", `{"n":2}`}))
	for _, at := range []int{2, 5} {
		if !strings.Contains(out[at], cut) {
			t.Errorf("output %s", out[at])
		}
	}
}

func TestOfTwoOutputsTheLastStays(t *testing.T) {
	c := calling([3]string{"p", "pay", `{"n":1}`})
	out, mends := mendedChat(t, user, c, toolSays("p", "running"), user, toolSays("p", "paid"))
	wantLines(t, out, user, c, toolSays("p", "paid"), user)
	wantLines(t, problems(mends), "1 it has 2 outputs")
}

func TestACallDeliveredTwiceStandsThereOnce(t *testing.T) {
	out, mends := mendedChat(t, user, calling([3]string{"p", "pay", `{"n":1}`}, [3]string{"p", "pay", ``}, [3]string{"p", "pay", `{"n":2}`}), toolSays("p", "1"), toolSays("p", "2"))
	wantLines(t, problems(mends), "1 the call was delivered twice", "1 another call has its id")
	if n := len(gjson.Get(out[1], "tool_calls").Array()); n != 2 || gjson.Get(out[3], "content").String() != "2" {
		t.Errorf("%q", out)
	}
}

func TestArgumentsThatAreNoObjectDoNotBlockTheConversation(t *testing.T) {
	for arguments, want := range map[string]string{`{"p":"x`: "{}", "": "{}", "null": "{}", `"{\"n\":1}"`: `{"n":1}`} {
		out, mends := mendedChat(t, user, calling([3]string{"p", "functions.pay", arguments}), toolSays("p", "refused"), user)
		wantLines(t, problems(mends), "1 no tool can have its name", "1 its arguments are no JSON object")
		wantLines(t, out, user, calling([3]string{"p", "functions_pay", want}), toolSays("p", "refused"), user)
	}
}

func TestFieldsThatMayNotBeEmptyAreMended(t *testing.T) {
	out, mends := mendedChat(t, user,
		`{"role":"assistant","content":"a","tool_calls":[]}`, `{"role":"assistant","content":null,"tool_calls":null}`, `{"role":"assistant"}`,
		`{"role":"assistant","x":"<","tool_calls":[null,{"id":"p","function":{"name":"pay","arguments":{"n":1}}}]}`, `{"role":"tool","content":null,"tool_call_id":"p"}`)
	wantLines(t, out, user,
		`{"role":"assistant","content":"a"}`, `{"role":"assistant","content":""}`, `{"role":"assistant","content":""}`,
		`{"role":"assistant","x":"<","tool_calls":[{"id":"p","function":{"name":"pay","arguments":"{\"n\":1}"},"type":"function"}]}`, toolSays("p", ""))
	wantLines(t, problems(mends), "1 its tool_calls have no call", "2 its tool_calls have no call", "2 the message says nothing", "3 the message says nothing",
		"4 it does not have the form that the API wants", "5 the output has no content")
}

func TestTypedMessagesAreMendedAsWell(t *testing.T) {
	assistant := openai.ChatCompletionAssistantMessageParam{ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{{
		OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: "", Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "pay", Arguments: "{"}},
	}}}
	params := openai.ChatCompletionNewParams{Model: "demo-model", Messages: messages{
		openai.UserMessage("<pay>"), {OfAssistant: &assistant}, openai.ToolMessage("ok", ""), {OfAssistant: &openai.ChatCompletionAssistantMessageParam{ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{}}},
	}}
	mended, mends := agent.CheckChat(params)
	wantLines(t, problems(mends), "1 it has no id", "1 its arguments are no JSON object", "3 its tool_calls have no call", "3 the message says nothing")
	client := clientOf(agreeing())
	if _, err := client.Chat.Completions.New(t.Context(), mended); err != nil {
		t.Error(err)
	}
	if assistant.ToolCalls[0].OfFunction.Function.Arguments != "{" {
		t.Error("the caller's message has changed")
	}
}

func TestWhatAnswerChatMakesNeedsNoMend(t *testing.T) {
	c := completion(t, "tool_calls", calling([3]string{"", "f.g", "{"}, [3]string{strings.Repeat("x", 50), "pay", "{}"}, [3]string{"a", "pay", "{}"}, [3]string{"a", "pay", "{}"}))
	history := messages{openai.UserMessage("x")}
	for turn := range 2 {
		next, err := agent.AnswerChat(context.Background(), (&spy{}).handle, run, turn+1, c, history...)
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, next...)
	}
	if _, mends := agent.CheckChat(openai.ChatCompletionNewParams{Messages: history}); mends != nil {
		t.Error(mends)
	}
}
