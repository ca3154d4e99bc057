package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/toolonce/toolonce/registry"
)

// ToolSpec declares a tool to [Replay] saved calls of, in JSON:
//
//	"issue_refund": {"effect": "NonIdempotentWrite", "key": ["order_id"], "ignore": ["reason"]}
//
// The members mean what they mean on [registry.RawTool].
type ToolSpec struct {
	Effect registry.Effect `json:"effect"`
	// Identity is "ByCall", or "" or "ByArguments".
	Identity string `json:"identity,omitempty"`
	// Key and Ignore name arguments: those that identify the operation, and those that are not part of it.
	Key    []string `json:"key,omitempty"`
	Ignore []string `json:"ignore,omitempty"`
	// Undoes names the tool whose operation this one takes back. ResourceIn (an argument) and ResourceOut (a field of the
	// result) say which one.
	Undoes      string `json:"undoes,omitempty"`
	ResourceIn  string `json:"resource_in,omitempty"`
	ResourceOut string `json:"resource_out,omitempty"`

	// Calls and Repeats say how often the tool was called in saved runs, and how many of these calls had the arguments of
	// an earlier one of their run. They declare nothing.
	Calls   int `json:"calls,omitempty"`
	Repeats int `json:"repeats,omitempty"`
}

// ReadTools reads a JSON object of tools by name, each a [ToolSpec], and makes a registry of them whose tools can be
// replayed and not run. Members that it does not know, and tools that a registry refuses, are errors that name the tool.
func ReadTools(r io.Reader) (*registry.Registry, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var specs map[string]ToolSpec
	if err := dec.Decode(&specs); err != nil {
		return nil, fmt.Errorf("transcript: reading tools: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("transcript: reading tools: text behind the object: one object holds all tools")
	}
	tools := registry.New()
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		t, err := specs[name].tool(name, specs)
		if err == nil {
			err = tools.AddRaw(t)
		}
		if err != nil {
			return nil, fmt.Errorf("transcript: reading tool %q: %w", name, err)
		}
	}
	return tools, nil
}

func (s ToolSpec) tool(name string, all map[string]ToolSpec) (registry.RawTool, error) {
	t := registry.RawTool{
		Name: name, Effect: s.Effect, Key: s.Key, Ignore: s.Ignore, Undoes: s.Undoes, ResourceIn: s.ResourceIn, ResourceOut: s.ResourceOut,
		Run: unrunnable,
	}
	switch s.Identity {
	case "", "ByArguments":
	case "ByCall":
		t.Identity = registry.ByCall
	default:
		return t, fmt.Errorf("identity %q is unknown: say ByArguments or ByCall", s.Identity)
	}
	undone, known := all[s.Undoes] // a registry would find these by a panic
	switch {
	case s.Undoes == "":
	case !known:
		return t, fmt.Errorf("undoes names %q, which is not declared: add it or mend the name", s.Undoes)
	case undone.Effect != registry.NonIdempotentWrite:
		return t, fmt.Errorf("undoes names %q, which never blocks a repeat: drop undoes", s.Undoes)
	case undone.ResourceIn == "" && undone.ResourceOut == "":
		return t, fmt.Errorf("undoes names %q, which has neither resource_in nor resource_out: say which field tells what is undone", s.Undoes)
	}
	return t, nil
}
