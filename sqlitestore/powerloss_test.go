//go:build cgo && linux && amd64

package sqlitestore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

func TestPowerLossLosesNothingThatWasAcknowledged(t *testing.T) {
	log := recorded(t, "FULL", nil)
	losesNothing(t, log, powerCuts(t, log, powerSeeds(t)))
}

// Another process has made the folder of the lock files and has not synced it yet.
func TestPowerLossLosesNoLockWhereTwoMakeItsFolder(t *testing.T) {
	made := false
	log := recorded(t, "FULL", func(r *recorder) {
		r.then = func(synced string) {
			if _, ok := r.live["once.db-wal"]; synced == "." && ok {
				path := filepath.Join(r.dir, "once.db-owners")
				ok = os.Mkdir(path, 0o700) == nil
				r.makes(path, diskMadeDir)(ok)
				made = made || ok
			}
		}
	})
	if !made {
		t.Fatal("no other process has made the folder first")
	}
	losesNothing(t, log, powerCuts(t, log, 0)[:20])
}

func losesNothing(t *testing.T, log []diskEvent, all []powerCut) {
	t.Helper()
	t.Logf("%d events, %d crashes", len(log), len(all))
	for _, c := range all {
		for _, fault := range faultsAfter(t, log, c) {
			t.Errorf("%+v: %s", c, fault)
		}
		if t.Failed() {
			return
		}
	}
}

// What follows shows that the tests above would find what is missing.

func TestPowerLossIsSeenWhereCommitsAreNotSynced(t *testing.T) {
	for _, synchronous := range []string{"NORMAL", "OFF"} {
		t.Run(synchronous, func(t *testing.T) { losesSomething(t, recorded(t, synchronous, nil), "lost: ") })
	}
}

func TestPowerLossIsSeenWhereOneKindOfSyncIsLeftOut(t *testing.T) {
	log := recorded(t, "FULL", nil)
	for path, fault := range map[string]string{".": "lost: ", "once.db": "lost: ", "once.db-wal": "lost: ", "once.db-owners": "lock file"} {
		t.Run(path, func(t *testing.T) {
			without := slices.Clone(log)
			for i, e := range log {
				if e.kind == diskSynced && e.path == path {
					without[i].object = -1
				}
			}
			losesSomething(t, without, fault)
		})
	}
}

func losesSomething(t *testing.T, log []diskEvent, fault string) {
	t.Helper()
	all := powerCuts(t, log, 1)
	for i, c := range all {
		if found := strings.Join(faultsAfter(t, log, c), "\n"); strings.Contains(found, fault) {
			t.Logf("crash %d of %d, %+v: %s", i+1, len(all), c, found)
			return
		}
	}
	t.Errorf("%d crashes show nothing", len(all))
}

// powerSeeds is how often each kind of crash is tried.
func powerSeeds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("TOOLONCE_SEEDS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	check(t, err)
	return n
}

