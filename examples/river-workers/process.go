package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// worker is a process.
type worker struct {
	cmd   *exec.Cmd
	input io.Closer     // it works while this is open
	ended chan struct{} // closed when it has ended, err is set then
	err   error
}

// start starts this program once more, as a worker, and waits for its first line: it is ready.
func (s *story) start(ctx context.Context, name string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := s.place
	p.Name = name
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	w := &worker{cmd: exec.CommandContext(ctx, self), ended: make(chan struct{})}
	w.cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	w.cmd.Stderr = os.Stderr
	if w.input, err = w.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := w.cmd.Start(); err != nil {
		return err
	}
	s.workers[name] = w
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	fmt.Print(line)
	go func() {
		_, copied := io.Copy(os.Stdout, lines)
		w.err = errors.Join(copied, w.cmd.Wait())
		close(w.ended)
	}()
	return err
}

// end ends a worker that still works.
func (s *story) end(name string) error {
	w := s.workers[name]
	_ = w.input.Close() // it may have ended
	<-w.ended
	if name == s.killed {
		return nil
	}
	return w.err
}
