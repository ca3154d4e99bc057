//go:build cgo && linux && amd64

package sqlitestore_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

const powerEnv = "TOOLONCE_POWER_JOB"

// powerJob is what the process is told to do whose writes are recorded.
type powerJob struct {
	Dir         string // holds db, the directory of the store, and notes
	Synchronous string
}

func (j powerJob) db() string    { return filepath.Join(j.Dir, "db") }
func (j powerJob) notes() string { return filepath.Join(j.Dir, "notes") }

// powerNote says what each key is to stand for: first that it is asked for, then that the store has acknowledged it. What is
// asked for at once happens at once.
type powerNote struct {
	ID    int64
	Means map[string]string
	Done  bool
}

// powered is a process that does all kinds of writes and notes what it was told.
type powered struct {
	*testing.T
	job   powerJob
	notes *os.File
	last  atomic.Int64
}

// TestPowerLossWorker is the process whose writes the tests below record.
func TestPowerLossWorker(t *testing.T) {
	text := os.Getenv(powerEnv)
	if text == "" {
		return // not that process
	}
	p := powered{T: t}
	check(t, json.Unmarshal([]byte(text), &p.job))
	var err error
	p.notes, err = os.OpenFile(p.job.notes(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	check(t, err)
	check(t, beWatched())
	for session := range 3 {
		stores := make([]*sqlitestore.Store, 1+session%2)
		for i := range stores {
			stores[i], err = sqlitestore.Open(p.job.db()+"/once.db", nil)
			check(t, err)
			check(t, stores[i].Write("PRAGMA wal_autocheckpoint = 12; PRAGMA synchronous = "+p.job.Synchronous))
		}
		var group sync.WaitGroup
		for lane := range 2 {
			s := stores[lane%len(stores)].Namespace("acme")
			group.Go(func() { p.work(s, fmt.Sprintf("run-%d-%d", session, lane)) })
		}
		group.Wait()
		if session == 2 {
			return // and nobody closes it
		}
		for _, s := range stores {
			check(t, s.Close())
		}
	}
}

func (p *powered) say(n powerNote) {
	line, err := json.Marshal(n)
	if err == nil {
		_, err = p.notes.Write(line)
	}
	if err != nil {
		panic(err)
	}
}

// do notes around f what it is to make true: keys, each with what it stands for then.
func (p *powered) do(f func() error, means ...string) {
	n := powerNote{ID: p.last.Add(1), Means: map[string]string{}}
	for i := 0; i < len(means); i += 2 {
		n.Means[means[i]] = means[i+1]
	}
	p.say(n)
	if err := f(); err != nil {
		panic(err)
	}
	n.Done = true
	p.say(n)
}

// work is what one goroutine does: a run of three turns, with operations of every fate and an approval.
func (p *powered) work(s *sqlitestore.Store, run string) {
	r, err := s.Begin(p.Context(), aStart(run))
	if err != nil {
		panic(err)
	}
	var turns []journal.Turn
	for number := 1; number <= 3; number++ {
		e := journal.Entry{Run: run, Token: r.Token, Turn: journal.Turn{Number: number, Answer: fmt.Appendf(nil, `{"answer":%d}`, number)}}
		if number > 1 {
			e.Outputs = []journal.Output{{Content: strings.Repeat(run, 1000*number), Verdict: registry.Executed}, {Position: 1, Verdict: registry.Refused}}
			turns[number-2].Outputs = e.Outputs
		}
		e.Final = number == 3 && strings.HasSuffix(run, "0")
		turns = append(turns, e.Turn)
		p.do(func() error { _, err := s.Append(p.Context(), e); return err }, "run "+run, asRun(turns, e.Final))
		p.operations(s, run, number)
	}
	p.approvals(s, run, 4)
	if strings.HasSuffix(run, "1") {
		turns[2].Outputs = []journal.Output{{Content: "told", Verdict: registry.Executed}}
		l := journal.Leaving{Run: run, Token: r.Token, Turn: 3, Outputs: turns[2].Outputs}
		p.do(func() error { return s.Leave(p.Context(), l) }, "run "+run, asRun(turns, false))
	}
}

func (p *powered) claim(s *sqlitestore.Store, c middleware.Claim, means ...string) (row middleware.Row) {
	p.do(func() (err error) {
		var won bool
		if row, won, err = s.Claim(p.Context(), c); err == nil && !won {
			err = errors.New("a fresh claim is lost")
		}
		return err
	}, append(means, "operation "+c.Identity, asOperation(middleware.Running, c.Token, "", ""))...)
	return row
}

// change takes a step to a state, and returns the row then.
func (p *powered) change(s *sqlitestore.Store, row middleware.Row, t middleware.Transition, state middleware.State, means ...string) (got middleware.Row) {
	t.Operation, t.Token, t.Attempt = row.Operation, row.Token, row.Attempt
	p.do(func() (err error) {
		got, err = s.Change(p.Context(), t)
		return err
	}, append(means, "operation "+row.Identity, asOperation(state, row.Token, t.Result, t.By))...)
	return got
}

// operations claims one of each fate.
func (p *powered) operations(s *sqlitestore.Store, run string, turn int) {
	claim := func(position int) middleware.Row {
		c := aClaim(run, turn)
		c.Call.Position, c.Deadline = position, 1
		return p.claim(s, c)
	}
	complete := middleware.Transition{Step: middleware.Complete, Result: strings.Repeat("r", 10+8000*(turn-1)), HasResult: true}
	row := p.change(s, claim(0), complete, middleware.Done)
	c := aClaim(run, turn)
	c.Call.Position, c.Identity = 9, row.Identity
	p.do(func() error {
		_, err := s.Note(p.Context(), row.Operation, c.Call)
		return err
	}, fmt.Sprintf("alias %s %d", run, turn), row.Identity)

	claim(1) // and nothing more is heard of it
	doubt := middleware.Transition{Step: middleware.Doubt}
	verdict := middleware.Transition{Step: middleware.Happened, Result: "seen", HasResult: true, By: "ann"}
	p.change(s, p.change(s, claim(2), doubt, middleware.InDoubt), verdict, middleware.Done)

	switch turn {
	case 2:
		row = p.change(s, claim(3), doubt, middleware.InDoubt)
		row = p.change(s, row, middleware.Transition{Step: middleware.NotHappened, By: "bob"}, middleware.Free)
		c = aClaim(run, turn)
		c.Call.Position, c.Identity, c.Seen = 4, row.Identity, row
		p.claim(s, c)
	case 3:
		c = aClaim(run, turn)
		c.Call.Position, c.Undoes = 5, row.Operation
		p.change(s, p.claim(s, c), complete, middleware.Done, "operation "+row.Identity, asOperation(middleware.Released, row.Token, row.Result, ""))
	}
}

// approvals asks for two, of which one is spent.
func (p *powered) approvals(s *sqlitestore.Store, run string, turn int) {
	for position, approve := range []bool{true, false} {
		c := aClaim(run, turn)
		c.Call.Position = position
		key := fmt.Sprintf("approval %s %d", run, position)
		var a middleware.Approval
		p.do(func() (err error) {
			a, err = s.Ask(p.Context(), middleware.Approval{Call: c.Call, Identity: c.Identity, Input: c.Input}, 24*time.Hour)
			return err
		}, key, asApproval(middleware.Pending, "", ""))
		state := middleware.Denied
		if approve {
			state = middleware.Approved
		}
		d := middleware.Decision{Run: run, Turn: turn, Position: position, Approve: approve, By: "eve"}
		p.do(func() error { _, err := s.Decide(p.Context(), d); return err }, key, asApproval(state, "eve", ""))
		if approve {
			c.Approval = a.ID
			p.claim(s, c, key, asApproval(middleware.Spent, "eve", c.Identity))
		}
	}
}

// What follows is how the keys of notes are told, by what must not be lost of each.

func asOperation(state middleware.State, token, result, by string) string {
	return fmt.Sprintf("%s under %s by %q, %d bytes %x", state, token, by, len(result), sha256.Sum256([]byte(result)))
}

func asApproval(state middleware.ApprovalState, by, spentOn string) string {
	return fmt.Sprintf("%s by %q on %q", state, by, spentOn)
}

func asRun(turns []journal.Turn, finished bool) string {
	if len(turns) == 0 {
		return ""
	}
	text := fmt.Sprintf("%d turns, finished %t", len(turns), finished)
	for _, t := range turns {
		text += fmt.Sprintf("; %s", t.Answer)
		for _, o := range t.Outputs {
			text += fmt.Sprintf(", %d %s %d bytes %x", o.Position, o.Verdict, len(o.Content), sha256.Sum256([]byte(o.Content)))
		}
	}
	return text
}
