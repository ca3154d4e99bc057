package otel_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

// changing are the attributes that differ between the four forms, and are looked at by themselves.
var changing = []string{
	"gen_ai.response.id", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.cache_read.input_tokens",
	"gen_ai.usage.reasoning.output_tokens", "gen_ai.response.finish_reasons", "openai.response.system_fingerprint",
}

// model is a chat span of a turn.
func model(f form, turn int) string {
	return fmt.Sprintf("chat gpt-4.1-nano (client) conversation.id=chat-7 operation.name=chat provider.name=openai request.model=gpt-4.1-nano "+
		"response.model=gpt-4.1-nano openai.api.type=%s server.address=model.invalid server.port=8443 "+
		"toolonce.parallel_tool_calls=forced toolonce.run=ticket-42 toolonce.turn=%d", f.api, turn)
}

const (
	runSpan  = "invoke_agent (internal) conversation.id=chat-7 operation.name=invoke_agent toolonce.run=ticket-42"
	lookSpan = "execute_tool look_up (internal) conversation.id=chat-7 operation.name=execute_tool tool.call.id=call_1 tool.name=look_up " +
		"tool.type=function toolonce.effect=Read toolonce.position=0 toolonce.run=ticket-42 toolonce.turn=1 toolonce.verdict=executed"
	refundSpan = "execute_tool issue_refund (internal%s) conversation.id=chat-7%s operation.name=execute_tool tool.call.id=%s tool.name=issue_refund " +
		"tool.type=function toolonce.effect=NonIdempotentWrite toolonce.operation=some toolonce.position=%d%s toolonce.run=ticket-42 toolonce.turn=%d toolonce.verdict=%s"
)

func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }

