//go:build unix && cgo

package agent_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/transcript"
)

// scenario is what a run comes to whose model calls one refund twice in a turn, in other bytes, and again in a later
// turn, whose first process is killed once the money has moved, and whose second loses the next answer half way.
type scenario struct {
	Moved    string
	Verdicts []string
	Text     string
	Asked    int64 // requests
}

// oneRefund is what it has to come to in every form, on every server.
var oneRefund = scenario{
	Moved:    "1001 500",
	Verdicts: []string{"1.0 issue_refund replayed", "1.1 issue_refund already_done", "2.0 issue_refund already_done"},
	Text:     "Refunded once.",
	Asked:    4,
}

// through plays the scenario on the server at an address, which cuts its second answer.
func (f form) through(t *testing.T, url string, asked *atomic.Int64) (s scenario) {
	t.Helper()
	v := victim{Dir: t.TempDir(), URL: url, API: f.api, Stream: f.stream, User: "refund order 1001", Provider: "hold", Die: "result 1 is saved"}
	v.killed(t, nil)
	v.Die = ""
	l := v.loop(t, before, openai.NewClient(option.WithAPIKey("any"), option.WithBaseURL(url), option.WithMaxRetries(0)))
	if o := f.under(t, before, l, v.User); o.err == nil {
		t.Fatal("the second answer was not cut")
	} else if e, ok := asRunError(o.err); !ok || e.Turn != 2 {
		t.Fatal(o.err)
	}
	o := f.under(t, before, l, v.User)
	if o.err != nil {
		t.Fatal(o.err)
	}
	return scenario{v.moved(t), o.verdicts(), o.text, asked.Load()}
}

func wantOneRefund(t *testing.T, results map[form]scenario) {
	t.Helper()
	for _, f := range forms {
		if diff := cmp.Diff(oneRefund, results[f]); diff != "" {
			t.Errorf("%s: %s", f, diff)
		}
	}
}

func TestKilledAndCutOffOneRefundIsMadeInEveryForm(t *testing.T) {
	results := map[form]scenario{}
	eachForm(t, func(t *testing.T, f form) {
		cut := transcript.Fault{Drop: true, After: 120}
		if f.stream {
			cut = transcript.Fault{Truncate: true, After: 3}
		}
		again := refundCall("call_b", "1001")
		again.Arguments = `{"cents":5e2, "order_id":"\u0031001"}`
		model := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{refundCall("call_a", "1001"), again}},
			transcript.Step{Calls: []transcript.ToolCall{refundCall("call_c", "1001")}, Faults: []transcript.Fault{cut}},
			transcript.Step{Text: "Refunded once."},
		), nil)
		var asked atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			model.ServeHTTP(w, r)
		}))
		defer s.Close()
		results[f] = f.through(t, s.URL+"/v1", &asked)
	})
	wantOneRefund(t, results)
}

func TestKilledAndCutOffOneRefundIsMadeInEveryFormOnAServerThatIsNotOurs(t *testing.T) {
	target, err := url.Parse(aimock(t))
	if err != nil {
		t.Fatal(err)
	}
	results := map[form]scenario{}
	eachForm(t, func(t *testing.T, f form) {
		var asked atomic.Int64
		s := httptest.NewServer(&httputil.ReverseProxy{
			ErrorLog: log.New(io.Discard, "", 0),
			Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target) },
			ModifyResponse: func(r *http.Response) error {
				if asked.Add(1) == 2 {
					r.Body = struct {
						io.Reader
						io.Closer
					}{io.MultiReader(io.LimitReader(r.Body, 120), iotest.ErrReader(io.ErrUnexpectedEOF)), r.Body}
				}
				return nil
			},
		})
		defer s.Close()
		results[f] = f.through(t, s.URL+"/v1", &asked)
	})
	wantOneRefund(t, results)
}
