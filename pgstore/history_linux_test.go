package pgstore_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/toolonce/toolonce/internal/history"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
)

const historyEnv = "TOOLONCE_HISTORY_JOB"

// historyJob is what a process does that may be killed at any time.
type historyJob struct {
	DSN, Schema, Name string
	Views             []string
	Seed              uint64
}

// sharedClock is the same for all processes of a machine.
func sharedClock() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// TestHistoryWorker is the process of the test below.
func TestHistoryWorker(t *testing.T) {
	text := os.Getenv(historyEnv)
	if text == "" {
		return // not a worker
	}
	var j historyJob
	check(t, json.Unmarshal([]byte(text), &j))
	s, err := pgstore.Open(t.Context(), j.DSN, &pgstore.Options{Schema: j.Schema})
	check(t, err)
	var mu sync.Mutex
	log := func(o history.Op) {
		line, err := json.Marshal(o)
		check(t, err)
		mu.Lock()
		defer mu.Unlock()
		if _, err := fmt.Printf("op %s\n", line); err != nil {
			panic(err)
		}
	}
	var group sync.WaitGroup
	for i := range 2 {
		w := &history.Worker{
			Name: fmt.Sprintf("%s-%d", j.Name, i), Views: j.Views, Random: rand.New(rand.NewPCG(j.Seed, uint64(i))), Clock: sharedClock, Log: log,
		}
		check(t, w.Use(t.Context(), s, func(l middleware.Ledger, name string) middleware.Ledger {
			return l.(*pgstore.Store).Namespace(name)
		}))
		group.Go(func() { // few calls: they overlap for long here, and the search for an order grows with that
			if err := w.Do(t.Context(), 15); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	check(t, s.Close())
}

// run is what the process logs until its end, or until it is killed after so many lines, 0 for not.
func (j historyJob) run(ctx context.Context, die int) ([]history.Op, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHistoryWorker$")
	cmd.Env = append(os.Environ(), historyEnv+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	var ops []history.Op
	var other strings.Builder
	end := history.Op{ID: "end of " + j.Name} // killed or not: nobody lives any more
	lines := bufio.NewReader(out)
	for line := ""; err == nil; {
		line, err = lines.ReadString('\n')
		rest, is := strings.CutPrefix(line, "op ")
		if !is || err != nil { // what was cut off by the end was not said
			other.WriteString(line)
			continue
		}
		var o history.Op
		if err := json.Unmarshal([]byte(rest), &o); err != nil {
			return nil, err
		}
		ops = append(ops, o)
		if len(ops) <= die || die == 0 {
			end.Kill, end.From = o.By, max(o.From, o.To)
		}
		if len(ops) == die {
			if err := cmd.Process.Kill(); err != nil {
				return nil, err
			}
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	err = cmd.Wait()
	if err != nil && (die == 0 || len(ops) < die) {
		return nil, fmt.Errorf("worker: %w\n%s", err, other.String())
	}
	if end.To, err = j.overdue(ctx, end.Kill); err != nil {
		return nil, err
	}
	return append(ops, end), nil
}

// overdue is what some time would make of the heartbeat of an owner that has ended; it gives the time when it is so.
func (j historyJob) overdue(ctx context.Context, owner string) (int64, error) {
	c, err := pgx.Connect(ctx, j.DSN)
	if err != nil {
		return 0, err
	}
	_, err = c.Exec(ctx, "UPDATE "+quoted(j.Schema, "owners")+" SET beat = '-infinity', overdue = '0' WHERE name = $1", owner)
	return sharedClock(), errors.Join(err, c.Close(ctx))
}

func TestHistoriesOfKilledProcessesHaveAnOrder(t *testing.T) {
	first, count := history.Seeds(t, 10)
	t.Logf("seeds %d to %d", first, first+count-1)
	for seed := first; seed < first+count; seed++ {
		p := fresh(t)
		check(t, p.open(t).Close())
		var mu sync.Mutex
		var logged []history.Op
		var group sync.WaitGroup
		for i := range 3 {
			group.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				for life, die := range []int{1 + random.IntN(40), 0} { // the first is killed in the middle
					j := historyJob{p.dsn, p.schema, fmt.Sprintf("p%d-%d", i, life), []string{"acme"}, seed*10 + uint64(3*life+i)}
					ops, err := j.run(t.Context(), die)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					logged = append(logged, ops...)
					mu.Unlock()
				}
			})
		}
		group.Wait()
		if t.Failed() { // what is missing then explains everything
			return
		}
		ops := history.Merge(logged)
		cut := 0
		for _, o := range ops {
			if o.To == 0 {
				cut++
			}
		}
		t.Logf("seed %d: %d calls, of which %d never returned", seed, len(ops), cut)
		if err := history.Verify(ops); err != nil {
			t.Fatalf("seed %d (TOOLONCE_SEED=%d TOOLONCE_SEEDS=1): %v", seed, seed, err)
		}
	}
}
