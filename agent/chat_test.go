package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

func answer(t *testing.T, h registry.Handler, turn int, c *openai.ChatCompletion, history ...openai.ChatCompletionMessageParamUnion) messages {
	t.Helper()
	ms, err := agent.AnswerChat(t.Context(), h, run, turn, c, history...)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func TestEveryCallIsAnsweredInCallOrder(t *testing.T) {
	s := &spy{}
	c := completion(t, "tool_calls", calling([3]string{"a", "note", `{"to":"u1"}`}, [3]string{"b", "note", `{"to":"u2"}`}, [3]string{"c", "read", ""}))
	var first []string
	for range 100 {
		s.calls = nil
		got := wire(t, answer(t, s.handle, 3, c))
		if first == nil {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Fatal(diff)
		}
	}
	want := []string{
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"note","arguments":"{\"to\":\"u1\"}"}},{"id":"b","type":"function","function":{"name":"note","arguments":"{\"to\":\"u2\"}"}},{"id":"c","type":"function","function":{"name":"read","arguments":"{}"}}]}`,
		`{"content":"ok 1","tool_call_id":"a","role":"tool"}`,
		`{"content":"ok 2","tool_call_id":"b","role":"tool"}`,
		`{"content":"ok 3","tool_call_id":"c","role":"tool"}`,
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`3.0 a note {"to":"u1"}`, `3.1 b note {"to":"u2"}`, `3.2 c read `}, s.seen()); diff != "" {
		t.Error(diff)
	}
	if s.calls[0].Run != run {
		t.Errorf("run %v", s.calls[0].Run)
	}
}

func TestAnAnswerWithoutCallsEndsTheLoop(t *testing.T) {
	for _, finish := range []string{"stop", "tool_calls", "length", "content_filter", ""} {
		for _, m := range []string{`{"role":"assistant","content":"done"}`, `{"role":"assistant","content":"done","tool_calls":[]}`, `{"role":"assistant","content":"done","tool_calls":[{},null]}`} {
			s := &spy{}
			if ms := answer(t, s.handle, 1, completion(t, finish, m)); ms != nil || s.calls != nil {
				t.Errorf("%q: %v, %v", finish, ms, s.calls)
			}
		}
	}
}

func TestCallsRunUnderAnyFinishReasonOfAWholeAnswer(t *testing.T) {
	for _, finish := range []string{"tool_calls", "stop", "function_call", "", "STOP"} {
		s := &spy{}
		if ms := answer(t, s.handle, 1, completion(t, finish, calling([3]string{"a", "f", "{}"}))); len(ms) != 2 || len(s.calls) != 1 {
			t.Errorf("%q: %d messages, %d calls", finish, len(ms), len(s.calls))
		}
	}
}

func TestNothingRunsOfAnAnswerThatIsCutOffOrFiltered(t *testing.T) {
	for _, finish := range []string{"length", "content_filter", "insufficient_system_resource"} {
		for _, args := range []string{`{"to":"u1","body":"hel`, `{"to":"u1"}`} {
			s := &spy{}
			ms, err := agent.AnswerChat(t.Context(), s.handle, run, 2, completion(t, finish, calling([3]string{"a", "f", args}, [3]string{"b", "f", "{}"})))
			var ie *agent.IncompleteError
			if ms != nil || s.calls != nil || !errors.As(err, &ie) || ie.Reason != finish || ie.Calls != 2 {
				t.Errorf("%s: %v, %v, %v", finish, ms, s.calls, err)
			}
			want := fmt.Sprintf(`agent: answering turn 2 of run "ticket-42": the answer is not complete (%s); none of its 2 calls was run; ask the model again`, finish)
			if err.Error() != want {
				t.Errorf("\n got %s\nwant %s", err, want)
			}
		}
	}
}

func TestArgumentsCutOffUnderAnyFinishReasonAreRefused(t *testing.T) {
	p := newPayments()
	ms := answer(t, p.guarded(), 1, completion(t, "tool_calls", calling([3]string{"a", "refund", `{"order":"R-7","cents":5`})))
	out := gjson.Get(wire(t, ms)[1], "content").String()
	if len(p.ran) != 0 || gjson.Get(out, "status").String() != "refused" {
		t.Errorf("ran %v, said %s", p.ran, out)
	}
}

