//go:build unix

package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// The script holds a server while its input stays open, which ends with the process of the test. A word on it says how to
// stop the server, which then is kept; without one all goes.
const script = `
"$1/pg_ctl" -s -w -t 60 -D "$2/data" -l "$2/log" -o "$3" start || { cat "$2/log" >&2; exit 1; }
echo ready
read how
"$1/pg_ctl" -s -w -t 60 -D "$2/data" -m "${how:-immediate}" stop
test -n "$how" || rm -rf "$2"
`

// running is a server that runs.
type running struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

// New makes and starts a server.
func New() (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "toolonce-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{programs: bin, dir: dir}
	if err := s.make(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *Server) make() error {
	if who, err := servant(); err != nil {
		return err
	} else if who != nil {
		if err := os.Chown(s.dir, int(who.Uid), int(who.Gid)); err != nil {
			return err
		}
	}
	cmd, err := s.command(filepath.Join(s.programs, "initdb"), "-D", filepath.Join(s.dir, "data"),
		"-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return err
	}
	return s.Start()
}

// servant is who runs the server: root may not.
func servant() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("%w: root may not run them, and %w", errMissing, err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func (s *Server) command(name string, args ...string) (*exec.Cmd, error) {
	who, err := servant()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.Background(), name, args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setpgid: true}
	return cmd, nil
}

// Start starts a server that was stopped, and returns when it answers.
func (s *Server) Start() error {
	// Nobody's data are to outlive a failure of the machine, and a sync costs most of a test's time.
	settings := fmt.Sprintf("-c port=%d -c listen_addresses=127.0.0.1 -c unix_socket_directories=%s -c max_connections=300 -c fsync=off -c full_page_writes=off", s.port, s.dir)
	cmd, err := s.command("/bin/sh", "-c", script, "sh", s.programs, s.dir, settings)
	if err != nil {
		return err
	}
	var said strings.Builder
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		return errors.Join(fmt.Errorf("the server does not start: %w", cmd.Wait()), errors.New(said.String()))
	}
	s.running = &running{cmd, in}
	return nil
}

// Stop stops the server as pg_ctl does: fast, or immediate, which is as though it had crashed. Its data stay.
func (s *Server) Stop(how string) error { return s.end(how + "\n") }

// Close stops the server and removes its data.
func (s *Server) Close() error {
	if s.running == nil {
		return os.RemoveAll(s.dir)
	}
	return s.end("")
}

func (s *Server) end(how string) error {
	r := s.running
	s.running = nil
	_, err := io.WriteString(r.input, how)
	return errors.Join(err, r.input.Close(), r.cmd.Wait())
}
