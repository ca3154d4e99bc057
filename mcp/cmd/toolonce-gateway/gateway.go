package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

const (
	methodCall      = "tools/call"
	methodList      = "tools/list"
	methodCancelled = "notifications/cancelled"
	methodChanged   = "notifications/tools/list_changed"
)

// gateway passes messages between a client and a server, as they are but for those that are about guarded tools.
type gateway struct {
	options
	logger         *slog.Logger
	once           registry.Middleware
	client, server *peer
	prefix         string        // of the ids of our own requests: nobody else's begin so
	serverLeft     chan struct{} // closed when the server's output has ended
	calls          sync.WaitGroup
	giveUp         context.CancelFunc // ends the waits of all calls

	mu      sync.Mutex
	asked   int
	pending map[string]chan *jsonrpc.Response // our own requests; nil once the server has left
	lists   map[jsonrpc.ID]bool               // the client's requests for tools
	waiting map[jsonrpc.ID]context.CancelFunc // the client's guarded calls
	ending  bool                              // no call may begin any more
	tools   map[string]registry.Handler
	hints   map[string]registry.Effect // of a trusted server; nil while they are not known
	changes int                        // how often the server has said that its tools changed
}

func newGateway(o options, client, server io.Writer, logger *slog.Logger, once registry.Middleware) *gateway {
	return &gateway{
		options: o, logger: logger, once: once, client: &peer{w: client}, server: &peer{w: server},
		prefix: "toolonce-" + rand.Text() + "-", serverLeft: make(chan struct{}),
		pending: map[string]chan *jsonrpc.Response{}, lists: map[jsonrpc.ID]bool{},
		waiting: map[jsonrpc.ID]context.CancelFunc{}, tools: map[string]registry.Handler{},
	}
}

// pass passes messages until one side leaves or ctx ends.
func (g *gateway) pass(ctx context.Context, client, server io.Reader) error {
	calls, giveUp := context.WithCancel(context.WithoutCancel(ctx)) // they may outlast the client
	g.giveUp = giveUp
	clientLeft := make(chan error, 1)
	serverErr := make(chan error, 1)
	go func() {
		err := eachLine(server, g.fromServer)
		serverErr <- err
		g.leave()
		if err != nil {
			_, _ = io.Copy(io.Discard, server) // it must not hang while it ends
		}
	}()
	go func() {
		clientLeft <- eachLine(client, func(line []byte) {
			if ctx.Err() == nil {
				g.fromClient(calls, line)
			}
		})
	}()
	select {
	case <-ctx.Done():
		return nil
	case err := <-clientLeft:
		if err != nil {
			return fmt.Errorf("reading from the client: %w", err)
		}
		return nil
	case <-g.serverLeft:
		if err := <-serverErr; err != nil {
			return fmt.Errorf("reading from the server: %w", err)
		}
		return errServerEnded
	}
}

// leave says to all who wait for the server that nothing comes any more.
func (g *gateway) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, answer := range g.pending {
		close(answer)
	}
	g.pending = nil
	close(g.serverLeft)
}

// drain waits for the calls that still run and what they have to store.
func (g *gateway) drain(ctx context.Context, handlers *middleware.Handlers, bound time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
	defer cancel()
	g.mu.Lock()
	g.ending = true
	g.mu.Unlock()
	answered := make(chan struct{})
	go func() {
		g.calls.Wait()
		close(answered)
	}()
	select {
	case <-answered:
	case <-ctx.Done():
	}
	g.giveUp()
	if err := handlers.Wait(ctx); err != nil {
		g.logger.Warn("toolonce: calls still run and will be in doubt: see toolonce ops -in-doubt", "error", err)
	}
}

func (g *gateway) fromClient(ctx context.Context, line []byte) {
	msg, err := jsonrpc.DecodeMessage(line)
	if err != nil { // the server may read in it what we do not; batches, which MCP has dropped, are among it
		g.tell(g.client.line([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"the gateway cannot read this message: send one JSON-RPC object a line"}}`)))
		return
	}
	req, ok := msg.(*jsonrpc.Request)
	switch {
	case !ok:
	case req.Method == methodCall && !req.IsCall():
		return // nobody would learn what came of it
	case req.Method == methodCall:
		g.call(ctx, req, line)
		return
	case req.Method == methodList && req.IsCall():
		g.mu.Lock()
		g.lists[req.ID] = true
		g.mu.Unlock()
	case req.Method == methodCancelled && g.cancel(req):
		return
	}
	g.tell(g.server.line(line))
}

// cancel ends the client's wait for a guarded call. The server goes on with it: what comes of it is stored.
func (g *gateway) cancel(req *jsonrpc.Request) bool {
	var p struct {
		RequestID any `json:"requestId"`
	}
	if json.Unmarshal(req.Params, &p) != nil {
		return false
	}
	id, err := jsonrpc.MakeID(p.RequestID)
	if err != nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	stop := g.waiting[id]
	if stop != nil {
		stop()
	}
	return stop != nil
}

func (g *gateway) fromServer(line []byte) {
	msg, _ := jsonrpc.DecodeMessage(line) // what cannot be read is the client's to judge
	switch m := msg.(type) {
	case *jsonrpc.Response:
		if id, ok := m.ID.Raw().(string); ok && strings.HasPrefix(id, g.prefix) {
			g.answered(id, m)
			return
		}
		g.mu.Lock()
		list := g.lists[m.ID]
		delete(g.lists, m.ID)
		g.mu.Unlock()
		if list {
			line = g.listed(m, line)
		}
	case *jsonrpc.Request:
		if m.Method == methodChanged {
			g.mu.Lock()
			g.hints = nil
			g.changes++
			g.mu.Unlock()
		}
	}
	g.tell(g.client.line(line))
}

// answered gives an answer to who waits for it. A second one is nobody's.
func (g *gateway) answered(id string, m *jsonrpc.Response) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if answer, ok := g.pending[id]; ok {
		answer <- m
		delete(g.pending, id)
	}
}

var (
	errNotSent = registry.NoEffect(errors.New("the server had ended before: the call was not sent"))
	errNoReply = errors.New("the server ended before it answered")
)

// ask sends a request of our own and waits for the answer, as long as ctx and the server last.
func (g *gateway) ask(ctx context.Context, method string, params map[string]json.RawMessage) (*jsonrpc.Response, error) {
	b, err := json.Marshal(params)
	if err != nil {
		return nil, registry.NoEffect(err)
	}
	g.mu.Lock()
	if g.pending == nil {
		g.mu.Unlock()
		return nil, errNotSent
	}
	g.asked++
	name := g.prefix + strconv.Itoa(g.asked)
	answer := make(chan *jsonrpc.Response, 1)
	g.pending[name] = answer
	g.mu.Unlock()
	id, err := jsonrpc.MakeID(name)
	if err == nil {
		err = g.server.send(&jsonrpc.Request{ID: id, Method: method, Params: b})
	}
	if err != nil { // some of it may have been read
		g.forget(name)
		return nil, err
	}
	select {
	case m, ok := <-answer:
		if !ok {
			return nil, errNoReply
		}
		return m, m.Error
	case <-ctx.Done():
		g.forget(name)
		return nil, ctx.Err()
	}
}

func (g *gateway) forget(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.pending, name)
}

// tell says that a message could not be passed. Who does not take it has left, which is seen elsewhere.
func (g *gateway) tell(err error) {
	if err != nil {
		g.logger.Warn("toolonce: a message could not be passed on", "error", err)
	}
}
