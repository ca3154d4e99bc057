package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

const r7 = `{"order_id":"R-7","cents":500,"reason":"broken"}`

func TestIdenticalCallsOfOneTurnRunOnceAndEachIsAnswered(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Executed, `"id":"re_R-7"`)
	for i := 1; i < 3; i++ {
		want(t, ask(t, h, at(1, i, "issue_refund", r7)), registry.AlreadyDone, `"result":{"id":"re_R-7","cents":500}`, `"toolonce":1`)
	}
	wantEffects(t, w, "refund", 1)
}

func TestTwoCallsOfOneToolWithOtherArgumentsBothRun(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	want(t, ask(t, h, at(1, 0, "pay", `{"order":"u1","cents":1}`)), registry.Executed)
	want(t, ask(t, h, at(1, 1, "pay", `{"order":"u2","cents":1}`)), registry.Executed)
	wantEffects(t, w, "refund", 2)
}

func TestARepeatUnderANewIDIsAnsweredWithTheFirstResultAndItsTime(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	ask(t, h, at(1, 0, "pay", `{"order":"R-7","cents":500}`))
	c := at(2, 0, "pay", `{ "cents":5e2, "order":"\u0052-7"}`)
	c.ID = "x9"
	got := ask(t, h, c)
	want(t, got, registry.AlreadyDone, `"result":{"id":"re_R-7"`, `"first_done_at":"2`, `"repeats":1`, "Do not retry")
	wantEffects(t, w, "refund", 1)
}

func TestACallIDAloneIsNoKey(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	for turn, n := range []string{"1", "2"} { // the same id every turn, and an empty one
		for _, id := range []string{"call_0", ""} {
			c := at(turn+1, len(id), "pay", `{"order":"`+n+id+`","cents":1}`)
			c.ID = id
			want(t, ask(t, h, c), registry.Executed)
		}
	}
	wantEffects(t, w, "refund", 4)
}

func TestTheSameCallAgainGetsItsOwnOutputUnwrapped(t *testing.T) {
	w := newWorld(t)
	l := middleware.Memory()
	first := ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7))
	again := ask(t, w.handler(l.Peer(), nil), at(1, 0, "issue_refund", r7))
	want(t, again, registry.Replayed)
	if again.Content != first.Content {
		t.Errorf("replayed %s, first %s", again.Content, first.Content)
	}
	repeat := at(2, 0, "issue_refund", r7)
	want(t, ask(t, w.handler(l, nil), repeat), registry.AlreadyDone)
	want(t, ask(t, w.handler(l, nil), repeat), registry.AlreadyDone, `"repeats":1`) // a repeat seen again is no further repeat
	wantEffects(t, w, "refund", 1)
}

func TestTheSameCallIsAnsweredThoughItNoLongerDecodesOrPasses(t *testing.T) {
	w := newWorld(t)
	l := middleware.Memory()
	ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7))
	later := newWorld(t)
	later.check = func(context.Context, refundInput) error { return errors.New("not yours any more") }
	want(t, ask(t, later.handler(l, nil), at(1, 0, "issue_refund", r7)), registry.Replayed)
	want(t, ask(t, later.handler(l, nil), at(2, 0, "issue_refund", r7)), registry.Refused, "not yours any more")

	// a deploy that changes the schema: raw arguments are equal, the fingerprint is not
	type changed struct {
		Order string `json:"order" once:"key"`
	}
	r := registry.New()
	registry.Add(r, registry.Tool[changed, string]{Name: "issue_refund", Effect: registry.NonIdempotentWrite, Run: func(context.Context, changed) (string, error) {
		t.Error("ran again after a deploy")
		return "", nil
	}})
	want(t, ask(t, r.Handler(middleware.Once(l, options())), at(1, 0, "issue_refund", r7)), registry.Replayed, "re_R-7")
	// and one that drops the tool
	want(t, ask(t, registry.New().Handler(middleware.Once(l, options())), at(1, 0, "issue_refund", r7)), registry.Replayed, "re_R-7")
}

func TestFourCasesOfABusinessKey(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	a100, b100, a125 := `{"order_id":"A","cents":100}`, `{"order_id":"B","cents":100}`, `{"order_id":"A","cents":125}`
	want(t, ask(t, h, at(1, 0, "issue_refund", a100)), registry.Executed)
	want(t, ask(t, h, at(2, 0, "issue_refund", a100)), registry.AlreadyDone)
	want(t, ask(t, h, at(3, 0, "issue_refund", b100)), registry.Executed)
	got := ask(t, h, at(4, 0, "issue_refund", a125))
	want(t, got, registry.Conflict, `"fields":["cents"]`)
	if strings.Contains(got.Content, "125") || strings.Contains(got.Content, "100") || strings.Contains(got.Content, "result") {
		t.Errorf("a conflict tells values: %s", got.Content)
	}
	want(t, ask(t, h, at(4, 0, "issue_refund", a125)), registry.Conflict) // the same call: a conflict again
	wantEffects(t, w, "refund", 2)
}

