package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/internal/pgtest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
)

// losing is a store whose next answers may be lost, and another that reads past it.
func losing(t *testing.T) (s, other *pgstore.Store, cut func(answers int32)) {
	t.Helper()
	p := fresh(t)
	other = p.open(t)
	pool := newPooler(t, p.dsn)
	p.dsn = pool.dsn
	s = p.open(t)
	trip(t, s.Namespace("so that all is described")) // what is described takes a round trip of its own
	return s, other, func(n int32) { pool.cut.Store(n) }
}

func TestClaimWhoseAnswerIsLostIsFoundByItsToken(t *testing.T) {
	s, other, cut := losing(t)
	for _, lost := range []int32{1, 2, 3} {
		c := aClaim("run", int(lost))
		cut(lost)
		row := claimed(t, s, c)
		if got := found(t, other, row.Operation); got.Token != c.Token || got.State != middleware.Running {
			t.Errorf("after %d lost answers the row is %s with token %q, want %q", lost, got.State, got.Token, c.Token)
		}
	}
	rows, err := other.List(t.Context(), nil, 0)
	check(t, err)
	if len(rows) != 3 {
		t.Errorf("3 claims have left %d operations", len(rows))
	}
}

func TestClaimOfAFreeRowWithAnApprovalIsFoundByItsToken(t *testing.T) {
	s, other, cut := losing(t)
	row := claimed(t, s, aClaim("run", 1))
	row, err := s.Change(t.Context(), middleware.Transition{Step: middleware.GiveBack, Operation: row.Operation, Token: row.Token, Attempt: 1})
	check(t, err)
	c := aClaim("run", 2)
	c.Identity, c.Seen = row.Identity, row
	cut(1)
	question, err := s.Ask(t.Context(), middleware.Approval{Call: c.Call, Identity: c.Identity, Input: c.Input}, time.Hour)
	check(t, err)
	cut(1)
	if _, err := s.Decide(t.Context(), middleware.Decision{Run: "run", Turn: 2, Approve: true, By: "Ann"}); err != nil {
		t.Errorf("a decision whose answer is lost: %v", err)
	}
	c.Approval = question.ID
	cut(1)
	row = claimed(t, s, c)
	all, err := other.Approvals(t.Context())
	check(t, err)
	if len(all) != 1 || all[0].Operation != row.Operation {
		t.Errorf("the approvals are %+v, want one that was spent on %s", all, row.Operation)
	}
}

func TestClaimThatAnotherHasTakenOverMeanwhileDoesNotRun(t *testing.T) {
	s, other, cut := losing(t)
	c := aClaim("run", 1)
	row := claimed(t, s, c)
	_, err := other.Change(t.Context(), middleware.Transition{Step: middleware.Doubt, Operation: row.Operation, Token: row.Token, Attempt: 1, Owner: row.Owner})
	if !errors.Is(err, middleware.ErrLost) {
		t.Fatalf("another doubts what a living process runs: %v", err)
	}
	check(t, s.Die())
	_, err = other.Change(t.Context(), middleware.Transition{Step: middleware.Doubt, Operation: row.Operation, Token: row.Token, Attempt: 1, Owner: row.Owner})
	check(t, err)
	cut(1) // of the same claim, as though it came again
	if _, won, err := s.Claim(t.Context(), c); won || !errors.Is(err, pgstore.ErrUnknown) {
		t.Errorf("a claim that was taken over: won %v, %v", won, err)
	}
}

func TestChangeWhoseAnswerIsLostIsMadeOnce(t *testing.T) {
	s, other, cut := losing(t)
	turn := 0
	for _, c := range []struct {
		steps []middleware.Step // the last one's answer is lost
		state middleware.State
	}{
		{[]middleware.Step{middleware.Complete}, middleware.Done},
		{[]middleware.Step{middleware.GiveBack}, middleware.Free},
		{[]middleware.Step{middleware.Doubt}, middleware.InDoubt},
		{[]middleware.Step{middleware.Take}, middleware.InDoubt},
		{[]middleware.Step{middleware.Take, middleware.Found}, middleware.Done},
		{[]middleware.Step{middleware.Take, middleware.Unsure}, middleware.InDoubt},
		{[]middleware.Step{middleware.Doubt, middleware.Happened}, middleware.Done},
		{[]middleware.Step{middleware.Doubt, middleware.NotHappened}, middleware.Free},
	} {
		turn++
		claim := aClaim("run", turn)
		claim.Deadline = 1
		row := claimed(t, s, claim)
		for i, step := range c.steps {
			tr := middleware.Transition{
				Step: step, Operation: row.Operation, Token: row.Token, Attempt: 1, State: row.State, Mark: "mark", Result: "result", HasResult: true, By: "Ann",
			}
			if i == len(c.steps)-1 {
				cut(1)
			}
			if _, err := s.Change(t.Context(), tr); err != nil {
				t.Errorf("step %d of %v: %v", step, c.steps, err)
			}
		}
		if got := found(t, other, row.Operation); got.State != c.state || got.Late {
			t.Errorf("after %v the row is %s, late %v; want %s", c.steps, got.State, got.Late, c.state)
		}
	}
}

