package transcript_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

const refundTools = `{"issue_refund": {"effect": "NonIdempotentWrite", "key": ["order_id"], "ignore": ["reason"]}, "get_order": {"effect": "Read"}}`

// script is a run whose every call is a turn: id, tool, arguments, output; an output that begins with ! is a refusal.
func script(id string, calls ...[4]string) transcript.Run {
	run := transcript.Run{ID: id}
	for _, c := range calls {
		output, refused := strings.CutPrefix(c[3], "!")
		run.Messages = append(run.Messages,
			transcript.Message{Role: "assistant", ToolCalls: []transcript.ToolCall{{ID: c[0], Name: c[1], Arguments: c[2]}}},
			transcript.Message{Role: "tool", ToolCallID: c[0], Content: output, Error: refused})
	}
	return run
}

// refunds has one of each verdict, and ids that come back.
func refunds() transcript.Run {
	return script("ticket",
		[4]string{"a", "get_order", `{"order_id":"1"}`, "12900"},
		[4]string{"b", "issue_refund", `{"order_id":"1","cents":5}`, "!the bank is closed"},
		[4]string{"c", "issue_refund", `{"order_id":"1","cents":5}`, "refunded"},
		[4]string{"c", "issue_refund", `{"cents":5, "order_id":"1","reason":"again"}`, ""},
		[4]string{"c", "issue_refund", `{"order_id":"1","cents":6}`, ""},
		[4]string{"a", "get_order", `{ "order_id":"1" }`, "12900"},
		[4]string{"d", "issue_refund", `{"order_id":`, ""},
		[4]string{"e", "wipe", `{}`, ""},
	)
}

func told(ds []transcript.Decision) (all []string) {
	for _, d := range ds {
		line := fmt.Sprintf("%d.%d %s %s", d.Turn, d.Position, d.Name, d.Verdict)
		if d.Repeats != nil {
			line += fmt.Sprintf(" %d.%d", d.Repeats.Turn, d.Repeats.Position)
		}
		if d.Collides {
			line += " collides"
		}
		if d.Verdict == registry.Conflict {
			line += ": " + d.Reason
		}
		if d.Verdict == registry.Refused && d.Reason == "" {
			line += " without a reason"
		}
		all = append(all, line)
	}
	return all
}

func declared(t *testing.T, tools string) *registry.Registry {
	t.Helper()
	r, err := transcript.ReadTools(strings.NewReader(tools))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReplayDecidesSavedCallsAndRunsNone(t *testing.T) {
	type order struct {
		OrderID string `json:"order_id" once:"key"`
		Cents   int64  `json:"cents"`
		Reason  string `json:"reason,omitempty" once:"-"`
	}
	type asked struct {
		OrderID string `json:"order_id"`
	}
	own := registry.New()
	registry.Add(own, registry.Tool[order, string]{
		Name: "issue_refund", Description: "x", Effect: registry.NonIdempotentWrite,
		Check: func(context.Context, order) error { t.Error("it was checked"); return errors.New("no") },
		Run:   func(context.Context, order) (string, error) { t.Error("it was run"); return "", nil },
	})
	registry.Add(own, registry.Tool[asked, string]{
		Name: "get_order", Description: "x", Effect: registry.Read,
		Run: func(context.Context, asked) (string, error) { t.Error("it was run"); return "", nil },
	})
	for name, tools := range map[string]*registry.Registry{"declared": declared(t, refundTools), "own": own} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // each replay has a ledger of its own
				ds, err := transcript.Replay(t.Context(), tools, refunds())
				if err != nil {
					t.Fatal(err)
				}
				check(t, "decisions", told(ds), []string{
					"1.0 get_order executed", "2.0 issue_refund executed", "3.0 issue_refund executed",
					"4.0 issue_refund already_done 3.0 collides", "5.0 issue_refund conflict 3.0 collides: cents",
					"6.0 get_order executed", "7.0 issue_refund refused", "8.0 wipe refused",
				})
			}
		})
	}
}