func TestWordsThatDifferDoNotMakeAnotherOperationWithAKeyAndDoWithout(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	want(t, ask(t, h, at(1, 0, "issue_refund", `{"order_id":"A","cents":1,"reason":"broken"}`)), registry.Executed)
	want(t, ask(t, h, at(2, 0, "issue_refund", `{"order_id":"A","cents":1,"reason":"it arrived broken"}`)), registry.AlreadyDone)
	want(t, ask(t, h, at(3, 0, "pay", `{"order":"T-9 shipped today","cents":1}`)), registry.Executed)
	want(t, ask(t, h, at(4, 0, "pay", `{"order":"T-9 has shipped","cents":1}`)), registry.Executed)
}

func TestReadsAreNeverStoppedAndLeaveNoRow(t *testing.T) {
	w := newWorld(t)
	l := middleware.Memory()
	h := w.handler(l, nil)
	for turn := range 4 {
		want(t, ask(t, h, at(turn+1, 0, "job_status", `{"text":"1"}`)), registry.Executed, "queued")
	}
	wantEffects(t, w, "status", 4)
	if rows, _ := l.List(t.Context(), nil, 0); len(rows) != 0 {
		t.Errorf("%d rows after reads", len(rows))
	}
}

func TestByCallRunsEachCallAndReplaysTheSameOne(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	want(t, ask(t, h, at(1, 0, "add_note", `{"text":"x"}`)), registry.Executed, "success")
	want(t, ask(t, h, at(2, 0, "add_note", `{"text":"x"}`)), registry.Executed)
	want(t, ask(t, h, at(2, 0, "add_note", `{"text":"x"}`)), registry.Replayed, "success")
	wantEffects(t, w, "note", 2)
	_, err := h(t.Context(), at(0, 0, "add_note", `{"text":"x"}`))
	if !errors.Is(err, middleware.ErrNoTurn) {
		t.Errorf("without a turn: %v, want ErrNoTurn", err)
	}
}

func TestIdempotentWriteReplaysTheSameCallRunsAFreshOneAndIsUnguardedWithoutATurn(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	want(t, ask(t, h, at(1, 0, "set_address", `{"text":"x"}`)), registry.Executed)
	want(t, ask(t, h, at(1, 0, "set_address", `{"text":"x"}`)), registry.Replayed, "set")
	want(t, ask(t, h, at(2, 0, "set_address", `{"text":"x"}`)), registry.Executed)
	wantEffects(t, w, "set", 2)
	for range 2 {
		want(t, ask(t, h, at(0, 0, "set_address", `{"text":"x"}`)), registry.Executed)
	}
	wantEffects(t, w, "set", 4)
}

func TestWithoutTurnsArgumentAndKeyIdentityWorkAndRepeatsCount(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	want(t, ask(t, h, at(0, 0, "pay", `{"order":"1","cents":1}`)), registry.Executed)
	for n := 1; n <= 3; n++ {
		want(t, ask(t, h, at(0, 0, "pay", `{"order":"1","cents":1}`)), registry.AlreadyDone, fmt.Sprintf(`"repeats":%d`, n))
	}
	res, err := h(t.Context(), at(0, 0, "pay", `{"order":"1","cents":1}`))
	var over *middleware.RepeatError
	if !errors.As(err, &over) || over.Repeats != 4 || res.Verdict != registry.AlreadyDone {
		t.Errorf("fourth repeat: %v %v", res.Verdict, err)
	}
	wantEffects(t, w, "refund", 1)
}

func TestTheFourthRepeatIsAnsweredAndEndsTheRun(t *testing.T) {
	w := newWorld(t)
	l := middleware.Memory()
	h := w.handler(l, nil)
	ask(t, h, at(1, 0, "issue_refund", r7))
	for turn := 2; turn <= 4; turn++ {
		want(t, ask(t, h, at(turn, 0, "issue_refund", r7)), registry.AlreadyDone)
	}
	res, err := h(t.Context(), at(5, 0, "issue_refund", r7))
	if _, ok := errors.AsType[*middleware.RepeatError](err); !ok {
		t.Fatalf("fourth repeat: %v, want a RepeatError", err)
	}
	want(t, res, registry.AlreadyDone, "re_R-7")
	want(t, ask(t, h, in("another run", at(1, 0, "issue_refund", r7))), registry.AlreadyDone) // its own budget
	unlimited := options()
	unlimited.Repeats = -1
	want(t, ask(t, w.handler(l, unlimited), at(6, 0, "issue_refund", r7)), registry.AlreadyDone)
}