// recorded runs the process and gives what it did. prepare may be nil.
func recorded(t *testing.T, synchronous string, prepare func(*recorder)) []diskEvent {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	check(t, err)
	j := powerJob{Dir: dir, Synchronous: synchronous}
	check(t, os.Mkdir(j.db(), 0o700))
	text, err := json.Marshal(j)
	check(t, err)
	out, err := os.Create(filepath.Join(dir, "out"))
	check(t, err)
	defer func() { check(t, out.Close()) }()
	r := newRecorder(j.db(), j.notes())
	if prepare != nil {
		prepare(r)
	}
	err = r.run([]string{os.Args[0], "-test.run=^TestPowerLossWorker$", "-test.v", "-test.timeout=60s"}, append(os.Environ(), powerEnv+"="+string(text)), out)
	if errors.Is(err, errNotWatched) {
		if os.Getenv("TOOLONCE_NO_SKIP") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	if err != nil {
		text, rerr := os.ReadFile(out.Name())
		t.Fatalf("%v, %v\n%s", err, rerr, text)
	}
	isWhole(t, r)
	return r.log
}

// isWhole checks that nothing has escaped the recorder: all that it has written down makes the very files.
func isWhole(t *testing.T, r *recorder) {
	t.Helper()
	dir := t.TempDir()
	check(t, powerCut{point: len(r.log), style: "all"}.disk(r.log, dir))
	want, got := map[string]string{}, map[string]string{}
	for path, content := range files(t, r.dir) {
		want[strings.TrimPrefix(path, r.dir)] = content
	}
	for path, content := range files(t, dir) {
		got[strings.TrimPrefix(path, dir)] = content
	}
	for _, m := range []map[string]string{want, got} {
		m["/once.db-shm"] = "" // is written to as memory, and made anew by whoever opens the file first
	}
	if !maps.Equal(want, got) {
		t.Fatalf("the files are %q, the recorder knows %q, or other content", slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	}
}

// powerCuts are those to try: after each acknowledgement with nothing but what was synced, and in every style, seeds times,
// around some syncs, anywhere, and while the files are made.
func powerCuts(t *testing.T, log []diskEvent, seeds int) (all []powerCut) {
	t.Helper()
	var syncs []int
	first := len(log)
	for i, e := range log {
		if e.kind == diskSynced {
			syncs = append(syncs, i)
		}
		if e.kind == diskNoted {
			first = min(first, i)
		}
		if bytes.Contains(e.data, []byte(`"Done":true`)) && e.kind == diskNoted {
			all = append(all, powerCut{point: i + 1, style: "none"})
		}
	}
	t.Logf("%d seeds from 0", seeds)
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		for _, style := range cutStyles {
			for range 6 {
				i := syncs[r.IntN(len(syncs))]
				for _, point := range []int{i, i + 1, r.IntN(len(log) + 1), r.IntN(first + 1)} {
					all = append(all, powerCut{point: point, style: style, seed: seed})
				}
			}
		}
	}
	return all
}

// owed is what notes say by a crash.
type owed struct {
	told map[string]string   // what was acknowledged last of each key
	open map[int64]powerNote // what was asked for and not acknowledged
}

func (c powerCut) owed(t *testing.T, log []diskEvent) owed {
	t.Helper()
	x := owed{told: map[string]string{}, open: map[int64]powerNote{}}
	for _, e := range log[:c.point] {
		if e.kind != diskNoted {
			continue
		}
		var n powerNote
		check(t, json.Unmarshal(e.data, &n))
		for key, value := range n.Means {
			if n.Done {
				x.told[key] = value
			} else if _, ok := x.told[key]; !ok {
				x.told[key] = ""
			}
		}
		if delete(x.open, n.ID); !n.Done {
			x.open[n.ID] = n
		}
	}
	return x
}

func (x owed) asked(key, value string) bool {
	for _, n := range x.open {
		if v, ok := n.Means[key]; ok && v == value {
			return true
		}
	}
	return false
}

// faultsAfter is what is wrong after a crash, for a process that opens the store then.
func faultsAfter(t *testing.T, log []diskEvent, c powerCut) (found []string) {
	t.Helper()
	in := "/dev/shm" // where syncs cost nothing
	if _, err := os.Stat(in); err != nil {
		in = t.TempDir()
	}
	dir, err := os.MkdirTemp(in, "toolonce")
	check(t, err)
	defer func() { check(t, os.RemoveAll(dir)) }()
	check(t, c.disk(log, dir))
	s, err := sqlitestore.Open(dir+"/once.db", nil)
	if err != nil {
		return []string{err.Error()}
	}
	defer func() {
		if err := s.Close(); err != nil {
			found = append(found, err.Error())
		}
	}()
	got, err := s.Pragmas(0, "integrity_check")
	if diff := cmp.Diff([][]string{{"ok"}}, got); err != nil || diff != "" {
		return []string{fmt.Sprint("the file is damaged: ", err, diff)}
	}
	a := aftermath{T: t, s: s.Namespace("acme")}
	return a.compare(c.owed(t, log))
}

// aftermath looks at a store after a crash.
type aftermath struct {
	*testing.T
	s      *sqlitestore.Store
	faults []string
}

func (a *aftermath) fault(format string, args ...any) {
	a.faults = append(a.faults, fmt.Sprintf(format, args...))
}

func (a *aftermath) compare(x owed) []string {
	got, operations := map[string]string{}, 0
	for key, told := range x.told {
		value, err := a.read(key)
		if err != nil {
			a.fault("%s: %v", key, err)
			continue
		}
		if got[key] = value; value != told && !x.asked(key, value) {
			a.fault("lost: %s: acknowledged %q, now %q", key, told, value)
		}
		if strings.HasPrefix(key, "operation ") && value != "" {
			operations++
			if !strings.HasPrefix(value, string(middleware.Released)) {
				a.refusesClaim(key, value)
			}
		}
	}
	for _, n := range x.open {
		happened := 0
		for key, value := range n.Means {
			if got[key] == value {
				happened++
			}
		}
		if happened != 0 && happened != len(n.Means) {
			a.fault("half: %v", n.Means)
		}
	}
	if rows, err := a.s.List(a.Context(), nil, 0); err != nil || len(rows) != operations {
		a.fault("%d operations that were asked for, %d listed: %v", operations, len(rows), err)
	}
	if _, won, err := a.s.Claim(a.Context(), aClaim("new", 1)); !won || err != nil {
		a.fault("the store cannot be used: a fresh claim wins: %v, %v", won, err)
	}
	return a.faults
}

// read tells what a key stands for, "" for nothing.
func (a *aftermath) read(key string) (string, error) {
	words := strings.Split(key, " ")
	switch words[0] {
	case "operation":
		return a.operation(words[1])
	case "alias":
		turn, err := strconv.Atoi(words[2])
		check(a, err)
		row, _, err := a.s.Find(a.Context(), middleware.Query{Run: words[1], Turn: turn, Position: 9})
		return row.Identity, err
	case "run":
		r, err := a.s.Begin(a.Context(), aStart(words[1])) // its owner is gone
		return asRun(r.Turns, r.Finished), err
	default:
		return a.approval(words[1], words[2])
	}
}

func (a *aftermath) operation(identity string) (string, error) {
	row, ok, err := a.s.Find(a.Context(), middleware.Query{Identity: identity})
	if err != nil || !ok {
		return "", err
	}
	c := row.Claimer
	if at, _, err := a.s.Find(a.Context(), middleware.Query{Run: c.Run, Turn: c.Turn, Position: c.Position}); err != nil || at.Operation != row.Operation {
		return "", fmt.Errorf("its call means %q: %w", at.Operation, err)
	}
	if live := row.State == middleware.Running || row.State == middleware.InDoubt; live && !row.OwnerGone {
		return "", errors.New("its owner is not gone by evidence")
	}
	return asOperation(row.State, row.Token, row.Result, row.SettledBy), nil
}

func (a *aftermath) approval(run, position string) (string, error) {
	all, err := a.s.Approvals(a.Context())
	for _, p := range all {
		if p.Call.Run != run || strconv.Itoa(p.Call.Position) != position {
			continue
		}
		row, _, err := a.s.Find(a.Context(), middleware.Query{Operation: p.Operation})
		if p.Operation == "" {
			row = middleware.Row{}
		}
		return asApproval(p.State, p.By, row.Identity), err
	}
	return "", err
}

// refusesClaim claims an operation once more, as a process would that has not seen it.
func (a *aftermath) refusesClaim(key, value string) {
	c := aClaim("another", 1)
	c.Identity = strings.TrimPrefix(key, "operation ")
	if _, won, err := a.s.Claim(a.Context(), c); won || err != nil {
		a.fault("%s was %q and is claimed again: %v", key, value, err)
	}
}
