//go:build cgo

package sqlitestore_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
	"github.com/toolonce/toolonce/sqlitestore"
)

type booking struct {
	Seat string `json:"seat" once:"key"`
}

// theatre is a store with a table of the program's own, and a Local tool that books seats in it.
type theatre struct {
	s      *sqlitestore.Store
	handle registry.Handler
	then   func(ctx context.Context, tx sqlitestore.Querier) (string, error) // after the seat is booked
	turn   int
}

func newTheatre(t *testing.T, mw ...registry.Middleware) *theatre {
	t.Helper()
	th := &theatre{s: open(t, t.TempDir()+"/once.db", nil)}
	th.then = func(context.Context, sqlitestore.Querier) (string, error) { return "booked", nil }
	check(t, th.s.Write("CREATE TABLE seats (seat TEXT)"))
	r := registry.New()
	registry.Add(r, registry.Tool[booking, string]{
		Name: "book", Effect: registry.NonIdempotentWrite, Local: true,
		Run: func(ctx context.Context, in booking) (string, error) {
			tx, err := sqlitestore.Tx(ctx)
			if err != nil {
				return "", err
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO seats VALUES (?)", in.Seat); err != nil {
				return "", err
			}
			return th.then(ctx, tx)
		},
	})
	opts := &middleware.OnceOptions{Logger: slog.New(slog.DiscardHandler), Repeats: -1}
	th.handle = r.Handler(append([]registry.Middleware{middleware.Once(th.s, opts)}, mw...)...)
	return th
}

func (th *theatre) book(t *testing.T) registry.Result {
	t.Helper()
	th.turn++
	res, err := th.handle(t.Context(), &registry.Call{Run: registry.Run{ID: "run"}, Turn: th.turn, Tool: "book", Arguments: `{"seat":"12A"}`})
	check(t, err)
	return res
}

func (th *theatre) want(t *testing.T, res registry.Result, verdict registry.Verdict, state middleware.State, seats ...string) {
	t.Helper()
	got, err := th.s.Names(t.Context(), "SELECT seat FROM seats")
	check(t, err)
	if diff := cmp.Diff(seats, got); diff != "" || res.Verdict != verdict {
		t.Errorf("%s, want %s: %s%s", res.Verdict, verdict, res.Content, diff)
	}
	if rows, err := th.s.List(t.Context(), nil, 0); err != nil || len(rows) != 1 || rows[0].State != state {
		t.Errorf("%+v, %v, want one row that is %s", rows, err, state)
	}
}

func TestWhatALocalToolChangesStaysWithItsResult(t *testing.T) {
	th := newTheatre(t)
	th.then = func(ctx context.Context, tx sqlitestore.Querier) (string, error) {
		rows, err := tx.QueryContext(ctx, "SELECT seat FROM seats")
		check(t, err)
		defer func() { check(t, rows.Close()) }()
		if !rows.Next() || rows.Next() {
			t.Error("the transaction does not show the one seat that it has booked")
		}
		check(t, rows.Err())
		if got, err := th.s.Names(ctx, "SELECT seat FROM seats"); err != nil || len(got) != 0 {
			t.Errorf("seen outside before it is done: %q, %v", got, err)
		}
		return "booked", nil
	}
	res := th.book(t)
	th.want(t, res, registry.Executed, middleware.Done, "12A")
	if res.Content != "booked" {
		t.Error(res.Content)
	}
	th.want(t, th.book(t), registry.AlreadyDone, middleware.Done, "12A")
}

func TestOfALocalToolThatFailsNothingStays(t *testing.T) {
	for name, then := range map[string]func(context.Context, sqlitestore.Querier) (string, error){
		"error": func(context.Context, sqlitestore.Querier) (string, error) { return "", errors.New("no") },
		"panic": func(context.Context, sqlitestore.Querier) (string, error) { panic("no") },
		"exit":  func(context.Context, sqlitestore.Querier) (string, error) { runtime.Goexit(); return "", nil },
		"broken statement": func(ctx context.Context, tx sqlitestore.Querier) (string, error) {
			_, err := tx.ExecContext(ctx, "INSERT INTO nowhere VALUES (1)")
			return "", err
		},
		"context that has ended": func(ctx context.Context, tx sqlitestore.Querier) (string, error) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := tx.ExecContext(ctx, "INSERT INTO seats VALUES ('13B')")
			return "", err
		},
	} {
		t.Run(name, func(t *testing.T) {
			th := newTheatre(t)
			well := th.then
			th.then = then
			th.want(t, th.book(t), registry.Failed, middleware.Free)
			th.then = well
			th.want(t, th.book(t), registry.Executed, middleware.Done, "12A")
		})
	}
}