func TestReplayNamesTheCallThatItCannotDecide(t *testing.T) {
	tools := registry.New()
	if err := tools.AddRaw(registry.RawTool{
		Name: "issue_refund", Effect: registry.NonIdempotentWrite,
		NeedsApproval: func(context.Context, json.RawMessage) (bool, error) { return true, nil },
		Run:           func(context.Context, json.RawMessage) (any, error) { return nil, nil },
	}); err != nil {
		t.Fatal(err)
	}
	_, err := transcript.Replay(t.Context(), tools, script("ticket", [4]string{"a", "issue_refund", `{"order":"secret"}`, "ok"}))
	if err == nil || !strings.HasPrefix(err.Error(), `transcript: replaying run "ticket" turn 1 position 0: `) || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

func TestSimpleRulesStopWhatTheySay(t *testing.T) {
	for rule, want := range map[string]string{
		"none": "executed=8 already_done=0", "call_id": "executed=5 already_done=3", "arguments": "executed=6 already_done=2",
	} {
		a := transcript.Audit{Decide: func(ctx context.Context, _ transcript.Run) ([]transcript.Decision, error) {
			return transcript.SimpleRule(rule)(ctx, refunds())
		}}
		total, err := a.File(t.Context(), saved(t, chatRun))
		check(t, rule, []any{total.String(), err}, []any{"runs=1 calls=8 " + want + " conflict=0 refused=0 id_collisions=2 mismatches=0", nil})
	}
	if transcript.SimpleRule("guess") != nil {
		t.Error("there is a rule guess")
	}
}

func TestReadToolsNamesWhatIsWrong(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":{"effect":"Read"}} {}`:            "transcript: reading tools: text behind the object",
		`{"a":`:                                 "transcript: reading tools: unexpected EOF",
		`{"a":{"effect":"Read","ignor":["x"]}}`: `transcript: reading tools: json: unknown field "ignor"`,
		`{"a":{}}`:                              `transcript: reading tool "a": registry: adding tool "a": no Effect: say Read`,
		`{"a":{"effect":"Read","identity":"ByName"}}`:                    `transcript: reading tool "a": identity "ByName" is unknown`,
		`{"a b":{"effect":"Read"}}`:                                      `transcript: reading tool "a b": registry: `,
		`{"a":{"effect":"NonIdempotentWrite","undoes":"b"}}`:             `transcript: reading tool "a": undoes names "b", which is not declared`,
		undoing(`"effect":"Read","resource_in":"id"`):                    `transcript: reading tool "a": undoes names "b", which never blocks`,
		undoing(`"effect":"NonIdempotentWrite"`):                         `transcript: reading tool "a": undoes names "b", which has neither`,
		undoing(`"effect":"NonIdempotentWrite","resource_out":"id"`):     "",
		`{"a":{"effect":"Read","calls":3,"repeats":1}}`:                  "",
		`{"a":{"effect":"NonIdempotentWrite","identity":"ByArguments"}}`: "",
	} {
		r, err := transcript.ReadTools(strings.NewReader(in))
		if err == nil {
			r.Handler() // nothing is left that would panic
			err = errors.New("")
		}
		if !strings.HasPrefix(err.Error(), want) || (want == "") != (err.Error() == "") {
			t.Errorf("%s: error %q, want %q", in, err, want)
		}
	}
}

func undoing(b string) string {
	return `{"a":{"effect":"NonIdempotentWrite","key":["id"],"undoes":"b","resource_in":"id"},"b":{` + b + `}}`
}

func TestAnAuditTellsEveryDifference(t *testing.T) {
	expect, err := transcript.ReadExpected(strings.NewReader(`
{"id":"ticket","calls":[[1,0,"get_order","execute"],[2,0,"issue_refund","execute_failed"],[3,0,"issue_refund","already_done"],` +
		`[4,0,"get_order","already_done"],[6,0,"get_order","executed"],[7,0,"issue_refund","refused"],[8,0,"wipe","refused"],[10,0,"z","execute"],[9,1,"y","conflict"]]}
{"id":"other","calls":[[1,0,"x","execute"],[2,0,"x","execute"]]}
`))
	if err != nil {
		t.Fatal(err)
	}
	tools := declared(t, refundTools)
	var broken, got []string
	a := transcript.Audit{
		Decide: func(ctx context.Context, _ transcript.Run) ([]transcript.Decision, error) {
			return transcript.Replay(ctx, tools, refunds())
		},
		Expect:   expect,
		OnRun:    func(_ transcript.Run, _ []transcript.Decision, differences []string) { got = differences },
		OnBroken: func(err error) { broken = append(broken, err.Error()) },
	}
	file := saved(t, "{", strings.ReplaceAll(chatRun, `"c"`, `"ticket"`))
	// The run of the file has the id, and the calls are those of refunds.
	total, err := a.File(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "differences", got, []string{
		"turn 3 position 0 issue_refund: executed, want already_done",
		"turn 4 position 0 issue_refund: already_done, want a call of get_order",
		"turn 5 position 0 issue_refund: conflict, want no call",
		"turn 9 position 1 y: no call, want conflict",
		"turn 10 position 0 z: no call, want executed",
	})
	check(t, "total", total.String(), "runs=1 calls=8 executed=4 already_done=1 conflict=1 refused=2 id_collisions=2 mismatches=5")
	check(t, "broken", []any{total.Broken, broken}, []any{1, []string{`transcript: reading "` + file + `" line 1: unexpected end of JSON input`}})
	runs, calls := expect.Unmet()
	check(t, "unmet", []any{runs, calls}, []any{[]string{"other"}, 2})
}

func TestReadExpectedNamesTheLine(t *testing.T) {
	for in, want := range map[string]string{
		`{"id":"a","calls":[[1,0,"x"]]}`:                   "a call is not [turn, position, tool, verdict]",
		`{"id":"a","calls":[[1,0,"x","maybe"]]}`:           `verdict "maybe" is unknown`,
		`{"id":"a","calls":[["1",0,"x","execute"]]}`:       "cannot unmarshal",
		`{"id":"a","calls":[]}` + "\n\n" + `{"id":"a"}`:    `line 4: run "a" came before`,
		`{"id":"a","calls":[[1,0,"x","execute",true]]}`:    "a call is not",
		`{"id":"a","calls":[[1,0,"x","execute"]]} surplus`: "invalid character",
	} {
		_, err := transcript.ReadExpected(strings.NewReader("\n" + in))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "transcript: reading expected verdicts, line ") {
			t.Errorf("%s: error %v, want %q", in, err, want)
		}
	}
}

func TestReplayHasNoRepeatBudget(t *testing.T) {
	var calls [][4]string
	for range 7 {
		calls = append(calls, [4]string{"a", "issue_refund", `{"order_id":"1"}`, "refunded"})
	}
	ds, err := transcript.Replay(t.Context(), declared(t, refundTools), script("ticket", calls...))
	if err != nil || ds[6].Verdict != registry.AlreadyDone {
		t.Errorf("decisions %q, error %v", told(ds), err)
	}
}
