package otel_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/toolonce/toolonce/middleware/otel"
	"github.com/toolonce/toolonce/transcript"
)

func operating(t *testing.T, pattern string) (found []string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(b), -1) {
		found = append(found, fmt.Sprint(m[1:]))
	}
	slices.Sort(found)
	return found
}

func TestTheTableOfMetricsIsWhatIsTold(t *testing.T) {
	w := newWorld(t, false)
	if _, err := otel.Watch(counting{w.ledger}, w.opts); err != nil {
		t.Fatal(err)
	}
	w.serve(transcript.Step{Calls: []transcript.ToolCall{refundCall("call_1")}}, transcript.Step{Text: "Done."})
	if err := w.do(t.Context(), forms[0]); err != nil {
		t.Fatal(err)
	}
	w.once.Timed(t.Context(), at(0, "issue_refund", "{}"), "wait", time.Second, errors.New("any"))
	var rm metricdata.ResourceMetrics
	if err := w.reader.Collect(t.Context(), &rm); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range rm.ScopeMetrics[0].Metrics {
		kind := "gauge"
		switch m.Data.(type) {
		case metricdata.Sum[int64]:
			kind = "counter"
		case metricdata.Histogram[int64], metricdata.Histogram[float64]:
			kind = "histogram"
		}
		if m.Description == "" {
			t.Errorf("%s has no description", m.Name)
		}
		told = append(told, fmt.Sprint([]string{m.Name, m.Unit, kind}))
	}
	slices.Sort(told)
	if d := cmp.Diff(told, operating(t, "(?m)^\\| `([a-z_.]+)` \\| (\\S+) \\| (counter|histogram|gauge) \\|")); d != "" {
		t.Errorf("the table in docs/operating.md is another: %s", d)
	}
}

func TestTheTableOfEventsIsThatOfTheGuard(t *testing.T) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	var events []string
	for _, f := range files {
		if matched, _ := filepath.Match("../*_test.go", f); matched { // the pattern is right
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`"event", "(\w+)"`).FindAllSubmatch(b, -1) {
			events = append(events, fmt.Sprint([]string{string(m[1])}))
		}
		if lines := regexp.MustCompile(`Logger\.(Warn|Error|Info)\(|LogAttrs\(`).FindAll(b, -1); len(lines) != len(regexp.MustCompile(`"event", "`).FindAll(b, -1)) {
			t.Errorf("%s: a line without an event", f)
		}
	}
	slices.Sort(events)
	if d := cmp.Diff(events, operating(t, "(?m)^\\| `(\\w+)` \\| (?:info|warn|error)")); d != "" {
		t.Errorf("the table in docs/operating.md is another: %s", d)
	}
}
