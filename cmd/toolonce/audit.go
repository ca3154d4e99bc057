package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/transcript"
)

const auditHelp = `usage: toolonce audit [flags] FILE…
say what the guard would have done on saved runs; a FILE is a transcript (.jsonl, .json, gzipped or not) or a folder of
.jsonl and .jsonl.gz. Nothing is run, and each run has a ledger of its own.

  toolonce audit -init runs.jsonl > tools.json          every tool, as one that must not repeat: weaken those that may
  toolonce audit -v -tools tools.json runs.jsonl        which calls would have been stopped
  toolonce audit -v -rule arguments runs.jsonl          which ones a simple rule would have stopped

tools.json has for each tool its "effect" (Read, IdempotentWrite or NonIdempotentWrite) and, where it applies, "identity"
(ByCall), "key" and "ignore" (names of arguments), "undoes" (a tool), and what says which of its operations is undone:
"resource_in" (an argument) or "resource_out" (a field of the result). -expect takes a line a run:
{"id": "…", "calls": [[turn, position, tool, verdict], …]}, turns from 1, positions from 0, verdicts execute,
execute_failed, already_done, conflict, refused.

The last line is: runs, calls; executed: reached the tool, which may then have refused; already_done, conflict, refused:
did not; id_collisions: calls under an id that the run has used for another call; mismatches: with -expect.

`

// auditing is one call of the command.
type auditing struct {
	env      *env
	audit    transcript.Audit
	tools    string // paths
	expect   string
	rule     string
	first    bool // write tools
	verbose  bool
	progress io.Writer // nil where nobody watches

	file   string // being read
	runs   int
	broken error // the first
	specs  map[string]*transcript.ToolSpec
}

// fileTotals is a file's line, and the last one, of JSON.
type fileTotals struct {
	File string `json:"file,omitempty"` // "" for the total
	transcript.Totals
}

// stopped is a call that did not reach its tool, in JSON and, without -json, in words.
type stopped struct {
	File     string `json:"file"`
	Run      string `json:"run"`
	Turn     int    `json:"turn"`
	Position int    `json:"position"`
	Tool     string `json:"tool"`
	Verdict  string `json:"verdict"`
	Repeats  string `json:"repeats,omitempty"` // TURN.POSITION
	Reason   string `json:"reason,omitempty"`
}

func audit(e *env, args []string) error {
	a := &auditing{env: e, specs: map[string]*transcript.ToolSpec{}}
	fs := flag.NewFlagSet("audit", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&a.tools, "tools", "", "what the tools are: a JSON `file`, as -init writes it")
	fs.BoolVar(&a.first, "init", false, "print a first file for -tools, with how often each tool was called and repeated")
	fs.BoolVar(&a.verbose, "v", false, "list each stopped call, and what it repeated")
	fs.BoolVar(&e.json, "json", false, "print JSON, a line a file and one for all")
	fs.StringVar(&a.rule, "rule", "", "a simple `rule` in place of the guard: call_id, arguments or none")
	fs.StringVar(&a.expect, "expect", "", "a JSON Lines `file` of right verdicts: compare each call, and exit with 1 where one differs")
	rest, err := parse(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		e.printf("%s", auditHelp)
		fs.SetOutput(e.out)
		fs.PrintDefaults()
		return err
	}
	if err != nil {
		return usagef("audit: %w: try toolonce audit -h", err)
	}
	if len(rest) == 0 {
		return usagef("audit takes one argument or more and got none: toolonce audit [flags] FILE…")
	}
	if err := a.prepare(); err != nil {
		return err
	}
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		a.progress = os.Stderr
	}
	return a.run(rest)
}

// prepare chooses the rule and reads what is declared and expected.
func (a *auditing) prepare() (err error) {
	if a.first {
		if a.tools != "" || a.rule != "" || a.expect != "" {
			return usagef("audit: -init goes without -tools, -rule and -expect: it prints a file for -tools")
		}
		a.rule = "arguments"
	}
	switch {
	case a.rule != "" && a.tools != "":
		return usagef("audit: -tools is for the guard, and -rule is another rule: give one of them")
	case a.rule != "":
		if a.audit.Decide = transcript.SimpleRule(a.rule); a.audit.Decide == nil {
			return usagef("audit: there is no rule %q: say call_id, arguments or none", a.rule)
		}
	case a.tools == "":
		return usagef("audit: what are the tools? Say -tools tools.json; toolonce audit -init FILE… > tools.json writes a first one")
	default:
		tools, err := readWith(a.tools, transcript.ReadTools)
		if err != nil {
			return err
		}
		a.audit.Decide = func(ctx context.Context, run transcript.Run) ([]transcript.Decision, error) {
			return transcript.Replay(ctx, tools, run)
		}
	}
	if a.expect != "" {
		a.audit.Expect, err = readWith(a.expect, transcript.ReadExpected)
	}
	a.audit.OnRun, a.audit.OnBroken = a.onRun, a.onBroken
	return err
}

