package middleware_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// asks is a ledger at which something happens as a question is stored.
type asks struct {
	*middleware.MemoryLedger
	during func(ctx context.Context) error
}

func (l asks) Ask(ctx context.Context, a middleware.Approval, expires time.Duration) (middleware.Approval, error) {
	if err := l.during(ctx); err != nil {
		return middleware.Approval{}, err
	}
	return l.MemoryLedger.Ask(ctx, a, expires)
}

func TestAQuestionThatCannotBeStoredIsAnErrorAndNoPause(t *testing.T) {
	w := newTill(t)
	full := errors.New("disk full")
	h := w.handler(asks{w.ledger, func(context.Context) error { return full }})
	res, err := h(t.Context(), at(1, 0, "pay", pay1))
	if _, waits := errors.AsType[*middleware.PausedError](err); waits || !errors.Is(err, full) || res.Verdict != "" ||
		!strings.Contains(err.Error(), "middleware: asking for an approval of a call of pay: ") {
		t.Errorf("%+v, %v", res, err)
	}
	w.wantPaid(0)
	w.wantRows(0)
}

// A person can answer what was asked, though whoever started the run has gone meanwhile.
func TestAQuestionIsStoredThoughItsCallerHasGone(t *testing.T) {
	w := newTill(t)
	ctx, cancel := context.WithCancel(t.Context())
	h := w.handler(asks{w.ledger, func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	}})
	_, err := h(ctx, at(1, 0, "pay", pay1))
	if _, waits := errors.AsType[*middleware.PausedError](err); !waits || len(approvals(t, w.ledger, middleware.Pending)) != 1 {
		t.Error(err)
	}
	w.wantPaid(0)
}

func TestAQuestionTellsAPersonWhatItIsAbout(t *testing.T) {
	w := newTill(t)
	a := paused(t, w.handler(w.ledger), placedIn("chat-7", at(3, 1, "pay", pay1)))
	if a.Conversation != "chat-7" || string(a.Input) != `{"cents":100,"order":"1"}` || a.RepeatOf != "" || a.Call.Tool != "pay" || a.Call.Turn != 3 || a.Call.Position != 1 {
		t.Errorf("%+v", a)
	}
}

// What a repeat is known by must not change from one version to the next, or it would be made once more.
func TestTheIdentityOfARepeatIsFixed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var p post
		l := middleware.Memory()
		first := rowOf(t, l, ask(t, p.handler(l), mail("1", 1)).Operation)
		later()
		res := ask(t, p.handler(l), again("mail", "2", 1, first.Operation))
		want(t, res, registry.Executed)
		h := sha256.Sum256([]byte("repeat\x00" + first.Identity + "\x00" + first.Operation))
		if second := rowOf(t, l, res.Operation); second.Identity != hex.EncodeToString(h[:]) {
			t.Errorf("it is known as %s", second.Identity)
		}
	})
}