func TestCheckIsAskedOnEveryCallRepeatsTooAndLeavesNoRow(t *testing.T) {
	w := newWorld(t)
	asked, allow := 0, false
	w.check = func(context.Context, refundInput) error {
		asked++
		if !allow {
			return errors.New("order is not yours")
		}
		return nil
	}
	l := middleware.Memory()
	h := w.handler(l, nil)
	want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Refused, `"reason":"order is not yours"`)
	if rows, _ := l.List(t.Context(), nil, 0); len(rows) != 0 {
		t.Error("a refusal left a row")
	}
	allow = true
	want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.Executed)
	allow = false
	want(t, ask(t, h, in("thief", at(1, 0, "issue_refund", r7))), registry.Refused) // learns nothing of the first
	if asked != 3 {
		t.Errorf("Check was asked %d times, want 3", asked)
	}
	wantEffects(t, w, "refund", 1)
}

func TestBadCallsAreRefusedWithPathAndRuleAndLeaveNoRow(t *testing.T) {
	w := newWorld(t)
	l := middleware.Memory()
	h := w.handler(l, nil)
	want(t, ask(t, h, at(1, 0, "issue_refund", `{"cents":5}`)), registry.Refused, `"rule":"required"`)
	want(t, ask(t, h, at(1, 1, "issue_refund", `{"order_id":"A","cents":0}`)), registry.Refused, `"path":"/cents"`, `"rule":"minimum"`)
	want(t, ask(t, h, at(1, 2, "issue_refunds", `{}`)), registry.Refused, `did you mean issue_refund?`)
	if rows, _ := l.List(t.Context(), nil, 0); len(rows) != 0 {
		t.Error("a refusal left a row")
	}
	wantEffects(t, w, "refund", 0)
}

func TestScopeIsTheConversationWhereThereIsOneAndTheRunWhereNot(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	chat := func(run, conversation string) *registry.Call {
		c := in(run, at(1, 0, "pay", `{"order":"1","cents":1}`))
		c.Run.Conversation = conversation
		return c
	}
	want(t, ask(t, h, chat("m1", "c1")), registry.Executed)
	want(t, ask(t, h, chat("m2", "c1")), registry.AlreadyDone, `"result":{`)
	want(t, ask(t, h, chat("m3", "c2")), registry.Executed)
	want(t, ask(t, h, chat("m4", "")), registry.Executed)
	wantEffects(t, w, "refund", 3)
}

func TestAcrossConversationsTheResultIsSharedOnlyIfTheToolSaysSo(t *testing.T) {
	for _, share := range []bool{false, true} {
		w := newWorld(t)
		w.share = share
		h := w.handler(middleware.Memory(), nil)
		ask(t, h, in("a", at(1, 0, "issue_refund", r7)))
		got := ask(t, h, in("b", at(1, 0, "issue_refund", r7)))
		want(t, got, registry.AlreadyDone)
		if has := strings.Contains(got.Content, "re_R-7"); has != share {
			t.Errorf("ShareResult %v: %s", share, got.Content)
		}
	}
}

func TestNamespacesDoNotMeet(t *testing.T) {
	w := newWorld(t)
	l := middleware.Memory()
	want(t, ask(t, w.handler(l.Namespace("a"), nil), at(1, 0, "issue_refund", r7)), registry.Executed)
	want(t, ask(t, w.handler(l.Namespace("b"), nil), at(1, 0, "issue_refund", r7)), registry.Executed)
	wantEffects(t, w, "refund", 2)
	if len(w.keys) != 2 || w.keys[0] == w.keys[1] {
		t.Errorf("downstream keys of two namespaces: %v", w.keys)
	}
}

func TestBookCancelBookCancelAreFourOperations(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	const book, cancel = `{"flight":"LH1"}`, `{"reservation_id":"R1"}`
	for i := range 2 { // the provider gives the same reservation id again
		want(t, ask(t, h, at(4*i+1, 0, "book", book)), registry.Executed)
		want(t, ask(t, h, at(4*i+2, 0, "book", book)), registry.AlreadyDone)
		want(t, ask(t, h, at(4*i+3, 0, "cancel", cancel)), registry.Executed)
		want(t, ask(t, h, at(4*i+4, 0, "cancel", cancel)), registry.AlreadyDone, "cancelled")
	}
	wantEffects(t, w, "book", 2)
	wantEffects(t, w, "cancel", 2)
	want(t, ask(t, h, at(1, 0, "book", book)), registry.Replayed) // released since: the call gets what it had
	want(t, ask(t, h, at(9, 0, "cancel", `{"reservation_id":"elsewhere"}`)), registry.Executed)
}

