//go:build cgo

package sqlitestore_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

var (
	answer = []byte(strings.Repeat("a", 1000))
	output = journal.Output{Content: strings.Repeat("o", 200), Verdict: registry.Executed, Operation: "op_0123456789ab"}
)

// newTurn stores turns of one run, each with the output of the one call before.
func newTurn(b *testing.B, s *sqlitestore.Store) func() {
	r, n := begun(b, s, "run"), 0
	return func() {
		n++
		e := journal.Entry{Run: r.Run.ID, Token: r.Token, Turn: journal.Turn{Number: n, Answer: answer}}
		if n > 1 {
			e.Outputs = []journal.Output{output}
		}
		_, err := s.Append(b.Context(), e)
		check(b, err)
	}
}

// newTurnFloor is what a hand-written loop without any conditions does with the same data: one row, committed.
func newTurnFloor(b *testing.B) func() {
	db, err := sql.Open("sqlite3", "file:"+b.TempDir()+"/floor.db?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=1000&_mutex=no")
	check(b, err)
	b.Cleanup(func() { check(b, db.Close()) })
	db.SetMaxOpenConns(1)
	ctx, n := context.Background(), 0
	_, err = db.ExecContext(ctx, `CREATE TABLE turns (run TEXT NOT NULL, number INTEGER NOT NULL, answer BLOB NOT NULL, outputs TEXT NOT NULL,
		PRIMARY KEY (run, number)) STRICT`)
	check(b, err)
	insert, err := db.PrepareContext(ctx, `INSERT INTO turns (run, number, answer, outputs) VALUES (?, ?, ?, ?)`)
	check(b, err)
	b.Cleanup(func() { check(b, insert.Close()) })
	return func() {
		n++
		_, err := insert.ExecContext(ctx, "run", n, answer, output.Content)
		check(b, err)
	}
}

// BenchmarkJournalTurn takes turns between a turn and its floor.
func BenchmarkJournalTurn(b *testing.B) {
	s := open(b, b.TempDir()+"/once.db", nil)
	floor, turn := newTurnFloor(b), newTurn(b, s)
	var below, above []time.Duration
	for b.Loop() {
		began := time.Now()
		floor()
		middle := time.Now()
		turn()
		below, above = append(below, middle.Sub(began)), append(above, time.Since(middle))
	}
	slices.Sort(below)
	slices.Sort(above)
	i := len(below) / 2
	b.ReportMetric(float64(below[i].Nanoseconds()), "floor-p50-ns")
	b.ReportMetric(float64(above[i].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(above[i])/float64(below[i]), "p50-ratio")
}

// BenchmarkResume1000 takes a run of 1,000 turns whose owner has closed its store. The bar is 100 ms.
func BenchmarkResume1000(b *testing.B) {
	path := b.TempDir() + "/once.db"
	s := open(b, path, nil)
	turn := newTurn(b, s)
	for range 1000 {
		turn()
	}
	check(b, s.Close())
	s = open(b, path, nil)
	var times []time.Duration
	for b.Loop() {
		began := time.Now()
		r := begun(b, s, "run")
		times = append(times, time.Since(began))
		if len(r.Turns) != 1000 || len(r.Turns[998].Outputs) != 1 {
			b.Fatalf("%d turns", len(r.Turns))
		}
		check(b, s.Leave(b.Context(), journal.Leaving{Run: "run", Token: r.Token}))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "begin-p50-ms")
}