func TestACompletionHasOneChoice(t *testing.T) {
	for n, list := range map[int]string{0: `[]`, 2: `[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"x"}},{"index":1,"finish_reason":"stop","message":{"role":"assistant","content":"y"}}]`} {
		var c openai.ChatCompletion
		if err := json.Unmarshal([]byte(`{"id":"x","choices":`+list+`}`), &c); err != nil {
			t.Fatal(err)
		}
		s := &spy{}
		ms, err := agent.AnswerChat(t.Context(), s.handle, run, 1, &c)
		var ie *agent.IncompleteError
		if ms != nil || s.calls != nil || !errors.As(err, &ie) || ie.Reason != fmt.Sprintf("%d choices", n) {
			t.Errorf("%d: %v %v", n, ms, err)
		}
	}
}

func TestMistakesOfTheLoopAreFoundBeforeAnythingRuns(t *testing.T) {
	c := completion(t, "tool_calls", calling([3]string{"a", "f", "{}"}))
	for _, x := range []struct {
		run  agent.Run
		turn int
		c    *openai.ChatCompletion
		want string
	}{
		{agent.Run{}, 1, c, "set Run.ID"},
		{run, -1, c, "from 1, or give 0"},
		{run, 1, nil, "there is no completion"},
	} {
		s := &spy{}
		if _, err := agent.AnswerChat(t.Context(), s.handle, x.run, x.turn, x.c); err == nil || !strings.Contains(err.Error(), x.want) || s.calls != nil {
			t.Errorf("got %v, want %s", err, x.want)
		}
	}
}

func TestIdenticalCallsUnderDifferentIDsRunOnceAndAreAllAnswered(t *testing.T) {
	p := newPayments()
	const args = `{"order":"R-7","cents":500}`
	ms := answer(t, p.guarded(), 1, completion(t, "tool_calls", calling([3]string{"k1", "refund", args}, [3]string{"k2", "refund", args}, [3]string{"k3", "refund", args})))
	calls, outputs := ids(t, ms)
	if diff := cmp.Diff([]string{"k1", "k2", "k3"}, outputs); diff != "" || !cmp.Equal(calls, outputs) {
		t.Error(calls, outputs)
	}
	w := wire(t, ms)
	if len(p.ran) != 1 || gjson.Get(w[1], "content").String() != "refund 1" {
		t.Errorf("ran %v: %s", p.ran, w[1])
	}
	for _, out := range w[2:] {
		if v := gjson.Get(gjson.Get(out, "content").String(), "status").String(); v != "already_done" {
			t.Error(out)
		}
	}
}

func TestCallsOfOneToolWithOtherArgumentsAllRun(t *testing.T) {
	p := newPayments()
	ms := answer(t, p.guarded(), 1, completion(t, "tool_calls", calling([3]string{"a", "refund", `{"order":"R-7","cents":1}`}, [3]string{"b", "refund", `{"order":"R-8","cents":1}`})))
	if diff := cmp.Diff([]string{"R-7 1", "R-8 1"}, p.ran); diff != "" || len(ms) != 3 {
		t.Error(diff)
	}
}

// The server takes no notice of parallel_tool_calls and refuses any history that the API would refuse.
func TestAskedAgainUnderANewIDTheEffectHappensOnce(t *testing.T) {
	const args = `{"order":"R-7","cents":500}`
	server := transcript.NewServer(transcript.Steps(
		transcript.Step{Calls: []transcript.ToolCall{{ID: "x1", Name: "refund", Arguments: args}}},
		transcript.Step{Calls: []transcript.ToolCall{{ID: "x9", Name: "refund", Arguments: args}, {ID: "x10", Name: "refund", Arguments: args}}},
		transcript.Step{Text: "done"},
	), nil)
	p := newPayments()
	text, history, err := loop(t.Context(), clientOf(server, agent.SerialToolCalls()), p.guarded(), run, messages{openai.UserMessage("refund")})
	if err != nil || text != "done" || len(p.ran) != 1 {
		t.Fatalf("%q %v %v", text, p.ran, err)
	}
	w := wire(t, history)
	if out := gjson.Get(w[4], "content").String(); gjson.Get(out, "status").String() != "already_done" || !gjson.Get(out, "first_done_at").Exists() {
		t.Error(out)
	}
}

