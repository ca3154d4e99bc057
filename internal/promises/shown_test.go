package promises_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// suites are where the cases of contracts stand.
var suites = map[string]string{"ledgertest": "middleware/ledgertest", "journaltest": "agent/journal/journaltest"}

// source is what a file has: its functions without a receiver, and its strings.
type source struct {
	dir     string // from the root
	funcs   []string
	strings []string
}

// sources reads the Go files below the root whose names end so.
func sources(t *testing.T, dir, end string) (all []source) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, end):
			return nil
		}
		s, err := read(path)
		all = append(all, s)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(path string) (s source, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return s, err
	}
	if s.dir, err = filepath.Rel(root, filepath.Dir(path)); err != nil {
		return s, err
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
			s.funcs = append(s.funcs, f.Name.Name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				s.strings = append(s.strings, text)
			}
		}
		return true
	})
	return s, nil
}

// missing is why a test is not there, "" where it is.
func missing(tests []source, cases map[string][]source, shown string) string {
	where, test, sub, isCase := split(shown)
	if isCase {
		if !slices.ContainsFunc(cases[where], func(s source) bool { return slices.Contains(s.strings, test) }) {
			return "no such case in suite " + where
		}
		return ""
	}
	var dirs []string
	there := false
	for _, s := range tests {
		if filepath.Base(s.dir) != where {
			continue
		}
		if !slices.Contains(dirs, s.dir) {
			dirs = append(dirs, s.dir)
		}
		there = there || slices.Contains(s.funcs, test) && (sub == "" || slices.Contains(s.strings, sub))
	}
	switch {
	case len(dirs) > 1:
		return "which package? " + strings.Join(dirs, ", ")
	case !there || !strings.HasPrefix(test, "Test") && !strings.HasPrefix(test, "Fuzz") && !strings.HasPrefix(test, "Example"):
		return "no such test"
	}
	return ""
}

func TestEveryPromiseIsShownByTestsThatAreThere(t *testing.T) {
	tests, cases := sources(t, ".", "_test.go"), map[string][]source{}
	for suite, dir := range suites {
		cases[suite] = sources(t, dir, ".go")
	}
	said := map[string]bool{}
	for _, g := range all() {
		for _, p := range g.promises {
			if said[p.says] {
				t.Errorf("promised twice: %s", p.says)
			}
			said[p.says] = true
			if p.says == "" || p.rests == "" || len(p.shown) == 0 {
				t.Errorf("%s: %q rests on %q and is shown by %d tests", g.title, p.says, p.rests, len(p.shown))
			}
			for i, shown := range p.shown {
				if why := missing(tests, cases, shown); why != "" {
					t.Errorf("%s: %s: %s", p.says, shown, why)
				}
				if slices.Contains(p.shown[:i], shown) {
					t.Errorf("%s: %s is there twice", p.says, shown)
				}
			}
		}
	}
}

func TestATestThatIsNotThereIsMissed(t *testing.T) {
	tests := []source{
		{dir: "a/agent", funcs: []string{"TestHere", "helper"}, strings: []string{"a name"}},
		{dir: "x/same", funcs: []string{"TestHere"}}, {dir: "y/same", funcs: []string{"TestHere"}},
	}
	cases := map[string][]source{"ledgertest": {{strings: []string{"claim/is won"}}}}
	for shown, there := range map[string]bool{
		"agent.TestHere": true, "agent.TestHere/a name": true, "ledgertest: claim/is won": true,
		"agent.TestGone": false, "agent.TestHere/no name": false, "agent.helper": false, "other.TestHere": false, "same.TestHere": false,
		"ledgertest: claim/is lost": false, "journaltest: claim/is won": false,
	} {
		if why := missing(tests, cases, shown); (why == "") != there {
			t.Errorf("%s: %q", shown, why)
		}
	}
}
