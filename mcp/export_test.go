package mcptools_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptools "github.com/toolonce/toolonce/mcp"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// exported gives the session of a client with a server that has the tools of f.
func exported(t *testing.T, ledger middleware.Ledger, f func(*registry.Registry)) *mcp.ClientSession {
	t.Helper()
	tools := registry.New()
	f(tools)
	s := newServer()
	mcptools.Export(s, tools, tools.Handler(middleware.Once(ledger, nil)), &mcptools.ExportOptions{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	return connect(t, s, nil)
}

func add(tools *registry.Registry, name string, e registry.Effect, run func(context.Context, order) (any, error)) {
	registry.Add(tools, registry.Tool[order, any]{Name: name, Effect: e, Run: run})
}

func ask(t *testing.T, s *mcp.ClientSession, name, run, arguments string) *mcp.CallToolResult {
	t.Helper()
	p := &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)}
	if run != "" {
		p.Meta = mcp.Meta{mcptools.MetaRun: run}
	}
	res, err := s.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestExportedWriteHappensOncePerRun(t *testing.T) {
	paid := 0
	s := exported(t, middleware.Memory(), func(tools *registry.Registry) {
		add(tools, "pay", registry.NonIdempotentWrite, func(_ context.Context, in order) (any, error) {
			paid++
			if in.Order == "lost" {
				return nil, errors.New("timeout")
			}
			return in, nil
		})
	})
	type answer struct {
		Verdict any
		IsError bool
		Status  any
	}
	got := map[string]answer{}
	for _, c := range []struct{ what, tool, run, arguments string }{
		{"first", "pay", "r", `{"order":"1"}`},
		{"repeat", "pay", "r", `{"order":"1"}`},
		{"other run", "pay", "r2", `{"order":"1"}`},
		{"no run", "pay", "", `{"order":"1"}`},
		{"bad arguments", "pay", "r", `{"ordre":"1"}`},
		{"lost", "pay", "r", `{"order":"lost"}`},
	} {
		res := ask(t, s, c.tool, c.run, c.arguments)
		a := answer{Verdict: res.Meta[mcptools.MetaVerdict], IsError: res.IsError}
		if m, ok := res.StructuredContent.(map[string]any); ok {
			a.Status = m["status"]
		}
		got[c.what] = a
	}
	want := map[string]answer{
		"first":         {"executed", false, nil},
		"repeat":        {"already_done", false, "already_done"},
		"other run":     {"executed", false, nil},
		"no run":        {"refused", true, "refused"},
		"bad arguments": {"refused", true, "refused"},
		"lost":          {"outcome_unknown", false, "outcome_unknown"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if paid != 3 {
		t.Errorf("paid %d times", paid)
	}
}

func TestAToolThatIsIdentifiedByItsCallIsLeftOut(t *testing.T) {
	s := exported(t, middleware.Memory(), func(tools *registry.Registry) {
		for name, identity := range map[string]registry.Identity{"note": registry.ByCall, "pay": registry.ByArguments} {
			registry.Add(tools, registry.Tool[order, string]{
				Name: name, Effect: registry.NonIdempotentWrite, Identity: identity,
				Run: func(context.Context, order) (string, error) { return "done", nil },
			})
		}
	})
	var names []string
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff([]string{"pay"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestAnnotationsSayTheEffect(t *testing.T) {
	s := exported(t, middleware.Memory(), func(tools *registry.Registry) {
		for _, e := range []registry.Effect{registry.Read, registry.IdempotentWrite, registry.NonIdempotentWrite} {
			add(tools, e.String(), e, func(context.Context, order) (any, error) { return "", nil })
		}
	})
	got := map[string]mcp.ToolAnnotations{}
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		got[tool.Name] = *tool.Annotations
	}
	want := map[string]mcp.ToolAnnotations{
		"Read":               {ReadOnlyHint: true, DestructiveHint: new(false)},
		"IdempotentWrite":    {IdempotentHint: true, DestructiveHint: new(true)},
		"NonIdempotentWrite": {DestructiveHint: new(true)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// broken is a ledger that finds nothing out.
type broken struct{ middleware.Ledger }

func (broken) Find(context.Context, middleware.Query) (middleware.Row, bool, error) {
	return middleware.Row{}, false, errors.New("secret: disk /dev/sda1")
}

func TestErrorsOfTheHandlerAreNotToldToClients(t *testing.T) {
	s := exported(t, broken{middleware.Memory()}, func(tools *registry.Registry) {
		add(tools, "pay", registry.NonIdempotentWrite, func(context.Context, order) (any, error) { return "", nil })
	})
	_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay", Arguments: order{"1"}, Meta: mcp.Meta{mcptools.MetaRun: "r"}})
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "see the server's log") {
		t.Error(err)
	}
}

func TestReadsRunEveryTimeAndNeedNoRun(t *testing.T) {
	seen := 0
	s := exported(t, middleware.Memory(), func(tools *registry.Registry) {
		add(tools, "look", registry.Read, func(context.Context, order) (any, error) {
			seen++
			return map[string]int{"seen": seen}, nil
		})
	})
	for range 2 {
		ask(t, s, "look", "", `{"order":"1"}`)
	}
	if seen != 2 {
		t.Errorf("seen %d times", seen)
	}
}
