package main

import (
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

func TestNoMutantIsStale(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range all() {
		files, err := m.files("../..")
		if err != nil {
			t.Error(err)
		}
		for file, text := range files {
			if _, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution); err != nil && path.Ext(file) == ".go" {
				t.Errorf("mutant %q is no Go any more: %v", m.name, err)
			}
		}
		pkg, test := m.test()
		if m.name == "" || seen[m.name] || !strings.HasSuffix(m.breaks, ".") || !strings.HasPrefix(pkg, "./") || !strings.HasPrefix(test, "Test") {
			t.Errorf("mutant %q: want a name of its own, a sentence that says what it breaks, and a package and a test that catch it", m.name)
		}
		seen[m.name] = true
	}
	t.Logf("%d mutants", len(seen))
}
