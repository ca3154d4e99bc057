package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/toolonce/toolonce/examples/refund-bot/provider"
)

var kinds = []provider.Kind{provider.Keyed, provider.Lookup, provider.Plain}

// jsonOf reads the one line of -json.
func jsonOf(t *testing.T, r ran) (rep report) {
	t.Helper()
	if strings.Count(r.out, "\n") != 1 || !strings.HasSuffix(r.out, "}\n") {
		t.Fatalf("not one line: %q", r.out)
	}
	if err := json.Unmarshal([]byte(r.out), &rep); err != nil {
		t.Fatal(err)
	}
	return rep
}

// TestEveryFailureRefundsOnceWithTheGuard plays each failure without and with the guard, with each kind of provider, in
// each way to ask a model.
func TestEveryFailureRefundsOnceWithTheGuard(t *testing.T) {
	for i, f := range forms { // the last form with the first kind again
		kind := kinds[i%len(kinds)]
		t.Run(string(kind)+", "+f.String(), func(t *testing.T) {
			t.Parallel()
			args := append(f.args(), "-json", "-provider", string(kind))
			got := jsonOf(t, runIn(t, t.TempDir(), args...).ok(t))
			want := report{
				Failures: []failure{
					{lateAnswer, counts{1, 2, 1}},
					{twice, counts{1, 2, 1}},
					{askedAgain, counts{1, 2, 1}},
					{killed, counts{1, 2, 1}},
					{secondOrder, counts{1, 1, 1}},
				},
				Wanted: 5, Unguarded: 9, Guarded: 5, Kills: 2, Notes: &counts{2, 2, 2}, Provider: kind, API: f.api, Stream: f.stream, Seed: 1,
			}
			opts := cmp.Options{
				cmp.AllowUnexported(failure{}), cmpopts.IgnoreUnexported(report{}), cmpopts.IgnoreFields(report{}, "InDoubt"),
			}
			if d := cmp.Diff(want, got, opts); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			var doubts []string
			for _, d := range got.InDoubt {
				doubts = append(doubts, d.Name)
			}
			var wantDoubts []string
			if kind == provider.Plain {
				wantDoubts = []string{lateAnswer, killed}
			}
			if d := cmp.Diff(wantDoubts, doubts); d != "" {
				t.Errorf("in doubt (-want +got):\n%s", d)
			}
		})
	}
}

func TestOnlyPlaysOneFailure(t *testing.T) {
	for _, name := range sceneNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rep := jsonOf(t, runIn(t, t.TempDir(), "-json", "-only", name).ok(t))
			var got []string
			for _, f := range rep.Failures {
				got = append(got, f.Name)
			}
			if rep.Notes != nil {
				got = append(got, notes)
			}
			if d := cmp.Diff([]string{name}, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if wantKills := map[bool]int{name == killed: 2}[true]; rep.Kills != wantKills {
				t.Errorf("%d kills, want %d", rep.Kills, wantKills)
			}
		})
	}
}

func TestTheStorySaysWhoDidWhat(t *testing.T) {
	t.Parallel()
	runIn(t, t.TempDir(), "-only", killed, "-provider", "keyed").ok(t).wantLines(t,
		"The model (chat) is scripted",
		"=== Pass 1 of 2: a bare loop (bare.go), without middleware.Once ===",
		"  user      \"Please refund ",
		"  model     calls issue_refund(order ",
		"  provider  MOVES ",
		"  worker    is killed (SIGKILL, process ",
		"  worker    is started again, with the same run id",
		"  model     calls issue_refund(order ",
		"  provider  MOVES ",
		"  => 2 refunds, wanted 1",
		"=== Pass 2 of 2: the same failures and agent.New (worker.go): a loop that remembers, with middleware.Once ===",
		"  provider  MOVES ",
		"  worker    is killed",
		"  worker    is started again",
		"  provider  knows this key: answers re_",
		"  tool      issue_refund answers {\"id\":\"re_",
		"  => 1 refund, wanted 1",
		"=== The provider's own file, counted ===",
		"wanted   without  with Once",
		"killed                 1         2          1   <- without: +1",
	)
}

func TestTheGuardAnswersARepeat(t *testing.T) {
	t.Parallel()
	r := runIn(t, t.TempDir(), "-only", askedAgain).ok(t)
	r.wantLines(t, "=== Pass 2", "  guard     issue_refund is not run again: already_done {\"id\":\"re_", "  => 1 refund, wanted 1")
}

var process = regexp.MustCompile(`process \d+`)

func TestASeedMakesTheSameStory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tell := func(seed string) string {
		out := runIn(t, dir, "-only", killed, "-seed", seed).ok(t).out
		return process.ReplaceAllString(out, "process N")
	}
	first := tell("7")
	if d := cmp.Diff(first, tell("7")); d != "" {
		t.Errorf("two stories of one seed (-first +second):\n%s", d)
	}
	if first == tell("8") {
		t.Error("two seeds, one story")
	}
}

