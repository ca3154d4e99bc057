package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

const (
	chatAnswer = `{"choices":[{"message":{"content":"I see","tool_calls":[
		{"id":"call_1","type":"function","function":{"name":"pay","arguments":"{\"to\":\"order-1001\"}"}},
		{"id":"call_2","type":"custom","custom":{"name":"sh","input":"ls order-1001"}}]}}]}`
	responseAnswer = `{"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"order-1001 is paid"}]},
		{"type":"function_call","call_id":"call_3","name":"pay","arguments":"{}"}]}`
)

// ran is a store with a run of each API, one of them finished, and a run of another tenant.
func ran(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "once.db")}
	s, err := sqlitestore.Open(f.path, nil)
	fatal(t, err)
	begin := func(namespace, run, api string) journal.Record {
		r, err := s.Namespace(namespace).Begin(t.Context(), journal.Start{Run: registry.Run{ID: run, Conversation: "chat-7"}, API: api})
		fatal(t, err)
		return r
	}
	add := func(r journal.Record, turn int, answer string, final bool, outputs ...journal.Output) {
		_, err := s.Append(t.Context(), journal.Entry{Run: r.Run.ID, Token: r.Token, Turn: journal.Turn{Number: turn, Answer: []byte(answer)}, Outputs: outputs, Final: final})
		fatal(t, err)
	}
	r := begin("", "first\x1b[2J", "chat")
	add(r, 1, chatAnswer, false)
	add(r, 2, `{"choices":[{"message":{"content":"done\nand paid"}}]}`, true,
		journal.Output{Position: 0, Content: `{"id":"order-1001"}`, Verdict: registry.Executed, Operation: "op_1"},
		journal.Output{Position: 1, Content: "no", Verdict: registry.Refused})
	add(begin("", "second", "responses"), 1, responseAnswer, false)
	begin("acme", "third", "chat")
	fatal(t, s.Close())
	return f
}

func TestRunsAreListed(t *testing.T) {
	f := ran(t)
	out := f.want(0, "the store has 1 more namespace: -all-namespaces", "runs")
	for _, said := range []string{"second\tchat-7\tresponses\t1\tleft\t", `first\u001b[2J` + "\tchat-7\tchat\t2\tfinished\t"} {
		if !strings.Contains(out, said) {
			t.Errorf("it lacks %q:\n%s", said, out)
		}
	}
	if out = f.want(0, "second", "runs", "-unfinished"); strings.Contains(out, "first") {
		t.Error(out)
	}
	f.want(0, "no runs", "runs", "-conversation", "none")
	f.want(0, "acme\tthird", "runs", "-all-namespaces")
	f.want(0, `{"run":"third","namespace":"acme","conversation":"chat-7","api":"chat"`, "runs", "-namespace", "acme", "-json")
}

func TestARunIsShownAsAConversationAndItsTextsOnlyIfAskedFor(t *testing.T) {
	f := ran(t)
	out := f.want(0, "", "run", "first\x1b[2J")
	_, rest, _ := strings.Cut(out, "\n")
	if d := cmp.Diff(`conversation chat-7

turn 1
  says 5 bytes
  1.0 pay: executed op_1 (19 bytes of arguments, told 19 bytes)
  1.1 sh: refused (13 bytes of arguments, told 2 bytes)

turn 2
  says 13 bytes
`, rest); d != "" {
		t.Error(d)
	}
	_, rest, _ = strings.Cut(f.want(0, "", "run", "first\x1b[2J", "--show-data"), "\n")
	if d := cmp.Diff(`conversation chat-7

turn 1
  says: I see
  1.0 pay: executed op_1
    arguments: {"to":"order-1001"}
    told: {"id":"order-1001"}
  1.1 sh: refused
    arguments: ls order-1001
    told: no

turn 2
  says: done\u000aand paid
`, rest); d != "" {
		t.Error(d)
	}
	f.want(0, "1.0 pay: not answered (2 bytes of arguments, told 0 bytes)", "run", "second")
	f.want(0, "says: order-1001 is paid", "run", "second", "--show-data")
	if out := f.want(0, "", "run", "second", "-json"); strings.Contains(out, secret) {
		t.Error(out)
	}
	f.want(1, "there is no run", "run", "third") // another tenant's
	f.want(0, "begun", "run", "third", "-namespace", "acme")
}
