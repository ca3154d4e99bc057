package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
)

var errFull = errors.New("disk full")

// failing fails the calls that are like op until it is healed.
func failing(l middleware.Ledger, op ledgertest.Op) (f *ledgertest.Faulty, heal func()) {
	var healed atomic.Bool
	fail := ledgertest.Fail(-1, op, errFull)
	return &ledgertest.Faulty{Ledger: l, Before: func(ctx context.Context, op ledgertest.Op) error {
		if healed.Load() {
			return nil
		}
		return fail(ctx, op)
	}}, func() { healed.Store(true) }
}

// settled is a row without what is worked out when it is read.
func settled(r middleware.Row) middleware.Row {
	r.Now, r.Found, r.Repeats = time.Time{}, nil, 0
	return r
}

func TestAResultThatWasNeverSavedIsUnknownOnceItsProcessHasDied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		mem := middleware.Memory()
		l, heal := failing(mem, ledgertest.Op{Step: middleware.Complete})
		_, err := w.handler(l, nil)(t.Context(), at(1, 0, "issue_refund", r7))
		if _, ok := errors.AsType[*middleware.NotSavedError](err); !ok {
			t.Fatalf("error %v, want a NotSavedError", err)
		}
		mem.Die()
		next := w.handler(mem.Peer(), nil)
		want(t, ask(t, next, at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown, "a person must check")
		want(t, ask(t, next, at(2, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		if row := only(t, mem); row.State != middleware.InDoubt {
			t.Errorf("row is %s, want in_doubt", row.State)
		}
		wantEffects(t, w, "refund", 1)
		heal()
		time.Sleep(time.Hour) // what the dead process would still do is over
		wantEffects(t, w, "refund", 1)
	})
}

func TestARefusalThatIsAValueIsTheResultOfAllRepeats(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.run = func(context.Context, refundInput) (refund, error) {
			w.did("try")
			return refund{ID: "declined"}, nil
		}
		l := middleware.Memory()
		h := w.handler(l, nil)
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Executed, `"id":"declined"`)
		first := fmt.Sprintf(`"first_done_at":"%s`, only(t, l).DoneAt.UTC().Format("2006-01-02T15:04:05"))
		for turn := 2; turn <= 4; turn++ {
			time.Sleep(time.Hour)
			want(t, ask(t, h, at(turn, 0, "issue_refund", r7)), registry.AlreadyDone, `"id":"declined"`, first)
		}
		wantEffects(t, w, "try", 1)
	})
}

func TestACallerThatLeavesBetweenTheClaimAndTheHandlerGivesTheClaimBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		mem := middleware.Memory()
		ctx, leave := context.WithCancel(t.Context())
		l := &ledgertest.Faulty{Ledger: mem, After: func(_ context.Context, op ledgertest.Op) error {
			if op.Method == "Claim" {
				leave()
			}
			return nil
		}}
		h := w.handler(l, nil)
		if _, err := h(ctx, at(1, 0, "issue_refund", r7)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want context.Canceled", err)
		}
		synctest.Wait()
		if row := only(t, mem); row.State != middleware.Free {
			t.Errorf("row is %s, want free", row.State)
		}
		wantEffects(t, w, "refund", 0)
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Executed, "re_R-7")
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Replayed, "re_R-7")
		wantEffects(t, w, "refund", 1)
	})
}

// losing is a ledger in which somebody else is always first, and gone again at the next look.
type losing struct {
	*middleware.MemoryLedger
	claims atomic.Int64
}

func (l *losing) Claim(context.Context, middleware.Claim) (middleware.Row, bool, error) {
	l.claims.Add(1)
	return middleware.Row{}, false, nil
}

func TestAClaimThatIsLostForEverIsAnErrorAndRunsNothing(t *testing.T) {
	w := newWorld(t)
	l := &losing{MemoryLedger: middleware.Memory()}
	h := w.handler(l, nil)
	for _, c := range []*registry.Call{at(1, 0, "issue_refund", r7), at(0, 0, "pay", `{"order":"1","cents":1}`), at(1, 1, "set_address", `{"text":"x"}`)} {
		l.claims.Store(0)
		res, err := h(t.Context(), c)
		if err == nil || res.Verdict != "" || !strings.Contains(err.Error(), c.Tool) {
			t.Errorf("%s: %q, error %v", c.Tool, res.Verdict, err)
		}
		if n := l.claims.Load(); n < 2 || n > 100 {
			t.Errorf("%s: %d claims, want several and an end", c.Tool, n)
		}
	}
	wantEffects(t, w, "refund", 0)
	wantEffects(t, w, "set", 0)
}