func readWith[T any](path string, read func(io.Reader) (*T, error)) (*T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	v, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

// files are the arguments, folders replaced by what is in them, but for the file of expected verdicts.
func (a *auditing) files(args []string) (all []string, err error) {
	expect, _ := os.Stat(a.expect)
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			all = append(all, arg)
			continue
		}
		entries, err := os.ReadDir(arg)
		if err != nil {
			return nil, err
		}
		before := len(all)
		for _, entry := range entries {
			plain := strings.TrimSuffix(entry.Name(), ".gz")
			info, err := entry.Info()
			if err == nil && !entry.IsDir() && strings.HasSuffix(plain, ".jsonl") && !os.SameFile(info, expect) {
				all = append(all, filepath.Join(arg, entry.Name()))
			}
		}
		if len(all) == before {
			return nil, fmt.Errorf("folder %s has no transcript: it looks for .jsonl and .jsonl.gz", arg)
		}
	}
	return all, nil
}

func (a *auditing) run(args []string) error {
	files, err := a.files(args)
	if err != nil {
		return err
	}
	var each []fileTotals
	var total transcript.Totals
	for _, a.file = range files {
		t, err := a.audit.File(a.env.ctx, a.file)
		if err != nil {
			return err
		}
		each, total = append(each, fileTotals{a.file, t}), total.Plus(t)
	}
	a.watch("")
	unmet, calls := a.audit.Expect.Unmet()
	total.Mismatches += calls
	if a.first {
		if err := a.printTools(); err != nil {
			return err
		}
	} else if err := a.print(each, total, unmet); err != nil {
		return err
	}
	switch {
	case total.Broken > 0:
		return fmt.Errorf("%d of the files, lines or runs could not be audited, the first: %w", total.Broken, a.broken)
	case total.Mismatches > 0 || len(unmet) > 0:
		return fmt.Errorf("%d calls were decided otherwise than expected", total.Mismatches)
	}
	return nil
}

func (a *auditing) onRun(run transcript.Run, ds []transcript.Decision, differences []string) {
	if a.runs++; a.runs%50 == 0 {
		a.watch(fmt.Sprintf("%d runs, %s", a.runs, a.file))
	}
	for _, d := range ds {
		is := d.Verdict != registry.Executed
		if a.first {
			a.count(d.Name, is)
		} else if is && a.verbose {
			a.printStopped(run.ID, d)
		}
	}
	for _, line := range differences {
		a.say("mismatch", fmt.Sprintf("%s run %s %s", a.file, run.ID, line))
	}
}

func (a *auditing) onBroken(err error) {
	a.broken = cmp.Or(a.broken, err)
	a.say("broken", err.Error())
}

// say tells something in a line of its own.
func (a *auditing) say(what, text string) {
	a.watch("")
	switch {
	case a.first: // the error at the end names the first, and the output is a file
	case a.env.json:
		_ = a.env.printJSON(map[string]string{what: text}) // strings have a JSON form
	default:
		a.env.printf("%s: %s\n", what, escape(text))
	}
}

// watch writes over the line of progress.
func (a *auditing) watch(text string) {
	if a.progress != nil {
		_, _ = fmt.Fprintf(a.progress, "\r\x1b[K%s", escape(text))
	}
}

func (a *auditing) count(tool string, repeats bool) {
	s := a.specs[tool]
	if s == nil {
		s = &transcript.ToolSpec{Effect: registry.NonIdempotentWrite}
		a.specs[tool] = s
	}
	s.Calls++
	if repeats {
		s.Repeats++
	}
}

func (a *auditing) printTools() error {
	enc := json.NewEncoder(a.env.out)
	enc.SetIndent("", "  ")
	return enc.Encode(a.specs)
}

func (a *auditing) printStopped(run string, d transcript.Decision) {
	s := stopped{File: a.file, Run: run, Turn: d.Turn, Position: d.Position, Tool: d.Name, Verdict: string(d.Verdict), Reason: d.Reason}
	if d.Repeats != nil {
		s.Repeats = fmt.Sprintf("%d.%d", d.Repeats.Turn, d.Repeats.Position)
	}
	a.watch("")
	if a.env.json {
		_ = a.env.printJSON(map[string]stopped{"stopped": s}) // strings and numbers have a JSON form
		return
	}
	why := ": " + s.Reason
	switch {
	case d.Verdict == registry.Conflict:
		why = " with " + s.Repeats + " in " + s.Reason
	case d.Repeats != nil:
		why = " by " + s.Repeats
	}
	a.env.printf("%s run %s %d.%d %s: %s%s\n", escape(s.File), escape(s.Run), s.Turn, s.Position, escape(s.Tool), s.Verdict, escape(why))
}

func (a *auditing) print(each []fileTotals, total transcript.Totals, unmet []string) error {
	for _, id := range unmet {
		a.say("mismatch", "run "+id+" is expected, and is in no file")
	}
	if a.env.json {
		for _, f := range slices.Concat(each, []fileTotals{{Totals: total}}) {
			if err := a.env.printJSON(f); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(a.env.out, 0, 0, 2, ' ', 0)
	tab := &env{out: w}
	tab.printf("FILE\tRUNS\tCALLS\tEXECUTED\tALREADY_DONE\tCONFLICT\tREFUSED\tID_COLLISIONS\tMISMATCHES\tBROKEN\n")
	for _, f := range each {
		tab.printf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", escape(f.File), f.Runs, f.Calls, f.Executed, f.AlreadyDone,
			f.Conflict, f.Refused, f.IDCollisions, f.Mismatches, f.Broken)
	}
	err := w.Flush()
	a.env.printf("%s\n", total)
	return err
}
