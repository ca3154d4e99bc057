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

func TestRedactLeavesTheUndoItsLink(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), &middleware.OnceOptions{Redact: func(_ *registry.Call, s string) string { return strings.ReplaceAll(s, "R1", "**") }})
	want(t, ask(t, h, at(1, 0, "book", `{"flight":"F1"}`)), registry.Executed)
	want(t, ask(t, h, at(2, 0, "cancel", `{"reservation_id":"R1"}`)), registry.Executed)
	want(t, ask(t, h, at(3, 0, "book", `{"flight":"F1"}`)), registry.Executed)
	wantEffects(t, w, "book", 2)
}

func TestARedactThatBreaksDownLeavesWhatWasDoneDone(t *testing.T) {
	w := newWorld(t)
	w.recovery = registry.Rerun
	l := middleware.Memory()
	h := w.handler(l, &middleware.OnceOptions{Redact: func(*registry.Call, string) string { panic("no such field") }})
	if res := ask(t, h, at(1, 0, "issue_refund", r7)); res.Verdict != registry.Executed || strings.Contains(res.Content, "re_") {
		t.Errorf("%+v", res)
	}
	if row := only(t, l); row.State != middleware.Done || row.HasResult {
		t.Errorf("the row is %s, with a result: %v", row.State, row.HasResult)
	}
	wantEffects(t, w, "refund", 1)
}

func TestWhatAMiddlewareWithinAnswersIsRedactedToo(t *testing.T) {
	w := newWorld(t)
	l := middleware.Memory()
	within := func(registry.Handler) registry.Handler {
		return func(context.Context, *registry.Call) (registry.Result, error) {
			return registry.Result{Content: `"4242"`}, nil
		}
	}
	redact := func(_ *registry.Call, s string) string { return strings.ReplaceAll(s, "4242", "****") }
	h := w.registry().Handler(middleware.Once(l, &middleware.OnceOptions{Redact: redact}), within)
	if res := ask(t, h, at(1, 0, "issue_refund", r7)); res.Content != `"****"` || only(t, l).Result != `"****"` {
		t.Errorf("%+v, kept %q", res, only(t, l).Result)
	}
}