func TestOfALocalToolThatIsKeptFromRunningNothingStays(t *testing.T) {
	refuse := true
	th := newTheatre(t, func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c *registry.Call) (registry.Result, error) {
			if res, err := next(ctx, c); err != nil || !refuse { // it has run: the transaction is what takes it back
				return res, err
			}
			return c.Refused(errors.New("sold out")), nil
		}
	})
	th.want(t, th.book(t), registry.Refused, middleware.Free)
	refuse = false
	th.want(t, th.book(t), registry.Executed, middleware.Done, "12A")
}

func TestOfALocalToolWhoseCommitFailsNothingStays(t *testing.T) {
	th := newTheatre(t)
	commits := 0
	check(t, th.s.OnCommit(func() int {
		if commits++; commits == 2 { // the first is the claim's
			return 1
		}
		return 0
	}))
	th.want(t, th.book(t), registry.Failed, middleware.Free)
	th.want(t, th.book(t), registry.Executed, middleware.Done, "12A")
}

func TestALocalToolThatEndsItsTransactionIsInDoubt(t *testing.T) {
	th := newTheatre(t)
	th.then = func(ctx context.Context, tx sqlitestore.Querier) (string, error) {
		_, err := tx.ExecContext(ctx, "COMMIT")
		return "booked", err
	}
	th.want(t, th.book(t), registry.OutcomeUnknown, middleware.InDoubt, "12A")
}

func TestThereIsNoTransactionButInALocalTool(t *testing.T) {
	if _, err := sqlitestore.Tx(t.Context()); err == nil {
		t.Error("there is one in the test")
	}
	th := newTheatre(t)
	var after context.Context
	var kept sqlitestore.Querier
	th.then = func(ctx context.Context, tx sqlitestore.Querier) (string, error) {
		after, kept = ctx, tx
		return "booked", nil
	}
	th.want(t, th.book(t), registry.Executed, middleware.Done, "12A")
	if _, err := sqlitestore.Tx(after); err == nil {
		t.Error("there is one after the tool has returned")
	}
	_, err := kept.ExecContext(t.Context(), "INSERT INTO seats VALUES ('13B')")
	if err == nil {
		t.Error("a transaction that was kept is of use")
	}

	r := registry.New()
	registry.Add(r, registry.Tool[booking, string]{
		Name: "book", Effect: registry.NonIdempotentWrite,
		Run: func(ctx context.Context, _ booking) (string, error) {
			_, err := sqlitestore.Tx(ctx)
			return "", registry.NoEffect(err)
		},
	})
	res, err := r.Handler(middleware.Once(th.s, nil))(t.Context(), &registry.Call{Run: registry.Run{ID: "another"}, Turn: 1, Tool: "book", Arguments: `{"seat":"1"}`})
	if err != nil || res.Verdict != registry.Failed {
		t.Errorf("%v, %v", res, err)
	}
}

func TestALocalToolNeedsALedgerWithTransactions(t *testing.T) {
	r := registry.New()
	registry.Add(r, registry.Tool[booking, string]{
		Name: "book", Effect: registry.NonIdempotentWrite, Local: true,
		Run: func(context.Context, booking) (string, error) { t.Error("it runs"); return "", nil },
	})
	l := middleware.Memory()
	_, err := r.Handler(middleware.Once(l, nil))(t.Context(), &registry.Call{Run: registry.Run{ID: "run"}, Turn: 1, Tool: "book", Arguments: `{"seat":"1"}`})
	rows, _ := l.List(t.Context(), nil, 0)
	if err == nil || len(rows) > 0 {
		t.Errorf("%v, %d rows", err, len(rows))
	}
}
