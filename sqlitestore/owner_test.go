//go:build cgo

package sqlitestore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

const peerEnv = "SQLITESTORE_PEER"

// TestPeerProcess is the other process of the tests below: it opens the file, claims an identity when it is told to, says
// what came of it, and lives until its input ends.
func TestPeerProcess(*testing.T) {
	path, identity, ok := strings.Cut(os.Getenv(peerEnv), "|")
	if !ok {
		return // not a peer
	}
	s, err := sqlitestore.Open(path, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println("peer: open")
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		panic(err)
	}
	c := aClaim("peer-"+s.Owner(), 1)
	c.Identity = identity
	row, won, err := s.Claim(context.Background(), c)
	fmt.Println("peer:", row.Operation, won, err)
	_, _ = io.Copy(io.Discard, in)
	_ = s.Close()
	os.Exit(0)
}

type peer struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func newPeer(t *testing.T, path, identity string) *peer {
	t.Helper()
	p := &peer{Cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPeerProcess$")}
	p.Env = append(os.Environ(), peerEnv+"="+path+"|"+identity)
	p.Stderr = os.Stderr
	var err error
	p.in, err = p.StdinPipe()
	check(t, err)
	out, err := p.StdoutPipe()
	check(t, err)
	p.out = bufio.NewScanner(out)
	check(t, p.Start())
	p.says(t)
	return p
}

// claim lets the peer claim.
func (p *peer) claim(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(p.in, "claim\n")
	check(t, err)
}

// says is the peer's next answer.
func (p *peer) says(t *testing.T) string {
	t.Helper()
	for p.out.Scan() {
		if s, ok := strings.CutPrefix(p.out.Text(), "peer: "); ok {
			return s
		}
	}
	t.Fatal("the peer has ended")
	return ""
}

func TestTwoProcessesClaimOneIdentityOnce(t *testing.T) {
	path := t.TempDir() + "/once.db"
	for range 5 {
		identity := freshHash()
		a, b := newPeer(t, path, identity), newPeer(t, path, identity)
		a.claim(t)
		b.claim(t)
		as, bs := strings.Fields(a.says(t)), strings.Fields(b.says(t))
		if as[0] != bs[0] || (as[1] == "true") == (bs[1] == "true") || as[2] != "<nil>" || bs[2] != "<nil>" {
			t.Errorf("two processes get %v and %v, want one row and one winner", as, bs)
		}
		row := found(t, open(t, path, nil), as[0])
		if row.OwnerGone {
			t.Error("the owner is gone while it lives")
		}
		for _, p := range []*peer{a, b} {
			check(t, p.in.Close())
			check(t, p.Wait())
		}
	}
}

func TestKilledOwnerIsGoneForOthersAndNotBefore(t *testing.T) {
	path := t.TempDir() + "/once.db"
	early := open(t, path, nil)
	p := newPeer(t, path, freshHash())
	p.claim(t)
	operation := strings.Fields(p.says(t))[0]
	row := found(t, early, operation)
	if row.OwnerGone || row.Owner == "" || row.Owner == early.Owner() {
		t.Fatalf("while it lives the owner is %q, gone %v", row.Owner, row.OwnerGone)
	}
	doubt := middleware.Transition{Step: middleware.Doubt, Operation: operation, Token: row.Token, Attempt: 1, Owner: row.Owner}
	if got, err := early.Change(t.Context(), doubt); !errors.Is(err, middleware.ErrLost) || got.State != middleware.Running {
		t.Errorf("a living owner's row is doubted: %s %v", got.State, err)
	}
	check(t, p.Process.Kill())
	_ = p.Wait() // it was killed
	for name, s := range map[string]*sqlitestore.Store{"that was open": early, "opened now": open(t, path, nil), "opened after that": open(t, path, nil)} {
		if !found(t, s, operation).OwnerGone {
			t.Errorf("for the store %s the killed owner is not gone", name)
		}
	}
	if got, err := early.Change(t.Context(), doubt); err != nil || got.State != middleware.InDoubt || !got.Unclear {
		t.Errorf("a killed owner's row cannot be doubted: %s %v", got.State, err)
	}
}

func TestMissingLockFileSaysNothing(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, nil)
	row := claimed(t, s, aClaim("run", 1))
	check(t, s.LoseLock())
	other := open(t, path, nil)
	if found(t, other, row.Operation).OwnerGone {
		t.Error("an owner whose lock file is missing is gone")
	}
	s.Die()
	if found(t, open(t, path, nil), row.Operation).OwnerGone {
		t.Error("an owner whose lock file is missing is gone")
	}
	doubt := middleware.Transition{Step: middleware.Doubt, Operation: row.Operation, Token: row.Token, Attempt: 1, Owner: row.Owner}
	if _, err := other.Change(t.Context(), doubt); !errors.Is(err, middleware.ErrLost) {
		t.Errorf("its row is doubted: %v", err)
	}
}

func TestRecordedEndOutlivesTheLockFile(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s, watcher := open(t, path, nil), open(t, path, nil)
	row := claimed(t, s, aClaim("run", 1))
	s.Die()
	open(t, path, nil) // records who has gone
	if s.LoseLock() == nil {
		t.Error("the lock file of an owner whose end is recorded is still there")
	}
	for _, w := range []*sqlitestore.Store{watcher, open(t, path, nil)} {
		if !found(t, w, row.Operation).OwnerGone {
			t.Error("an owner whose end is recorded is not gone")
		}
	}
}

func TestLivingOwnersOfOneProcessSeeEachOther(t *testing.T) {
	path := t.TempDir() + "/once.db"
	a, b := open(t, path, nil), open(t, path, nil)
	row := claimed(t, a, aClaim("run", 1))
	for name, s := range map[string]*sqlitestore.Store{"itself": a, "another": b} {
		if found(t, s, row.Operation).OwnerGone {
			t.Errorf("a living owner is gone for %s", name)
		}
	}
	check(t, a.Close())
	if !found(t, b, row.Operation).OwnerGone {
		t.Error("a closed store's owner is not gone")
	}
}

func TestLockIsNotInheritedByOtherPrograms(t *testing.T) {
	path := t.TempDir() + "/once.db"
	s := open(t, path, nil)
	row := claimed(t, s, aClaim("run", 1))
	heir := exec.CommandContext(t.Context(), "cat")
	in, err := heir.StdinPipe()
	check(t, err)
	check(t, heir.Start())
	s.Die()
	if !found(t, open(t, path, nil), row.Operation).OwnerGone {
		t.Error("a program that the owner has started keeps it alive")
	}
	check(t, in.Close())
	check(t, heir.Wait())
}
