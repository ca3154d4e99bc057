package agent_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

type zeta struct {
	Zone  string `json:"zone" jsonschema_description:"a <zone>"`
	Alpha int64  `json:"alpha"`
	Mid   *zeta  `json:"mid,omitempty"`
}

func toolset(t *testing.T) *registry.Registry {
	t.Helper()
	r := registry.New()
	registry.Add(r, registry.Tool[zeta, string]{
		Name: "z_first", Description: "First & <foremost>.", Effect: registry.Read,
		Run: func(context.Context, zeta) (string, error) { return "", nil },
	})
	for _, raw := range []registry.RawTool{
		{Name: "a_second", Schema: json.RawMessage(`{"type":"object","properties":{"z":{"type":"number","maximum":12345678901234567890},"a":{}}}`)},
		{Name: "bare"},
	} {
		raw.Effect = registry.Read
		raw.Run = func(context.Context, json.RawMessage) (any, error) { return "", nil }
		if err := r.AddRaw(raw); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestToolsAreSentAsTheRegistryHasThem(t *testing.T) {
	r := toolset(t)
	chat, resp := wire(t, agent.ChatTools(r)), wire(t, agent.ResponseTools(r))
	if len(chat) != 3 || len(resp) != 3 {
		t.Fatal(chat, resp)
	}
	for i, info := range r.Tools() {
		var want map[string]json.RawMessage
		if err := json.Unmarshal(info.Schema, &want); err != nil {
			t.Fatal(err)
		}
		for _, f := range []gjson.Result{gjson.Get(chat[i], "function"), gjson.Parse(resp[i])} {
			if f.Get("name").String() != info.Name || f.Get("strict").Raw != map[bool]string{true: "true", false: "false"}[info.Strict] || f.Get("description").String() != info.Description {
				t.Error(f.Raw)
			}
			got := map[string]json.RawMessage{}
			for k, v := range f.Get("parameters").Map() {
				got[k] = json.RawMessage(v.Raw)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", info.Name, diff)
			}
		}
	}
	var order []string
	gjson.Get(chat[0], "function.parameters.properties").ForEach(func(k, _ gjson.Result) bool {
		order = append(order, k.String())
		return true
	})
	if diff := cmp.Diff([]string{"zone", "alpha", "mid"}, order); diff != "" {
		t.Error(diff)
	}
	if gjson.Get(chat[2], "function.description").Exists() {
		t.Error(chat[2])
	}
}

func TestAnEmptyRegistryHasNoTools(t *testing.T) {
	if agent.ChatTools(registry.New()) != nil || agent.ResponseTools(registry.New()) != nil {
		t.Error("an empty list is refused by the API")
	}
}

func TestToolsAreAcceptedByBothAPIs(t *testing.T) {
	r := toolset(t)
	client := clientOf(transcript.NewServer(transcript.Steps(transcript.Step{Text: "hi"}), nil), agent.SerialToolCalls())
	if _, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "demo-model", Tools: agent.ChatTools(r), Messages: messages{openai.UserMessage("hi")},
	}); err != nil {
		t.Error(err)
	}
	if _, err := client.Responses.New(t.Context(), responses.ResponseNewParams{
		Model: "demo-model", Tools: agent.ResponseTools(r), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")},
	}); err != nil {
		t.Error(err)
	}
}
