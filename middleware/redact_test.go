package middleware_test

import (
	"context"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// TestWhatIsRedactedIsNeitherKeptNorTold has a result of a tool, of a Lookup after a crash, and of a read.
func TestWhatIsRedactedIsNeitherKeptNorTold(t *testing.T) {
	redact := &middleware.OnceOptions{Redact: func(c *registry.Call, result string) string {
		return strings.ReplaceAll(result, "4242", "****")
	}}
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run = func(context.Context, refundInput) (refund, error) { return refund{ID: "re_4242"}, nil }
		w.status = func(context.Context, noteInput) (string, error) { return "card 4242", nil }
		l := middleware.Memory()
		h := w.handler(l, redact)
		for turn, tool := range map[int]string{1: "issue_refund", 2: "job_status"} {
			arguments := r7
			if tool == "job_status" {
				arguments = `{"text":"x"}`
			}
			if res := ask(t, h, at(turn, 0, tool, arguments)); strings.Contains(res.Content, "4242") || !strings.Contains(res.Content, "****") {
				t.Errorf("%s tells %s", tool, res.Content)
			}
		}
		if row := only(t, l); row.Result != `{"id":"re_****","cents":0}` {
			t.Errorf("kept is %s", row.Result)
		}
	})
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.lookup = func(context.Context, refundInput) (refund, error) { return refund{ID: "re_4242"}, nil }
		l, release := killed(t, w, true)
		if res := ask(t, w.handler(l, redact), at(1, 0, "issue_refund", r7)); strings.Contains(res.Content, "4242") {
			t.Errorf("a Lookup tells %s", res.Content)
		}
		if row := only(t, l); row.Result != `{"id":"re_****","cents":0}` {
			t.Errorf("kept of a Lookup is %s", row.Result)
		}
		release()
	})
}
