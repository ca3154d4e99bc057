package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

const spoof = "Ann\u202e\u200b\u2066\u00ad\x1b[2J\u009b\u3164\ufe0f\U000e0061 Lee"

// paying is a store in which calls wait for a person: one of acme's, two of nobody's.
type paying struct {
	*fixture
	ran *int
}

func waitingCalls(t *testing.T) paying {
	p := paying{&fixture{t: t, path: filepath.Join(t.TempDir(), "once.db")}, new(int)}
	p.pay("acme", 1, 0, `{"to":"bob"}`)
	p.pay("", 1, 2, fmt.Sprintf(`{"to":%q}`, secret))
	p.pay("", 2, 0, text(t, map[string]string{"to": spoof}))
	return p
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// pay makes a call of a tool that needs an approval, as a process of its own.
func (p paying) pay(namespace string, turn, position int, arguments string) (res registry.Result, paused bool) {
	p.t.Helper()
	s, err := sqlitestore.Open(p.path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r := registry.New()
	if err := r.AddRaw(registry.RawTool{
		Name: "pay", Effect: registry.NonIdempotentWrite, Repeat: registry.RepeatApproved,
		NeedsApproval: func(context.Context, json.RawMessage) (bool, error) { return true, nil },
		Run: func(context.Context, json.RawMessage) (any, error) {
			*p.ran++
			return "paid", nil
		},
	}); err != nil {
		p.t.Fatal(err)
	}
	h := r.Handler(middleware.Once(s.Namespace(namespace), &middleware.OnceOptions{Logger: slog.New(slog.DiscardHandler)}))
	res, err = h(p.t.Context(), &registry.Call{
		Run: registry.Run{ID: "ticket\x1b[31m-42"}, Turn: turn, Position: position, Tool: "pay", Arguments: arguments,
		Asked: time.Now().Add(time.Hour), // the user has asked for all of them anew
	})
	_, paused = errors.AsType[*middleware.PausedError](err)
	if err = errors.Join(s.Close(), err); err != nil && !paused {
		p.t.Fatal(err)
	}
	return res, paused
}

// pending is what toolonce pending -json prints.
func (p paying) pending(args ...string) (all []question) {
	p.t.Helper()
	for line := range strings.Lines(p.want(0, "", append([]string{"pending", "-json"}, args...)...)) {
		var q question
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			p.t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

func TestWhatWaitsIsListedWithoutDataUnlessAskedFor(t *testing.T) {
	p := waitingCalls(t)
	out := p.want(0, "1.2", "pending")
	for _, said := range []string{"APPROVAL", "TOOL", "RUN", "AGE", "EXPIRES", "2.0", "in 23h59m", `ticket\u001b[31m-42`, "the store has 1 more namespace: -all-namespaces"} {
		if !strings.Contains(out, said) {
			t.Errorf("%q lacks %q", out, said)
		}
	}
	if strings.Contains(out, secret) || strings.Contains(out, "bob") || strings.Contains(out, "Lee") || strings.Count(out, "\n") != 4 {
		t.Errorf("two calls, a hint and no arguments wanted:\n%s", out)
	}
	p.want(0, secret, "pending", "--show-data")
	p.want(0, `{"to":"bob"}`, "pending", "--show-data", "-namespace", "acme")
	if out = p.want(0, "acme", "pending", "-all-namespaces"); strings.Count(out, "\n") != 4 || strings.Contains(out, "bob") {
		t.Error(out)
	}
	if all := p.pending(); len(all) != 2 || all[0].Position != 2 || all[0].State != "pending" || all[0].Arguments != "" {
		t.Errorf("%+v", all)
	}
	p.want(0, "nothing waits for a person", "pending", "-namespace", "other")
}

func TestWhatAPersonDecidesByCannotBeSpoofed(t *testing.T) {
	p := waitingCalls(t)
	const seen = `{"to":"Ann\u202e\u200b\u2066\u00ad\u001b[2J\u009b\u3164\ufe0f\udb40\udc61 Lee"}`
	p.want(0, seen, "pending", "--show-data")
	out := p.want(0, "", "pending", "--show-data", "--json")
	for _, r := range spoof {
		if r > 127 && strings.ContainsRune(out, r) {
			t.Errorf("%U is printed as it is", r)
		}
	}
	all := p.pending("--show-data") // and is JSON all the same
	var got map[string]string
	if err := json.Unmarshal([]byte(all[1].Arguments), &got); err != nil || got["to"] != spoof {
		t.Errorf("%q, %v", got, err)
	}
	if diff := cmp.Diff(`Zoë 東京 naïve 🎉 \\n`, escape(`Zoë 東京 naïve 🎉 \\n`)); diff != "" {
		t.Error("what is seen is changed", diff)
	}
}

func TestACallIsApprovedByItsIDAndDeniedByItsPlace(t *testing.T) {
	p := waitingCalls(t)
	id := p.pending()[0].Approval
	p.want(0, "is approved by ann: start the run again", "approve", id, "--by", "ann", "--why", "photos")
	p.want(0, "is denied by bob\\u202e", "deny", "ticket\x1b[31m-42", "2.0", "--by", "bob\u202e", "--why", "no receipt")
	p.want(0, "nothing waits for a person", "pending")
	if res, paused := p.pay("", 1, 2, fmt.Sprintf(`{"to":%q}`, secret)); paused || res.Verdict != registry.Executed || *p.ran != 1 {
		t.Errorf("approved: %v, paused %v, ran %d times", res, paused, *p.ran)
	} else {
		p.want(0, "approved by     ann", "show", res.Operation)
		p.want(0, `"approved_why":"photos"`, "show", res.Operation, "--json")
	}
	if res, paused := p.pay("", 2, 0, text(t, map[string]string{"to": spoof})); paused || res.Verdict != registry.Refused || !strings.Contains(res.Content, "no receipt") {
		t.Errorf("denied: %v, paused %v", res, paused)
	}
	if _, paused := p.pay("acme", 1, 0, `{"to":"bob"}`); !paused { // untouched
		t.Error("the call of another tenant does not wait any more")
	}
}

func TestARepeatSaysWhatItRepeats(t *testing.T) {
	p := waitingCalls(t)
	p.want(0, "approved", "approve", p.pending()[0].Approval, "--by", "ann", "--why", "photos")
	first, _ := p.pay("", 1, 2, fmt.Sprintf(`{"to":%q}`, secret))
	if _, paused := p.pay("", 3, 0, fmt.Sprintf(`{"to":%q,"repeat_of":%q}`, secret, first.Operation)); !paused {
		t.Fatal("a repeat does not wait")
	}
	all := p.pending("--show-data")
	if last := all[len(all)-1]; last.Repeats != first.Operation || last.Turn != 3 {
		t.Errorf("%+v, want a repeat of %s", last, first.Operation)
	}
	p.want(0, "REPEATS", "pending", "--show-data")
	if out := p.want(0, "3.0", "pending"); strings.Contains(out, first.Operation) {
		t.Error(out)
	}
}

func TestADecisionThatCannotBeMadeChangesNothingAndSaysWhy(t *testing.T) {
	p := waitingCalls(t)
	id := p.pending()[0].Approval
	who := []string{"--by", "eve", "--why", "x"}
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{2, "takes 1 or 2 argument(s) and got 0", append([]string{"approve"}, who...)},
		{2, "takes 1 or 2 argument(s) and got 3", append([]string{"deny", "a", "b", "c"}, who...)},
		{2, "say who decides it", []string{"approve", id, "--by", "ann"}},
		{2, "say who decides it", []string{"deny", id, "--why", "x"}},
		{1, `nothing was asked about "none"`, append([]string{"approve", "none"}, who...)},
		{1, "nothing was asked about", append([]string{"approve", id, "-namespace", "acme"}, who...)},
		{1, "nothing was asked about", append([]string{"deny", "ticket-42", "1.2"}, who...)},
		{2, "flag provided but not defined", []string{"pending", "-limit", "3"}},
	} {
		p.want(c.code, c.want, c.args...)
	}
	p.want(0, id, "pending")
	p.want(0, "toolonce approve", "help")
	p.want(0, "-why", "deny", "-h")

	p.want(0, "is denied", "deny", id, "--by", "ann\u202e", "--why", "no")
	p.want(1, `ann\u202e has denied it at 20`, append([]string{"approve", id}, who...)...)
	id = p.pending()[0].Approval
	p.want(0, "is approved", "approve", id, "--by", "ann", "--why", "yes")
	p.want(1, "ann has approved it at 20", append([]string{"deny", "ticket\x1b[31m-42", "2.0"}, who...)...)
	res, _ := p.pay("", 2, 0, text(t, map[string]string{"to": spoof}))
	p.want(1, "and it was claimed: operation "+res.Operation, append([]string{"deny", id}, who...)...)
}

func TestAQuestionThatHasExpiredIsNotListedAndNotAnswered(t *testing.T) {
	p := waitingCalls(t)
	s, err := sqlitestore.Open(p.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ns string, fingerprint string, expires time.Duration) middleware.Approval {
		a, err := s.Namespace(ns).Ask(t.Context(), middleware.Approval{
			Identity: "00", Call: middleware.Alias{Run: "r", Turn: 1, Tool: "pay", Arguments: "00", Fingerprint: fingerprint},
		}, expires)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	old := ask("gone", "01", 1) // over at once
	two := []middleware.Approval{ask("two", "01", time.Hour), ask("two", "02", time.Hour)}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	p.want(0, "nothing waits for a person", "pending", "-namespace", "gone")
	for _, which := range [][]string{{old.ID}, {"r", "1.0"}} {
		p.want(1, "has expired at 20", append(append([]string{"approve"}, which...), "-namespace", "gone", "--by", "a", "--why", "b")...)
	}
	p.want(1, "2 questions wait at 1.0 of run r: name one", "approve", "r", "1.0", "-namespace", "two", "--by", "a", "--why", "b")
	p.want(0, "approved", "approve", two[1].ID, "-namespace", "two", "--by", "a", "--why", "b")
	p.want(0, "approved", "approve", "r", "1.0", "-namespace", "two", "--by", "a", "--why", "b") // the one that is left
}
