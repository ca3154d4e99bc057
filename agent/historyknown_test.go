package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
)

func pastChat(raws ...string) []openai.ChatCompletionMessageParamUnion {
	var out []openai.ChatCompletionMessageParamUnion
	for _, raw := range raws {
		out = append(out, param.Override[openai.ChatCompletionMessageParamUnion](json.RawMessage(raw)))
	}
	return out
}

func pastItems(raws ...string) []responses.ResponseInputItemUnionParam {
	var out []responses.ResponseInputItemUnionParam
	for _, raw := range raws {
		out = append(out, param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(raw)))
	}
	return out
}

func pastWire[T any](vs []T) []string {
	var out []string
	for _, v := range vs {
		out = append(out, wireJSON(v))
	}
	return out
}

// record knows the results of calls by tool, arguments and id, and counts the questions.
type record struct {
	results map[string]string
	asked   int
}

func (r *record) known(_ context.Context, tool, arguments, id string) (string, bool, error) {
	r.asked++
	content, ok := r.results[tool+" "+arguments+" "+id]
	return content, ok, nil
}

const (
	pastAsked = `{"role":"assistant","content":null,"tool_calls":[{"id":"p","type":"function","function":{"name":"pay","arguments":"{\"n\":1}"}},{"id":"q","type":"function","function":{"name":"pay","arguments":"{\"n\":2}"}}]}`
	pastP     = `{"role":"tool","content":"paid 1","tool_call_id":"p"}`
)

func TestAHoleIsFilledFromWhatIsKnown(t *testing.T) {
	r := &record{results: map[string]string{`pay {"n":2} q`: "paid 2", `pay {"n":1} p`: "not asked for"}}
	out, mends, err := mendChat(t.Context(), pastChat(pastAsked, pastP), r.known)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{pastAsked, pastP, `{"content":"paid 2","tool_call_id":"q","role":"tool"}`}
	if diff := cmp.Diff(want, pastWire(out)); diff != "" {
		t.Error(diff)
	}
	wantMends := []Mend{{Index: 0, CallID: "q", Problem: "it has no output", Mended: "the recorded one stands there"}}
	if diff := cmp.Diff(wantMends, mends); diff != "" || r.asked != 1 {
		t.Errorf("asked %d times %s", r.asked, diff)
	}
}

func TestItemsThatLackAnOutputAreFilledFromWhatIsKnown(t *testing.T) {
	call := `{"type":"function_call","call_id":"q","name":"pay","arguments":"{\"n\":2}"}`
	r := &record{results: map[string]string{`pay {"n":2} q`: "paid 2"}}
	out, _, err := mendResponse(t.Context(), pastItems(call), false, r.known)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{call, `{"output":"paid 2","call_id":"q","type":"function_call_output"}`}, pastWire(out)); diff != "" {
		t.Error(diff)
	}
}

func TestOfTwoOutputsTheKnownOneStays(t *testing.T) {
	one := `{"role":"assistant","content":null,"tool_calls":[{"id":"p","type":"function","function":{"name":"pay","arguments":"{\"n\":1}"}}]}`
	other := `{"role":"tool","content":"no","tool_call_id":"p"}`
	for content, want := range map[string]string{"paid 1": pastP, "something else": other} {
		r := &record{results: map[string]string{`pay {"n":1} p`: content}}
		out, _, err := mendChat(t.Context(), pastChat(one, pastP, other), r.known)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{one, want}, pastWire(out)); diff != "" {
			t.Errorf("%s known: %s", content, diff)
		}
	}
	r := &record{}
	if _, _, err := mendChat(t.Context(), pastChat(one, pastP, pastP), r.known); err != nil || r.asked > 0 {
		t.Errorf("equal outputs: asked %d times, %v", r.asked, err)
	}
}

func TestARecordThatCannotBeReadIsAnError(t *testing.T) {
	broken := errors.New("disk")
	k := func(context.Context, string, string, string) (string, bool, error) { return "", false, broken }
	if out, mends, err := mendChat(t.Context(), pastChat(pastAsked), k); !errors.Is(err, broken) || out != nil || mends != nil {
		t.Errorf("%v %v %v", out, mends, err)
	}
	if out, mends, err := mendResponse(t.Context(), pastItems(`{"type":"function_call","call_id":"q","name":"pay","arguments":"{}"}`), false, k); !errors.Is(err, broken) || out != nil || mends != nil {
		t.Errorf("%v %v %v", out, mends, err)
	}
}

func TestFreeTextCallsAreNotLookedFor(t *testing.T) {
	r := &record{}
	_, mends, err := mendResponse(t.Context(), pastItems(`{"type":"custom_tool_call","call_id":"q","name":"x","input":"y"}`), false, r.known)
	if err != nil || len(mends) != 1 || r.asked > 0 {
		t.Errorf("asked %d times, %v %v", r.asked, mends, err)
	}
}

// BenchmarkMend shows that the cost grows as the history does.
func BenchmarkMend(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		var raws []string
		for i := range n {
			raws = append(raws, pastAsked, pastP, fmt.Sprintf(`{"role":"tool","content":"x","tool_call_id":"o%d"}`, i))
		}
		history := pastChat(raws...)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := mendChat(b.Context(), history, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(time.Microsecond)/float64(b.N*n), "µs/turn")
		})
	}
}
