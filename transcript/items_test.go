package transcript_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/transcript"
)

// One answer of reasoning, text and two calls, a hosted tool's item, and what came back.
const (
	userItemJSON  = `{"type":"message","role":"user","content":[{"type":"input_text","text":"Two notes."}]}`
	modelItems    = `{"type":"reasoning","id":"rs_1","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"At once."}]},` + callItems
	callItems     = `{"type":"function_call","call_id":"a","name":"add_note","arguments":"{\"n\":1}"},{"type":"function_call","call_id":"b","name":"add_note","arguments":"{\"n\":2}"}`
	outputItems   = `{"type":"function_call_output","call_id":"b","output":"full","error":true},{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"ok"}]}`
	hosted        = `{"type":"web_search_call","id":"ws_1","status":"completed"}`
	lastItem      = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One is noted."}]}`
	itemsAsInput  = `{"id":"r","input":[` + userItemJSON + `,` + hosted + `,` + modelItems + `,` + outputItems + `],"output":[` + lastItem + `]}`
	itemsAsList   = `[` + userItemJSON + `,` + modelItems + `,` + outputItems + `,` + lastItem + `]`
	callsFirst    = `[` + callItems + `,` + outputItems + `]`
	itemsInArray  = `[` + itemsAsInput + `,` + itemsAsInput + `]`
	chatRun       = `{"id":"c","messages":[{"role":"user","content":"x"}]}`
	inputIsText   = `{"id":"t","instructions":"Be brief.","input":"Hello.","output":[` + lastItem + `]}`
	itemWithout   = `{"id":"w","input":[{"call_id":"a"}]}`
	inputIsNumber = `{"id":"n","input":3}`
)

func TestReadTakesItemsOfTheResponsesAPI(t *testing.T) {
	want := []string{`1.0 a add_note {"n":1} "ok" false`, `1.1 b add_note {"n":2} "full" true`}
	for name, c := range map[string]struct {
		in   string
		runs int
	}{
		"input and output":     {itemsAsInput, 1},
		"a list":               {itemsAsList, 1},
		"a list over lines":    {strings.ReplaceAll(itemsAsList, `},{"type"`, "},\n{\"type\""), 1},
		"calls first":          {callsFirst, 1},
		"lists a line":         {itemsAsList + "\n" + callsFirst, 2},
		"an array of runs":     {itemsInArray, 2},
		"an array of lists":    {"[" + itemsAsList + "," + callsFirst + "]", 2},
		"items under messages": {`{"messages":` + itemsAsList + `}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			runs, errs := collect(transcript.Read(strings.NewReader(c.in), "f"))
			check(t, "errors", errs, []string(nil))
			check(t, "runs", len(runs), c.runs)
			for _, r := range runs {
				var got []string
				for c := range r.Calls() {
					got = append(got, fmt.Sprintf("%d.%d %s %s %s %q %v", c.Turn, c.Position, c.ID, c.Name, c.Arguments, c.Output, c.Error))
				}
				check(t, "calls", got, want)
			}
		})
	}
}

func TestReadMakesOneMessageOfTheItemsOfAnAnswer(t *testing.T) {
	runs, errs := collect(transcript.Read(strings.NewReader(itemsAsInput+"\n"+inputIsText), "f"))
	check(t, "errors", errs, []string(nil))
	var got []string
	for _, m := range slices.Concat(runs[0].Messages, runs[1].Messages) {
		got = append(got, m.Role+": "+m.Content)
	}
	check(t, "messages", got, []string{
		"user: Two notes.", "assistant: At once.", "tool: full", "tool: ok", "assistant: One is noted.",
		"system: Be brief.", "user: Hello.", "assistant: One is noted.",
	})
}

func TestABrokenLineHidesNoOther(t *testing.T) {
	deep := `{"messages":[{"role":"user","content":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}]}`
	for name, first := range map[string]string{"runs": chatRun, "lists": itemsAsList} {
		t.Run(name, func(t *testing.T) {
			in := strings.Join([]string{first, "[", deep, itemWithout, inputIsNumber, `{"a":`, chatRun}, "\n")
			runs, errs := collect(transcript.Read(strings.NewReader(in), "f"))
			check(t, "runs", len(runs), 2)
			check(t, "errors", errs, []string{
				`transcript: reading "f" line 2: unexpected end of JSON input`,
				`transcript: reading "f" line 3: invalid character '[' exceeded max depth`,
				`transcript: reading "f" line 4: item 0: no "type"`,
				`transcript: reading "f" line 5: "input" is neither a text nor a list of items`,
				`transcript: reading "f" line 6: unexpected end of JSON input`,
			})
		})
	}
}

func TestReadRefusesGzipThatUnpacksWithoutEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("unpacks 64 MiB")
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.Copy(w, io.MultiReader(strings.NewReader(chatRun+"\n"), io.LimitReader(endless{}, 200<<20)))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	runs, errs := collect(transcript.Read(&b, "f.gz"))
	check(t, "runs", ids(runs), []string{"c"})
	check(t, "errors", errs, []string{`transcript: reading "f.gz" line 2: it unpacks to more than 250 times its size: unpack it first if it is meant so`})
}
