package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"
)

const (
	itemText = `{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi"}]}`
	itemF    = `{"id":"fc_1","type":"function_call","status":"completed","call_id":"a","name":"f","arguments":"{\"n\":12345678901234567890}"}`
	itemG    = `{"id":"fc_2","type":"function_call","status":"completed","call_id":"b","name":"g","arguments":"{}"}`
)

func event(name, members string) string { return `{"type":"response.` + name + `",` + members + `}` }

func itemEvent(name string, index int, item string) string {
	return event("output_item."+name, fmt.Sprintf(`"output_index":%d,"item":%s`, index, item))
}

func endEvent(status, output string) string {
	return event(status, `"response":{"id":"resp_1","x":98765432109876543210,"status":"`+status+`","output":`+output+`}`)
}

// readResponse gives the events to a new stream.
func readResponse(t *testing.T, events []string) (json.RawMessage, []delta, error) {
	t.Helper()
	var s responseStream
	var all []delta
	for _, e := range events {
		ds, err := s.add(e)
		if all = append(all, ds...); err != nil {
			if _, last := s.answer(); !errors.Is(last, err) {
				t.Errorf("%v, then %v", err, last)
			}
			return nil, all, err
		}
	}
	raw, err := s.answer()
	return raw, all, err
}

func TestTheAnswerIsWhatTheLastEventSays(t *testing.T) {
	for _, status := range []string{"completed", "incomplete", "failed"} {
		end := endEvent(status, "[ "+itemText+", "+itemF+"]")
		raw, _, err := readResponse(t, []string{
			event("created", `"response":{"id":"resp_1","status":"in_progress","output":[]}`), itemEvent("done", 0, itemG), end,
			endEvent("completed", "[]"), `{"type":"error","code":"late"}`, "[DONE]",
		})
		if want := gjson.Get(end, "response").Raw; err != nil || string(raw) != want {
			t.Errorf("%v\n got %s\nwant %s", err, raw, want)
		}
		var r responses.Response
		if err := json.Unmarshal(raw, &r); err != nil || string(r.Status) != status || len(r.Output) != 2 || r.Output[1].AsFunctionCall().Arguments != `{"n":12345678901234567890}` {
			t.Errorf("%v: %s", err, raw)
		}
	}
}

func TestAnOutputThatTheLastEventLeavesOutIsPutTogether(t *testing.T) {
	for name, c := range map[string]struct{ events, want []string }{
		"in their order":           {[]string{itemEvent("done", 2, itemG), itemEvent("done", 0, itemText), itemEvent("done", 1, itemF)}, []string{itemText, itemF, itemG}},
		"without an index":         {[]string{event("output_item.done", `"item":`+itemF), event("output_item.done", `"item":`+itemG)}, []string{itemF, itemG}},
		"an index for all":         {[]string{itemEvent("added", 0, itemF), itemEvent("done", 0, itemF), itemEvent("done", 0, itemG), itemEvent("done", 0, itemText)}, []string{itemF, itemG, itemText}},
		"an id for all":            {[]string{itemEvent("done", 0, itemF), itemEvent("done", 1, strings.Replace(itemG, "fc_2", "fc_1", 1))}, []string{itemF, strings.Replace(itemG, "fc_2", "fc_1", 1)}},
		"an id for each event":     {[]string{itemEvent("added", 0, strings.Replace(itemF, "fc_1", "other", 1)), itemEvent("done", 0, itemF)}, []string{itemF}},
		"done twice, empty first":  {[]string{itemEvent("done", 0, strings.Replace(itemF, `"{\"n\":12345678901234567890}"`, `""`, 1)), itemEvent("done", 0, itemF)}, []string{itemF}},
		"done twice, empty behind": {[]string{itemEvent("done", 0, itemF), itemEvent("done", 0, strings.Replace(itemF, `"{\"n\":12345678901234567890}"`, `""`, 1))}, []string{itemF}},
		"done twice, open behind":  {[]string{itemEvent("done", 0, itemF), event("output_item.done", `"item":`+strings.Replace(itemF, "completed", "in_progress", 1))}, []string{itemF}},
		"not even an object":       {[]string{event("output_item.done", `"item":7`), itemEvent("done", 3, itemF)}, []string{itemF}},
	} {
		for _, output := range []string{`"output":[]`, `"output":null`, `"x":1`} {
			raw, _, err := readResponse(t, append(c.events, event("completed", `"response":{"id":"resp_1","status":"completed",`+output+`}`)))
			var got []string
			for _, i := range gjson.GetBytes(raw, "output").Array() {
				got = append(got, i.Raw)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%s, %s: %v\n%s", name, output, err, diff)
			}
		}
	}
}

