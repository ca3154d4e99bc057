package transcript

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Limits of names and ids, in characters.
const (
	maxChatName     = 64
	maxResponseName = 128
	maxChatID       = 40
	maxResponseID   = 64
)

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// noParallel are the models that refuse parallel_tool_calls, even false.
var noParallel = []string{"o1*", "o3*", "o4-mini*"}

// function is the definition of a function tool, or of another tool with a name.
type function struct {
	Name       string          `json:"name"`
	Strict     *bool           `json:"strict"`
	Parameters json.RawMessage `json:"parameters"`
}

// checkTools checks tools, tool_choice and parallel_tool_calls.
func (x *exchange) checkTools() *refusal {
	var tools []json.RawMessage
	if given(x.wire.Tools) {
		if json.Unmarshal(x.wire.Tools, &tools) != nil {
			return bad("tools", "invalid_type", "Invalid type for 'tools': expected an array of objects.")
		}
		if len(tools) == 0 {
			return emptyArray("tools")
		}
	}
	names := make([]string, 0, len(tools))
	for i, raw := range tools {
		name, r := x.checkTool(fmt.Sprintf("tools[%d]", i), raw)
		if r != nil {
			return r
		}
		names = append(names, name)
	}
	if r := x.checkParallel(len(tools)); r != nil {
		return r
	}
	return x.checkChoice(names)
}

// checkTool checks one tool and returns its name, "" for built-in ones.
func (x *exchange) checkTool(at string, raw json.RawMessage) (string, *refusal) {
	var tool struct {
		function
		Type     string    `json:"type"`
		Function *function `json:"function"`
		Custom   *function `json:"custom"`
	}
	if err := json.Unmarshal(raw, &tool); err != nil {
		return "", bad(at, "invalid_type", "Invalid type for '%s': expected an object.", at)
	}
	if tool.Type == "" {
		return "", missing(at + ".type")
	}
	f, limit := tool.function, maxResponseName
	if x.API == "chat" {
		limit = maxChatName
		def := tool.Function
		if tool.Type == "custom" {
			def = tool.Custom
		}
		at += "." + tool.Type
		if def == nil {
			return "", missing(at)
		}
		f = *def
	}
	if tool.Type != "function" && tool.Type != "custom" {
		return "", nil
	}
	if r := checkName(at+".name", f.Name, limit); r != nil {
		return "", r
	}
	if tool.Type == "function" && given(f.Parameters) {
		strict := f.Strict != nil && *f.Strict
		if problem := schemaProblem(f.Parameters, strict); problem != "" {
			return "", bad(at+".parameters", "invalid_function_parameters", "Invalid schema for function '%s': %s", f.Name, problem)
		}
	}
	return f.Name, nil
}

func checkName(param, name string, limit int) *refusal {
	switch {
	case name == "":
		return emptyString(param)
	case !toolName.MatchString(name):
		return bad(param, "invalid_value", "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '%s'.", param, toolName)
	case len(name) > limit:
		return tooLong(param, limit, len(name))
	}
	return nil
}

func (x *exchange) checkParallel(tools int) *refusal {
	const param = "parallel_tool_calls"
	if !given(x.wire.Parallel) {
		return nil
	}
	for _, pattern := range slices.Concat(noParallel, x.opts.NoParallel) {
		if !matches(pattern, x.Model) && !matches(pattern, x.deployment()) {
			continue
		}
		if x.azure() {
			return bad("", "", "Unrecognized request argument supplied: %s", param)
		}
		return bad(param, "unsupported_parameter", "Unsupported parameter: '%s' is not supported with this model.", param)
	}
	if tools == 0 {
		return bad(param, "", "Invalid value for '%s': '%s' is only allowed when 'tools' are specified.", param, param)
	}
	return nil
}

func matches(pattern, name string) bool {
	prefix, any := strings.CutSuffix(pattern, "*")
	if any {
		return strings.HasPrefix(name, prefix)
	}
	return name == pattern
}

// choice is the tool_choice object of either API.
type choice struct {
	Type     string    `json:"type"`
	Name     string    `json:"name"`
	Function *function `json:"function"`
	Custom   *function `json:"custom"`
	Allowed  *choice   `json:"allowed_tools"`
	Tools    []choice  `json:"tools"`
}

func (c *choice) names() []string {
	if c == nil {
		return nil
	}
	var out []string
	if c.Type == "function" || c.Type == "custom" {
		switch {
		case c.Function != nil:
			out = append(out, c.Function.Name)
		case c.Custom != nil:
			out = append(out, c.Custom.Name)
		default:
			out = append(out, c.Name)
		}
	}
	for i := range c.Tools {
		out = append(out, c.Tools[i].names()...)
	}
	return append(out, c.Allowed.names()...)
}

func (x *exchange) checkChoice(names []string) *refusal {
	const param = "tool_choice"
	if !given(x.wire.ToolChoice) {
		return nil
	}
	var mode string
	isMode := json.Unmarshal(x.wire.ToolChoice, &mode) == nil
	if isMode && !slices.Contains([]string{"none", "auto", "required"}, mode) {
		return bad(param, "invalid_value", "Invalid value: '%s'. Supported values are: 'none', 'auto', and 'required'.", mode)
	}
	if len(names) == 0 && (x.API == "chat" || mode == "required") {
		return bad(param, "", "Invalid value for '%s': '%s' is only allowed when 'tools' are specified.", param, param)
	}
	if isMode {
		return nil
	}
	var c choice
	if json.Unmarshal(x.wire.ToolChoice, &c) != nil {
		return bad(param, "invalid_type", "Invalid type for '%s': expected a string or an object.", param)
	}
	for _, name := range c.names() {
		if !slices.Contains(names, name) {
			return bad(param, "", "Tool choice '%s' not found in 'tools' parameter.", name)
		}
	}
	return nil
}