func TestEveryOrderOfASeedIsAnother(t *testing.T) {
	for seed := range uint64(200) {
		seen := map[string]bool{}
		for _, s := range newScenes(seed, "") {
			if seen[s.order] || s.cents < 1 || orderIn(s.message()) != s.order {
				t.Fatalf("seed %d: %+v", seed, s)
			}
			seen[s.order] = true
		}
	}
}

func TestKeepLeavesTheFilesBehind(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "here")
	r := runIn(t, t.TempDir(), "-keep", dir, "-provider", "plain").ok(t)
	r.wantLines(t, "Kept in "+dir)
	for name, want := range map[string]int{providerFile: 5, unguardedPay: 9} {
		n := 0
		for _, ids := range moved(t, filepath.Join(dir, name)).Refunds {
			n += len(ids)
		}
		if n != want {
			t.Errorf("%s: %d refunds, want %d", name, n, want)
		}
	}
	if got := files(t, dir); !strings.Contains(got, onceFile) {
		t.Errorf("left behind: %s", got)
	}
	again := runIn(t, t.TempDir(), "-keep", dir)
	if want := "refund-bot: -keep " + dir + ": it has a once.db already: name another directory\n"; again.err != want || again.code != exitFailed {
		t.Errorf("the second time: %d %s", again.code, again.err)
	}
}

func TestNothingIsLeftBehindWithoutKeep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	finish(t, program(t, dir, []string{"TMPDIR=" + dir}, "-only", killed)).ok(t)
	if got := files(t, dir); got != "" {
		t.Errorf("left behind: %s", got)
	}
}

// TestThePrintedCommandNamesWhatIsInDoubt settles what a kill has left, with the values of the printed command.
func TestThePrintedCommandNamesWhatIsInDoubt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := runIn(t, t.TempDir(), "-keep", dir, "-provider", "plain", "-only", killed).ok(t)
	r.wantLines(t, "guard     issue_refund is held: outcome_unknown, a person must check", "A person must check; I will not try again.", "  => 1 refund, wanted 1")
	command := regexp.MustCompile(`(?m)^  go run \./cmd/toolonce resolve (\S+) --happened --by (\S+) --why '(the provider has re_\d+_1)' -store sqlite:(\S+)$`)
	m := command.FindStringSubmatch(r.out)
	if m == nil {
		t.Fatalf("no command in:\n%s", r.out)
	}
	if want := filepath.Join(dir, onceFile); m[4] != want {
		t.Errorf("the file is %s, want %s", m[4], want)
	}
	happened(t, m[4], m[1], m[2], m[3])
}

func TestWithoutKeepItSaysThatTheFilesGo(t *testing.T) {
	t.Parallel()
	r := runIn(t, t.TempDir(), "-provider", "plain", "-only", lateAnswer).ok(t)
	r.wantLines(t, "# late-answer, order ", "resolve ", "(The files of this run are removed now: add -keep DIR")
}

func TestAWrongLineIsNamed(t *testing.T) {
	scenes := newScenes(1, "")
	once, two := provider.Tally{Refunds: map[string][]string{}, Notes: map[string]int{}}, provider.Tally{Refunds: map[string][]string{}}
	for _, s := range scenes {
		once.Refunds[s.order], once.Notes[s.order] = []string{"re_1"}, 2
		two.Refunds[s.order] = []string{"re_1", "re_2"}
	}
	if got := newReport(scenes, two, once).wrong(); got != nil {
		t.Errorf("wrong: %v", got)
	}
	delete(once.Refunds, scenes[1].order)
	once.Refunds[scenes[3].order] = []string{"re_1", "re_2"}
	once.Notes[scenes[5].order] = 1
	r := newReport(scenes, two, once)
	if d := cmp.Diff([]string{twice, killed, notes}, r.wrong()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !strings.Contains(r.String(), "killed                 1         2          2   <- without: +1   <- WRONG") {
		t.Errorf("no such line in:\n%s", r)
	}
}

// TestAWorkerEndsWithItsParent closes a worker's standard input, as the death of its parent does, while it waits for the
// model.
func TestAWorkerEndsWithItsParent(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}), make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	}))
	defer model.Close()
	defer close(release)
	dir := t.TempDir()
	w := program(t, dir, []string{childEnv + "=1"})
	in, err := w.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(in).Encode(job{Run: "r", Message: "hello", DB: filepath.Join(dir, onceFile), BaseURL: model.URL, APIKey: "none", Provider: provider.Plain}); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err == nil || w.ProcessState.ExitCode() != exitFailed {
		t.Errorf("the worker ended with %v", err)
	}
}

func TestInterruptedItSaysSoAndTidiesUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := program(t, dir, []string{"TMPDIR=" + dir}, "-only", lateAnswer)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "is slow to answer") { // in the first pass: much is still to come
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || stderr.String() != "refund-bot: interrupted\n" || cmd.ProcessState.ExitCode() != exitFailed {
		t.Errorf("%v: %s", err, stderr.String())
	}
	if got := files(t, dir); got != "" {
		t.Errorf("left behind: %s", got)
	}
}
