package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/toolonce/toolonce/sqlitestore"
)

const (
	// childEnv marks a process as a worker.
	childEnv = "REFUND_BOT_WORKER"
	// childTime bounds a worker that hangs.
	childTime = 30 * time.Second
)

// child is a worker as a process of its own. Its standard input carries the job and stays open as long as its parent
// lives.
type child struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan struct{} // closed when it has ended, err is set then
	err    error
	killed bool // by kill
}

// startChild runs this program once more, as a worker. It is killed when ctx ends.
func startChild(ctx context.Context, j job) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, childTime)
	c := &child{cmd: exec.CommandContext(ctx, self), ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childEnv+"=1")
	c.cmd.Stderr = &c.stderr
	in, err := c.cmd.StdinPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("starting a worker: %w", err)
	}
	go func() {
		defer cancel()
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	if err := json.NewEncoder(in).Encode(j); err != nil {
		cancel()
		return nil, c.wait()
	}
	return c, nil
}

// wait waits for the worker's end.
func (c *child) wait() error {
	<-c.ended
	if c.err == nil {
		return nil
	}
	return fmt.Errorf("the worker ended early: %s", cmp.Or(strings.TrimSpace(c.stderr.String()), c.err.Error()))
}

// kill ends the worker by SIGKILL and waits until it is gone.
func (c *child) kill() error {
	c.killed = true
	if err := c.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("killing the worker: %w", err)
	}
	<-c.ended
	if c.cmd.ProcessState.Exited() {
		return errors.New("killing the worker: it had ended by itself")
	}
	return nil
}

// childMain is the worker's main function.
func childMain(stdin io.Reader, stderr io.Writer) int {
	ctx, stop := interruptible()
	defer stop()
	fail := func(err error) int {
		_, _ = fmt.Fprintln(stderr, err)
		return exitFailed
	}
	var j job
	in := json.NewDecoder(stdin)
	if err := in.Decode(&j); err != nil {
		return fail(fmt.Errorf("reading the job: %w", err))
	}
	go func() { // nothing more comes: the end of the input is the end of the parent
		_, _ = io.Copy(io.Discard, stdin)
		os.Exit(exitFailed)
	}()
	if err := worker(ctx, j); err != nil {
		return fail(err)
	}
	return exitOK
}

// worker answers the message with the guard or without it. What the model says is told where it is scripted.
func worker(ctx context.Context, j job) (err error) {
	if !j.Guarded {
		return bare(ctx, j)
	}
	store, err := sqlitestore.Open(j.DB, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	_, err = work(ctx, store, j, func(string) {})
	return err
}
