// Package carry translates between what MCP says of tools and their results and what the guard does.
package carry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolonce/toolonce/registry"
)

// Keys of _meta. A request may say Run and Key, a result says Verdict and Operation.
const (
	Run       = "toolonce/run"
	Key       = "toolonce/key"
	Verdict   = "toolonce/verdict"
	Operation = "toolonce/operation"
)

// Effect is what annotations say of a tool: for servers that are trusted. nil says nothing.
func Effect(a *mcp.ToolAnnotations) registry.Effect {
	switch {
	case a != nil && a.ReadOnlyHint:
		return registry.Read
	case a != nil && a.IdempotentHint:
		return registry.IdempotentWrite
	default:
		return registry.NonIdempotentWrite
	}
}

var fits = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Name is the name under which a tool of a server is registered: its own where a model can call it by that, else one
// made from it and its hash, so that two tools never share one.
func Name(prefix, name string) string {
	full := prefix + name
	if fits.MatchString(full) {
		return full
	}
	sum := sha256.Sum256([]byte(full))
	readable := strings.Map(func(r rune) rune {
		if r < 128 && fits.MatchString(string(r)) {
			return r
		}
		return '_'
	}, full)
	return readable[:min(len(readable), 47)] + "_" + hex.EncodeToString(sum[:8])
}

// NotRun reports whether err is a server's answer by which the protocol says that the call was not executed: the request
// could not be read, there is no such method or tool, its parameters are refused, or the user must do something before.
func NotRun(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case jsonrpc.CodeParseError, jsonrpc.CodeInvalidRequest, jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams,
		mcp.CodeUnsupportedProtocolVersion, mcp.CodeMissingRequiredClientCapabilities, mcp.CodeURLElicitationRequired:
		return true
	}
	return false
}

// Result is the result of tools/call, as far as a guard looks at it.
type Result struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent"`
	IsError    bool              `json:"isError"`
	Type       string            `json:"resultType"`

	raw json.RawMessage
}

// Parse reads a result.
func Parse(raw json.RawMessage) (Result, error) {
	var r *Result
	err := json.Unmarshal(raw, &r)
	if err == nil && r == nil {
		err = errors.New("the result is null")
	}
	if err != nil {
		return Result{}, err
	}
	if string(r.Structured) == "null" {
		r.Structured = nil
	}
	r.raw = raw
	return *r, nil
}

// NeedsInput reports whether the server asks for something and has not done the call: the same call comes again with the
// answers.
func (r Result) NeedsInput() bool { return r.Type == "input_required" }

// Value is what a registered tool returns for the result: its text as it is, structured content as JSON, and all there
// is as JSON where some of it is neither.
func (r Result) Value() any {
	text, only := r.text()
	switch {
	case r.Content == nil && r.Structured == nil: // not a result but, say, the handle of a task
		return r.raw
	case !only && r.Structured == nil:
		return map[string]any{"content": r.Content}
	case !only:
		return map[string]any{"content": r.Content, "structuredContent": r.Structured}
	case r.Structured == nil || sameJSON(text, r.Structured): // the text may hold numbers that a decoder has rounded
		return text
	default:
		return r.Structured
	}
}

// Text is the text of the result, without what is no text.
func (r Result) Text() string {
	text, _ := r.text()
	return text
}

func (r Result) text() (text string, only bool) {
	var texts []string
	for _, c := range r.Content {
		var block struct{ Type, Text string }
		if json.Unmarshal(c, &block) == nil && block.Type == "text" {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n"), len(texts) == len(r.Content)
}

func sameJSON(text string, b []byte) bool {
	var x, y any
	return json.Unmarshal([]byte(text), &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Answer is a guard's result as that of tools/call, shaped as a success, since clients repeat what failed.
func Answer(res registry.Result) *mcp.CallToolResult {
	out := &mcp.CallToolResult{
		Meta:    mcp.Meta{Verdict: string(res.Verdict)},
		Content: []mcp.Content{&mcp.TextContent{Text: res.Content}},
	}
	if res.Operation != "" {
		out.Meta[Operation] = res.Operation
	}
	if strings.HasPrefix(res.Content, "{") && json.Valid([]byte(res.Content)) {
		out.StructuredContent = json.RawMessage(res.Content)
	}
	return out
}
