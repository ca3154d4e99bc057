package registry_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/registry"
)

func TestEffectsAreReadAsTheyAreWritten(t *testing.T) {
	for _, e := range []registry.Effect{registry.Read, registry.IdempotentWrite, registry.NonIdempotentWrite} {
		b, err := json.Marshal(e)
		if err != nil || string(b) != `"`+e.String()+`"` {
			t.Fatalf("%s, %v", b, err)
		}
		var got registry.Effect
		if err := json.Unmarshal(b, &got); err != nil || got != e {
			t.Errorf("%v is read as %v, %v", e, got, err)
		}
	}
	var e registry.Effect
	for _, text := range []string{`""`, `"read"`, `"no effect"`} {
		if err := json.Unmarshal([]byte(text), &e); err == nil || e != 0 || !strings.Contains(err.Error(), "use Read, IdempotentWrite or NonIdempotentWrite") {
			t.Errorf("%s: %v, %v", text, e, err)
		}
	}
	if b, err := json.Marshal(e); err == nil {
		t.Errorf("no effect is written as %s", b)
	}
}
