package pgstore_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
	"github.com/toolonce/toolonce/registry"
)

type booking struct {
	Seat string `json:"seat" once:"key"`
}

// theatre is a store with a table of the program's own, and a Local tool that books seats in it.
type theatre struct {
	place
	s      *pgstore.Store
	seats  string
	handle registry.Handler
	then   func(ctx context.Context, tx pgstore.Querier) (string, error) // after the seat is booked
	turn   int
}

func newTheatre(t *testing.T) *theatre {
	t.Helper()
	th := &theatre{place: fresh(t)}
	th.s, th.seats = th.open(t), quoted(th.schema, "seats")
	statement(t, th.dsn, "CREATE TABLE "+th.seats+" (seat text)")
	r := registry.New()
	registry.Add(r, registry.Tool[booking, string]{
		Name: "book", Effect: registry.NonIdempotentWrite, Local: true,
		Run: func(ctx context.Context, in booking) (string, error) {
			tx, err := pgstore.Tx(ctx)
			if err != nil {
				return "", err
			}
			if _, err := tx.Exec(ctx, "INSERT INTO "+th.seats+" VALUES ($1)", in.Seat); err != nil {
				return "", err
			}
			return th.then(ctx, tx)
		},
	})
	th.handle = r.Handler(middleware.Once(th.s, &middleware.OnceOptions{Logger: slog.New(slog.DiscardHandler), Repeats: -1}))
	return th
}

func booked(context.Context, pgstore.Querier) (string, error) { return "booked", nil }

func (th *theatre) want(t *testing.T, then func(context.Context, pgstore.Querier) (string, error), verdict registry.Verdict, state middleware.State, seats int) {
	t.Helper()
	th.turn, th.then = th.turn+1, then
	res, err := th.handle(t.Context(), &registry.Call{Run: registry.Run{ID: "run"}, Turn: th.turn, Tool: "book", Arguments: `{"seat":"12A"}`})
	check(t, err)
	if n := count(t, th.place, "seats"); n != seats || res.Verdict != verdict {
		t.Errorf("%s with %d seats, want %s with %d: %s", res.Verdict, n, verdict, seats, res.Content)
	}
	if rows, err := th.s.List(t.Context(), nil, 0); err != nil || len(rows) != 1 || rows[0].State != state {
		t.Errorf("%+v, %v, want one row that is %s", rows, err, state)
	}
}

func TestWhatALocalToolChangesStaysWithItsResult(t *testing.T) {
	th := newTheatre(t)
	var after context.Context
	var kept pgstore.Querier
	seen := -1
	look := func() { seen = count(t, th.place, "seats") }
	th.want(t, func(ctx context.Context, tx pgstore.Querier) (string, error) {
		look()
		after, kept = ctx, tx
		return "booked", nil
	}, registry.Executed, middleware.Done, 1)
	if seen != 0 {
		t.Errorf("%d seats are seen outside before it is done", seen)
	}
	th.want(t, booked, registry.AlreadyDone, middleware.Done, 1)
	if _, err := pgstore.Tx(after); err == nil {
		t.Error("there is a transaction after the tool has returned")
	}
	if _, err := kept.Exec(t.Context(), "DELETE FROM "+th.seats); err == nil {
		t.Error("a transaction that was kept is of use")
	}
	if _, err := pgstore.Tx(t.Context()); err == nil {
		t.Error("there is one in the test")
	}
}

func TestOfALocalToolThatFailsNothingStays(t *testing.T) {
	for name, then := range map[string]func(context.Context, pgstore.Querier) (string, error){
		"error": func(context.Context, pgstore.Querier) (string, error) { return "", errors.New("no") },
		"panic": func(context.Context, pgstore.Querier) (string, error) { panic("no") },
		"exit":  func(context.Context, pgstore.Querier) (string, error) { runtime.Goexit(); return "", nil },
		"broken statement that is not told": func(ctx context.Context, tx pgstore.Querier) (string, error) {
			_, _ = tx.Exec(ctx, "INSERT INTO nowhere VALUES (1)") // the server has given the transaction up
			return "booked", nil
		},
		"connection that breaks": func(ctx context.Context, tx pgstore.Querier) (string, error) {
			_, _ = tx.Exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())")
			return "booked", nil
		},
		"context that ends": func(ctx context.Context, tx pgstore.Querier) (string, error) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := tx.Exec(ctx, "SELECT 1")
			return "", err
		},
	} {
		t.Run(name, func(t *testing.T) {
			th := newTheatre(t)
			th.want(t, then, registry.Failed, middleware.Free, 0)
			th.want(t, booked, registry.Executed, middleware.Done, 1)
		})
	}
}

func TestALocalToolThatEndsItsTransactionIsInDoubt(t *testing.T) {
	th := newTheatre(t)
	th.want(t, func(ctx context.Context, tx pgstore.Querier) (string, error) {
		_, err := tx.Exec(ctx, "COMMIT")
		return "booked", err
	}, registry.OutcomeUnknown, middleware.InDoubt, 1)
}

func TestOfTwoAttemptsOfALocalToolTheFirstToBeStoredStays(t *testing.T) {
	th := newTheatre(t)
	th.want(t, func(ctx context.Context, _ pgstore.Querier) (string, error) {
		rows, err := th.s.List(ctx, nil, 0)
		check(t, err)
		// Another process, which takes this one for dead, has run it meanwhile.
		_, err = th.s.Change(ctx, middleware.Transition{
			Step: middleware.Complete, Operation: rows[0].Operation, Token: rows[0].Token, Attempt: rows[0].Attempt, Result: "by another", HasResult: true,
		})
		return "booked", err
	}, registry.Replayed, middleware.Done, 0)
}

func TestLocalToolThatChangesItsSessionLeavesItToNobody(t *testing.T) {
	for _, change := range []string{"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ", "SET synchronous_commit = off"} {
		th := newTheatre(t)
		th.want(t, func(ctx context.Context, tx pgstore.Querier) (string, error) {
			_, err := tx.Exec(ctx, change)
			return "booked", err
		}, registry.Executed, middleware.Done, 1)
		for range 4 { // as many as there may be
			c, err := th.s.Pool().Acquire(t.Context())
			check(t, err)
			defer c.Release()
			var isolation, synchronous string
			check(t, c.QueryRow(t.Context(), "SELECT current_setting('default_transaction_isolation'), current_setting('synchronous_commit')").Scan(&isolation, &synchronous))
			if isolation != "read committed" || synchronous == "off" {
				t.Errorf("after %s a session has %s and synchronous_commit %s", change, isolation, synchronous)
			}
		}
	}
}