func TestAnAnnouncedCallThatIsLostIsNoEndOfALoop(t *testing.T) {
	_, _, err := readResponse(t, []string{itemEvent("added", 0, itemF), itemEvent("done", 1, itemG), endEvent("completed", "[]")})
	if err == nil || !strings.Contains(err.Error(), "without a call that it had announced") {
		t.Error(err)
	}
	if raw, _, err := readResponse(t, []string{itemEvent("added", 0, itemF), endEvent("incomplete", "[]")}); err != nil || raw == nil {
		t.Error(err)
	}
}

func TestAStatusThatIsMissingIsWhatTheEventSays(t *testing.T) {
	for _, c := range []struct{ event, response, want string }{
		{"incomplete", `{}`, "incomplete"}, {"failed", `{"status":"completed"}`, "failed"}, {"completed", `{"status":null}`, "completed"}, {"completed", `{"status":"in_progress"}`, "in_progress"},
	} {
		raw, _, err := readResponse(t, []string{event(c.event, `"response":`+c.response)})
		if got := gjson.GetBytes(raw, "status").String(); err != nil || got != c.want {
			t.Errorf("%s, %s: %s, %v", c.event, c.response, got, err)
		}
	}
}

func TestAnErrorEventEndsAStreamWithWhatTheAPISays(t *testing.T) {
	for _, e := range []string{
		`{"type":"error","code":"server_error","message":"The server had an error.","param":null}`,
		`{"type":"error","error":{"type":"x","code":"server_error","message":"The server had an error."}}`,
	} {
		_, _, err := readResponse(t, []string{itemEvent("added", 0, itemF), e, endEvent("completed", "[]")})
		ie, ok := errors.AsType[*IncompleteError](err)
		if !ok || ie.Reason != "error, server_error" || ie.Message != "The server had an error." || ie.Calls != 1 {
			t.Errorf("%#v", err)
		}
	}
}

