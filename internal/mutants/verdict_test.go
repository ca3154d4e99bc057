package main

import (
	"strings"
	"testing"
)

func TestOnlyTheFailureOfTheNamedTestCatches(t *testing.T) {
	const begins = `{"Action":"start"}` + "\n" + `{"Action":"run","Test":"TestA/b_c"}` + "\n"
	fails := func(test string) string {
		return begins + `{"Action":"output","Test":"TestA/b_c","Output":"want 1\n"}` + "\n" + `{"Action":"fail","Test":"` + test + `"}` + "\n" + `{"Action":"fail"}`
	}
	hangs := begins + `{"Action":"output","Output":"panic: test timed out after 2m0s\n"}` + "\n" + `{"Action":"fail","Test":"TestA/b_c"}`
	for _, c := range []struct {
		name, out string
		hangs     bool
		escapes   string
	}{
		{"it fails", fails("TestA/b_c"), false, ""},
		{"another fails", fails("TestA"), false, "not run to its end"},
		{"it passes", strings.Replace(fails("TestA/b_c"), `"fail","Test"`, `"pass","Test"`, 1), false, "passes"},
		{"it is skipped", strings.Replace(fails("TestA/b_c"), `"fail","Test"`, `"skip","Test"`, 1), false, "not run to its end"},
		{"nothing is run", `{"Action":"start"}` + "\n" + `{"Action":"pass"}`, false, "not run to its end"},
		{"no build", `{"ImportPath":"p","Action":"build-fail"}` + "\n" + `{"Action":"fail","FailedBuild":"p"}`, false, "does not build"},
		{"a hang", hangs, false, "hangs"},
		{"a hang that is meant", hangs, true, ""},
		{"a query that is none", strings.Replace(fails("TestA/b_c"), "want 1", "SQL logic error: no such column: x", 1), false, "SQL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mutant{caught: "./p TestA/b c", hangs: c.hangs}
			r, err := read([]byte(c.out), []string{"TestA/b c"})
			if got := m.escapes(r); err != nil || (got == "") != (c.escapes == "") || !strings.Contains(got, c.escapes) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestAMutantOfCodeThatHasChangedIsStale(t *testing.T) {
	for name, m := range map[string]mutant{
		"no such file": {file: "none.go", old: "package", new: "x"},
		"no such text": {file: "main.go", old: "no such text, " + "in two parts", new: "x"},
		"twice there":  {file: "main.go", old: "chosen", new: "x"},
		"no change":    {file: "main.go", old: "package main", new: "package main"},
		"a second one": {file: "main.go", old: "package main", new: "package x", more: []edit{{"main.go", "package main", "package y"}}},
	} {
		if _, err := m.files("."); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}
