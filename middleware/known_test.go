package middleware_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// readOnly is a ledger that fails a test which writes to it.
type readOnly struct {
	middleware.Ledger
	t *testing.T
}

func (l readOnly) Claim(context.Context, middleware.Claim) (middleware.Row, bool, error) {
	l.t.Error("claimed")
	return middleware.Row{}, false, errors.New("read only")
}

func (l readOnly) Change(context.Context, middleware.Transition) (middleware.Row, error) {
	l.t.Error("changed")
	return middleware.Row{}, errors.New("read only")
}

func (l readOnly) Note(context.Context, string, middleware.Alias) (int, error) {
	l.t.Error("noted")
	return 0, errors.New("read only")
}

// known asks what the ledger knows, with a world in which nothing may happen.
func known(t *testing.T, l middleware.Ledger, c *registry.Call) registry.Result {
	t.Helper()
	w := newWorld(t)
	w.run = func(context.Context, refundInput) (refund, error) { t.Error("ran"); return refund{}, nil }
	w.check = func(context.Context, refundInput) error { t.Error("checked"); return nil }
	w.lookup = func(context.Context, refundInput) (refund, error) { t.Error("looked up"); return refund{}, nil }
	w.set = func(context.Context, noteInput) (string, error) { t.Error("set"); return "", nil }
	w.status = func(context.Context, noteInput) (string, error) { t.Error("read"); return "", nil }
	return ask(t, w.registry().Handler(middleware.Known(readOnly{l, t}, nil)), c)
}

func nowhere(conversation, run, id, tool, arguments string) *registry.Call {
	return &registry.Call{Run: registry.Run{ID: run, Conversation: conversation}, ID: id, Tool: tool, Arguments: arguments}
}

func placedIn(conversation string, c *registry.Call) *registry.Call {
	c.Run.Conversation = conversation
	return c
}

func TestWhatIsDoneIsKnownToItsCallAndToldToOthersAsDone(t *testing.T) {
	l := middleware.Memory()
	h := newWorld(t).handler(l, nil)
	const own = `{"id":"re_R-7","cents":500}`
	ask(t, h, placedIn("chat", at(1, 0, "issue_refund", r7)))
	ask(t, h, placedIn("chat", at(2, 0, "issue_refund", r7))) // a repeat, under the same id
	ask(t, h, placedIn("chat", at(1, 1, "set_address", `{"text":"x"}`)))
	ask(t, h, placedIn("chat", at(1, 2, "add_note", `{"text":"x"}`)))
	const spelt = `{"cents":5e2,"order_id":"\u0052-7"}`
	for name, c := range map[string]struct {
		call    *registry.Call
		verdict registry.Verdict
	}{
		"its place":                              {at(1, 0, "issue_refund", r7), registry.Replayed},
		"its id in its run":                      {nowhere("", "r", "call_x", "issue_refund", spelt), registry.Replayed},
		"its id in its chat":                     {nowhere("chat", "later", "call_x", "issue_refund", spelt), registry.Replayed},
		"the place of the repeat":                {at(2, 0, "issue_refund", r7), registry.AlreadyDone},
		"another id":                             {nowhere("chat", "later", "x9", "issue_refund", r7), registry.AlreadyDone},
		"no id":                                  {nowhere("chat", "later", "", "issue_refund", r7), registry.AlreadyDone},
		"a place where its loop never was":       {journaled(at(3, 0, "issue_refund", r7)), registry.AlreadyDone},
		"its id in another chat":                 {nowhere("other", "o", "call_x", "issue_refund", r7), registry.AlreadyDone},
		"other arguments":                        {nowhere("chat", "later", "call_x", "issue_refund", `{"order_id":"R-7","cents":501}`), registry.Conflict},
		"another call at its place":              {journaled(at(1, 0, "pay", `{"order":"a","cents":1}`)), registry.Conflict},
		"another call at its place, own loop":    {at(1, 0, "pay", `{"order":"a","cents":1}`), ""},
		"another operation":                      {nowhere("chat", "later", "call_x", "pay", `{"order":"a","cents":1}`), ""},
		"an idempotent write at its place":       {at(1, 1, "set_address", `{"text":"x"}`), registry.Replayed},
		"an idempotent write without its place":  {nowhere("chat", "r", "call_x", "set_address", `{"text":"x"}`), ""},
		"a note at its place":                    {at(1, 2, "add_note", `{"text":"x"}`), registry.Replayed},
		"a note without its place":               {nowhere("chat", "r", "call_x", "add_note", `{"text":"x"}`), ""},
		"a read":                                 {at(1, 4, "job_status", `{"text":"x"}`), ""},
		"an unknown tool":                        {at(1, 4, "nonesuch", `{}`), ""},
		"bad arguments":                          {nowhere("chat", "r", "call_x", "issue_refund", `{"order_id":`), ""},
		"bad arguments at a place that is taken": {journaled(at(1, 0, "issue_refund", `{"order_id":`)), registry.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			got := known(t, l, c.call)
			want(t, got, c.verdict)
			if c.verdict == registry.Replayed && c.call.Tool == "issue_refund" && got.Content != own {
				t.Errorf("content %s, want the tool's own output", got.Content)
			}
		})
	}
	want(t, known(t, l, nowhere("other", "o", "x", "issue_refund", r7)), registry.AlreadyDone, "another conversation")
}

