package sqlitestore_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func fresh(b []byte) {
	_, _ = rand.Read(b) // never fails
}

func freshHash() string {
	b := make([]byte, 32)
	fresh(b)
	return hex.EncodeToString(b)
}

// newGuarded is what the ledger adds to a call: two commits, with every condition.
func newGuarded(b *testing.B) func() {
	s, err := sqlitestore.Open(b.TempDir()+"/once.db", nil)
	check(b, err)
	b.Cleanup(func() { check(b, s.Close()) })
	next := claims()
	return func() {
		row, won, err := s.Claim(b.Context(), next())
		check(b, err)
		if !won {
			b.Fatal("lost")
		}
		_, err = s.Change(b.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: strings.Repeat("r", 200), HasResult: true})
		check(b, err)
	}
}

func BenchmarkClaimComplete(b *testing.B) { measure(b, newGuarded(b)) }

// measure reports the median too: a noisy neighbour moves it less than the mean.
func measure(b *testing.B, f func()) {
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		f()
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "p50-ns")
}

// BenchmarkHit is a call that is answered from what is done.
func BenchmarkHit(b *testing.B) {
	s, err := sqlitestore.Open(b.TempDir()+"/once.db", nil)
	check(b, err)
	b.Cleanup(func() { check(b, s.Close()) })
	c := aClaim("run", 1)
	row, _, err := s.Claim(b.Context(), c)
	check(b, err)
	_, err = s.Change(b.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Result: strings.Repeat("r", 200), HasResult: true})
	check(b, err)
	for b.Loop() {
		if _, ok, err := s.Find(context.Background(), middleware.Query{Run: "run", Turn: 2, Identity: c.Identity}); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}

// claims gives fresh claims, four turns a run.
func claims() func() middleware.Claim {
	run, turn := rand.Text(), 0
	return func() middleware.Claim {
		if turn++; turn > 4 {
			run, turn = rand.Text(), 1
		}
		return aClaim(run, turn)
	}
}

func aClaim(run string, turn int) middleware.Claim {
	return middleware.Claim{
		Identity: freshHash(), Conversation: "conversation-1", Input: make([]byte, 100), Token: rand.Text(), Deadline: 150 * time.Second,
		KeyWindow: 24 * time.Hour,
		Call:      middleware.Alias{Run: run, Turn: turn, CallID: "call_" + rand.Text()[:24], Tool: "issue_refund", Arguments: freshHash(), Fingerprint: freshHash()},
	}
}

// BenchmarkOverFloor takes turns between the two, so that a noisy machine bears on both alike.
func BenchmarkOverFloor(b *testing.B) {
	floor, guarded := newFloor(b), newGuarded(b)
	var below, above []time.Duration
	for b.Loop() {
		began := time.Now()
		floor()
		middle := time.Now()
		guarded()
		below, above = append(below, middle.Sub(began)), append(above, time.Since(middle))
	}
	slices.Sort(below)
	slices.Sort(above)
	for _, q := range []int{10, 25, 50} {
		i := len(below) * q / 100
		b.ReportMetric(float64(above[i])/float64(below[i]), fmt.Sprintf("p%d-ratio", q))
	}
	b.ReportMetric(float64(below[len(below)/2].Nanoseconds()), "floor-p50-ns")
	b.ReportMetric(float64(above[len(above)/2].Nanoseconds()), "p50-ns")
}
