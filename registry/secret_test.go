package registry_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/registry"
)

type door struct {
	Number int       `json:"number" once:"key"`
	PIN    string    `json:"pin" once:"secret"`
	Badges []*badge  `json:"badges,omitempty"`
	Spare  *string   `json:"spare,omitempty" once:"secret"`
	Extra  *struct { // nested
		Code string `json:"code" once:"secret"`
		Note string `json:"note" once:"-"`
	} `json:"extra,omitempty"`
}

type badge struct {
	ID     string `json:"id"`
	Secret string `json:"secret" once:"secret"`
}

const doorCall = `{"number":7,"pin":"4242","badges":[{"id":"b1","secret":"4242"}],"spare":"4242","extra":{"code":"4242","note":"n"}}`

// asked is a call of a tool as its handler gets it.
func asked(t *testing.T, r *registry.Registry, tool, arguments string) *registry.Call {
	t.Helper()
	return resolved(t, r, registry.Call{Run: registry.Run{ID: "r"}, Turn: 1, Tool: tool, Arguments: arguments})
}

func TestSecretFieldsReachTheHandlerAndAreNotInTheInput(t *testing.T) {
	r := registry.New()
	var got door
	registry.Add(r, registry.Tool[door, string]{Name: "open", Effect: registry.NonIdempotentWrite, Run: func(_ context.Context, d door) (string, error) {
		got = d
		return "", nil
	}})
	var raw string
	if err := r.AddRaw(registry.RawTool{Name: "raw", Effect: registry.NonIdempotentWrite, Secret: []string{"pin"}, Run: func(_ context.Context, in json.RawMessage) (any, error) {
		raw = string(in)
		return "", nil
	}}); err != nil {
		t.Fatal(err)
	}
	c := asked(t, r, "open", doorCall)
	if want := `{"badges":[{"id":"b1"}],"extra":{"note":"n"},"number":7}`; string(c.Input()) != want {
		t.Errorf("the input is %s, want %s", c.Input(), want)
	}
	if got.PIN != "4242" || got.Badges[0].Secret != "4242" || *got.Spare != "4242" || got.Extra.Code != "4242" {
		t.Errorf("the handler got %+v", got)
	}
	if c := asked(t, r, "raw", `{"pin":"4242","n":1}`); string(c.Input()) != `{"n":1}` || raw != `{"n":1,"pin":"4242"}` {
		t.Errorf("the input is %s, the handler got %s", c.Input(), raw)
	}
}

func TestSecretFieldsCountForTheIdentity(t *testing.T) {
	r := registry.New()
	registry.Add(r, registry.Tool[door, string]{Name: "open", Effect: registry.NonIdempotentWrite, Run: func(context.Context, door) (string, error) { return "", nil }})
	id, fingerprint := asked(t, r, "open", doorCall).Operation()
	same, again := asked(t, r, "open", doorCall).Operation()
	key, other := asked(t, r, "open", strings.Replace(doorCall, "4242", "1111", 1)).Operation()
	if id != same || fingerprint != again || id != key || fingerprint == other {
		t.Error("another PIN is not another fingerprint of the same operation")
	}
}

func TestWhatMustRunAgainHasNoSecrets(t *testing.T) {
	run := func(context.Context, door) (string, error) { return "", nil }
	for want, tool := range map[string]registry.Tool[door, string]{
		"and Local":       {Effect: registry.NonIdempotentWrite, Local: true},
		"Lookup or Rerun": {Effect: registry.NonIdempotentWrite, Lookup: run},
		"a Lookup":        {Effect: registry.NonIdempotentWrite, Recovery: registry.Rerun},
	} {
		tool.Name, tool.Run = "open", run
		if p := panicText(func() { registry.Add(registry.New(), tool) }); !strings.Contains(p, `once:"secret"`) || !strings.Contains(p, want) {
			t.Errorf("%s", p)
		}
	}
	err := registry.New().AddRaw(registry.RawTool{Name: "raw", Effect: registry.IdempotentWrite, Secret: []string{"pin"}, Run: func(context.Context, json.RawMessage) (any, error) { return nil, nil }})
	if err == nil || !strings.Contains(err.Error(), "after a crash it is run again with what is stored") {
		t.Error(err)
	}
}

func TestAConflictInASecretFieldNamesIt(t *testing.T) {
	r := registry.New()
	registry.Add(r, registry.Tool[door, string]{Name: "open", Effect: registry.NonIdempotentWrite, Run: func(context.Context, door) (string, error) { return "", nil }})
	a, b := asked(t, r, "open", doorCall), asked(t, r, "open", strings.Replace(doorCall, "4242", "1111", 1))
	if got := strings.Join(a.Info().Diff(a.Input(), b.Input()), " "); got != "badges extra pin spare" {
		t.Errorf("the fields that may differ are %q", got)
	}
	c := asked(t, r, "open", strings.Replace(doorCall, `"b1"`, `"b2"`, 1))
	if got := strings.Join(a.Info().Diff(a.Input(), c.Input()), " "); got != "badges" {
		t.Errorf("the fields that differ are %q", got)
	}
}
