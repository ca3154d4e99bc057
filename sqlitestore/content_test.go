//go:build cgo

package sqlitestore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/agent/journal/journaltest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/middleware/ledgertest"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/seal"
	"github.com/toolonce/toolonce/sqlitestore"
)

// sealing are the options of a store that seals with a key made of one byte.
func sealing(tb testing.TB, b byte) *sqlitestore.Options {
	tb.Helper()
	c, err := seal.AESGCM(seal.Keys{Current: "k", ByID: map[string][]byte{"k": bytes.Repeat([]byte{b}, 32)}})
	check(tb, err)
	return &sqlitestore.Options{Codec: c}
}

func TestStoreThatSealsKeepsTheContracts(t *testing.T) {
	inMemory(t)
	ledgertest.Run(t, func(t *testing.T) ledgertest.System {
		path, sys := t.TempDir()+"/once.db", system(t)
		sys.Open = func() middleware.Ledger { return open(t, path, sealing(t, 1)) }
		return sys
	})
	journaltest.Run(t, func(t *testing.T) journaltest.System {
		path, sys := t.TempDir()+"/once.db", runs(t)
		sys.Open = func() journal.Journal { return open(t, path, sealing(t, 1)) }
		return sys
	})
}

type card struct {
	Order string `json:"order" once:"key"`
	Note  string `json:"note"`
}

// paying is a chain of one tool on a store, and how often the tool has run.
func paying(s *sqlitestore.Store) (registry.Handler, *int) {
	ran, tools := new(int), registry.New()
	registry.Add(tools, registry.Tool[card, string]{
		Name: "pay", Effect: registry.NonIdempotentWrite, ShareResult: true,
		Run: func(context.Context, card) (string, error) { *ran++; return "result-4242", nil },
	})
	return tools.Handler(middleware.Once(s, nil)), ran
}

func payCall(run string) *registry.Call {
	return &registry.Call{Run: registry.Run{ID: run}, Turn: 1, ID: "call_1", Tool: "pay", Arguments: `{"order":"1001","note":"note-4242"}`}
}

// TestSealedContentIsInNoFileAndOpensForItsKeyAlone also has what happens without the key: an error, and never a second
// execution.
func TestSealedContentIsInNoFileAndOpensForItsKeyAlone(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, sealing(t, 1))
	handle, _ := paying(s)
	_, err := handle(t.Context(), payCall("r1"))
	check(t, err)
	r := begun(t, s, "run")
	_, err = s.Append(t.Context(), journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: 1, Answer: json.RawMessage(`"answer-4242"`)}})
	check(t, err)
	check(t, s.Leave(t.Context(), journal.Leaving{Run: "run", Token: r.Token, Turn: 1, Outputs: []journal.Output{{Content: "output-4242"}}}))
	_, err = s.Ask(t.Context(), middleware.Approval{Call: middleware.Alias{Run: "r9", Turn: 1, Tool: "pay", Fingerprint: "f"}, Identity: "i", Input: []byte("input-4242")}, 1e9)
	check(t, err)
	for _, file := range []string{path, path + "-wal"} {
		if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), "-4242") {
			t.Errorf("%s has content", file)
		}
	}
	check(t, s.Close())

	for name, opts := range map[string]*sqlitestore.Options{"no key": nil, "another key": sealing(t, 2)} {
		s := open(t, path, opts)
		handle, ran := paying(s)
		for _, run := range []string{"r1", "r2"} {
			res, err := handle(t.Context(), payCall(run))
			if *ran != 0 || !errors.Is(err, seal.ErrSealed) {
				t.Errorf("%s, %s: %v, %v, ran %d times", name, run, res, err, *ran)
			}
		}
		if _, err := s.Begin(t.Context(), aStart("run")); err == nil {
			t.Errorf("%s: a sealed run was resumed", name)
		}
		rows, err := s.List(t.Context(), nil, 0)
		check(t, err)
		if len(rows) != 1 || rows[0].Unreadable == nil || rows[0].Input != nil || rows[0].Result != "" || !rows[0].HasResult {
			t.Errorf("%s: listed as %+v", name, rows)
		}
		asked, err := s.Approvals(t.Context())
		check(t, err)
		if len(asked) != 1 || asked[0].Unreadable == nil || asked[0].Input != nil {
			t.Errorf("%s: asked %+v", name, asked)
		}
		check(t, s.Close())
	}

	s = open(t, path, sealing(t, 1))
	handle, ran := paying(s)
	res, err := handle(t.Context(), payCall("r2"))
	check(t, err)
	if *ran != 0 || res.Verdict != registry.AlreadyDone || !strings.Contains(res.Content, "result-4242") {
		t.Errorf("with the key again: %+v", res)
	}
	again, err := s.Begin(t.Context(), aStart("run"))
	check(t, err)
	if len(again.Turns) != 1 || string(again.Turns[0].Answer) != `"answer-4242"` || again.Turns[0].Outputs[0].Content != "output-4242" {
		t.Errorf("with the key again: %+v", again)
	}
}

