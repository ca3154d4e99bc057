//go:build cgo

package agent_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
	"github.com/toolonce/toolonce/transcript"
)

func openStore(t testing.TB, path string) *sqlitestore.Store {
	t.Helper()
	s, err := sqlitestore.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// expire makes everything that is done a thing of the past.
func expire(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_busy_timeout=10000")
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.ExecContext(t.Context(), `UPDATE operations SET expires = 1 WHERE expires > 0`)
	if err = errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// A done operation past its date is forgotten, but not while a run may still ask for it.
func TestAnExpiredOperationIsKeptForTheRunThatHasNotStoredItsOutput(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		path := t.TempDir() + "/once.db"
		var moved []string
		tools := func() *registry.Registry {
			r := registry.New()
			registry.Add(r, registry.Tool[refundInput, string]{
				Name: "issue_refund", Effect: registry.NonIdempotentWrite, Keep: 24 * time.Hour, ShareResult: true,
				Run: func(_ context.Context, in refundInput) (string, error) {
					moved = append(moved, in.OrderID)
					return fmt.Sprintf("refund %d", len(moved)), nil
				},
			})
			return r
		}
		s := openStore(t, path)
		f.diesAfterItsCalls(t, s, tools(), refundCall("call_a", "1001"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		expire(t, path)
		s = openStore(t, path)
		refundThenEnd := func() *transcript.Server {
			return transcript.NewServer(transcript.Steps(
				transcript.Step{Calls: []transcript.ToolCall{refundCall("call_x", "1001")}}, transcript.Step{Text: "Done."},
			), nil)
		}
		o := f.do(t, agent.New(onceClient(refundThenEnd()), tools(), s, nil), agent.Run{ID: "ticket-43"}, request)
		wantVerdicts(t, o, "1.0 issue_refund already_done")
		o = f.do(t, agent.New(onceClient(endsWith("Done.")), tools(), s, nil), run, request)
		wantVerdicts(t, o, "1.0 issue_refund replayed")
		if len(moved) != 1 {
			t.Errorf("moved %v", moved)
		}
		o = f.do(t, agent.New(onceClient(refundThenEnd()), tools(), s, nil), agent.Run{ID: "ticket-44"}, request)
		wantVerdicts(t, o, "1.0 issue_refund executed")
	})
}

// commits counts the transactions in the log that SQLite keeps beside the file, which must not have begun anew.
func commits(t testing.TB, path string) (n int) {
	t.Helper()
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	page := int(binary.BigEndian.Uint32(log[8:]))
	for at := 32; at+24+page <= len(log) && string(log[at+8:at+16]) == string(log[16:24]); at += 24 + page {
		if binary.BigEndian.Uint32(log[at+4:]) != 0 { // the last page of a transaction
			n++
		}
	}
	return n
}

// A run begins with a commit, each of its turns is one, and each guarded call is two: the claim and the result.
func TestAStoredRunCostsOneCommitToBeginOneATurnAndTwoAGuardedCall(t *testing.T) {
	eachForm(t, func(t *testing.T, f form) {
		path := t.TempDir() + "/once.db"
		s := openStore(t, path)
		var b bank
		m := transcript.NewServer(transcript.Steps(
			transcript.Step{Calls: []transcript.ToolCall{lookCall("call_a", "1001"), refundCall("call_b", "1001"), refundCall("call_c", "1002")}},
			transcript.Step{Calls: []transcript.ToolCall{lookCall("call_d", "1001")}},
			transcript.Step{Text: "Done."},
		), nil)
		l := agent.New(onceClient(m), b.tools(), s, nil)
		counted := commits(t, path)
		if o := f.do(t, l, run, request); o.err != nil {
			t.Fatal(o.err)
		}
		if got, want := commits(t, path)-counted, 1+3+2*2; got != want {
			t.Errorf("%d commits, want %d", got, want)
		}
		counted = commits(t, path)
		if o := f.do(t, l, run, request); o.err != nil || commits(t, path) != counted {
			t.Errorf("the finished run again: %v, %d commits", o.err, commits(t, path)-counted)
		}
	})
}
