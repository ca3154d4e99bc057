package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolonce/toolonce/mcp/internal/carry"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// exchange is one guarded call of the client and what the server said to it.
type exchange struct {
	name, run string
	params    map[string]json.RawMessage
	meta      map[string]json.RawMessage
	answer    atomic.Pointer[jsonrpc.Response]
}

type exchangeKey struct{}

func newExchange(raw json.RawMessage) (*exchange, error) {
	ex := &exchange{}
	if err := json.Unmarshal(raw, &ex.params); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(ex.params["name"], &ex.name); err != nil {
		return nil, err
	}
	if m := ex.params["_meta"]; m != nil {
		if err := json.Unmarshal(m, &ex.meta); err != nil {
			return nil, err
		}
	}
	if r := ex.meta[carry.Run]; r != nil {
		if err := json.Unmarshal(r, &ex.run); err != nil {
			return nil, err
		}
	}
	return ex, nil
}

// call guards a call of the client, or passes it on where its tool may repeat.
func (g *gateway) call(ctx context.Context, req *jsonrpc.Request, line []byte) {
	ex, err := newExchange(req.Params)
	if err != nil {
		g.fail(req.ID, jsonrpc.CodeInvalidParams, "the parameters of tools/call are not of its form")
		return
	}
	effect := g.options.tools.of(ex.name).effect()
	switch {
	case effect == 0 && !g.trust:
		effect = registry.NonIdempotentWrite
	case effect == registry.Read || effect == registry.IdempotentWrite:
		g.tell(g.server.line(line))
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	if why := g.begin(req.ID, cancel); why != "" {
		cancel()
		g.fail(req.ID, jsonrpc.CodeInvalidRequest, why+": the call was not made")
		return
	}
	go func() {
		defer g.end(req.ID)
		if effect == 0 {
			effect = g.hint(ctx, ex)
		}
		if effect != registry.NonIdempotentWrite {
			g.tell(g.server.line(line))
			return
		}
		g.guard(ctx, req.ID, ex)
	}()
}

// begin records that the client waits for a guarded call, or says why it cannot.
func (g *gateway) begin(id jsonrpc.ID, cancel context.CancelFunc) (why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.ending:
		return "the gateway is about to end"
	case g.waiting[id] != nil:
		return "the id of this request is that of another which still runs"
	}
	g.calls.Add(1)
	g.waiting[id] = cancel
	return ""
}

func (g *gateway) end(id jsonrpc.ID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting[id]()
	delete(g.waiting, id)
	g.calls.Done()
}

// guard has the guard answer a call.
func (g *gateway) guard(ctx context.Context, id jsonrpc.ID, ex *exchange) {
	call := &registry.Call{
		Run: registry.Run{ID: g.run}, ID: fmt.Sprint(id.Raw()), Tool: carry.Name("", ex.name), Arguments: string(ex.params["arguments"]),
	}
	if ex.run != "" {
		call.Run.ID = ex.run
	}
	handle, err := g.handler(ex.name)
	var res registry.Result
	if err == nil {
		res, err = handle(context.WithValue(ctx, exchangeKey{}, ex), call)
	}
	switch {
	case res.Verdict != "":
		g.tell(g.client.send(ex.reply(id, res)))
	case ctx.Err() != nil: // cancelled: nobody waits for an answer
	case err != nil:
		g.logger.Error("toolonce: a call could not be answered", "tool", call.Tool, "error", err)
		text := "the call could not be answered: see the gateway's log"
		if errors.As(err, new(*middleware.NotSavedError)) {
			text = "the call has run, and its outcome is not stored yet: do not call again"
		}
		g.fail(id, jsonrpc.CodeInternalError, text)
	}
}

// handler is the guarded handler of one tool. Each has a registry of its own, since the server may come up with new ones.
func (g *gateway) handler(name string) (registry.Handler, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h := g.tools[name]; h != nil {
		return h, nil
	}
	s := g.options.tools.of(name)
	s.Effect = registry.NonIdempotentWrite
	r := registry.New()
	if err := r.AddRaw(s.tool(name, func(ctx context.Context, in json.RawMessage) (any, error) { return g.forward(ctx, s, in) })); err != nil {
		return nil, err
	}
	g.tools[name] = r.Handler(g.once)
	return g.tools[name], nil
}

// forward is what runs under the claim: it has the server do the call. It waits as long as the server lives, since a late
// answer is a result too.
func (g *gateway) forward(ctx context.Context, s toolSettings, in json.RawMessage) (any, error) {
	ex, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, registry.NoEffect(errors.New("there is no call of a client to forward"))
	}
	meta := maps.Clone(ex.meta)
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	params := maps.Clone(ex.params)
	var err error
	if meta[carry.Key], err = json.Marshal(registry.IdempotencyKey(ctx)); err == nil {
		params["_meta"], err = json.Marshal(meta)
	}
	if err != nil {
		return nil, registry.NoEffect(err)
	}
	params["arguments"] = in
	m, err := g.ask(context.WithoutCancel(ctx), methodCall, params)
	ex.answer.Store(m)
	if carry.NotRun(err) {
		return nil, registry.NoEffect(err)
	}
	if err != nil {
		return nil, err
	}
	r, err := carry.Parse(m.Result)
	switch {
	case err != nil:
		ex.answer.Store(nil)
		return nil, fmt.Errorf("the server's answer is no result of a tool: %w", err)
	case r.NeedsInput():
		return nil, registry.NoEffect(errors.New("the server asks for input first"))
	case r.IsError && s.ErrorsHaveNoEffect:
		return nil, registry.NoEffect(errors.New("the tool reports an error"))
	case r.IsError:
		return nil, errors.New("the tool reports an error")
	}
	return r.Value(), nil
}

// reply is what the client gets: what the server said where it did the call, or surely did not; else the verdict.
func (ex *exchange) reply(id jsonrpc.ID, res registry.Result) *jsonrpc.Response {
	said := ex.answer.Load()
	own := res.Verdict == registry.Executed || res.Verdict == registry.Failed
	switch {
	case own && said != nil && said.Error != nil:
		return &jsonrpc.Response{ID: id, Error: said.Error}
	case own && said != nil:
		if b, err := marked(said.Result, res); err == nil {
			return &jsonrpc.Response{ID: id, Result: b}
		}
	}
	answer := carry.Answer(res)
	if text := ex.said(); res.Verdict == registry.OutcomeUnknown && text != "" {
		answer.Content = append(answer.Content, &mcp.TextContent{Text: "The server said: " + text})
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the verdict cannot be encoded"}}
	}
	return &jsonrpc.Response{ID: id, Result: b}
}

// said is the text of the server's answer, "" for none: who settles the call wants to know it.
func (ex *exchange) said() string {
	m := ex.answer.Load()
	switch {
	case m == nil:
		return ""
	case m.Error != nil:
		return m.Error.Error()
	}
	r, err := carry.Parse(m.Result)
	if err != nil {
		return ""
	}
	return r.Text()
}

// marked is the server's result with the verdict in its _meta.
func marked(raw json.RawMessage, res registry.Result) (json.RawMessage, error) {
	var result, meta map[string]json.RawMessage
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, err
	}
	if m := result["_meta"]; m != nil {
		if err := json.Unmarshal(m, &meta); err != nil {
			return nil, err
		}
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	var err error
	for key, v := range map[string]string{carry.Verdict: string(res.Verdict), carry.Operation: res.Operation} {
		if meta[key], err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	if result["_meta"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

func (g *gateway) fail(id jsonrpc.ID, code int64, text string) {
	g.tell(g.client.send(&jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: code, Message: text}}))
}
