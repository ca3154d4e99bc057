package history

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

	"golang.org/x/sys/unix"

	"github.com/toolonce/toolonce/middleware"
)

// Processes is what the test of a store gives for histories of processes that are killed.
type Processes struct {
	// New makes a store, and says where it is.
	New func(t *testing.T) (where string)
	// Open opens it as a new process does.
	Open func(ctx context.Context, where string) (l middleware.Ledger, end func() error, err error)
	// Namespace is a ledger seen by one tenant.
	Namespace func(l middleware.Ledger, name string) middleware.Ledger
	// Gone has others see that an owner has died; nil where they do at once.
	Gone func(ctx context.Context, where, owner string) error
	// Calls is how many each of two workers of a process makes, and Lines after how many logged ones it is killed at most.
	Calls, Lines int
}

const processEnv = "TOOLONCE_HISTORY_JOB"

// process is what one does that may be killed at any time.
type process struct {
	Where, Name string
	Seed        uint64

	kit Processes
}

// sharedClock is the same for all processes of a machine.
func sharedClock() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// Work is the body of TestHistoryWorker, which each package that uses Check must have: a process is told by it what to do.
func (k Processes) Work(t *testing.T) {
	text := os.Getenv(processEnv)
	if text == "" {
		return // not a worker
	}
	var p process
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	l, end, err := k.Open(t.Context(), p.Where)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	log := func(o Op) {
		line, err := json.Marshal(o)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			_, err = fmt.Printf("op %s\n", line)
		}
		if err != nil {
			panic(err)
		}
	}
	var group sync.WaitGroup
	for i := range 2 {
		w := &Worker{
			Name: fmt.Sprintf("%s-%d", p.Name, i), Views: []string{"acme"}, Random: rand.New(rand.NewPCG(p.Seed, uint64(i))), Clock: sharedClock, Log: log,
		}
		if err := w.Use(t.Context(), l, k.Namespace); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			if err := w.Do(t.Context(), k.Calls); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if err := end(); err != nil {
		t.Error(err)
	}
}

// run is what the process logs until its end, or until it is killed after so many lines, 0 for not.
func (p process) run(ctx context.Context, die int) ([]Op, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHistoryWorker$")
	cmd.Env = append(os.Environ(), processEnv+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	var ops []Op
	var other strings.Builder
	end := Op{ID: "end of " + p.Name} // killed or not: nobody lives any more
	lines := bufio.NewReader(out)
	for line := ""; err == nil; {
		line, err = lines.ReadString('\n')
		rest, is := strings.CutPrefix(line, "op ")
		if !is || err != nil { // what was cut off by the end was not said
			other.WriteString(line)
			continue
		}
		var o Op
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
	if p.kit.Gone != nil {
		if err := p.kit.Gone(ctx, p.Where, end.Kill); err != nil {
			return nil, err
		}
	}
	end.To = sharedClock()
	return append(ops, end), nil
}

// Check has three processes at a time work on a store, each killed and started again, seed by seed, and checks each history.
func (k Processes) Check(t *testing.T, n int) {
	t.Helper()
	first, count := Seeds(t, n)
	t.Logf("seeds %d to %d", first, first+count-1)
	for seed := first; seed < first+count; seed++ {
		ops := k.record(t, seed)
		if t.Failed() { // what is missing then explains everything
			return
		}
		cut := 0
		for _, o := range ops {
			if o.To == 0 {
				cut++
			}
		}
		t.Logf("seed %d: %d calls, of which %d never returned", seed, len(ops), cut)
		if err := Verify(ops); err != nil {
			t.Fatalf("seed %d (TOOLONCE_SEED=%d TOOLONCE_SEEDS=1): %v", seed, seed, err)
		}
	}
}

func (k Processes) record(t *testing.T, seed uint64) []Op {
	where := k.New(t)
	var mu sync.Mutex
	var logged []Op
	var group sync.WaitGroup
	for i := range 3 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for life, die := range []int{1 + random.IntN(k.Lines), 0} { // the first is killed in the middle
				p := process{where, fmt.Sprintf("p%d-%d", i, life), seed*10 + uint64(3*life+i), k}
				ops, err := p.run(t.Context(), die)
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
	return Merge(logged)
}