// Another call of the process may have begun the same attempt: whose it is cannot be told, and the guard finds out.
func TestNextAttemptWhoseAnswerIsLostIsNotTakenForLost(t *testing.T) {
	s, _, cut := losing(t)
	row := claimed(t, s, aClaim("run", 1))
	cut(1)
	_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Again, Operation: row.Operation, Token: row.Token, Attempt: 1})
	if !errors.Is(err, pgstore.ErrUnknown) || errors.Is(err, middleware.ErrLost) {
		t.Errorf("an attempt whose answer is lost says %v, want ErrUnknown", err)
	}
	if got := found(t, s, row.Operation); got.Attempt != 2 {
		t.Errorf("it has %d attempts, want 2", got.Attempt)
	}
}

func TestRunAndNotesWhoseAnswersAreLostAreKeptOnce(t *testing.T) {
	s, other, cut := losing(t)
	cut(1)
	r := begun(t, s, "run")
	for n := 1; n <= 3; n++ {
		cut(1)
		e := journal.Entry{Run: "run", Token: r.Token, Turn: journal.Turn{Number: n, Answer: []byte("{}")}, Final: n == 3}
		if n > 1 {
			e.Outputs = []journal.Output{{Content: "told"}}
		}
		stored, err := s.Append(t.Context(), e)
		if err != nil || stored.Final != e.Final || len(stored.Outputs) != len(e.Outputs) {
			t.Errorf("turn %d: %+v, %v", n, stored, err)
		}
	}
	if got := begun(t, other, "run"); len(got.Turns) != 3 || !got.Finished {
		t.Errorf("the run has %d turns, finished %v", len(got.Turns), got.Finished)
	}
	second := begun(t, s, "second")
	cut(1)
	check(t, s.Leave(t.Context(), journal.Leaving{Run: "second", Token: second.Token}))
	begun(t, other, "second")

	row := claimed(t, s, aClaim("run", 1))
	for turn := range 2 {
		cut(1)
		if n, err := s.Note(t.Context(), row.Operation, middleware.Alias{Run: "run", Turn: turn * 9}); n != turn+1 || err != nil {
			t.Errorf("a note is counted as %d, %v; want %d", n, err, turn+1)
		}
	}
}

func TestConnectionKilledInAClaimIsNoClaimAndTheNextTryIsOne(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	c, err := pgx.Connect(t.Context(), p.dsn)
	check(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	tx, err := c.Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE "+quoted(p.schema, "aliases")) // the claim has its row then, and waits for its alias
	check(t, err)
	claim := aClaim("run", 1)
	done := make(chan error, 1)
	go func() {
		row, won, err := s.Claim(t.Context(), claim)
		if err == nil && (!won || row.Token != claim.Token) {
			err = errors.New("it is not won")
		}
		done <- err
	}()
	waiting(t, p, 1)
	statement(t, p.dsn, "SELECT pg_terminate_backend(pid) FROM "+waiters)
	check(t, tx.Commit(t.Context()))
	check(t, <-done)
	rows, err := s.List(t.Context(), nil, 0)
	check(t, err)
	if len(rows) != 1 {
		t.Errorf("%d operations, want 1", len(rows))
	}
}

func TestServerThatStopsInACallAndStartsAgainIsWaitedFor(t *testing.T) {
	for _, how := range []string{"fast", "immediate"} {
		t.Run(how, func(t *testing.T) {
			server := pgtest.Own(t)
			p := place{dsn: server.DSN(), schema: "toolonce"}
			s := p.open(t)
			row := claimed(t, s, aClaim("run", 1))
			check(t, server.Stop(how))
			done := make(chan error, 2)
			go func() {
				_, err := s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1, HasResult: true})
				done <- err
			}()
			go func() {
				_, won, err := s.Claim(t.Context(), aClaim("run", 2))
				if err == nil && !won {
					err = errors.New("it is not won")
				}
				done <- err
			}()
			check(t, server.Start())
			check(t, <-done)
			check(t, <-done)
			if got := found(t, s, row.Operation); got.State != middleware.Done {
				t.Errorf("the operation is %s", got.State)
			}
		})
	}
}

func TestServerThatStaysAwayIsAnErrorAndNotALoss(t *testing.T) {
	server := pgtest.Own(t)
	s, err := pgstore.Open(t.Context(), server.DSN(), nil)
	check(t, err)
	row := claimed(t, s, aClaim("run", 1))
	s.SetWriteTimeout(300 * time.Millisecond)
	away := func(err error) bool { // which of them depends on how far the last try has come
		return errors.Is(err, pgstore.ErrDown) || errors.Is(err, pgstore.ErrUnknown) || errors.Is(err, pgstore.ErrBusy)
	}
	check(t, server.Stop("immediate"))
	_, won, err := s.Claim(t.Context(), aClaim("run", 2))
	if won || !away(err) {
		t.Errorf("a claim says won %v, %v", won, err)
	}
	_, err = s.Change(t.Context(), middleware.Transition{Step: middleware.Complete, Operation: row.Operation, Token: row.Token, Attempt: 1})
	if !away(err) || errors.Is(err, middleware.ErrLost) {
		t.Errorf("a result says %v", err)
	}
	if err := s.Close(); !away(err) {
		t.Errorf("Close says %v", err)
	}
}