func TestTwoToolsThatCancelOneBookingDoNotReleaseTheNextOne(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	ask(t, h, at(1, 0, "book", `{"flight":"LH1"}`))
	want(t, ask(t, h, at(2, 0, "cancel", `{"reservation_id":"R1"}`)), registry.Executed)
	want(t, ask(t, h, at(3, 0, "void", `{"reservation_id":"R1"}`)), registry.Refused, "has been undone already")
	w.reservation = "R2"
	want(t, ask(t, h, at(4, 0, "book", `{"flight":"LH1"}`)), registry.Executed)
	want(t, ask(t, h, at(5, 0, "void", `{"reservation_id":"R1"}`)), registry.Refused)
	want(t, ask(t, h, at(6, 0, "book", `{"flight":"LH1"}`)), registry.AlreadyDone, "R2")
	wantEffects(t, w, "void", 0)
}

func TestDoingAndUndoingInACircleEndsTheRun(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	for i := range 4 {
		want(t, ask(t, h, at(2*i+1, 0, "book", `{"flight":"LH1"}`)), registry.Executed)
		want(t, ask(t, h, at(2*i+2, 0, "cancel", `{"reservation_id":"R1"}`)), registry.Executed)
	}
	res, err := h(t.Context(), at(9, 0, "book", `{"flight":"LH1"}`))
	var over *middleware.RepeatError
	if !errors.As(err, &over) || res.Verdict != registry.Refused {
		t.Errorf("fifth booking: %v %v", res.Verdict, err)
	}
	wantEffects(t, w, "book", 4)
}

func TestFiftyCallsAtOnceRunOnce(t *testing.T) {
	w := newWorld(t)
	o := options()
	o.Repeats = -1
	l := middleware.Memory()
	hs := []registry.Handler{w.handler(l, o), w.handler(l.Peer(), o)}
	var wg sync.WaitGroup
	results := make([]registry.Result, 50)
	for i := range results {
		wg.Go(func() {
			results[i], _ = hs[i%2](t.Context(), at(i+1, 0, "issue_refund", r7))
		})
	}
	wg.Wait()
	executed := 0
	for _, r := range results {
		if r.Verdict == registry.Executed {
			executed++
		} else if r.Verdict != registry.AlreadyDone || !strings.Contains(r.Content, "re_R-7") {
			t.Errorf("%s: %s", r.Verdict, r.Content)
		}
	}
	if executed != 1 {
		t.Errorf("%d executed", executed)
	}
	wantEffects(t, w, "refund", 1)
}

func TestAdmitIsAskedAfterTheLedgerAndBeforeTheClaim(t *testing.T) {
	w := newWorld(t)
	l := middleware.Memory()
	o := options()
	asked := 0
	o.Admit = func(_ context.Context, c *registry.Call) (*registry.Result, error) {
		asked++
		if asked == 1 {
			return nil, errors.New("pause")
		}
		if asked == 2 {
			r := c.Refused(errors.New("denied"))
			return &r, nil
		}
		return nil, nil
	}
	h := w.handler(l, o)
	if _, err := h(t.Context(), at(1, 0, "issue_refund", r7)); err == nil || err.Error() != "pause" {
		t.Errorf("error of Admit: %v", err)
	}
	want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Refused, "denied")
	if rows, _ := l.List(t.Context(), nil, 0); len(rows) != 0 {
		t.Error("not admitted, but there is a row")
	}
	want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Executed)
	want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Replayed)
	want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.AlreadyDone)
	if asked != 3 {
		t.Errorf("Admit was asked %d times, want 3: what is done needs no approval", asked)
	}
}

func TestAnotherCallAtAPlaceIsDecidedByItsOwnIdentity(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	want(t, ask(t, h, at(1, 0, "pay", `{"order":"1","cents":1}`)), registry.Executed)
	want(t, ask(t, h, at(1, 0, "pay", `{"order":"2","cents":1}`)), registry.Executed) // an own loop that asked again after a crash
	want(t, ask(t, h, at(1, 0, "pay", `{"order":"2","cents":1}`)), registry.Replayed)
	want(t, ask(t, h, at(1, 0, "pay", `{"order":"1","cents":1}`)), registry.AlreadyDone)
	wantEffects(t, w, "refund", 2)
}
