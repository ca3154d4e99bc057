package middleware_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// TestWhatTheModelReads pins every text that the guard answers with: models act on them.
func TestWhatTheModelReads(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run = func(_ context.Context, in refundInput) (refund, error) {
			switch in.OrderID {
			case "slow":
				time.Sleep(5 * time.Second)
			case "lost":
				return refund{}, errTimeout
			case "declined":
				return refund{}, registry.NoEffect(errors.New("card declined"))
			}
			return refund{ID: "re_1", Cents: in.Cents}, nil
		}
		o := options()
		o.Wait = time.Second
		h := w.handler(middleware.Memory(), o)
		tell := func(turn int, tool, arguments string) string {
			r := ask(t, h, at(turn, 0, tool, arguments))
			if r.Operation != "" {
				return strings.ReplaceAll(r.Content, r.Operation, "OP")
			}
			return r.Content
		}
		var wg sync.WaitGroup
		wg.Go(func() { tell(90, "issue_refund", `{"order_id":"slow","cents":5}`) })
		synctest.Wait()
		got := map[string]string{
			"executed":        tell(1, "issue_refund", `{"order_id":"1","cents":5}`),
			"replayed":        tell(1, "issue_refund", `{"order_id":"1","cents":5}`),
			"already_done":    tell(2, "issue_refund", `{"order_id":"1","cents":5}`),
			"conflict":        tell(3, "issue_refund", `{"order_id":"1","cents":6}`),
			"outcome_unknown": tell(4, "issue_refund", `{"order_id":"lost","cents":5}`),
			"failed":          tell(5, "issue_refund", `{"order_id":"declined","cents":5}`),
			"refused":         tell(6, "issue_refund", `{"order_id":"1"}`),
			"in_progress":     tell(7, "issue_refund", `{"order_id":"slow","cents":5}`),
		}
		want := map[string]string{
			"executed":        `{"id":"re_1","cents":5}`,
			"replayed":        `{"id":"re_1","cents":5}`,
			"already_done":    `{"toolonce":1,"status":"already_done","operation":"OP","tool":"issue_refund","first_done_at":"2000-01-01T00:00:00Z","repeats":1,"result":{"id":"re_1","cents":5},"note":"This was done at 2000-01-01T00:00:00Z. Do not retry it. If the user asked for a second one, say that it was not done again."}`,
			"conflict":        `{"toolonce":1,"status":"conflict","operation":"OP","tool":"issue_refund","fields":["cents"],"note":"The same operation exists with other arguments. This call was not run."}`,
			"outcome_unknown": `{"toolonce":1,"status":"outcome_unknown","operation":"OP","tool":"issue_refund","since":"2000-01-01T00:00:00Z","note":"It may or may not have happened. Do not retry it; a person must check."}`,
			"failed":          `{"toolonce":1,"status":"failed","operation":"OP","tool":"issue_refund","error":"card declined","retryable":true}`,
			"refused":         `{"toolonce":1,"status":"refused","tool":"issue_refund","reason":"REASON","path":"/cents","rule":"required"}`,
			"in_progress":     `{"toolonce":1,"status":"in_progress","operation":"OP","tool":"issue_refund","retry_after_ms":1000,"note":"An earlier call still does this. Its outcome is not known yet."}`,
		}
		if before, _, ok := strings.Cut(got["refused"], `"reason":"`); ok { // the codec's words are pinned there
			_, after, _ := strings.Cut(got["refused"], `","path"`)
			got["refused"] = before + `"reason":"REASON","path"` + after
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		wg.Wait()
	})
}
