package main

import (
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/pgtest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/seal"
	"github.com/toolonce/toolonce/sqlitestore"
)

// keeping is a store of either kind.
type keeping interface {
	middleware.Ledger
	middleware.Approver
	journal.Journal
}

// lived leaves a run with an answer, a payment and a question, and gives the payment.
func lived(t *testing.T, s keeping) middleware.Row {
	t.Helper()
	r, err := s.Begin(t.Context(), journal.Start{Run: registry.Run{ID: "ticket-1"}, API: "chat"})
	fatal(t, err)
	_, err = s.Append(t.Context(), journal.Entry{Run: "ticket-1", Token: r.Token, Turn: journal.Turn{Number: 1, Answer: []byte(chatAnswer)}})
	fatal(t, err)
	row, won, err := s.Claim(t.Context(), middleware.Claim{
		Identity: "01", Token: "t", KeyWindow: time.Hour, Deadline: time.Minute, Input: []byte(`{"order":"` + secret + `"}`),
		Call: middleware.Alias{Run: "ticket-1", Turn: 1, CallID: "call_1", Tool: "pay"},
	})
	if fatal(t, err); !won {
		t.Fatal("lost")
	}
	_, err = s.Ask(t.Context(), middleware.Approval{Call: middleware.Alias{Run: "ticket-1", Turn: 1, Position: 1, Tool: "pay"}, Identity: "02", Input: []byte(secret)}, time.Hour)
	fatal(t, err)
	fatal(t, s.Leave(t.Context(), journal.Leaving{Run: "ticket-1", Token: r.Token, Turn: 1, Outputs: []journal.Output{{Content: secret, Verdict: registry.Executed, Operation: row.Operation}}}))
	return row
}

func paid(t *testing.T, s keeping, row middleware.Row) {
	t.Helper()
	_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: "t", Result: secret, HasResult: true})
	fatal(t, err)
}

func (f *fixture) checkForgotten(t *testing.T, more ...string) {
	t.Helper()
	want := func(code int, contains string, args ...string) string {
		t.Helper()
		return f.want(code, contains, append(args, more...)...)
	}
	want(2, "say which run", "forget")
	want(2, "say who does it and why", "forget", "--run", "ticket-1", "-yes", "--by", "ann")
	want(1, `there is no run "ticket-2" in namespace ""`, "forget", "--run", "ticket-2")
	want(1, `there is no run "ticket-1" in namespace "acme"`, "forget", "--run", "ticket-1", "-namespace", "acme")
	const what = "1 turns, 1 outputs of calls, input and result of 1 operations, 1 approvals"
	for range 2 {
		out := want(0, "would be forgotten: "+what, "forget", "--run", "ticket-1")
		if strings.Contains(out, "that the operations were done") || !strings.Contains(out, "kept: what became of the operations") || !strings.Contains(out, "nothing was changed: say -yes to do it") || !strings.Contains(out, "nobody could go on with it") {
			t.Error(out)
		}
	}
	want(0, secret, "run", "ticket-1", "--show-data")
	var got forgotten
	fatal(t, json.Unmarshal([]byte(want(0, "", "forget", "--run", "ticket-1", "--by", "ann", "--why", "she asked", "-yes", "-json")), &got))
	if d := cmp.Diff(forgotten{Run: "ticket-1", Turns: 1, Outputs: 1, Operations: 1, Approvals: 1, Ended: true}, got); d != "" {
		t.Error(d)
	}
	if out := want(0, "\tforgotten\t", "runs") + want(0, "", "export", "--show-data"); strings.Contains(out, secret) {
		t.Error(out)
	}
	want(0, "done", "show", f.op)
	want(0, "forgotten: 0 turns", "forget", "--run", "ticket-1", "--by", "ann", "--why", "she asked", "-yes")
	var a act
	out := want(0, "", "acts", "-json")
	fatal(t, json.Unmarshal([]byte(out), &a))
	if a.Kind != middleware.ActForgot || a.Target != "ticket-1" || a.By != "ann" || a.Why != "she asked" || a.Detail != what || len(a.Hash) != 64 {
		t.Errorf("%+v", a)
	}
	want(0, "\tforgot\tticket-1\tann\tshe asked\t", "acts")
	want(0, "nobody has done anything", "acts", "-namespace", "acme")
}

