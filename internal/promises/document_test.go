package promises_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write GUARANTEES.md anew (make guarantees)")

const document = root + "/GUARANTEES.md"

// filled is the document with text between the marks of a part.
func filled(doc, part, text string) (string, error) {
	begin, end := "<!-- "+part+": make guarantees writes what follows -->\n", "<!-- end of "+part+" -->\n"
	before, rest, ok := strings.Cut(doc, begin)
	_, after, found := strings.Cut(rest, end)
	if !ok || !found {
		return "", fmt.Errorf("GUARANTEES.md lacks a line %q with a line %q behind it", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + "\n" + strings.TrimSpace(text) + "\n\n" + end + after, nil
}

// cell is a promise's test as the table shows it.
func (p promise) cell() string {
	first, more := p.title()
	if more == 0 {
		return "`" + first + "`"
	}
	return fmt.Sprintf("`%s`, %d more", first, more)
}

// tables are the promises in Markdown.
func tables(groups []group) string {
	var b strings.Builder
	for _, g := range groups {
		fmt.Fprintf(&b, "### %s\n\n", g.title)
		if g.how != "" {
			fmt.Fprintf(&b, "Tested by `make test`, %s.\n\n", g.how)
		}
		b.WriteString("| Promise | Rests on | Shown by |\n| --- | --- | --- |\n")
		for _, p := range g.promises {
			says := p.says
			if p.chosen != "" {
				says += " *Chosen so: " + p.chosen + ".*"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", says, p.rests, p.cell())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// audits are what toolonce audit says of saved runs: by the guard, and by simple rules in its place.
func audits(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, set := range []struct{ name, dir string }{{"real", dir}, {"derived", filepath.Join(dir, "derived")}} {
		for _, by := range []struct{ name, flag, value string }{
			{"the guard", "-tools", filepath.Join(dir, "tools.json")},
			{"the call's id alone", "-rule", "call_id"},
			{"equal arguments alone", "-rule", "arguments"},
			{"nothing", "-rule", "none"},
		} {
			var names, values []string
			for field := range strings.FieldsSeq(lastLine(t, by.flag, by.value, "-expect", filepath.Join(set.dir, "expected.jsonl"), set.dir)) {
				name, value, _ := strings.Cut(field, "=")
				names, values = append(names, name), append(values, value)
			}
			if b.Len() == 0 {
				fmt.Fprintf(&b, "| saved runs | decided by | %s |\n| --- | --- |%s\n", strings.Join(names, " | "), strings.Repeat(" ---: |", len(names)))
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", set.name, by.name, strings.Join(values, " | "))
			if by.flag == "-tools" && values[len(values)-1] != "0" {
				t.Errorf("the guard has decided %s calls of the %s runs otherwise than expected", values[len(values)-1], set.name)
			}
		}
	}
	return b.String()
}

// lastLine is what an audit says of all runs.
func lastLine(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"run", "./cmd/toolonce", "audit"}, args...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	_, failed := errors.AsType[*exec.ExitError](err) // as it does where calls are decided otherwise, which a rule may do
	if err != nil && !failed || !strings.HasPrefix(last, "runs=") {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return last
}

// TestGuaranteesAreUpToDate compares the document with the table. With -update it writes it, the audit too where
// TOOLONCE_FIELD_DATA names the folder of saved runs, and the kills where TOOLONCE_TABLE names the file of make crash.
func TestGuaranteesAreUpToDate(t *testing.T) {
	b, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{"promises": tables(all())}
	if dir := os.Getenv("TOOLONCE_FIELD_DATA"); *update && dir != "" {
		parts["audit"] = audits(t, filepath.Join(dir, "transcripts"))
	}
	if file := os.Getenv("TOOLONCE_TABLE"); *update && file != "" {
		kills, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts["kills"] = string(kills)
	}
	doc := string(b)
	for part, text := range parts {
		if doc, err = filled(doc, part, text); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(document, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(b), doc); diff != "" {
		t.Errorf("GUARANTEES.md is not what the table says: make guarantees\n%s", diff)
	}
}

func TestAPartIsFilledAndTheRestStays(t *testing.T) {
	const doc = "a\n<!-- kills: make guarantees writes what follows -->\nold\n<!-- end of kills -->\nb\n"
	got, err := filled(doc, "kills", "\nnew\n")
	if want := "a\n<!-- kills: make guarantees writes what follows -->\n\nnew\n\n<!-- end of kills -->\nb\n"; got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if again, err := filled(got, "kills", "new"); again != got || err != nil {
		t.Errorf("not a second time: %q, %v", again, err)
	}
	for _, doc := range []string{"", "<!-- kills: make guarantees writes what follows -->\n", "<!-- end of kills -->\n" + doc[:60]} {
		if got, err := filled(doc, "kills", "x"); err == nil {
			t.Errorf("%q: %q", doc, got)
		}
	}
}
