package examples_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// packages are what the Go of the documents may use, by the names by which it does.
var packages = map[string]string{
	"agent": "github.com/toolonce/toolonce/agent", "middleware": "github.com/toolonce/toolonce/middleware",
	"operator": "github.com/toolonce/toolonce/operator", "otel": "github.com/toolonce/toolonce/middleware/otel",
	"pgstore": "github.com/toolonce/toolonce/pgstore", "registry": "github.com/toolonce/toolonce/registry",
	"seal": "github.com/toolonce/toolonce/seal", "sqlitestore": "github.com/toolonce/toolonce/sqlitestore",
	"transcript": "github.com/toolonce/toolonce/transcript", "openai": "github.com/openai/openai-go/v3",
	"option": "github.com/openai/openai-go/v3/option", "sql": "database/sql", "http": "net/http", "url": "net/url",
	"json": "encoding/json", "smtp": "net/smtp", "context": "context", "errors": "errors", "fmt": "fmt", "io": "io", "log": "log",
	"net": "net", "os": "os", "strconv": "strconv", "strings": "strings", "time": "time",
}

// known are what the statements of the documents find at hand.
const known = `
var (
	ctx    context.Context
	tools  *registry.Registry
	store  *sqlitestore.Store
	client openai.Client
	mux    *http.ServeMux
	onCall func(*http.Request) (string, error)
)
`

// TestGoOfTheDocumentsCompiles builds each Go block: a program as it is, declarations as a package, statements in a function.
func TestGoOfTheDocumentsCompiles(t *testing.T) {
	documents, err := filepath.Glob("../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatal(documents, err)
	}
	others, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	var sources []string
	for _, path := range append(documents, others...) {
		if filepath.Base(path) == "README.md" { // whose programs are run
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllStringSubmatch(string(b), -1) {
			sources = append(sources, source(m[1]))
		}
	}
	if len(sources) == 0 {
		t.Fatal("the documents have no Go")
	}
	dir := filepath.Join("testdata", "docs")
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for i, s := range sources {
		in := filepath.Join(dir, fmt.Sprint("block", i))
		if err := os.MkdirAll(in, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(in, "main.go"), []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "vet", "./"+in).CombinedOutput(); err != nil {
			t.Errorf("block %d: %v\n%s\n%s", i, err, out, s)
		}
	}
}

// source is a block as a file.
func source(block string) string {
	if strings.HasPrefix(block, "package ") {
		return block
	}
	declared := regexp.MustCompile(`(?m)^(type|func|var|const) `).MatchString(block)
	body := block
	if !declared {
		body = known + "\nfunc _() {\n" + block + "\n}\n"
	}
	var imports []string
	for name, path := range packages {
		if regexp.MustCompile(`\b` + name + `\.[A-Z]`).MatchString(body) {
			imports = append(imports, fmt.Sprintf("\t%s %q\n", name, path))
		}
	}
	slices.Sort(imports)
	return "package main\n\nimport (\n" + strings.Join(imports, "") + ")\n\n" + body + "\nfunc main() {}\n"
}
