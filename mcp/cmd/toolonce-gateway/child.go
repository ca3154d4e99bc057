package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

var errServerEnded = errors.New("the server ended while the client was still there")

// grace is how long a server may take to end by itself, and then after SIGTERM.
const grace = 5 * time.Second

// child is the server.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

func start(ctx context.Context, command []string, errw io.Writer) (*child, error) {
	// The end of ctx must not kill it: calls may still run.
	c := &child{cmd: exec.CommandContext(context.WithoutCancel(ctx), command[0], command[1:]...)}
	c.cmd.Stderr, c.cmd.WaitDelay = errw, grace
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.out, err = c.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the server: %w: check the command behind --", err)
	}
	return c, nil
}

// stop ends the server as MCP says: its input is closed, then it is told to end, then it is killed. left closes when its
// output has ended. An error says how a server ended that was to stay.
func (c *child) stop(left <-chan struct{}) error {
	ended := false
	select {
	case <-left:
		ended = true
	default:
	}
	_ = c.in.Close()
	if !within(left, grace) {
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		if !within(left, grace) {
			_ = c.cmd.Process.Kill()
		}
	}
	var err error
	exited := make(chan struct{})
	go func() { // it may have closed its output and stay
		err = c.cmd.Wait()
		close(exited)
	}()
	if !within(exited, grace) {
		_ = c.cmd.Process.Kill()
		<-exited
	}
	if err != nil && ended {
		return fmt.Errorf("the server: %w", err)
	}
	return nil
}

func within(c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}
