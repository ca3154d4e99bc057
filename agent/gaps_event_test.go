package agent_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/transcript"
)

// fieldsOf are the fields that a kind of event names.
var fieldsOf = map[agent.EventKind]string{
	agent.TextDelta: "Text", agent.RefusalDelta: "Text", agent.ReasoningDelta: "Text",
	agent.CallAnnounced: "CallID Tool Position", agent.ArgumentsComplete: "CallID Tool Text Position",
	agent.VerdictGiven: "CallID Tool Verdict Position Operation", agent.ResultGiven: "CallID Tool Verdict Text Position Operation",
	agent.ApprovalAsked: "Approval CallID Tool Position", agent.TurnEnded: "Usage", agent.Stopped: "Err",
}

// fields checks that an event says what its kind names, and nothing else.
func fields(t *testing.T, f form, e agent.Event) {
	t.Helper()
	named, ok := fieldsOf[e.Kind]
	if e.Kind == agent.Answered {
		named, ok = map[string]string{"chat": "Chat", "responses": "Response"}[f.api], true
	}
	if !ok || e.Run != run {
		t.Errorf("%v: %+v", e.Kind, e)
	}
	v := reflect.ValueOf(e)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		has, may := !v.Field(i).IsZero(), slices.Contains(strings.Fields("Kind Run Turn "+named), name)
		must := may && !slices.Contains([]string{"Position", "Operation", "Usage"}, name) // which count from 0, or may be unknown
		if has && !may || !has && must {
			t.Errorf("%v has a %s: %v", e.Kind, name, has)
		}
	}
}

func TestAnEventHasTheFieldsThatItsKindNames(t *testing.T) {
	const refusal = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"No."}]}`
	eachForm(t, func(t *testing.T, f form) {
		seen := map[agent.EventKind]bool{}
		opts := &agent.Options{On: func(e agent.Event) {
			seen[e.Kind] = true
			fields(t, f, e)
		}}
		refused := f.answers("stop", `{"role":"assistant","content":null,"refusal":"No."}`)
		if f.api == "responses" {
			refused = transcript.Step{Raw: sse(
				`{"type":"response.refusal.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"No."}`,
				`{"type":"response.completed","response":{"id":"r","object":"response","status":"completed","output":[`+refusal+`]}}`,
			)}
			if !f.stream {
				refused = f.answers("completed", "["+refusal+"]")
			}
		}
		var b bank
		var p office
		for _, s := range []transcript.Script{refundAndEnd, running(refused)} {
			o := f.do(t, agent.New(onceClient(transcript.NewServer(s, nil)), b.tools(), memory(), opts), run, request)
			if o.err != nil {
				t.Fatal(o.err)
			}
			for _, e := range o.events {
				fields(t, f, e)
			}
		}
		pays := transcript.NewServer(transcript.Steps(transcript.Step{Calls: []transcript.ToolCall{payCall("a", "1", 5000)}}), nil)
		waiting(t, f.do(t, agent.New(onceClient(pays), p.tools(), memory(), opts), run, request))
		for kind := agent.TextDelta; kind <= agent.Stopped; kind++ {
			// Chat Completions shows no reasoning here, and the server none without a stream.
			if must := kind != agent.ReasoningDelta || f.stream && f.api == "responses"; must && !seen[kind] {
				t.Errorf("no event is %v", kind)
			}
		}
	})
}

// What an event tells has happened, and what comes after it has not: On can stop a process at any of them.
func TestARunWaitsForWhomItTells(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		var b bank
		s := transcript.NewServer(twoRefunds, nil)
		st := memory()
		j := &stores{Journal: st.Journal}
		asked := 0
		moved := []string{"1 500", "1 500, 2 500"}
		on := func(e agent.Event) {
			want := ""
			switch e.Kind {
			case agent.CallAnnounced, agent.ArgumentsComplete, agent.TextDelta:
				if e.Turn == 2 {
					want = moved[1]
				}
			case agent.VerdictGiven, agent.ResultGiven:
				want = moved[e.Position]
			default:
				want = moved[1]
				if j.turns != e.Turn {
					t.Errorf("%v of turn %d, and %d are stored", e.Kind, e.Turn, j.turns)
				}
			}
			if got := b.total(); got != want || len(s.Requests()) != e.Turn {
				t.Errorf("%v of turn %d, call %d: moved %q in %d requests", e.Kind, e.Turn, e.Position, got, len(s.Requests()))
			}
			asked++
		}
		o := f.do(t, agent.New(onceClient(s), b.tools(), store{st.Ledger, j}, &agent.Options{On: on}), run, request)
		if wantVerdicts(t, o, "1.0 issue_refund executed", "1.1 issue_refund executed"); asked < 12 {
			t.Errorf("%d events", asked)
		}
	})
}

// stores counts the turns that are stored.
type stores struct {
	journal.Journal
	turns int
}

func (s *stores) Append(ctx context.Context, e journal.Entry) (journal.Entry, error) {
	kept, err := s.Journal.Append(ctx, e)
	if err == nil {
		s.turns++
	}
	return kept, err
}

func TestOnIsToldBeforeTheReaderOfAStream(t *testing.T) {
	eachStream(t, func(t *testing.T, f form) {
		var b bank
		told, read := 0, 0
		opts := &agent.Options{On: func(agent.Event) { told++ }}
		l := agent.New(onceClient(transcript.NewServer(refundAndEnd, nil)), b.tools(), memory(), opts)
		f.with(t.Context(), t, l, run, asking{on: func(agent.Event) bool {
			if read++; told != read {
				t.Errorf("the reader has had %d events, and On %d", read, told)
			}
			return true
		}})
		if told < 10 {
			t.Errorf("%d events", told)
		}
	})
}

// A stream tells how an answer grows, before anybody can know that a call came twice.
func TestACallThatIsDeliveredTwiceIsAnnouncedTwiceAndDecidedOnce(t *testing.T) {
	rest := strings.TrimPrefix(itemRefund, `{"type":"function_call","id":"fc_1",`)
	item := func(id string) string { return `{"type":"function_call","id":"` + id + `",` + rest }
	done := func(index, id string) string {
		return `{"type":"response.output_item.done","output_index":` + index + `,"item":` + item(id) + `}`
	}
	piece := func(index string) string {
		return `{"choices":[{"index":0,"delta":{"tool_calls":[` + strings.Replace(chatRefund, `{"id"`, `{"index":`+index+`,"id"`, 1) + `]}}]}`
	}
	for api, raw := range map[string]string{
		"chat": sse(piece("0"), piece("1"), `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`),
		"responses": sse(done("0", "fc_1"), done("1", "fc_2"),
			`{"type":"response.completed","response":{"id":"r","status":"completed","output":[`+item("fc_1")+`,`+item("fc_2")+`]}}`),
	} {
		o, _, _ := form{api, true}.answered(t, transcript.Step{Raw: raw}, asking{})
		n := map[agent.EventKind]int{}
		for _, e := range o.events {
			n[e.Kind]++
		}
		if n[agent.CallAnnounced] != 2 || n[agent.ArgumentsComplete] != 2 || n[agent.VerdictGiven] != 1 || n[agent.ResultGiven] != 1 {
			t.Errorf("%s: %v", api, n)
		}
	}
}
