package mcptools

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolonce/toolonce/mcp/internal/carry"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// Keys of _meta that [Export] reads and writes.
const (
	// MetaRun in the _meta of a call names its run.
	MetaRun = carry.Run
	// MetaVerdict in the _meta of a result is its [registry.Verdict], MetaOperation the operation behind it. Programs read
	// these, never the text.
	MetaVerdict   = carry.Verdict
	MetaOperation = carry.Operation
)

// ExportOptions adjust [Export]. nil and the zero value work.
type ExportOptions struct {
	// Run names the run of a call whose client does not. nil: the session's id, so that the same arguments mean the same
	// operation within a session. A session over stdio has none: its writes are refused unless the client says a run or
	// Run does.
	Run func(*mcp.CallToolRequest) registry.Run
	// Logger is told the errors of the handler, which clients are not, and which tools are left out. nil: slog.Default().
	Logger *slog.Logger
}

// Export adds all tools of a registry to a server. handle answers their calls: tools.Handler(middleware.Once(store, nil))
// makes their effects happen once.
//
// A client that keeps a run across its own restarts says it under [MetaRun] in the _meta of its calls; else
// ExportOptions.Run applies. The run is the scope in which the same arguments mean the same operation, and a client may
// name any: give each tenant a handler on a namespace of its own. Calls of MCP have no turn: a tool that is identified by
// its call (ByCall) is left out, with a warning, an IdempotentWrite runs each time, and a call that needs an approval or
// repeats on purpose is refused.
//
// The tool's output is the text of the result, and its structured content where it is a JSON object. A verdict is told
// the same way. refused and failed have isError set: nothing happened, and the model may mend its call. The others have
// not, since clients repeat what failed. Where the handler ends the run by an error, the client is told a protocol error
// without details.
//
// Like the SDK's AddTool it panics on what is a mistake of the program: a schema whose root is no object.
func Export(server *mcp.Server, tools *registry.Registry, handle registry.Handler, opts *ExportOptions) {
	var o ExportOptions
	if opts != nil {
		o = *opts
	}
	if o.Run == nil {
		o.Run = func(req *mcp.CallToolRequest) registry.Run { return registry.Run{ID: req.Session.ID()} }
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	for _, info := range tools.Tools() {
		if info.Identity == registry.ByCall {
			o.Logger.Warn("toolonce: a tool is not exported: it is identified by its call, and calls of MCP have no turn: identify it by its arguments", "tool", info.Name)
			continue
		}
		server.AddTool(&mcp.Tool{
			Name: info.Name, Description: info.Description, InputSchema: info.Schema, Annotations: annotations(info.Effect),
		}, o.handler(handle))
	}
}

// annotations say the effect. That the guard makes a write happen once is no reason to call it idempotent: clients take
// the hint as leave to repeat, and other arguments are another effect.
func annotations(e registry.Effect) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{
		ReadOnlyHint: e == registry.Read, IdempotentHint: e == registry.IdempotentWrite, DestructiveHint: new(e != registry.Read),
	}
}

func (o ExportOptions) handler(handle registry.Handler) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		call := &registry.Call{Tool: req.Params.Name, Arguments: string(req.Params.Arguments)}
		if id, ok := req.Params.Meta[MetaRun].(string); ok && id != "" {
			call.Run.ID = id
		} else {
			call.Run = o.Run(req)
		}
		res, err := handle(ctx, call)
		switch {
		case res.Verdict != "" || err == nil: // it is answered, even where its run ends after it
			return answer(res), nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, middleware.ErrNoTurn):
			return answer(call.Refused(errors.New("a person must approve this call, and nobody can be asked here; it was not done"))), nil
		case errors.Is(err, middleware.ErrNoRun):
			return answer(call.Refused(err)), nil
		}
		o.Logger.ErrorContext(ctx, "toolonce: a call could not be answered", "tool", call.Tool, "error", err)
		return nil, internalError(err)
	}
}

// answer has isError set where nothing happened, so that the model can mend its call.
func answer(res registry.Result) *mcp.CallToolResult {
	r := carry.Answer(res)
	r.IsError = res.Verdict == registry.Refused || res.Verdict == registry.Failed
	return r
}

// internalError tells a client what it must know of an error of the handler.
func internalError(err error) error {
	e := &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the call could not be answered: see the server's log"}
	if ns, ok := errors.AsType[*middleware.NotSavedError](err); ok {
		e.Message = "the call has run, and its outcome is not stored yet: do not call again"
		e.Data, _ = json.Marshal(map[string]string{MetaOperation: ns.Operation})
	}
	return e
}
