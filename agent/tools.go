package agent

import (
	"encoding/json"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/toolonce/toolonce/registry"
)

// ChatTools are the registry's tools as parameters of a Chat Completions request, in the order they were added. Names,
// descriptions, strictness and schemas are the registry's; the order of a schema's properties, in which a model fills
// them, is kept. An empty registry gives nil. The result is new each time.
//
// A loop of one's own on a fine-tuned model sets Parameters from [registry.Info.SchemaFor]; [Loop] does so by itself.
func ChatTools(r *registry.Registry) []openai.ChatCompletionToolUnionParam { return chatTools(r, "") }

func chatTools(r *registry.Registry, model string) []openai.ChatCompletionToolUnionParam {
	var tools []openai.ChatCompletionToolUnionParam
	for _, t := range r.Tools() {
		def := shared.FunctionDefinitionParam{Name: t.Name, Strict: openai.Bool(t.Strict), Parameters: schema(t, model)}
		if t.Description != "" {
			def.Description = openai.String(t.Description)
		}
		tools = append(tools, openai.ChatCompletionFunctionTool(def))
	}
	return tools
}

// ResponseTools is [ChatTools] for the Responses API.
func ResponseTools(r *registry.Registry) []responses.ToolUnionParam { return responseTools(r, "") }

func responseTools(r *registry.Registry, model string) []responses.ToolUnionParam {
	var tools []responses.ToolUnionParam
	for _, t := range r.Tools() {
		p := responses.ToolParamOfFunction(t.Name, schema(t, model), t.Strict)
		if t.Description != "" {
			p.OfFunction.Description = openai.String(t.Description)
		}
		tools = append(tools, p)
	}
	return tools
}

// schema is the tool's schema for a model as the SDK takes it. Its values stay raw, which keeps the order inside them.
func schema(t *registry.Info, model string) map[string]any {
	var fields map[string]json.RawMessage
	if len(t.Schema) > 0 {
		if err := json.Unmarshal(t.SchemaFor(model), &fields); err != nil { // the registry has checked it
			return nil
		}
	}
	m := make(map[string]any, len(fields))
	for k, v := range fields {
		m[k] = v
	}
	return m
}
