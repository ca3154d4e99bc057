package pgstore_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/toolonce/toolonce/pgstore"
)

// pooler is a pooler in transaction mode: each transaction of a client gets another of a few sessions.
type pooler struct {
	dsn      string
	sessions chan net.Conn
	// cut is how many answers to transactions are to be lost: the connection breaks once the server has given them.
	cut atomic.Int32
	// silent is how many transactions are to vanish on their way: nobody answers, and nobody ends the connection.
	silent atomic.Int32
	awake  chan struct{} // closed to break those connections
}

func newPooler(t *testing.T, dsn string) *pooler {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = l.Close() })
	host, rest, _ := strings.Cut(dsn, "@")
	_, name, _ := strings.Cut(rest, "/")
	p := &pooler{dsn: host + "@" + l.Addr().String() + "/" + name, sessions: make(chan net.Conn, 3), awake: make(chan struct{})}
	for range cap(p.sessions) {
		c, err := pgconn.Connect(t.Context(), dsn)
		check(t, err)
		h, err := c.Hijack()
		check(t, err)
		t.Cleanup(func() { _ = h.Conn.Close() })
		p.sessions <- h.Conn
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_ = p.serve(c) // its end is the client's concern
			}()
		}
	}()
	return p
}

// message reads one, of which only the first of a connection has no kind.
func message(r io.Reader, kind bool) ([]byte, error) {
	head := make([]byte, 4, 64)
	if kind {
		head = head[:5]
	}
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	at := len(head)
	m := append(head, make([]byte, binary.BigEndian.Uint32(head[at-4:])-4)...)
	_, err := io.ReadFull(r, m[at:])
	return m, err
}

func (p *pooler) serve(client net.Conn) error {
	if _, err := message(client, false); err != nil {
		return err
	}
	greeting := "R\x00\x00\x00\x08\x00\x00\x00\x00" + parameter("client_encoding", "UTF8") + parameter("standard_conforming_strings", "on") +
		"K\x00\x00\x00\x0c\x00\x00\x00\x01\x00\x00\x00\x01" + "Z\x00\x00\x00\x05I"
	if _, err := io.WriteString(client, greeting); err != nil {
		return err
	}
	for {
		var sent []byte
		executes := false
		for { // up to the end of what is one transaction, unless it is begun by hand
			m, err := message(client, true)
			if err != nil || m[0] == 'X' {
				return err
			}
			sent = append(sent, m...)
			executes = executes || m[0] == 'E'
			if m[0] == 'S' || m[0] == 'Q' {
				break
			}
		}
		if executes && p.silent.Add(-1) >= 0 {
			<-p.awake
			return errCut
		}
		if err := p.transaction(client, sent, executes); err != nil {
			return err
		}
	}
}

func parameter(name, value string) string {
	return "S\x00\x00\x00" + string(rune(4+len(name)+1+len(value)+1)) + name + "\x00" + value + "\x00"
}

var errCut = errors.New("the answer is lost")

// transaction sends what a client has sent, and more until the session is in no transaction.
func (p *pooler) transaction(client net.Conn, sent []byte, executes bool) error {
	session := <-p.sessions
	defer func() { p.sessions <- session }()
	for {
		if _, err := session.Write(sent); err != nil {
			return err
		}
		var answer []byte
		for {
			m, err := message(session, true)
			if err != nil {
				return err
			}
			answer = append(answer, m...)
			if m[0] == 'Z' {
				break
			}
		}
		if executes && p.cut.Add(-1) >= 0 {
			return errCut
		}
		if _, err := client.Write(answer); err != nil {
			return err
		}
		if answer[len(answer)-1] == 'I' {
			return nil
		}
		sent = nil
		for {
			m, err := message(client, true)
			if err != nil {
				return err
			}
			sent = append(sent, m...)
			if m[0] == 'S' || m[0] == 'Q' {
				break
			}
		}
	}
}

func TestStoreWorksBehindAPoolerThatSharesSessions(t *testing.T) {
	p := fresh(t)
	p.dsn = newPooler(t, p.dsn).dsn
	s := p.open(t)
	trip(t, s)
	tripTogether(t, s)
	s, err := pgstore.Open(t.Context(), p.dsn, p.options(pgstore.Options{MustExist: true}))
	check(t, err)
	check(t, s.Close())
}