func TestARunIsATreeOfSpans(t *testing.T) {
	for _, f := range forms {
		t.Run(f.String(), func(t *testing.T) {
			w := newWorld(t, false)
			w.serve(
				transcript.Step{Calls: []transcript.ToolCall{lookCall("call_1"), refundCall("call_2")}},
				transcript.Step{Calls: []transcript.ToolCall{refundCall("call_3")}},
				transcript.Step{Text: "Done."},
			)
			if err := w.do(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			want := lines(runSpan,
				"  "+model(f, 1),
				"  "+lookSpan,
				"  "+fmt.Sprintf(refundSpan, "", "", "call_2", 1, "", 1, "executed"),
				"  "+model(f, 2),
				"  "+fmt.Sprintf(refundSpan, "", "", "call_3", 0, " toolonce.repeats=1", 2, "already_done"),
				"  "+model(f, 3))
			if d := cmp.Diff(want, w.tree(changing...)); d != "" {
				t.Error(d)
			}
			w.checkAnswers(f)
		})
	}
}

// checkAnswers compares what is told of the model's answers with what the loop has read.
func (w *world) checkAnswers(f form) {
	w.t.Helper()
	var got, want []string
	for _, s := range w.spans.GetSpans() {
		attrs := map[string]string{}
		for _, kv := range s.Attributes {
			attrs[string(kv.Key)] = kv.Value.String()
		}
		if attrs["gen_ai.operation.name"] == "chat" {
			got = append(got, fmt.Sprint(attrs["gen_ai.usage.input_tokens"], " ", attrs["gen_ai.usage.output_tokens"], " ", attrs["gen_ai.response.finish_reasons"],
				" ", attrs["gen_ai.response.id"] != "", " ", attrs["openai.response.system_fingerprint"]))
		}
	}
	finish, print := []string{`["tool_calls"]`, `["tool_calls"]`, `["stop"]`}, "fp_scripted"
	if f.api == "responses" {
		finish, print = []string{`["completed"]`, `["completed"]`, `["completed"]`}, ""
	}
	for i, u := range w.report.Usage {
		want = append(want, fmt.Sprint(u.Input, " ", u.Output, " ", finish[i], " ", true, " ", print))
	}
	if d := cmp.Diff(want, got); d != "" {
		w.t.Error(d)
	}
	total := w.report.Total()
	if total.Input == 0 || total.Output == 0 {
		w.t.Errorf("the server counts nothing: %+v", total)
	}
	const series = "gen_ai.client.token.usage {token} operation.name=chat provider.name=openai request.model=gpt-4.1-nano response.model=gpt-4.1-nano token.type=%s server.address=model.invalid server.port=8443: %d"
	if d := cmp.Diff([]string{fmt.Sprintf(series, "input", total.Input), fmt.Sprintf(series, "output", total.Output)},
		some(w.metrics(w.t.Context()), "gen_ai.client.token.usage")); d != "" {
		w.t.Error(d)
	}
}

func TestAnUnclearOutcomeIsAnErrorOfItsCallAlone(t *testing.T) {
	w := newWorld(t, false)
	w.run = func(context.Context) error { return errDeclined }
	w.serve(
		transcript.Step{Calls: []transcript.ToolCall{refundCall("call_1")}},
		transcript.Step{Calls: []transcript.ToolCall{refundCall("call_2"), {ID: "call_3", Name: "issue_refund", Arguments: `{"order":"` + secretOrder + `","cents":1}`}}},
		transcript.Step{Calls: []transcript.ToolCall{{ID: "call_4", Name: "issue_refund", Arguments: `{}`}}},
		transcript.Step{Text: "Sorry."},
	)
	if err := w.do(t.Context(), forms[0]); err != nil {
		t.Fatal(err)
	}
	want := lines(runSpan,
		"  "+model(forms[0], 1),
		"  "+fmt.Sprintf(refundSpan, " Error", " error.type=outcome_unknown", "call_1", 0, "", 1, "outcome_unknown"),
		"  "+model(forms[0], 2),
		"  "+fmt.Sprintf(refundSpan, " Error", " error.type=outcome_unknown", "call_2", 0, "", 2, "outcome_unknown"),
		"  "+fmt.Sprintf(refundSpan, " Error", " error.type=conflict", "call_3", 1, "", 2, "conflict"),
		"  "+model(forms[0], 3),
		"  "+strings.Replace(fmt.Sprintf(refundSpan, " Error", " error.type=refused", "call_4", 0, "", 3, "refused"), " toolonce.operation=some", "", 1),
		"  "+model(forms[0], 4))
	if d := cmp.Diff(inOrder(want), inOrder(w.tree(changing...))); d != "" {
		t.Error(d)
	}
	wantMetrics := []string{
		"gen_ai.execute_tool.duration s error.type=_OTHER operation.name=execute_tool tool.name=issue_refund toolonce.effect=NonIdempotentWrite: 1",
		"toolonce.calls {call} error.type=conflict tool.name=issue_refund toolonce.effect=NonIdempotentWrite toolonce.verdict=conflict: 1",
		"toolonce.calls {call} error.type=outcome_unknown tool.name=issue_refund toolonce.effect=NonIdempotentWrite toolonce.verdict=outcome_unknown: 2",
		"toolonce.calls {call} error.type=refused tool.name=issue_refund toolonce.effect=NonIdempotentWrite toolonce.verdict=refused: 1",
		"toolonce.claim.duration s: 1",
		"toolonce.save.duration s: 1",
	}
	if d := cmp.Diff(wantMetrics, some(w.metrics(t.Context()), "toolonce.", "gen_ai.execute_tool")); d != "" {
		t.Error(d)
	}
}

// inOrder is the lines of a tree with the words of each in order.
func inOrder(tree string) (out []string) {
	for l := range strings.Lines(tree) {
		indent := l[:len(l)-len(strings.TrimLeft(l, " "))]
		words := strings.Fields(l)
		out = append(out, indent+strings.Join(sortedWords(words), " "))
	}
	return out
}

func TestARunThatIsKilledIsAnErrorAndItsResumeIsNone(t *testing.T) {
	w := newWorld(t, false)
	ctx, kill := context.WithCancel(t.Context())
	w.run = func(context.Context) error {
		kill()
		return nil
	}
	w.serve(transcript.Step{Calls: []transcript.ToolCall{refundCall("call_1")}}, transcript.Step{Text: "Done."})
	if err := w.do(ctx, forms[0]); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want a cancel", err)
	}
	killed := w.tree(changing...)
	if !strings.HasPrefix(killed, "invoke_agent (internal Error) error.type=canceled ") {
		t.Error(killed)
	}
	w.spans.Reset()
	if err := w.do(t.Context(), forms[0]); err != nil {
		t.Fatal(err)
	}
	want := lines(runSpan, "  "+fmt.Sprintf(refundSpan, "", "", "call_1", 0, "", 1, "replayed"), "  "+model(forms[0], 2))
	if d := cmp.Diff(want, w.tree(changing...)); d != "" {
		t.Error(d)
	}
}

func TestACallThatWaitsForAPersonIsNoError(t *testing.T) {
	w := newWorld(t, false)
	w.needs = true
	w.serve(transcript.Step{Calls: []transcript.ToolCall{refundCall("call_1"), {ID: "call_2", Name: "issue_refund", Arguments: `{"order":"2","cents":1}`}}})
	err := w.do(t.Context(), forms[0])
	if paused, ok := errors.AsType[*middleware.PausedError](err); !ok || len(paused.Waiting) != 2 {
		t.Fatalf("%v, want two questions", err)
	}
	want := lines("invoke_agent (internal) conversation.id=chat-7 operation.name=invoke_agent toolonce.paused=true toolonce.run=ticket-42",
		"  "+model(forms[0], 1),
		"  execute_tool issue_refund (internal) conversation.id=chat-7 operation.name=execute_tool tool.call.id=call_1 tool.name=issue_refund "+
			"tool.type=function toolonce.effect=NonIdempotentWrite toolonce.paused=true toolonce.position=0 toolonce.run=ticket-42 toolonce.turn=1")
	if d := cmp.Diff(want, w.tree(changing...)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{
		"gen_ai.invoke_agent.duration s operation.name=invoke_agent toolonce.paused=true: 1",
		"toolonce.calls {call} tool.name=issue_refund toolonce.effect=NonIdempotentWrite toolonce.paused=true: 1",
	}, some(w.metrics(t.Context()), "toolonce.calls", "gen_ai.invoke_agent")); d != "" {
		t.Error(d)
	}
}

