//go:build unix && cgo

package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

// deploy is what may differ between two attempts at a run.
type deploy struct{ model, system, description string }

var (
	before = deploy{"gpt-4.1-mini", "Be kind.", "Refund an order."}
	after  = deploy{"gpt-5-mini", "Be brief.", "Give the money for an order back."}
)

// victim is a process that runs a loop, and what it shares with those that come after it.
type victim struct {
	Dir      string // holds once.db and the provider's book
	URL      string // of the model
	API      string
	Stream   bool
	User     string
	Provider string // hold, lookup or keyed: how an unclear outcome is settled; or idempotent, hotel or office
	Run      agent.Run
	Die      string // the point at which the process kills itself, "" for none
}

const victimEnv = "TOOLONCE_KILLED_RUN"

func (v victim) form() form { return form{v.API, v.Stream} }

// at kills this very process where it was told to die.
func (v victim) at(format string, args ...any) {
	if v.Die != "" && v.Die == fmt.Sprintf(format, args...) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// book is the provider's: a line per refund, written outside of what a store can see.
func (v victim) book() string { return filepath.Join(v.Dir, "book") }

// moved is the money in the book.
func (v victim) moved(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(v.book())
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.ReplaceAll(string(b), "\n", ", "), ", ")
}

// find is the refund in the book.
func (v victim) find(_ context.Context, in refundInput) (string, error) {
	b, err := os.ReadFile(v.book())
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	if !strings.Contains(string(b), in.OrderID+" ") {
		return "", registry.NoEffect(errors.New("no such refund"))
	}
	return "refunded " + in.OrderID, nil
}

func (v victim) refund(ctx context.Context, in refundInput) (string, error) {
	v.at("before the effect")
	if v.Provider == "keyed" { // the order stands for the key, which the tests of the guard look at
		if said, err := v.find(ctx, in); err == nil {
			return said, nil
		}
	}
	f, err := os.OpenFile(v.book(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return "", registry.NoEffect(err)
	}
	_, err = fmt.Fprintf(f, "%s %d\n", in.OrderID, in.Cents)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	v.at("after the effect")
	return "refunded " + in.OrderID, nil
}

func (v victim) tools(d deploy) *registry.Registry {
	if tools := v.others(); tools != nil {
		return tools
	}
	tools := registry.New()
	tool := registry.Tool[refundInput, string]{Name: "issue_refund", Description: d.description, Effect: registry.NonIdempotentWrite, Run: v.refund}
	switch v.Provider {
	case "lookup":
		tool.Lookup = v.find
	case "keyed":
		tool.Recovery = registry.Rerun
	case "idempotent":
		type unkeyed struct {
			OrderID string `json:"order_id"`
			Cents   int    `json:"cents"`
		}
		registry.Add(tools, registry.Tool[unkeyed, string]{
			Name: tool.Name, Description: d.description, Effect: registry.IdempotentWrite,
			Run: func(ctx context.Context, in unkeyed) (string, error) { return v.refund(ctx, refundInput(in)) },
		})
		return tools
	}
	registry.Add(tools, tool)
	return tools
}

// loop is a loop on the store in the directory, as a program makes it when it starts.
func (v victim) loop(t *testing.T, d deploy, client openai.Client) *agent.Loop {
	t.Helper()
	s, err := sqlitestore.Open(filepath.Join(v.Dir, "once.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	once := &middleware.OnceOptions{
		Logger: slog.New(slog.DiscardHandler),
		Admit: func(context.Context, *registry.Call) (*registry.Result, error) {
			v.at("before the claim")
			return nil, nil
		},
	}
	return agent.New(client, v.tools(d), &mortal{Store: s, victim: v}, &agent.Options{Once: once})
}

// mortal is a store whose process may die at what it stores.
type mortal struct {
	*sqlitestore.Store
	victim
	saved int
}

func (m *mortal) Append(ctx context.Context, e journal.Entry) (journal.Entry, error) {
	m.at("before turn %d is stored", e.Turn.Number)
	stored, err := m.Store.Append(ctx, e)
	m.at("turn %d is stored", e.Turn.Number)
	return stored, err
}

func (m *mortal) Change(ctx context.Context, t middleware.Transition) (middleware.Row, error) {
	row, err := m.Store.Change(ctx, t)
	if t.Step == middleware.Complete {
		m.saved++
		m.at("result %d is saved", m.saved)
	}
	return row, err
}

// wire is the child's connection to the model: the process may die before a request and while an answer arrives.
func (v victim) wire() option.RequestOption {
	asked := 0
	return option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		asked++
		v.at("before request %d", asked)
		res, err := next(r)
		if err == nil {
			res.Body = &arriving{res.Body, func() { v.at("answer %d arrives", asked) }}
		}
		return res, err
	})
}

// arriving is a body that says when its first bytes are there.
type arriving struct {
	io.ReadCloser
	arrived func()
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p[:min(len(p), 64)])
	if n > 0 {
		a.arrived()
	}
	return n, err
}

// TestLoopToKill is the process of the tests that kill one.
func TestLoopToKill(t *testing.T) {
	text := os.Getenv(victimEnv)
	if text == "" {
		return // not that process
	}
	var v victim
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	client := openai.NewClient(option.WithAPIKey("any"), option.WithBaseURL(v.URL), option.WithMaxRetries(0), v.wire())
	if o := v.form().runUnder(t, before, v.loop(t, before, client), v.Run, v.User); o.err != nil {
		t.Fatal(o.err)
	}
}

// killed runs the victim in a process of its own, which must not survive. held, where it is not nil, says when to kill it
// from outside.
func (v victim) killed(t *testing.T, held <-chan func()) {
	t.Helper()
	if v.Run.ID == "" {
		v.Run = run
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLoopToKill$")
	cmd.Env = append(os.Environ(), victimEnv+"="+string(text))
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = cmd.Wait() // how it ended is asked below
	}()
	select {
	case meanwhile := <-held:
		meanwhile()
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-over
	case <-over:
	}
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
		t.Fatalf("the process was not killed at %q:\n%s", v.Die, out.String())
	}
}

// under runs a request as a deploy makes it.
func (f form) under(t *testing.T, d deploy, l *agent.Loop, user string) (o outcome) {
	t.Helper()
	return f.runUnder(t, d, l, run, user)
}

func (f form) runUnder(t *testing.T, d deploy, l *agent.Loop, run agent.Run, user string) (o outcome) {
	t.Helper()
	chat := openai.ChatCompletionNewParams{Model: d.model, Messages: messages{openai.SystemMessage(d.system), openai.UserMessage(user)}}
	resp := responses.ResponseNewParams{Model: d.model, Instructions: openai.String(d.system)}
	resp.Input.OfString = openai.String(user)
	var c *agent.ChatReply
	var r *agent.ResponseReply
	switch f {
	case form{"chat", false}:
		c, o.err = l.Chat(t.Context(), run, chat)
	case form{"responses", false}:
		r, o.err = l.Respond(t.Context(), run, resp)
	case form{"chat", true}:
		for e, err := range l.StreamChat(t.Context(), run, chat) {
			c, o.err = e.Chat, err
		}
	default:
		for e, err := range l.StreamRespond(t.Context(), run, resp) {
			r, o.err = e.Response, err
		}
	}
	return f.fill(t, o, c, r)
}
