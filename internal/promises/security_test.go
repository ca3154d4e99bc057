package promises_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhatSecurityNamesIsThere looks for the tests and functions that SECURITY.md says show something.
func TestWhatSecurityNamesIsThere(t *testing.T) {
	doc, err := os.ReadFile(root + "/SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+|Run)\(`)
	clause := regexp.MustCompile(`(?m)^package (\w+)`)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if name := clause.FindSubmatch(b); name != nil {
			for _, f := range declared.FindAllSubmatch(b, -1) {
				there[strings.TrimSuffix(string(name[1]), "_test")+"."+string(f[1])] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(\\w+\\.(?:Test\\w+|Fuzz\\w+|Run))`").FindAllSubmatch(doc, -1)
	for _, n := range named {
		if !there[string(n[1])] {
			t.Errorf("there is no %s", n[1])
		}
	}
	if len(named) < 30 {
		t.Errorf("%d tests are named: is the form of the document another?", len(named))
	}
}
