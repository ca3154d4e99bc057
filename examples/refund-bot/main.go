// Refund-bot is the story of this module: an agent that refunds orders, and four ways in which it would pay twice.
//
//	go run ./examples/refund-bot
//	go run ./examples/refund-bot "refund order 1001, it arrived broken"
//
// Without a key it needs nothing but this machine: a scripted model server and a payment provider run on loopback.
// worker.go has the loop, bare.go one without the guard, tools.go the tools, script.go what the model says, provider/ the
// provider.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	if os.Getenv(childEnv) != "" {
		os.Exit(childMain(os.Stdin, os.Stderr))
	}
	os.Exit(bot(os.Args[1:], os.Stdout, os.Stderr))
}

// bot is the program, but for the process around it.
func bot(args []string, stdout, stderr io.Writer) int {
	opts, err := parse(args, os.Getenv)
	switch {
	case err != nil:
	case opts.help:
		_, err = io.WriteString(stdout, usage)
	case opts.request == "":
		err = tellStory(opts, stdout)
	default:
		err = handleRequest(opts, stdout)
	}
	if err == nil {
		return exitOK
	}
	_, _ = fmt.Fprintln(stderr, "refund-bot:", err)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// interruptible is a context that Ctrl-C ends. A second one ends the program at once.
func interruptible() (ctx context.Context, stop func()) {
	ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// tellStory plays the whole story. It fails where the guarded pass did not do what was wanted.
func tellStory(opts options, stdout io.Writer) (err error) {
	ctx, stop := interruptible()
	defer stop()
	tell := &teller{out: stdout}
	if opts.json {
		tell.out = io.Discard
	}
	s, done, err := openStory(opts, tell)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	r, err := s.run(ctx)
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err == nil {
		r.InDoubt, err = s.doubts()
	}
	if err != nil {
		return err
	}
	s.ending(r)
	if opts.json {
		if err := json.NewEncoder(stdout).Encode(r); err != nil {
			return err
		}
	}
	if wrong := r.wrong(); len(wrong) > 0 {
		return fmt.Errorf("the guarded pass did not do what was wanted in: %s", strings.Join(wrong, ", "))
	}
	return nil
}