func TestForgetErasesNothingUnlessToldTo(t *testing.T) {
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "once.db")}
	s, err := sqlitestore.Open(f.path, nil)
	fatal(t, err)
	row := lived(t, s)
	f.op = row.Operation
	f.want(1, "settle it first: "+f.op+" is running: toolonce ops -run ticket-1", "forget", "--run", "ticket-1")
	paid(t, s, row)
	fatal(t, s.Close())
	f.checkForgotten(t)
}

func TestForgetWorksOnPostgreSQL(t *testing.T) {
	f := &fixture{t: t, flag: pgtest.Start(t)}
	s, err := pgstore.Open(t.Context(), f.flag, &pgstore.Options{Schema: "forgetting"})
	fatal(t, err)
	row := lived(t, s)
	f.op = row.Operation
	paid(t, s, row)
	fatal(t, s.Close())
	f.checkForgotten(t, "-schema", "forgetting")
}

// byHand changes the file past the store, and past what keeps acts from being changed.
func (f *fixture) byHand(query string) {
	f.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+f.path)
	fatal(f.t, err)
	defer func() { fatal(f.t, db.Close()) }()
	var trigger string
	fatal(f.t, db.QueryRowContext(f.t.Context(), `SELECT sql FROM sqlite_schema WHERE name = 'acts_are_not_removed'`).Scan(&trigger))
	for _, q := range []string{`DROP TRIGGER acts_are_not_removed`, query, trigger} {
		_, err := db.ExecContext(f.t.Context(), q)
		fatal(f.t, err)
	}
}

func TestVerifyTellsTheLastActAndFindsOutWhereItIsNotThere(t *testing.T) {
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "once.db")}
	s, err := sqlitestore.Open(f.path, nil)
	fatal(t, err)
	record := func() string {
		a, err := s.Record(t.Context(), middleware.Act{Kind: "noted", Target: "op", By: "ann"})
		fatal(t, err)
		return headOf([]middleware.Act{a})
	}
	if out := f.want(0, "acts", "verify"); strings.Contains(out, "last act") {
		t.Error(out)
	}
	first := record()
	last := record()
	f.want(0, "last act: "+last, "verify")
	f.want(0, `"head":"`+last+`"`, "verify", "-json", "--head", first)
	f.want(0, "last act: "+last, "verify", "--head", last)
	next := record()
	fatal(t, s.Close())
	other := strings.Replace(last, "2:", "1:", 1)
	f.want(1, "act 1, or what was before it, is not the one whose hash was noted", "verify", "--head", other)
	f.want(1, "act 4, whose hash was noted, is missing", "verify", "--head", strings.Replace(next, "3:", "4:", 1))
	for _, bad := range []string{"1", "x", "0:" + first[2:], "-1:" + first[2:], first + "0", "1:ab", " 1:" + first[2:]} {
		f.want(2, "say what verify has printed then", "verify", "--head", bad)
	}
	f.byHand(`DELETE FROM acts WHERE number = 2`)
	f.want(1, "act 2 is missing", "verify")
	f.byHand(`DELETE FROM acts WHERE number > 1`)
	f.want(0, "last act: "+first, "verify") // what was taken from the end shows by what was noted alone
	f.want(1, "act 3, whose hash was noted, is missing: the last of 1 acts is 1:", "verify", "--head", next)
}

func TestSealedContentIsSaidToBeSealedAndOpensWithTheKeys(t *testing.T) {
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "once.db")}
	key, old := []byte(strings.Repeat("k", 32)), []byte(strings.Repeat("o", 32))
	codec, err := seal.AESGCM(seal.Keys{Current: "k1", ByID: map[string][]byte{"k1": key}})
	fatal(t, err)
	s, err := sqlitestore.Open(f.path, &sqlitestore.Options{Codec: codec})
	fatal(t, err)
	row := lived(t, s)
	paid(t, s, row)
	fatal(t, s.Close())
	shown := [][]string{{"show", row.Operation}, {"run", "ticket-1"}, {"export"}, {"pending"}}
	for _, args := range shown {
		for _, json := range []bool{true, false} {
			args := append(args, "--show-data")
			if json {
				args = append(args, "-json")
			}
			f.keys = ""
			if out := f.want(0, "it is sealed: set TOOLONCE_KEYS", args...); strings.Contains(out, secret) {
				t.Error(out)
			}
			f.keys = "old=" + base64.StdEncoding.EncodeToString(old)
			if out := f.want(0, "k1", args...); !strings.Contains(out, "add it to TOOLONCE_KEYS") || strings.Contains(out, "ByID") { // the id of the key that is missing
				t.Error(out)
			}
			f.keys += ", k1=" + base64.RawStdEncoding.EncodeToString(key)
			if out := f.want(0, secret, args...); strings.Contains(out, "sealed") {
				t.Error(out)
			}
		}
	}
	for _, args := range shown {
		if out := f.want(0, "", args...); strings.Contains(out, secret) {
			t.Errorf("content is shown unasked: %s", out)
		}
	}
}

