package otel_test

import (
	"os/exec"
	"strings"
	"testing"
)

func TestTheCoreLinksNoOpenTelemetry(t *testing.T) {
	const module = "github.com/toolonce/toolonce/"
	core := []string{"registry", "middleware", "middleware/ledgertest", "agent/journal", "agent", "sqlitestore", "pgstore", "transcript", "cmd/toolonce"}
	args := []string{"list", "-deps"}
	for _, p := range core {
		args = append(args, module+p)
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for p := range strings.Lines(string(out)) {
		if strings.HasPrefix(p, "go.opentelemetry.io/") || strings.HasPrefix(p, module+"middleware/otel") {
			t.Errorf("the core depends on %s", p)
		}
	}
	if !strings.Contains(string(out), module+"agent\n") {
		t.Errorf("go list lists something else:\n%s", out)
	}
}