func TestErrorsThatEndARunAreCountedByTheirWord(t *testing.T) {
	for _, c := range []struct {
		name, want string
		prepare    func(*world)
	}{
		{"not saved", "error.type=not_saved tool.name=issue_refund toolonce.effect=NonIdempotentWrite: 1", func(w *world) {
			w.ledger = &ledgertest.Faulty{Ledger: w.ledger, Before: ledgertest.Fail(1, ledgertest.Op{Method: "Change"}, errors.New("disk full"))}
		}},
		{"claim", "error.type=_OTHER tool.name=issue_refund toolonce.effect=NonIdempotentWrite: 1", func(w *world) {
			w.ledger = &ledgertest.Faulty{Ledger: w.ledger, Before: ledgertest.Fail(1, ledgertest.Op{Method: "Claim"}, errors.New("disk full"))}
		}},
		{"budget", "error.type=repeat_budget tool.name=issue_refund toolonce.effect=NonIdempotentWrite toolonce.verdict=already_done: 1", func(w *world) { w.once.Repeats = 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, false)
			c.prepare(w)
			w.serveBy(func(r transcript.Request) transcript.Step {
				return transcript.Step{Calls: []transcript.ToolCall{refundCall(fmt.Sprint("call_", r.Turn))}}
			})
			if err := w.do(t.Context(), forms[0]); err == nil {
				t.Fatal("the run does not end")
			}
			if all := strings.Join(some(w.metrics(t.Context()), "toolonce.calls"), "\n"); !strings.Contains(all, c.want) {
				t.Errorf("%s\nwant %s", all, c.want)
			}
			if tree := w.tree(); !strings.HasPrefix(tree, "invoke_agent (internal Error)") {
				t.Error(tree)
			}
		})
	}
}

func TestAMiddlewareThatBreaksDownEndsItsSpans(t *testing.T) {
	w := newWorld(t, false)
	w.once.Admit = func(context.Context, *registry.Call) (*registry.Result, error) { panic(secretError) }
	w.serve(transcript.Step{Calls: []transcript.ToolCall{refundCall("call_1")}})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		_ = w.do(t.Context(), forms[0])
	}()
	got := w.tree(changing...)
	if !strings.Contains(got, "error.type=panic") || !strings.HasPrefix(got, "invoke_agent (internal Error)") || strings.Contains(w.everything(), secretError) {
		t.Error(got)
	}
}

func TestEachTryOfTheSDKIsASpan(t *testing.T) {
	for _, f := range forms {
		t.Run(f.String(), func(t *testing.T) {
			w := newWorld(t, false)
			w.tries = 2
			busy := func(status int) transcript.Fault { return transcript.Fault{Status: status, RetryAfter: 1} }
			w.serve(transcript.Step{Text: "Hello.", Faults: []transcript.Fault{busy(http.StatusTooManyRequests), busy(http.StatusInternalServerError)}})
			if err := w.do(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			bare := strings.NewReplacer("(client)", "(client Error)", " response.model=gpt-4.1-nano", "").Replace(model(f, 1))
			want := lines(runSpan,
				"  "+bare+" error.type=429 http.response.status_code=429",
				"  "+bare+" error.type=500 http.response.status_code=500 http.request.resend_count=1",
				"  "+model(f, 1)+" http.request.resend_count=2")
			if d := cmp.Diff(inOrder(want), inOrder(w.tree(changing...))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAnAnswerThatIsCutOffIsAnError(t *testing.T) {
	for _, f := range forms {
		for _, cut := range []struct {
			want  string
			fault transcript.Fault
		}{
			{"unexpected_eof", transcript.Fault{Drop: true}},
			{"unexpected_eof", transcript.Fault{Drop: true, After: 20}},
			{"incomplete_stream", transcript.Fault{Truncate: true, After: 1}},
		} {
			if cut.fault.Truncate && !f.stream {
				continue
			}
			t.Run(fmt.Sprint(f, " ", cut.fault), func(t *testing.T) {
				w := newWorld(t, false)
				w.serve(transcript.Step{Text: "Hello.", Faults: []transcript.Fault{cut.fault}})
				if err := w.do(t.Context(), f); err == nil {
					t.Fatal("no error")
				}
				if got := w.tree(changing...); !strings.Contains(got, "(client Error) error.type="+cut.want+" ") {
					t.Error(got)
				}
			})
		}
	}
}