func TestAHandlersErrorLeavesTheTurnUnansweredAndTheResultsKept(t *testing.T) {
	const one, two = `{"order":"R-7","cents":1}`, `{"order":"R-8","cents":1}`
	p := newPayments()
	guarded := p.guarded()
	down := errors.New("store is down")
	fail := true
	h := func(ctx context.Context, c *registry.Call) (registry.Result, error) {
		if c.Position == 1 && fail {
			return registry.Result{}, down
		}
		return guarded(ctx, c)
	}
	c := completion(t, "tool_calls", calling([3]string{"a", "refund", one}, [3]string{"b", "refund", two}))
	ms, err := agent.AnswerChat(t.Context(), h, run, 1, c)
	if ms != nil || !errors.Is(err, down) || len(p.ran) != 1 {
		t.Fatal(ms, err, p.ran)
	}
	if want := `agent: answering turn 1 of run "ticket-42": call 1 (refund): store is down`; err.Error() != want {
		t.Errorf("\n got %s\nwant %s", err, want)
	}
	fail = false
	w := wire(t, answer(t, h, 1, c))
	if diff := cmp.Diff([]string{"R-7 1", "R-8 1"}, p.ran); diff != "" || gjson.Get(w[1], "content").String() != "refund 1" {
		t.Error(diff, w)
	}
}

func TestAResultBesideAnErrorIsAnsweredAndSoIsTheRest(t *testing.T) {
	limit := errors.New("too often")
	s := &spy{say: func(n int, _ registry.Call) (registry.Result, error) {
		r := registry.Result{Content: fmt.Sprint("ok ", n), Verdict: registry.AlreadyDone}
		if n < 3 {
			return r, fmt.Errorf("%d: %w", n, limit)
		}
		return r, nil
	}}
	ms, err := agent.AnswerChat(t.Context(), s.handle, run, 1, completion(t, "tool_calls", calling([3]string{"a", "f", "{}"}, [3]string{"b", "g", "{}"}, [3]string{"c", "h", "{}"})))
	calls, outputs := ids(t, ms)
	if !cmp.Equal(calls, outputs) || len(outputs) != 3 || !errors.Is(err, limit) || !strings.Contains(err.Error(), "call 1 (g): 2") {
		t.Error(calls, outputs, err)
	}
	s.say = func(n int, _ registry.Call) (registry.Result, error) {
		if n == 4 {
			return registry.Result{Content: "x", Verdict: registry.Failed}, limit
		}
		return registry.Result{}, errors.New("gone")
	}
	if ms, err = agent.AnswerChat(t.Context(), s.handle, run, 1, completion(t, "tool_calls", calling([3]string{"a", "f", "{}"}, [3]string{"b", "g", "{}"}))); ms != nil || !errors.Is(err, limit) {
		t.Error(ms, err)
	}
}

func TestARunThatRepeatsItselfEndsWithAHistoryThatIsAccepted(t *testing.T) {
	const args = `{"order":"R-7","cents":500}`
	server := transcript.NewServer(func(r transcript.Request) transcript.Step {
		if strings.Contains(r.Messages[len(r.Messages)-1].Content, "enough") {
			return transcript.Step{Text: "sorry"}
		}
		return transcript.Step{Calls: []transcript.ToolCall{{ID: "call_0", Name: "refund", Arguments: args}, {ID: "call_1", Name: "refund", Arguments: args}}}
	}, nil)
	p := newPayments()
	client := clientOf(server)
	h := p.guarded()
	_, history, err := loop(t.Context(), client, h, run, messages{openai.UserMessage("refund")})
	var re *middleware.RepeatError
	if !errors.As(err, &re) || len(p.ran) != 1 {
		t.Fatal(err, p.ran)
	}
	text, _, err := loop(t.Context(), client, h, agent.Run{ID: "ticket-42b"}, append(history, openai.UserMessage("enough")))
	if err != nil || text != "sorry" {
		t.Error(text, err)
	}
}