func TestABadResponseStreamHasNoAnswer(t *testing.T) {
	const secret = "4111-secret"
	for _, c := range []struct{ event, want string }{
		{"", "no JSON object"},
		{`{"type":"response.completed","response":{"x":"` + secret, "no JSON object"},
		{`"` + secret + `"`, "no JSON object"},
		{`{"` + secret + `":` + strings.Repeat("[", maxStreamDepth) + strings.Repeat("]", maxStreamDepth) + `}`, "over 1000 levels"},
		{`{"` + secret + `":"` + strings.Repeat("x", maxStream) + `"}`, "over 64 MiB"},
		{event("completed", `"response":"`+secret+`"`), "has no response"},
		{`{"type":"response.completed"}`, "has no response"},
	} {
		raw, _, err := readResponse(t, []string{itemEvent("done", 0, itemF), c.event, endEvent("completed", "["+itemF+"]")})
		if raw != nil || err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
}

// wholeResponse is a stream with all that there is to tell.
func wholeResponse() []string {
	open := strings.NewReplacer(`"completed"`, `"in_progress"`, `"{\"n\":12345678901234567890}"`, `""`, `"{}"`, `""`)
	return []string{
		event("created", `"response":{"id":"resp_1","status":"in_progress","output":[]}`),
		event("reasoning_summary_text.delta", `"item_id":"rs_1","delta":"hm"`),
		itemEvent("added", 0, open.Replace(itemText)),
		event("output_text.delta", `"item_id":"msg_1","output_index":0,"delta":"hi"`),
		event("refusal.delta", `"delta":"no"`),
		itemEvent("done", 0, itemText),
		itemEvent("added", 1, open.Replace(itemF)),
		event("function_call_arguments.delta", `"item_id":"fc_1","output_index":1,"delta":"{"`),
		event("a_type_of_tomorrow", `"n":1`),
		event("function_call_arguments.done", `"item_id":"fc_1","output_index":1,"arguments":"{\"n\":12345678901234567890}"`),
		itemEvent("done", 1, itemF),
		event("function_call_arguments.done", `"item_id":"unknown","output_index":7,"arguments":"{}"`),
		itemEvent("done", 2, itemG),
		itemEvent("added", 3, `{"type":"custom_tool_call","id":"ct_1","call_id":"c","name":"sql","input":""}`),
		event("custom_tool_call_input.done", `"item_id":"changed","output_index":3,"input":"SELECT"`),
		itemEvent("done", 3, `{"type":"custom_tool_call","id":"ct_1","call_id":"c","name":"sql","input":"SELECT"}`),
		endEvent("completed", "["+itemText+","+itemF+","+itemG+"]"),
	}
}

func TestDeltasTellWhatEachEventAdds(t *testing.T) {
	_, got, err := readResponse(t, wholeResponse())
	want := []delta{
		{kind: reasoningDelta, text: "hm"}, {kind: textDelta, text: "hi"}, {kind: refusalDelta, text: "no"},
		{kind: callAnnounced, id: "a", tool: "f"}, {kind: argumentsComplete, text: `{"n":12345678901234567890}`, id: "a", tool: "f"},
		{kind: callAnnounced, position: 1, id: "b", tool: "g"}, {kind: argumentsComplete, text: "{}", position: 1, id: "b", tool: "g"},
		{kind: callAnnounced, position: 2, id: "c", tool: "sql"}, {kind: argumentsComplete, text: "SELECT", position: 2, id: "c", tool: "sql"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(delta{})); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestAResponseStreamCutAnywhereHasNoAnswer(t *testing.T) {
	list := wholeResponse()
	for n := range list {
		raw, _, err := readResponse(t, list[:n])
		if ie, ok := errors.AsType[*IncompleteError](err); raw != nil || !ok || ie.Reason != "" {
			t.Errorf("after %d events: %s, %v", n, raw, err)
		}
	}
	if raw, _, err := readResponse(t, list); raw == nil {
		t.Error(err)
	}
}

// Whatever is in a stream, there is an answer or an error, and an answer can be decoded.
func FuzzResponseStream(f *testing.F) {
	f.Add(strings.Join(wholeResponse(), "\n"))
	f.Add(strings.Join([]string{itemEvent("done", 2, itemG), itemEvent("done", 0, itemF), event("output_item.done", `"item":`+itemF), event("incomplete", `"response":{"output":{}}`)}, "\n"))
	f.Add(`{"type":"error","error":{"code":7}}` + "\n" + endEvent("failed", "null"))
	f.Fuzz(func(t *testing.T, text string) {
		var s responseStream
		for e := range strings.Lines(text) {
			if _, err := s.add(e); err != nil {
				break
			}
		}
		raw, err := s.answer()
		if (raw == nil) == (err == nil) {
			t.Fatalf("%s, %v", raw, err)
		}
		if err != nil {
			return
		}
		var r responses.Response
		if err := json.Unmarshal(raw, &r); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		if !gjson.GetBytes(raw, "status").Exists() {
			t.Errorf("no status: %s", raw)
		}
	})
}
