//go:build cgo

package sqlitestore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// TestDiskThatFillsUnderManyCallersLosesNothingThatWasAcknowledged has some claims of a batch find room and others not.
func TestDiskThatFillsUnderManyCallersLosesNothingThatWasAcknowledged(t *testing.T) {
	inMemory(t)
	s := open(t, t.TempDir()+"/once.db", nil)
	check(t, s.Write("PRAGMA max_page_count = 60"))
	const callers = 64
	var mu sync.Mutex
	won, full := map[string]middleware.Claim{}, map[string]middleware.Claim{}
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			c := aClaim(fmt.Sprint("run-", i), 1)
			c.Input = make([]byte, 8<<10)
			row, ok, err := s.Claim(context.Background(), c)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case ok:
				won[row.Operation] = c
			case errors.Is(err, sqlitestore.ErrFull):
				full[c.Identity] = c
			default:
				t.Errorf("claiming says %v, want a claim or ErrFull", err)
			}
		})
	}
	group.Wait()
	if len(won) == 0 || len(full) == 0 {
		t.Fatalf("%d were claimed and for %d there was no room: want some of both", len(won), len(full))
	}
	rows, err := s.List(t.Context(), nil, 0)
	check(t, err)
	if len(rows) != len(won) {
		t.Errorf("%d rows, want the %d that were acknowledged", len(rows), len(won))
	}
	for operation, c := range won {
		if row := found(t, s, operation); row.Identity != c.Identity || row.Token != c.Token || row.State != middleware.Running {
			t.Errorf("%s is %s", operation, row.State)
		}
	}
	check(t, s.Write("PRAGMA max_page_count = 1000000"))
	for _, c := range full {
		claimed(t, s, c)
	}
}

func TestResultOfTenMebibytesIsKept(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	row := claimed(t, s, aClaim("run", 1))
	big := strings.Repeat("0123456789abcdef", 10<<20/16)
	_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: big, HasResult: true})
	check(t, err)
	if got := found(t, s, row.Operation); got.Result != big {
		t.Errorf("of %d bytes %d came back", len(big), len(got.Result))
	}
	r := begun(t, s, "run")
	_, err = s.Append(t.Context(), journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 1, Answer: []byte("{}")}})
	check(t, err)
	check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token, Turn: 1, Outputs: []journal.Output{{Content: big}}}))
	if r = begun(t, s, "run"); r.Turns[0].Outputs[0].Content != big {
		t.Error("an output of that size is not what it was")
	}
}

// TestClockThatStepsLosesNoOperationAndFreesNone sets the clock back and forth between the steps of operations.
func TestClockThatStepsLosesNoOperationAndFreesNone(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", nil)
	now, want := time.Now(), 0
	var rows []middleware.Row
	for i, step := range []time.Duration{0, -time.Hour, -48 * time.Hour, 72 * time.Hour, -24 * time.Hour, 365 * 24 * time.Hour, -366 * 24 * time.Hour} {
		now = now.Add(step)
		s.SetClock(func() time.Time { return now })
		check(t, s.Raise())
		rows = append(rows, claimed(t, s, aClaim("run", i+1)))
		want++
		if open := openOnes(t, s, middleware.Running); len(open) != want {
			t.Errorf("after a step of %v %d are listed as running, want %d", step, len(open), want)
		}
	}
	for i, row := range rows {
		if again := aClaim("other", i+1); i%2 == 0 { // what runs is nobody else's, whatever the clock says
			again.Identity = row.Identity
			if got, won, err := s.Claim(t.Context(), again); err != nil || won || got.Operation != row.Operation {
				t.Errorf("claimed over %s: %v %v", row.Operation, won, err)
			}
		}
		_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: "r", HasResult: true})
		check(t, err)
		if got := found(t, s, row.Operation); got.State != middleware.Done || got.Expired() {
			t.Errorf("%s is %s, expired %v", row.Operation, got.State, got.Expired())
		}
	}
}