func TestCancelledInACallTheConversationGoesOn(t *testing.T) {
	const one, two = `{"order":"R-7","cents":1}`, `{"order":"R-8","cents":1}`
	server := transcript.NewServer(func(r transcript.Request) transcript.Step {
		if len(r.Messages) == 1 {
			return transcript.Step{Calls: []transcript.ToolCall{{ID: "a", Name: "refund", Arguments: one}, {ID: "b", Name: "refund", Arguments: two}}}
		}
		return transcript.Step{Text: "fine"}
	}, nil)
	client := clientOf(server)
	for _, h := range []func(p *payments) registry.Handler{
		func(p *payments) registry.Handler { return p.guarded() },
		func(p *payments) registry.Handler { return p.tools.Handler() },
	} {
		p := newPayments()
		ctx, cancel := context.WithCancel(t.Context())
		p.hook = cancel
		_, history, err := loop(ctx, client, h(p), run, messages{openai.UserMessage("refund")})
		if !errors.Is(err, context.Canceled) || len(p.ran) != 1 {
			t.Fatal(err, p.ran)
		}
		if _, _, err = loop(t.Context(), client, h(p), agent.Run{ID: "next"}, append(history, openai.UserMessage("never mind"))); err != nil {
			t.Error(err)
		}
	}
}

func TestCancelledBetweenCallsTheRestIsAnsweredAsNotExecuted(t *testing.T) {
	why := errors.New("the user pressed stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &spy{say: func(int, registry.Call) (registry.Result, error) {
		cancel(why)
		return registry.Result{Content: "paid", Verdict: registry.Executed}, nil
	}}
	c := completion(t, "tool_calls", calling([3]string{"a", "f", "{}"}, [3]string{"b", "g", "{}"}))
	ms, err := agent.AnswerChat(ctx, s.handle, run, 1, c)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, why) || len(ms) != 3 || len(s.calls) != 1 {
		t.Fatal(ms, err)
	}
	if out := gjson.Get(wire(t, ms)[2], "content").String(); out != `{"toolonce":1,"status":"refused","tool":"g","reason":"not executed: the run was cancelled before this call"}` {
		t.Error(out)
	}
	if ms, err = agent.AnswerChat(ctx, s.handle, run, 1, c); ms != nil || !errors.Is(err, context.Canceled) || len(s.calls) != 1 {
		t.Error(ms, err)
	}
}

// A server that takes no notice of parallel_tool_calls: false.
func TestCallsOfAServerThatIgnoresSerialRunInCallOrder(t *testing.T) {
	rec := &recorder{answer: func(n int, _ *http.Request) (int, string, string) {
		m := `{"role":"assistant","content":"done"}`
		if n == 1 {
			m = calling([3]string{"a", "refund", `{"order":"R-7","cents":1}`}, [3]string{"b", "refund", `{"order":"R-8","cents":1}`})
		}
		return 200, "application/json", `{"id":"x","choices":[{"index":0,"finish_reason":"stop","message":` + m + `}]}`
	}}
	p := newPayments()
	rule := agent.SerialToolCalls(agent.ParallelRule{Model: "*"})
	client := rec.client(rule)
	params := openai.ChatCompletionNewParams{Model: "llama-3", Messages: messages{openai.UserMessage("go")}, Tools: agent.ChatTools(p.tools)}
	c, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(rec.sent[0].body, `"parallel_tool_calls":false`) {
		t.Error(rec.sent[0].body)
	}
	answer(t, p.guarded(), 1, c)
	if diff := cmp.Diff([]string{"R-7 1", "R-8 1"}, p.ran); diff != "" {
		t.Error(diff)
	}
}

func TestAnOperationThatIsRepeatedTooOftenIsToldOnceATurn(t *testing.T) {
	p := newPayments()
	var calls [][3]string
	for i := range 20 {
		calls = append(calls, [3]string{fmt.Sprint("k", i), "refund", fmt.Sprintf(`{"order":"R-%d","cents":500}`, i%2)})
	}
	ms, err := agent.AnswerChat(t.Context(), p.guarded(), run, 1, completion(t, "tool_calls", calling(calls...)))
	if err == nil || len(ms) != 21 || strings.Count(err.Error(), "again 9 times") != 2 || strings.Count(err.Error(), "again") != 2 {
		t.Errorf("%d messages, error: %v", len(ms), err)
	}
}
