package middleware_test

import (
	"context"
	"errors"
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

type stayInput struct {
	Room string `json:"room" once:"resource"`
}

// rooms have four tools: stay needs an approval, rent needs one where it is repeated on purpose, leave undoes a stay,
// and end a rent.
func (w *till) rooms() registry.Handler {
	r := registry.New()
	addTo(w, r, registry.Tool[stayInput, string]{Name: "stay", Effect: registry.NonIdempotentWrite})
	registry.Add(r, registry.Tool[stayInput, string]{
		Name: "rent", Effect: registry.NonIdempotentWrite, Repeat: registry.RepeatApproved, Timeout: timeout,
		Run: func(context.Context, stayInput) (string, error) { w.paid++; return "rented", nil },
	})
	for name, undoes := range map[string]string{"leave": "stay", "end": "rent"} {
		registry.Add(r, registry.Tool[stayInput, string]{
			Name: name, Effect: registry.NonIdempotentWrite, Undoes: undoes, Timeout: timeout,
			Run: func(context.Context, stayInput) (string, error) { return "over", nil },
		})
	}
	return r.Handler(middleware.Once(w.ledger, options()))
}

const room7 = `{"room":"7"}`

func TestWhatWasUndoneIsMadeAgainUnderAnApprovalOfItsOwn(t *testing.T) {
	w := newTill(t)
	h := w.rooms()
	for turn := 1; turn < 7; turn += 2 {
		c := at(turn, 0, "stay", room7)
		a := paused(t, h, c)
		w.wantPaid(turn / 2)
		decide(t, w.ledger, a, true)
		want(t, ask(t, h, c), registry.Executed)
		want(t, ask(t, h, at(turn+1, 0, "leave", room7)), registry.Executed)
	}
	w.wantPaid(3)
}

// A person has said no to these arguments in this run: leaving repeat_of out is no way round it.
func TestADeniedRepeatIsDeniedAsAPlainCallToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newTill(t)
		h := w.rooms()
		rent := func(run string, turn int, arguments string) *registry.Call {
			later()
			c := again("rent", run, turn, "")
			c.Arguments = arguments
			return c
		}
		first := ask(t, h, rent("1", 1, room7)).Operation
		repeat := rent("2", 1, `{"room":"7","repeat_of":"`+first+`"}`)
		decide(t, w.ledger, paused(t, h, repeat), false)
		want(t, ask(t, h, repeat), registry.Refused, "a person has denied it: rule 7")
		want(t, ask(t, h, placedIn("c", in("2", at(2, 0, "end", room7)))), registry.Executed)
		want(t, ask(t, h, rent("2", 3, room7)), registry.Refused, "a person has denied it: rule 7")
		w.wantPaid(1)
		want(t, ask(t, h, rent("3", 1, room7)), registry.Executed) // the next message is another matter
	})
}

// What has failed without effect is claimed by another process while a person is asked about it.
func TestWhatIsFreeAndDoneByAnotherMeanwhileIsNotWaitedFor(t *testing.T) {
	w := newTill(t)
	first := w.handler(w.ledger)
	approved := func(c *registry.Call) *registry.Call {
		decide(t, w.ledger, paused(t, first, c), true)
		return c
	}
	w.run = func() error { return registry.NoEffect(errors.New("connection refused")) }
	want(t, ask(t, first, approved(at(1, 0, "pay", pay1))), registry.Failed)
	w.run = nil
	other := approved(at(2, 0, "pay", pay1))
	l := &overtaken{MemoryLedger: w.ledger.Peer(), claim: func() { want(t, ask(t, first, other), registry.Executed) }}
	want(t, ask(t, w.handler(l), at(3, 0, "pay", pay1)), registry.AlreadyDone)
	w.wantPaid(2)
}

// Another claims it first, and fails without effect: the call decides anew, and is still one call.
func TestACallWhoseClaimIsOvertakenIsAdmittedOnce(t *testing.T) {
	l, w, o, admitted := middleware.Memory(), newWorld(t), options(), 0
	o.Admit = func(context.Context, *registry.Call) (*registry.Result, error) { admitted++; return nil, nil }
	failing := newWorld(t)
	failing.run = func(context.Context, refundInput) (refund, error) {
		return refund{}, registry.NoEffect(errors.New("connection refused"))
	}
	h := w.handler(beforeTheClaim(l, func() {
		want(t, ask(t, failing.handler(l.Peer(), nil), in("another", at(1, 0, "issue_refund", r7))), registry.Failed)
	}), o)
	want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Executed)
	if wantEffects(t, w, "refund", 1); admitted != 1 {
		t.Errorf("admitted %d times", admitted)
	}
}

func TestWhatAnotherRunHasMadeAndUndoneIsNoRepeatOfThisOne(t *testing.T) {
	w := newWorld(t)
	h := w.handler(middleware.Memory(), nil)
	call := func(run string, turn int, tool, arguments string) *registry.Call {
		return placedIn("c", in(run, at(turn, 0, tool, arguments)))
	}
	const book, cancel = `{"flight":"LH1"}`, `{"reservation_id":"R1"}`
	want(t, ask(t, h, call("1", 1, "book", book)), registry.Executed)
	want(t, ask(t, h, call("1", 2, "cancel", cancel)), registry.Executed)
	want(t, ask(t, h, call("2", 1, "book", book)), registry.Executed)
	want(t, ask(t, h, call("2", 2, "book", book)), registry.AlreadyDone, `"repeats":1,`)
	wantEffects(t, w, "book", 2)
}
