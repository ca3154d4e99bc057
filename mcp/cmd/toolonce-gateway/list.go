package main

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolonce/toolonce/mcp/internal/carry"
	"github.com/toolonce/toolonce/registry"
)

const (
	listTimeout = 30 * time.Second
	maxPages    = 1000
)

// listing is a page of tools/list, as far as the gateway looks at it.
type listing struct {
	Tools      []listedTool `json:"tools"`
	NextCursor string       `json:"nextCursor"`
}

type listedTool struct {
	Name        string               `json:"name"`
	Annotations *mcp.ToolAnnotations `json:"annotations"`
}

// listed is an answer to the client's tools/list. A guarded tool answers with verdicts too, so its output schema is left
// out: a client would refuse what does not fit it.
func (g *gateway) listed(m *jsonrpc.Response, line []byte) []byte {
	var result map[string]json.RawMessage
	var tools []json.RawMessage
	if m.Error != nil || json.Unmarshal(m.Result, &result) != nil || json.Unmarshal(result["tools"], &tools) != nil {
		return line
	}
	changed := false
	for i, raw := range tools {
		var t listedTool
		var all map[string]json.RawMessage
		if json.Unmarshal(raw, &t) != nil || json.Unmarshal(raw, &all) != nil || all["outputSchema"] == nil || !g.guards(t) {
			continue
		}
		delete(all, "outputSchema")
		if b, err := json.Marshal(all); err == nil {
			tools[i], changed = b, true
		}
	}
	if !changed {
		return line
	}
	var err error
	if result["tools"], err = json.Marshal(tools); err != nil {
		return line
	}
	b, err := json.Marshal(result)
	if err != nil {
		return line
	}
	if b, err = jsonrpc.EncodeMessage(&jsonrpc.Response{ID: m.ID, Result: b}); err != nil {
		return line
	}
	return b
}

func (g *gateway) guards(t listedTool) bool {
	e := g.options.tools.of(t.Name).effect()
	if e == 0 && g.trust {
		e = carry.Effect(t.Annotations)
	}
	return e == 0 || e == registry.NonIdempotentWrite
}

// hint is what a trusted server says of a tool. What it cannot be asked must not repeat.
func (g *gateway) hint(ctx context.Context, ex *exchange) registry.Effect {
	g.mu.Lock()
	hints, changes := g.hints, g.changes
	g.mu.Unlock()
	if hints == nil {
		var err error
		if hints, err = g.list(ctx, ex.meta); err != nil {
			g.logger.Warn("toolonce: the server's tools could not be listed; they count as ones that must not repeat", "error", err)
			return registry.NonIdempotentWrite
		}
		g.mu.Lock()
		if g.changes == changes {
			g.hints = hints
		}
		g.mu.Unlock()
	}
	if e, ok := hints[ex.name]; ok {
		return e
	}
	return registry.NonIdempotentWrite
}

// list asks the server for its tools, page by page, with the _meta of a call, in which newer clients say their protocol.
func (g *gateway) list(ctx context.Context, meta map[string]json.RawMessage) (map[string]registry.Effect, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	params := map[string]json.RawMessage{}
	if meta = maps.Clone(meta); meta != nil {
		delete(meta, "progressToken")
		b, err := json.Marshal(meta)
		if err != nil {
			return nil, err
		}
		params["_meta"] = b
	}
	hints := map[string]registry.Effect{}
	for range maxPages {
		m, err := g.ask(ctx, methodList, params)
		if err != nil {
			return nil, err
		}
		var page listing
		if err := json.Unmarshal(m.Result, &page); err != nil {
			return nil, err
		}
		for _, t := range page.Tools { // of two under one name the one that must be guarded more
			hints[t.Name] = max(hints[t.Name], carry.Effect(t.Annotations))
		}
		if page.NextCursor == "" {
			break
		}
		if params["cursor"], err = json.Marshal(page.NextCursor); err != nil {
			return nil, err
		}
	}
	return hints, nil
}