func TestAHoleIsClosedByTheSameBytesHoweverOftenItIsRepeated(t *testing.T) {
	l := middleware.Memory()
	h := newWorld(t).handler(l, nil)
	ask(t, h, at(1, 0, "issue_refund", r7))
	c := nowhere("", "r", "x9", "issue_refund", r7)
	first := known(t, l, c)
	ask(t, h, at(2, 0, "issue_refund", r7))
	if diff := cmp.Diff(first, known(t, l, c)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatRunsOrIsInDoubtIsKnownAtOnceAndNobodyIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, l := newWorld(t), middleware.Memory()
		end := make(chan error)
		w.run = func(context.Context, refundInput) (refund, error) { return refund{}, <-end }
		h := w.handler(l, nil)
		answered := make(chan registry.Result)
		go func() { answered <- ask(t, h, at(1, 0, "issue_refund", r7)) }()
		synctest.Wait()
		places := []*registry.Call{at(1, 0, "issue_refund", r7), nowhere("", "r", "call_x", "issue_refund", r7)}
		for _, c := range places {
			want(t, known(t, l, c), registry.InProgress)
		}
		end <- errTimeout
		want(t, <-answered, registry.OutcomeUnknown)
		for _, c := range places {
			want(t, known(t, l, c), registry.OutcomeUnknown, "it will be looked up")
		}
	})
}

func TestWhatSurelyDidNotHappenMayBeCalledAgain(t *testing.T) {
	w, l := newWorld(t), middleware.Memory()
	w.run = func(context.Context, refundInput) (refund, error) { return refund{}, registry.NoEffect(errTimeout) }
	want(t, ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7)), registry.Failed)
	want(t, known(t, l, at(1, 0, "issue_refund", r7)), registry.Failed, "surely did not happen", `"retryable":true`)
	want(t, known(t, l, nowhere("", "r", "call_x", "issue_refund", r7)), registry.Failed)
	want(t, known(t, l, journaled(at(1, 0, "pay", `{"order":"a","cents":1}`))), registry.Conflict, "Another call was recorded at this place")
}

func TestWhatWasUndoneIsKnownOnlyToTheCallThatDidIt(t *testing.T) {
	l := middleware.Memory()
	h := newWorld(t).handler(l, nil)
	const flight, cancel = `{"flight":"LH1"}`, `{"reservation_id":"R1"}`
	ask(t, h, at(1, 0, "book", flight))
	ask(t, h, at(2, 0, "cancel", cancel))
	want(t, known(t, l, at(1, 0, "book", flight)), registry.Replayed, "R1")
	want(t, known(t, l, nowhere("", "r", "call_x", "book", flight)), registry.Replayed, "R1")
	want(t, known(t, l, nowhere("", "r", "x9", "book", flight)), "")
	want(t, known(t, l, at(2, 0, "cancel", cancel)), registry.Replayed)
	want(t, known(t, l, nowhere("", "r", "call_x", "cancel", cancel)), registry.Replayed)
}

func TestALedgerThatDoesNotAnswerIsAnError(t *testing.T) {
	broken := errors.New("no such table")
	h := newWorld(t).registry().Handler(middleware.Known(unreadable{middleware.Memory(), broken}, nil))
	if _, err := h(t.Context(), at(1, 0, "issue_refund", r7)); !errors.Is(err, broken) {
		t.Errorf("error %v, want the ledger's", err)
	}
}

type unreadable struct {
	middleware.Ledger
	err error
}

func (l unreadable) Find(context.Context, middleware.Query) (middleware.Row, bool, error) {
	return middleware.Row{}, false, l.err
}
