package mcptools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolonce/toolonce/mcp/internal/carry"
	"github.com/toolonce/toolonce/registry"
)

// MetaKey is the key in the _meta of a call under which a server finds the operation's idempotency key, see
// [registry.IdempotencyKey].
const MetaKey = carry.Key

// maxTools is how many tools a server may list: one that never ends its pages must not fill the memory.
const maxTools = 10_000

// ImportOptions adjust [Import]. nil and the zero value work.
type ImportOptions struct {
	// Prefix is put before the name of every tool.
	Prefix string
	// Trusted takes the server at its word: a tool that it calls read-only is a Read, one that it calls idempotent an
	// IdempotentWrite. Without it, and for all others, a tool is a NonIdempotentWrite, whatever the server says.
	Trusted bool
	// Tool is shown every tool of the server and what it is to be registered as, which it may change: effect, key, timeout,
	// Lookup. The tool is left out where it returns false. nil: all are added as they are.
	Tool func(*mcp.Tool, *registry.RawTool) (add bool)
	// NoEffect says of a result with isError whether it proves that nothing happened. nil: it never does, since a tool
	// that says that it failed may have failed half way, and a person must settle what a NonIdempotentWrite left.
	NoEffect func(tool string, res *mcp.CallToolResult) bool
}

// Import adds all tools that the session's server lists. A name that no model can call is replaced by one made from it
// and its hash. The tool's output is its text as it is, or structured content as JSON; where there is other content
// (images, audio, resources) it is all content as JSON.
//
// A result with isError is an error of the tool, and so are a lost connection and a timeout: after them the outcome of a
// NonIdempotentWrite is unclear. An error by which the protocol says that the call was not executed (invalid parameters,
// an unknown tool) proves that nothing happened. What the server asks of the user is answered by the session's client, as
// part of the same call.
//
// It returns the wiring mistakes of all tools, joined: a tool that has one, such as a name that is taken or a schema that
// refers to another document, is not added, the others are.
func Import(ctx context.Context, tools *registry.Registry, session *mcp.ClientSession, opts *ImportOptions) error {
	var o ImportOptions
	if opts != nil {
		o = *opts
	}
	var errs []error
	listed := 0
	for t, err := range session.Tools(ctx, nil) {
		if listed++; err == nil && listed > maxTools {
			err = fmt.Errorf("it lists more than %d", maxTools)
		}
		if err != nil { // what comes after it is not known
			errs = append(errs, fmt.Errorf("mcptools: listing the server's tools: %w", err))
			break
		}
		if err := o.add(tools, session, t); err != nil {
			errs = append(errs, fmt.Errorf("mcptools: importing tool %q: %w", t.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (o ImportOptions) add(tools *registry.Registry, session *mcp.ClientSession, t *mcp.Tool) error {
	schema, err := json.Marshal(t.InputSchema)
	if err != nil {
		return fmt.Errorf("reading its schema: %w", err)
	}
	raw := registry.RawTool{
		Name: carry.Name(o.Prefix, t.Name), Description: t.Description, Schema: schema, Strict: true,
		Effect: registry.NonIdempotentWrite,
		Run:    o.run(session, t.Name),
	}
	if o.Trusted {
		raw.Effect = carry.Effect(t.Annotations)
	}
	if o.Tool != nil && !o.Tool(t, &raw) {
		return nil
	}
	if raw.Strict && tools.AddRaw(raw) == nil {
		return nil
	}
	raw.Strict = false // most schemas of other people are not fit for it
	return tools.AddRaw(raw)
}

func (o ImportOptions) run(session *mcp.ClientSession, name string) func(context.Context, json.RawMessage) (any, error) {
	return func(ctx context.Context, in json.RawMessage) (any, error) {
		params := &mcp.CallToolParams{Name: name, Arguments: in}
		if key := registry.IdempotencyKey(ctx); key != "" {
			params.Meta = mcp.Meta{MetaKey: key}
		}
		res, err := session.CallTool(ctx, params)
		switch {
		case carry.NotRun(err):
			return nil, registry.NoEffect(err)
		case err != nil:
			return nil, err
		case res.NeedsInput():
			return nil, registry.NoEffect(errors.New("the server asks for input that this client does not give"))
		}
		return o.value(name, res)
	}
}

func (o ImportOptions) value(name string, res *mcp.CallToolResult) (any, error) {
	b, err := json.Marshal(res)
	if err != nil {
		return nil, &registry.ResultError{Err: err} // it has run
	}
	r, err := carry.Parse(b)
	if err != nil {
		return nil, &registry.ResultError{Err: err}
	}
	if !r.IsError {
		return r.Value(), nil
	}
	err = errors.New("the tool reports an error: " + r.Text())
	if o.NoEffect != nil && o.NoEffect(name, res) {
		err = registry.NoEffect(err)
	}
	return nil, err
}
