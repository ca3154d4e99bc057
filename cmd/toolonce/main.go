// Command toolonce is for those who look after a store: it shows operations and runs, settles operations whose outcome
// nobody knows, answers for a person the calls that wait for one, and looks whether all is well.
//
//	toolonce ops     -store sqlite:once.db -in-doubt
//	toolonce show    -store sqlite:once.db OPERATION
//	toolonce resolve -store sqlite:once.db OPERATION --happened --by ann --why "refund re_1 is in the dashboard"
//	toolonce pending -store sqlite:once.db
//	toolonce approve -store sqlite:once.db APPROVAL --by ann --why "the photos show it"
//	toolonce runs    -store sqlite:once.db -unfinished
//	toolonce serve   -store sqlite:once.db --by ann
//	toolonce verify  -store sqlite:once.db
//	toolonce audit   -tools tools.json runs.jsonl.gz
//
// toolonce help lists all commands, toolonce help COMMAND tells flags and an example.
//
// It exits with 0 when it did what was asked, with 1 when it was refused, failed, or found something wrong, and with 2 when it
// was called wrongly. What is refused changes nothing, except that an operation whose process has died may be in doubt after
// it. Whatever comes from a store is printed with control, direction and zero-width characters written out. On a terminal it
// prints tables, with colours unless NO_COLOR is set; elsewhere the same with a tab between two columns; with -json a line of
// JSON for each row.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// verb is one subcommand: it declares its flags and returns what runs after they are parsed.
type verb struct {
	name, args, short string // args in several forms: "A | B C"
	make              func(*flag.FlagSet) action
}

var verbs = []verb{
	{"ops", "", "list operations, those that need somebody first", opsVerb},
	{"show", "OPERATION", "show one operation", showVerb},
	{"resolve", "OPERATION", "settle an operation whose outcome is unknown", resolveVerb},
	{"recover", "", "put operations in doubt whose process has died, so that a person can settle them", recoverVerb},
	{"pending", "", "list calls that wait for a person", pendingVerb},
	{"approve", callArgs, "let a call run that waits", decideVerb("approve")},
	{"deny", callArgs, "refuse a call that waits", decideVerb("deny")},
	{"runs", "", "list stored runs, the last one first", runsVerb},
	{"run", "RUN", "show one stored run as a conversation", runVerb},
	{"stats", "", "count what the store has, and how much room that takes", statsVerb},
	{"verify", "", "look whether the store is sound; nothing is changed", verifyVerb},
	{"export", "", "print operations, runs and approvals as lines of JSON", exportVerb},
	{"serve", "", "show all of that as a web page on this machine, and take verdicts and answers there", serveVerb},
	{"prune", "", "forget what need not be kept any longer", pruneVerb},
	{"forget", "", "erase what was said and done in one run, but not that it was done", forgetVerb},
	{"acts", "", "list what people did to the store, and why", actsVerb},
	{"audit", "FILE…", "say what the guard would have done on saved runs", nil}, // without a store
	{"bench", "", "measure what the disk or the database of a store carries", nil},
	{"version", "", "tell the versions of this program and of what it knows", versionVerb},
}

// action does what a verb is for.
type action func(ctx context.Context, e *env, args []string) error

// env is what a verb works with.
type env struct {
	ctx       context.Context // of the whole command
	getenv    func(string) string
	out       io.Writer
	errw      io.Writer // for what is no output
	tenant    func(name string) store
	store     store // of the namespace
	storeFlag string
	schema    string
	namespace string
	json      bool
	wait      time.Duration // for a store that is busy
	tty       bool          // a person reads along
	color     bool
}

// usageError is a call that cannot be understood.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e := &env{ctx: ctx, out: os.Stdout, getenv: os.Getenv, tty: terminal(os.Stdout)}
	e.color = e.tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	os.Exit(run(e, os.Args[1:], os.Stderr))
}

func run(e *env, args []string, errw io.Writer) int {
	out := &output{w: e.out}
	e.out, e.errw = out, errw
	err := dispatch(e, args)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		err = out.failed()
	}
	if err == nil {
		return 0
	}
	e.complain(operators(err.Error()))
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

func dispatch(e *env, args []string) error {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "-help" || args[0] == "--help" {
		if len(args) < 2 {
			usage(e.out)
			return nil
		}
		args = []string{args[1], "-h"}
	}
	for _, v := range verbs {
		if v.name == args[0] {
			return v.run(e, args[1:])
		}
	}
	return usagef("there is no command %q: try toolonce help", args[0])
}

func (v verb) run(e *env, args []string) error {
	switch {
	case v.name == "bench":
		return bench(e, args)
	case v.make == nil:
		return audit(e, args)
	}
	fs := flag.NewFlagSet(v.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.BoolVar(&e.json, "json", false, "print JSON, a line a row")
	if v.name != "version" {
		e.storeFlags(fs)
	}
	do := v.make(fs)
	rest, err := parse(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		v.help(e.out, fs)
		return err
	}
	if err != nil {
		return usagef("%s: %w: try toolonce help %s", v.name, err, v.name)
	}
	e.storeFlag = cmp.Or(e.storeFlag, e.getenv("TOOLONCE_STORE")) // not as the flag's default, which help prints: it may hold a password
	if counts := v.counts(); !slices.Contains(counts, fmt.Sprint(len(rest))) {
		return usagef("%s takes %s argument(s) and got %d: toolonce %s [flags] %s", v.name, strings.Join(counts, " or "), len(rest), v.name, v.args)
	}
	if v.name == "version" {
		return do(e.ctx, e, rest)
	}
	if e.wait <= 0 {
		return usagef("%s: -wait %v: say how long, such as 10s", v.name, e.wait)
	}
	if all := fs.Lookup("all-namespaces"); all != nil && all.Value.String() == "true" && given(fs, "namespace") {
		return usagef("%s: -namespace and -all-namespaces: give one of them", v.name)
	}
	if v.name == "verify" { // it needs no store that can be opened
		return do(e.ctx, e, rest)
	}
	if err := e.open(); err != nil {
		return err
	}
	err = do(e.ctx, e, rest)
	return errors.Join(err, e.store.Close())
}

// storeFlags say which store it is, and what of it.
func (e *env) storeFlags(fs *flag.FlagSet) {
	fs.StringVar(&e.storeFlag, "store", "", "the `store`: "+storeForms+" (default $TOOLONCE_STORE)")
	fs.StringVar(&e.schema, "schema", "", "the `name` of the store's schema in PostgreSQL (default toolonce)")
	fs.StringVar(&e.namespace, "namespace", "", "the tenant's `name`")
	fs.DurationVar(&e.wait, "wait", 10*time.Second, "how long to wait for a store that is busy")
}

// given reports whether a flag was set, to whatever value.
func given(fs *flag.FlagSet, name string) (yes bool) {
	fs.Visit(func(f *flag.Flag) { yes = yes || f.Name == name })
	return yes
}

// counts says how many arguments it takes, in each of its forms.
func (v verb) counts() (all []string) {
	for form := range strings.SplitSeq(v.args, "|") {
		all = append(all, fmt.Sprint(len(strings.Fields(form))))
	}
	return all
}

// parse takes flags before, between and after the arguments.
func parse(fs *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		if fs.NArg() == 0 {
			return rest, nil
		}
		rest, args = append(rest, fs.Arg(0)), fs.Args()[1:]
	}
}
