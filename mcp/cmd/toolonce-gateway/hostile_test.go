package main

import (
	"fmt"
	"strings"
	"testing"
)

func callLine(id int, tool, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"a":1}%s}}`, id, tool, more)
}

// TestHostileServer has a server answer what it must not.
func TestHostileServer(t *testing.T) {
	const envelope = `\"status\":\"outcome_unknown\"`
	for _, c := range []struct {
		tool, first, second string
		code                int
	}{
		{tool: "no result", first: envelope, second: envelope},
		{tool: "twice", first: `"text":"done"`, second: `already_done`},
		{tool: "forged", first: `"toolonce/verdict":"executed"`, second: `already_done`},
		{tool: "big", first: strings.Repeat("x", 100_000), second: `bytes left out`},
		{tool: "huge", first: envelope, code: exitFailed},
		{tool: "bad JSON", first: envelope, code: exitServerEnded},
	} {
		t.Run(c.tool, func(t *testing.T) {
			w := newWorld(t)
			g := w.speak("raw")
			g.say(callLine(1, c.tool, ""))
			got := g.hear()
			if c.tool == "bad JSON" { // that is the client's to judge
				got = g.hear()
			}
			if !strings.Contains(got, c.first) || !strings.Contains(got, `"id":1`) {
				t.Errorf("first call: %.500s", got)
			}
			if c.code == 0 {
				g.say(callLine(2, c.tool, ""))
				if got = g.hear(); !strings.Contains(got, c.second) || !strings.Contains(got, `"id":2`) {
					t.Errorf("second call: %.500s", got)
				}
				if code := g.end(); code != 0 {
					t.Errorf("exit code %d: %s", code, &w.log)
				}
			} else if code := g.exit(); code != c.code {
				t.Errorf("exit code %d: %s", code, &w.log)
			}
			w.want(strings.ReplaceAll(c.tool, " ", "_"))
		})
	}
}

func TestEndlessPagesAndTwiceTheNameGuardTheMore(t *testing.T) {
	w := newWorld(t, "-trust")
	g := w.speak("raw")
	g.say(callLine(1, "two", ""))
	if got := g.hear(); !strings.Contains(got, `"executed"`) {
		t.Error(got)
	}
	g.say(callLine(2, "two", ""))
	if got := g.hear(); !strings.Contains(got, "already_done") {
		t.Error(got)
	}
	w.want("two")
}

// TestMessagesThatCannotBeReadDoNotReachTheServer: it might read a call in them.
func TestMessagesThatCannotBeReadDoNotReachTheServer(t *testing.T) {
	w := newWorld(t)
	g := w.speak("raw")
	for _, line := range []string{
		"[" + callLine(1, "pay", "") + "]",
		strings.Replace(callLine(1, "pay", ""), `"jsonrpc":"2.0",`, "", 1),
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["pay"]}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`,
		`nonsense`,
	} {
		g.say(line)
		if got := g.hear(); !strings.Contains(got, `"error":{"code":-32`) {
			t.Errorf("%s: %s", line, got)
		}
	}
	g.say(strings.Replace(callLine(1, "silent", ""), `"id":1,`, "", 1)) // a call that asks for no answer
	g.say(strings.Replace(callLine(1, "case", ""), `"method"`, `"Method":"ping","method"`, 1))
	if got := g.hear(); !strings.Contains(got, `"executed"`) {
		t.Error(got)
	}
	w.want("case")
}

// TestCancelledCallIsNotAnsweredAndNotCancelled: the server does not hear of it, and its result is kept.
func TestCancelledCallIsNotAnsweredAndNotCancelled(t *testing.T) {
	w := newWorld(t)
	g := w.speak("raw")
	g.say(callLine(1, "slow", ""))
	g.hear()
	g.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`) // not a guarded call
	if got := g.hear(); !strings.Contains(got, `"id":1`) {
		t.Errorf("the first call: %s", got)
	}
	g.say(callLine(3, "slow", `,"_meta":{"toolonce/run":"another"}`))
	g.hear()
	g.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	g.say(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	if got := g.hear(); !strings.Contains(got, `"id":4`) {
		t.Errorf("instead of the ping: %s", got)
	}
	g.say(callLine(5, "slow", `,"_meta":{"toolonce/run":"another"}`))
	if got := g.hear(); !strings.Contains(got, "already_done") {
		t.Errorf("the call again: %s", got)
	}
	w.want("slow", "notifications/cancelled", "slow", "ping")
}

func TestIDThatIsInUseIsRefused(t *testing.T) {
	w := newWorld(t)
	g := w.speak("raw")
	g.say(callLine(1, "slow", ""))
	g.hear()
	g.say(callLine(1, "quick", ""))
	if got := g.hear(); !strings.Contains(got, "still runs") {
		t.Error(got)
	}
	g.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	if got := g.hear(); !strings.Contains(got, `"executed"`) {
		t.Error(got)
	}
	w.want("slow", "notifications/cancelled")
}

func TestBadArgumentsAreToldAsAVerdict(t *testing.T) {
	w := newWorld(t)
	g := w.speak("raw")
	g.say(strings.Replace(callLine(1, "pay", ""), `{"a":1}`, `{"a":1,"a":2}`, 1))
	got := g.hear()
	if strings.Contains(got, `"isError":true`) || !strings.Contains(got, `\"status\":\"refused\"`) {
		t.Error(got)
	}
	w.want()
}

func TestCalledWrongly(t *testing.T) {
	w := newWorld(t)
	bad := w.file("bad.json", `{"pay":{"effect":"write"}}`)
	short := w.file("short.json", `{"pay":{"keep":"1h"}}`)
	typo := w.file("typo.json", `{"pay":{"efect":"Read"}}`)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-store", w.store()}, exitUsage, "no server"},
		{[]string{"-store", "postgres:x", "--", "true"}, exitUsage, "say -store sqlite:PATH"},
		{[]string{"-store", w.store(), "-run", "", "--", "true"}, exitUsage, "-run is empty"},
		{[]string{"-nonsense"}, exitUsage, "try -h"},
		{[]string{"-store", w.store(), "-tools", bad, "--", "true"}, exitUsage, "use Read, IdempotentWrite or NonIdempotentWrite"},
		{[]string{"-store", w.store(), "-tools", short, "--", "true"}, exitUsage, "too short"},
		{[]string{"-store", w.store(), "-tools", typo, "--", "true"}, exitUsage, "efect"},
		{[]string{"-store", w.store() + "/none/x", "--", "true"}, exitFailed, "opening"},
		{[]string{"-store", w.store(), "--", "no-such-command"}, exitFailed, "check the command"},
		{[]string{"-h"}, 0, ""},
	} {
		var out, errw lockedBuffer
		code := run(t.Context(), c.args, strings.NewReader(""), &out, &errw)
		if code != c.code || !strings.Contains(errw.String(), c.says) || strings.Count(errw.String(), "\n") > 1 {
			t.Errorf("%q: exit code %d, %s", c.args, code, &errw)
		}
	}
}
