package history_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolonce/toolonce/internal/history"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
)

func memory(*testing.T) ledgertest.System {
	l := middleware.Memory()
	return ledgertest.System{
		Open: func() middleware.Ledger { return l.Peer() },
		Kill: func(l middleware.Ledger) { l.(*middleware.MemoryLedger).Die() },
		Namespace: func(l middleware.Ledger, name string) middleware.Ledger {
			return l.(*middleware.MemoryLedger).Namespace(name)
		},
	}
}

func TestHistoriesOfTheMemoryLedgerHaveAnOrder(t *testing.T) { history.Check(t, 200, memory) }

// caught reports whether one of a few histories of a broken ledger has no order.
func caught(t *testing.T, open func(*testing.T) ledgertest.System) bool {
	t.Helper()
	for seed := range uint64(40) {
		ops, err := history.Record(t, open(t), seed+1)
		if err != nil {
			t.Fatal(err)
		}
		if err := history.Verify(ops); err != nil {
			text, _, _ := strings.Cut(err.Error(), ":\n")
			t.Logf("seed %d: %s", seed+1, text)
			return true
		}
	}
	return false
}

func TestHistoriesOfBrokenLedgersHaveNone(t *testing.T) {
	for _, b := range ledgertest.Broken() {
		of, _, _ := strings.Cut(b.Fails, "/")
		if strings.HasSuffix(of, "approval") || slices.Contains([]string{"repeat", "prune", "acts", "forget"}, of) {
			continue // the model knows none of these
		}
		t.Run(b.Name, func(t *testing.T) {
			if !caught(t, func(t *testing.T) ledgertest.System { return b.Wrap(memory(t)) }) {
				t.Error("no history tells that this ledger is broken")
			}
		})
	}
}

// hasty is a ledger with a fault that shows only where several work at once.
type hasty struct {
	middleware.Ledger
	last *sync.Map // what this process has read, by operation; nil: nothing is kept
}

// Find answers from what the process has read before, once in a while.
func (h hasty) Find(ctx context.Context, q middleware.Query) (middleware.Row, bool, error) {
	if h.last != nil {
		if row, ok := h.last.Load(q.Operation); ok {
			return row.(middleware.Row), true, nil
		}
	}
	row, ok, err := h.Ledger.Find(ctx, q)
	if h.last != nil && ok {
		h.last.Store(row.Operation, row)
	}
	return row, ok, err
}

// Claim and Change forget what was read; without a cache, they read the row back only after their transaction.
func (h hasty) Claim(ctx context.Context, c middleware.Claim) (middleware.Row, bool, error) {
	row, won, err := h.Ledger.Claim(ctx, c)
	return h.reread(ctx, row), won, err
}

func (h hasty) Change(ctx context.Context, t middleware.Transition) (middleware.Row, error) {
	row, err := h.Ledger.Change(ctx, t)
	return h.reread(ctx, row), err
}

func (h hasty) reread(ctx context.Context, row middleware.Row) middleware.Row {
	if h.last != nil {
		h.last.Clear()
		return row
	}
	for range 10 {
		runtime.Gosched()
	}
	if now, ok, err := h.Ledger.Find(ctx, middleware.Query{Operation: row.Operation}); ok && err == nil {
		return now
	}
	return row
}

// TestHistoriesTellFaultsThatOnlyShowAtOnce has ledgers that keep every promise as long as one process calls at a time.
func TestHistoriesTellFaultsThatOnlyShowAtOnce(t *testing.T) {
	for _, cached := range []bool{false, true} {
		t.Run(fmt.Sprintf("cached reads: %v", cached), func(t *testing.T) {
			ok := caught(t, func(t *testing.T) ledgertest.System {
				sound := memory(t)
				wrap := func(l middleware.Ledger) middleware.Ledger {
					if cached {
						return hasty{l, &sync.Map{}}
					}
					return hasty{l, nil}
				}
				return ledgertest.System{
					Open: func() middleware.Ledger { return wrap(sound.Open()) },
					Kill: func(l middleware.Ledger) { sound.Kill(l.(hasty).Ledger) },
					Namespace: func(l middleware.Ledger, name string) middleware.Ledger {
						return wrap(sound.Namespace(l.(hasty).Ledger, name))
					},
				}
			})
			if !ok {
				t.Error("no history tells that this ledger is hasty")
			}
		})
	}
}