func TestSealedContentInAnotherRowIsAnError(t *testing.T) {
	s := open(t, t.TempDir()+"/once.db", sealing(t, 1))
	handle, ran := paying(s)
	_, err := handle(t.Context(), payCall("r1"))
	check(t, err)
	other := payCall("r1")
	other.Turn, other.Arguments = 2, `{"order":"1002","note":""}`
	_, err = handle(t.Context(), other)
	check(t, err)
	check(t, s.Write(`UPDATE operations SET result = (SELECT result FROM operations ORDER BY id LIMIT 1)`))
	failed := 0
	for _, c := range []*registry.Call{payCall("r1"), other} {
		if _, err := handle(t.Context(), c); err != nil {
			failed++
		}
	}
	if failed != 1 || *ran != 2 {
		t.Errorf("%d of two calls failed, the tool has run %d times", failed, *ran)
	}
}

func TestWhatWasStoredBeforeThereWasACodecStaysReadable(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, nil)
	handle, _ := paying(s)
	_, err := handle(t.Context(), payCall("r1"))
	check(t, err)
	check(t, s.Close())
	handle, ran := paying(open(t, path, sealing(t, 1)))
	res, err := handle(t.Context(), payCall("r1"))
	check(t, err)
	if *ran != 0 || res.Content != "result-4242" {
		t.Errorf("%+v, ran %d times", res, *ran)
	}
}

// TestSecretFieldsAreInNoFile has a tool with a field that is not stored, on a store that seals nothing.
func TestSecretFieldsAreInNoFile(t *testing.T) {
	type door struct {
		Number int    `json:"number" once:"key"`
		PIN    string `json:"pin" once:"secret"`
	}
	path, pins, tools := t.TempDir()+"/once.db", []string(nil), registry.New()
	registry.Add(tools, registry.Tool[door, string]{Name: "open", Effect: registry.NonIdempotentWrite, Run: func(_ context.Context, d door) (string, error) {
		pins = append(pins, d.PIN)
		return "open", nil
	}})
	s := open(t, path, nil)
	handle := tools.Handler(middleware.Once(s, nil))
	for i, want := range []registry.Verdict{registry.Executed, registry.AlreadyDone, registry.Conflict} {
		pin := "pin-4242"
		if want == registry.Conflict {
			pin = "pin-1111"
		}
		res, err := handle(t.Context(), &registry.Call{Run: registry.Run{ID: "r"}, Turn: i + 1, Tool: "open", Arguments: `{"number":7,"pin":"` + pin + `"}`})
		check(t, err)
		if res.Verdict != want || strings.Contains(res.Content, "pin-") {
			t.Errorf("call %d: %+v, want %s", i+1, res, want)
		}
	}
	if len(pins) != 1 || pins[0] != "pin-4242" {
		t.Errorf("the tool has got %q", pins)
	}
	for _, file := range []string{path, path + "-wal"} {
		if b, err := os.ReadFile(file); err == nil && strings.Contains(string(b), "pin-") {
			t.Errorf("%s has a secret", file)
		}
	}
}
