// Package pgtest starts PostgreSQL servers of a test's own, with what the system has installed. They listen on the loopback
// interface, trust everybody, and end with the process of the test, however that ends.
package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// errMissing says that there are no server programs.
var errMissing = errors.New("there are no PostgreSQL server programs (initdb, pg_ctl), neither in $PATH nor in /usr/lib/postgresql: install postgresql")

// shared is the server that all tests of a process use: to make one takes seconds.
var shared = sync.OnceValues(New)

// Start gives the address of a server that all tests of the process share: a connection string for its superuser and an
// empty database of that server, to which others of its databases and schemas may be added. Where there are no server
// programs the test is skipped, or fails if TOOLONCE_NO_SKIP is set.
func Start(t testing.TB) (dsn string) {
	t.Helper()
	return got(t, shared).DSN()
}

// Own gives a server that is this test's alone, to be stopped and started.
func Own(t testing.TB) *Server {
	t.Helper()
	s := got(t, New)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func got(t testing.TB, make func() (*Server, error)) *Server {
	t.Helper()
	s, err := make()
	if errors.Is(err, errMissing) && os.Getenv("TOOLONCE_NO_SKIP") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Server is a PostgreSQL server with data of its own.
type Server struct {
	programs, dir string
	port          int
	running       *running
}

// DSN is a connection string for the superuser.
func (s *Server) DSN() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

// programs finds the directory of the server programs, the newest where there are several.
func programs() (string, error) {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	debian, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	slices.Sort(debian)
	slices.Reverse(debian)
	for _, dir := range append(dirs, debian...) {
		if exists(filepath.Join(dir, "initdb")) && exists(filepath.Join(dir, "pg_ctl")) {
			return dir, nil
		}
	}
	return "", errMissing
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
