// Command toolonce-gateway stands in front of an MCP server on stdio and makes the side effects of its tools happen once,
// for any client.
//
//	toolonce-gateway -store sqlite:once.db -tools tools.json -- npx some-server --its-flags
//
// It starts the server as a child and passes everything through, except the calls of tools that must not repeat: each is
// claimed in the store before the server sees it, and a call that means the same thing again is answered from there. A
// call whose server dies is in doubt until a person settles it with "toolonce resolve".
//
// It exits with 0 when the client has left or it was told to end, with 1 when something failed, with 2 when it was called
// wrongly, and with 3 when the server ended while the client was still there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

const help = `usage: toolonce-gateway -store sqlite:PATH [flags] -- SERVER ARGS...

It stands in front of an MCP server on stdio and makes side effects happen once. Every tool counts as one that must not
repeat, unless -tools or -trust says that it may.

Flags:
`

const examples = `
Without -run, the same tool with the same arguments is done once for ever, so that a client that starts again after a
crash meets what it has done. Another -run, or another "toolonce/run" in the _meta of a call, is another scope; "keep" in
tools.json forgets after a time.

tools.json says by name what the tools do; "*" is for all that it does not name:
  {
    "get_order":    {"effect": "Read"},
    "set_address":  {"effect": "IdempotentWrite"},
    "issue_refund": {"key": ["order_id"], "ignore": ["reason"], "timeout": "30s"},
    "send_mail":    {"keep": "24h", "errorsHaveNoEffect": true}
  }
Reads and idempotent writes pass through. key: at most one operation with these arguments, whatever the run. ignore:
arguments that are no part of it. errorsHaveNoEffect: a result with isError proves that nothing happened; without it such
a call is in doubt. shareResult: a repeat from another run reads the first result.

Examples:
  toolonce-gateway -store sqlite:once.db -tools tools.json -- npx some-server
  toolonce-gateway -store sqlite:once.db -trust -run ticket-42 -- ./shop-server --stdio
  toolonce ops -in-doubt -store sqlite:once.db                       (what a person must settle)

Exit codes: 0 the client has left or SIGTERM, 1 failed, 2 called wrongly, 3 the server ended.
`

const (
	exitFailed      = 1
	exitUsage       = 2
	exitServerEnded = 3
)

// options are what the command line says.
type options struct {
	store, namespace, run string
	trust                 bool
	tools                 toolConfig
	drain                 time.Duration
	server                []string
}

// usageError is a command line that cannot be understood.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A client that has gone must not end the calls that still run: a signal that is caught is not passed to the server.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	o, err := parse(args, out)
	if err == nil {
		err = serve(ctx, o, in, out, errw)
	}
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	_, _ = fmt.Fprintf(errw, "toolonce-gateway: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	switch {
	case errors.As(err, new(usageError)):
		return exitUsage
	case errors.Is(err, errServerEnded):
		return exitServerEnded
	default:
		return exitFailed
	}
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	var tools string
	fs := flag.NewFlagSet("toolonce-gateway", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.store, "store", os.Getenv("TOOLONCE_STORE"), "the `store`: sqlite:PATH (default $TOOLONCE_STORE)")
	fs.StringVar(&o.namespace, "namespace", "", "the tenant's `name`")
	fs.StringVar(&o.run, "run", "gateway", "the `scope` in which the same arguments mean the same operation")
	fs.BoolVar(&o.trust, "trust", false, "believe the server's annotations: what it calls read-only or idempotent passes through")
	fs.StringVar(&tools, "tools", "", "a `file` that says what the tools do")
	fs.DurationVar(&o.drain, "drain", 30*time.Second, "how long calls may still run at the end")
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(out, help)
		fs.SetOutput(out)
		fs.PrintDefaults()
		_, _ = io.WriteString(out, examples)
		return o, err
	case err != nil:
		return o, usagef("%w: try -h", err)
	case o.run == "":
		return o, usagef("-run is empty: name a scope, or leave it out")
	case fs.NArg() == 0:
		return o, usagef("no server: say what to start behind --, as in toolonce-gateway -store sqlite:once.db -- SERVER ARGS")
	}
	o.server = fs.Args()
	kind, path, _ := strings.Cut(o.store, ":")
	if kind != "sqlite" || path == "" {
		return o, usagef("store %q is of no known kind: say -store sqlite:PATH or set TOOLONCE_STORE", o.store)
	}
	o.store = path
	var err error
	o.tools, err = readTools(tools)
	return o, err
}

// serve runs the gateway until the client leaves, the server ends or ctx does.
func serve(ctx context.Context, o options, in io.Reader, out, errw io.Writer) error {
	store, err := sqlitestore.Open(o.store, &sqlitestore.Options{Drain: o.drain})
	if err != nil {
		return err
	}
	server, err := start(ctx, o.server, errw)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	logger := slog.New(slog.NewTextHandler(errw, nil))
	g := newGateway(o, out, server.in, logger, middleware.Once(store.Namespace(o.namespace), &middleware.OnceOptions{
		Repeats: -1, // a run of the gateway has no end to come to
		Logger:  logger,
	}))
	err = g.pass(ctx, in, server.out)
	g.drain(ctx, store.Handlers(), o.drain)
	return errors.Join(err, server.stop(g.serverLeft), store.Close())
}
