// Command toolonce shows the operations that a store remembers, settles those whose outcome nobody knows, and answers for
// a person the calls that wait for one.
//
//	toolonce ops     -store sqlite:once.db -in-doubt
//	toolonce show    -store sqlite:once.db OPERATION
//	toolonce resolve -store sqlite:once.db OPERATION --happened --by ann --why "refund re_1 is in the dashboard"
//	toolonce pending -store sqlite:once.db
//	toolonce approve -store sqlite:once.db APPROVAL --by ann --why "the photos show it"
//	toolonce deny    -store sqlite:once.db RUN TURN.POSITION --by ann --why "no receipt"
//	toolonce audit   -tools tools.json runs.jsonl.gz
//	toolonce bench   -store sqlite:once.db
//
// It exits with 0 when it did what was asked, with 1 when it was refused or failed, and with 2 when it was called wrongly.
// What is refused changes nothing, except that an operation whose process has died may be in doubt after it.
package main

import (
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
	{"pending", "", "list calls that wait for a person", pendingVerb},
	{"approve", callArgs, "let a call run that waits", decideVerb("approve")},
	{"deny", callArgs, "refuse a call that waits", decideVerb("deny")},
	{"audit", "FILE…", "say what the guard would have done on saved runs", nil}, // without a store
	{"bench", "", "measure what the disk or the database of a store carries", nil},
}

// action does what a verb is for.
type action func(ctx context.Context, e *env, args []string) error

// env is what a verb works with.
type env struct {
	ctx       context.Context // of the whole command
	getenv    func(string) string
	out       io.Writer
	tenant    func(name string) store
	store     store // of the namespace
	storeFlag string
	schema    string
	namespace string
	json      bool
}

// usageError is a call that cannot be understood.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(&env{ctx: ctx, out: os.Stdout, getenv: os.Getenv}, os.Args[1:], os.Stderr))
}

func run(e *env, args []string, errw io.Writer) int {
	err := dispatch(e, args)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		return 0
	}
	_, _ = fmt.Fprintf(errw, "toolonce: %s\n", escape(err.Error()))
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

func dispatch(e *env, args []string) error {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "-help" || args[0] == "--help" {
		usage(e.out)
		return nil
	}
	for _, v := range verbs {
		if v.name == args[0] {
			return v.run(e, args[1:])
		}
	}
	return usagef("there is no command %q: try toolonce help", args[0])
}

func usage(w io.Writer) {
	_, _ = fmt.Fprint(w, "toolonce shows the operations of a store, settles those whose outcome nobody knows, and answers calls that wait for a person.\n\nCommands:\n")
	for _, v := range verbs {
		_, _ = fmt.Fprintf(w, "  toolonce %-8s %-29s %s\n", v.name, v.args, v.short)
	}
	_, _ = fmt.Fprint(w, "\nEach but audit takes -store sqlite:PATH or postgres:DSN (or TOOLONCE_STORE); -h tells the flags.\nExit codes: 0 done, 1 refused or failed, 2 called wrongly.\n")
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
	fs.StringVar(&e.storeFlag, "store", e.getenv("TOOLONCE_STORE"), "the `store`: "+storeForms+" (default $TOOLONCE_STORE)")
	fs.StringVar(&e.schema, "schema", "", "the `name` of the store's schema in PostgreSQL (default toolonce)")
	fs.StringVar(&e.namespace, "namespace", "", "the tenant's `name`")
	fs.BoolVar(&e.json, "json", false, "print JSON")
	do := v.make(fs)
	rest, err := parse(fs, args)
	if errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintf(e.out, "usage: toolonce %s [flags] %s\n%s\n\n", v.name, v.args, v.short)
		fs.SetOutput(e.out)
		fs.PrintDefaults()
		return err
	}
	if err != nil {
		return usagef("%s: %w: try toolonce %s -h", v.name, err, v.name)
	}
	if counts := v.counts(); !slices.Contains(counts, fmt.Sprint(len(rest))) {
		return usagef("%s takes %s argument(s) and got %d: toolonce %s [flags] %s", v.name, strings.Join(counts, " or "), len(rest), v.name, v.args)
	}
	if err := e.open(); err != nil {
		return err
	}
	err = do(e.ctx, e, rest)
	return errors.Join(err, e.store.Close())
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