func TestTheFirstResultStandsAndTheOwnersCallerReadsIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := middleware.Memory()
		slow := newWorld(t)
		slow.run = func(context.Context, refundInput) (refund, error) {
			time.Sleep(5 * time.Second)
			return refund{ID: "re_second"}, nil
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			got := ask(t, slow.handler(mem, nil), at(1, 0, "issue_refund", r7))
			want(t, got, registry.Replayed, "re_first")
			if strings.Contains(got.Content, "re_second") {
				t.Errorf("the owner's caller reads %s", got.Content)
			}
		})
		synctest.Wait()
		mem.Die() // wrongly believed dead
		other := mem.Peer()
		h := newWorld(t).handler(other, nil)
		want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.OutcomeUnknown)
		row := only(t, other)
		if _, err := other.Change(t.Context(), middleware.Transition{
			Step: middleware.Happened, Operation: row.Operation, Token: row.Token, Attempt: row.Attempt, Result: `{"id":"re_first","cents":500}`, HasResult: true, By: "ann",
		}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if row = only(t, mem); !row.Late || row.State != middleware.Done || !strings.Contains(row.Result, "re_first") {
			t.Errorf("row is %s, late %v, result %s", row.State, row.Late, row.Result)
		}
		want(t, ask(t, h, at(3, 0, "issue_refund", r7)), registry.AlreadyDone, "re_first")
	})
}

func TestKilledWhileALookupIsAskedTheNextProcessAsksIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.lookup = func(context.Context, refundInput) (refund, error) {
			w.did("lookup")
			return refund{ID: "re_found"}, nil
		}
		settler, release := killed(t, w, true)
		stop := make(chan struct{})
		hangs := newWorld(t)
		hangs.lookup = func(context.Context, refundInput) (refund, error) {
			hangs.did("lookup")
			<-stop
			return refund{}, errTimeout
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = hangs.handler(settler, nil)(ctx, at(1, 0, "issue_refund", r7)) }()
		synctest.Wait()
		if row := only(t, settler); row.State != middleware.InDoubt || row.Settle == "" {
			t.Fatalf("row is %s, settled by %q, want one that Lookup is asked about", row.State, row.Settle)
		}
		settler.Die()
		cancel()
		h := w.handler(settler.Peer(), nil)
		want(t, ask(t, h, at(1, 0, "issue_refund", r7)), registry.Replayed, "re_found")
		want(t, ask(t, h, at(2, 0, "issue_refund", r7)), registry.AlreadyDone, "re_found")
		wantEffects(t, hangs, "lookup", 1)
		wantEffects(t, w, "lookup", 1)
		close(stop)
		release()
		if row := only(t, settler); row.State != middleware.Done || !strings.Contains(row.Result, "re_found") {
			t.Errorf("row is %s with %s once the dead have ended", row.State, row.Result)
		}
		wantEffects(t, w, "refund", 1)
	})
}

// unsettled calls f with an orphan and with an operation in doubt, for tools that are settled in each way.
func unsettled(t *testing.T, f func(t *testing.T, w *world, l *middleware.MemoryLedger)) {
	for _, way := range []string{"hold", "lookup", "rerun"} {
		for _, orphan := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, orphan: %v", way, orphan), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t)
					switch way {
					case "lookup":
						w.lookup = func(context.Context, refundInput) (refund, error) {
							w.did("lookup")
							return refund{}, errors.New("provider is down")
						}
					case "rerun":
						w.recovery = registry.Rerun
					}
					if orphan {
						l, release := killed(t, w, true)
						f(t, w, l)
						release()
						return
					}
					w.run = func(context.Context, refundInput) (refund, error) {
						w.did("refund")
						return refund{}, errTimeout
					}
					l := middleware.Memory()
					want(t, ask(t, w.handler(l, nil), at(1, 0, "issue_refund", r7)), registry.OutcomeUnknown)
					f(t, w, l)
				})
			})
		}
	}
}

func TestOtherArgumentsThanThoseOfWhatIsUnsettledAreAConflictAndChangeNothing(t *testing.T) {
	unsettled(t, func(t *testing.T, w *world, l *middleware.MemoryLedger) {
		before, effects, lookups := settled(only(t, l)), w.count("refund"), w.count("lookup")
		h := w.handler(l, nil)
		for turn := 2; turn <= 4; turn++ {
			want(t, ask(t, h, at(turn, 0, "issue_refund", `{"order_id":"R-7","cents":499}`)), registry.Conflict, `"fields":["cents"]`)
		}
		want(t, ask(t, h, at(2, 0, "issue_refund", `{"order_id":"R-7","cents":499}`)), registry.Conflict)
		if after := settled(only(t, l)); !reflect.DeepEqual(after, before) {
			t.Errorf("row was\n%+v\nand is\n%+v", before, after)
		}
		wantEffects(t, w, "refund", effects)
		wantEffects(t, w, "lookup", lookups)
	})
}

func TestACallIDIsKeptUpTo256BytesAndBeyondThatAsItsHash(t *testing.T) {
	w := newWorld(t)
	l := middleware.Memory()
	h := w.handler(l, nil)
	seen := map[string]bool{}
	for i, id := range []string{strings.Repeat("x", 256), strings.Repeat("x", 257), strings.Repeat("x", 256) + "y", strings.Repeat("é", 128), strings.Repeat("é", 129)} {
		c := at(i+1, 0, "add_note", `{"text":"x"}`)
		c.ID = id
		row := rowOf(t, l, ask(t, h, c).Operation)
		kept := row.Claimer.CallID
		if len(id) <= 256 && kept != id || len(id) > 256 && (kept == id || len(kept) > 256 || !strings.HasPrefix(kept, "sha256:")) {
			t.Errorf("an id of %d bytes is kept as %q", len(id), kept)
		}
		if seen[kept] {
			t.Errorf("two ids are kept as %q", kept)
		}
		seen[kept] = true
	}
}
