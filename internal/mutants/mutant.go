package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is the code with one fault.
type mutant struct {
	name string
	// breaks says what a user would see of it.
	breaks string
	// file, from the root of the module, has old exactly once, and the mutant has new in its place.
	file, old, new string
	// more are changes that the fault needs besides: what is refused twice is let through only by a change of both.
	more []edit
	// caught is the package, and after a blank the test that must fail, as t.Run names it.
	caught string
	// hangs says that the test never ends with this fault, which counts as failing.
	hangs bool
}

// edit is one change of a file.
type edit struct{ file, old, new string }

// all are the mutants.
func all() []mutant {
	return slices.Concat(
		memoryClaims, memorySteps, memoryApprovals(), storeClaims, storeSteps, storeApprovals(),
		journals, postgres(), guardCalls, guardOutcomes, guardAnswers, callsAndRequests, loops,
	)
}

// test is the package of the test that must fail, and its name.
func (m *mutant) test() (pkg, name string) {
	pkg, name, _ = strings.Cut(m.caught, " ")
	return pkg, name
}

// files are the changed files as they are in the mutant. It is an error where the code is no more what was to be changed.
func (m *mutant) files(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range append([]edit{{m.file, m.old, m.new}}, m.more...) {
		text, ok := files[e.file]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return nil, fmt.Errorf("mutant %q is stale: %w", m.name, err)
			}
			text = string(b)
		}
		if n := strings.Count(text, e.old); n != 1 || e.old == e.new {
			return nil, fmt.Errorf("mutant %q is stale: %s has %d times, and not once, the text %q", m.name, e.file, n, e.old)
		}
		files[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return files, nil
}

// overlay writes the mutant to dir, as go build -overlay wants it.
func (m *mutant) overlay(root, dir string) (name string, err error) {
	files, err := m.files(root)
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(dir, ""); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range files {
		at, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		replace[at] = filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(replace[at], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name = filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, b, 0o600)
}
