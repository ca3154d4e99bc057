//go:build cgo

package agent_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
)

// beginner is a store that keeps what a run is begun with.
type beginner struct {
	agent.Store
	start journal.Start
}

func (b *beginner) Begin(ctx context.Context, s journal.Start) (journal.Record, error) {
	b.start = s
	return b.Store.Begin(ctx, s)
}

func median(ds []time.Duration) time.Duration {
	slices.Sort(ds)
	return ds[len(ds)/2]
}

// BenchmarkResume1000 asks a finished run of 1,000 turns for its answer, and takes turns with its floor: reading the run
// from the store. The bar is 100 ms.
func BenchmarkResume1000(b *testing.B) {
	const turns = 1000
	var bk bank
	s := &beginner{Store: openStore(b, b.TempDir()+"/once.db")}
	m := talker{turns: turns, tool: "look_up", arguments: `{"order_id":"%d"}`}
	l := agent.New(m.client(), bk.tools(), s, &agent.Options{MaxTurns: turns})
	params := openai.ChatCompletionNewParams{Model: "gpt-4.1-mini", Messages: messages{openai.UserMessage(request)}}
	if _, err := l.Chat(b.Context(), run, params); err != nil {
		b.Fatal(err)
	}
	var floor, own []time.Duration
	for b.Loop() {
		began := time.Now()
		rec, err := s.Begin(b.Context(), s.start)
		middle := time.Now()
		if err != nil || !rec.Finished || len(rec.Turns) != turns {
			b.Fatalf("%d turns, %v", len(rec.Turns), err)
		}
		r, err := l.Chat(b.Context(), run, params)
		own = append(own, time.Since(middle))
		floor = append(floor, middle.Sub(began))
		if err != nil || len(r.Report.Calls) != turns-1 || !r.Report.Resumed {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(median(own).Microseconds())/1000, "p50-ms/op")
	b.ReportMetric(float64(median(floor).Microseconds())/1000, "begin-p50-ms")
}

// storedFloor commits as often as a run does, one small row each, without any conditions.
func storedFloor(b *testing.B, times int) func() {
	b.Helper()
	db, err := sql.Open("sqlite3", "file:"+b.TempDir()+"/floor.db?_journal_mode=WAL&_synchronous=FULL&_mutex=no")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	ctx := context.Background()
	if _, err := db.ExecContext(ctx, `CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT`); err != nil {
		b.Fatal(err)
	}
	insert, err := db.PrepareContext(ctx, `INSERT INTO rows (text) VALUES (?)`)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = insert.Close() })
	return func() {
		for range times {
			if _, err := insert.ExecContext(ctx, request); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkLoopStored runs a loop with a guarded call in each turn but the last, and takes turns with its floor: as many
// commits of a small row.
func BenchmarkLoopStored(b *testing.B) {
	var bk bank
	path := b.TempDir() + "/once.db"
	s := openStore(b, path)
	m := talker{turns: benchTurns, tool: "issue_refund", arguments: `{"order_id":"%d","cents":500}`}
	params := openai.ChatCompletionNewParams{Model: "gpt-4.1-mini", Messages: messages{openai.UserMessage(request)}}
	client, tools := m.client(), bk.tools()
	attempt := func(tenant string) {
		if _, err := agent.New(client, tools, s.Namespace(tenant), nil).Chat(b.Context(), run, params); err != nil {
			b.Fatal(err)
		}
	}
	counted := commits(b, path)
	attempt("counted")
	counted = commits(b, path) - counted
	below := storedFloor(b, counted)
	var floor, own []time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		below()
		middle := time.Now()
		attempt(fmt.Sprint(i))
		own = append(own, time.Since(middle))
		floor = append(floor, middle.Sub(began))
	}
	perTurn := func(ds []time.Duration) float64 { return float64(median(ds).Nanoseconds()) / 1000 / benchTurns }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(counted), "commits/run")
	b.ReportMetric(perTurn(own), "p50-us/turn")
	b.ReportMetric(perTurn(floor), "floor-p50-us/turn")
}