func TestWhatIsSealedIsNotTakenForNothingAndNotDecidedBlindly(t *testing.T) {
	f := &fixture{t: t, path: filepath.Join(t.TempDir(), "once.db")}
	key := []byte(strings.Repeat("k", 32))
	codec, err := seal.AESGCM(seal.Keys{Current: "k1", ByID: map[string][]byte{"k1": key}})
	fatal(t, err)
	s, err := sqlitestore.Open(f.path, &sqlitestore.Options{Codec: codec})
	fatal(t, err)
	row := lived(t, s)
	_, err = s.Change(t.Context(), middleware.Transition{Step: middleware.Doubt, Operation: row.Operation, Token: "t", Attempt: 1})
	fatal(t, err)
	fatal(t, s.Close())
	_, said, _ := strings.Cut(f.want(0, "", "run", "ticket-1"), "turn 1\n")
	if d := cmp.Diff("  says: sealed\n  1.0 sealed: executed "+row.Operation+" (arguments sealed, told sealed)\n", said); d != "" {
		t.Error(d)
	}
	for _, verb := range [][]string{{"run", "ticket-1", "-json"}, {"export"}} {
		if out := f.want(0, `{"turn":1,"calls":[{"position":0,"verdict":"executed","operation":`, verb...); strings.Contains(out, "_bytes") {
			t.Error(out)
		}
	}
	who := []string{"--by", "ann", "--why", "seen"}
	happened := append([]string{"resolve", row.Operation, "--happened", "--result", "1"}, who...)
	for _, keys := range []string{"", "old=" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("o", 32)))} {
		f.keys = keys
		f.refuses(1, "set TOOLONCE_KEYS to the key that sealed it, or leave --result out", happened...)
		f.refuses(1, "nobody can see what would be approved", append([]string{"approve", "ticket-1", "1.1"}, who...)...)
	}
	f.want(0, "in_doubt", "show", row.Operation)
	f.want(0, "\t1.1\t", "pending")
	f.want(0, "is denied", append([]string{"deny", "ticket-1", "1.1"}, who...)...)
	f.keys = "k1=" + base64.StdEncoding.EncodeToString(key)
	f.want(0, "is done now", happened...)
	f.want(0, `"text_bytes":5,"calls":[{"position":0,"call_id":"call_1","tool":"pay","arguments_bytes":19,`, "run", "ticket-1", "-json")
}

func TestBadKeysAreOneErrorThatNeverPrintsThem(t *testing.T) {
	f := inDoubt(t)
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("K3y!", 8)))
	for value, want := range map[string]string{
		key[:43]:                                 "entry 1 is not id=key",
		"=" + key:                                "entry 1 is not id=key",
		key + "=k1":                              "the key of entry 1 is not base64",
		key[:43] + "=azE":                        "the key of entry 1 has 2 bytes, want 32",
		"k1=" + key + ",":                        "entry 2 is not id=key",
		"k1=" + key + ",k2=" + key[4:]:           "the key of entry 2 has",
		"k1=" + key + ",k1=" + key:               "entry 2 has the id of another",
		"k1=!" + key:                             "the key of entry 1 is not base64",
		"k1=" + key + "\nk2=" + key:              "the key of entry 1 is not base64",
		strings.Repeat(key[:43], 10) + "=" + key: "entry 1 is not id=key",
	} {
		f.keys = value
		code, out, errs := f.call("show", f.op)
		if code != 2 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 || strings.Contains(out+errs, key[:8]) || strings.Contains(out+errs, key[10:20]) {
			t.Errorf("want %q: exit %d, %s%s", want, code, out, errs)
		}
	}
}
