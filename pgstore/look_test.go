package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/middleware"
)

// asks is what a guarded call asks first.
func asks(c middleware.Claim) middleware.Query {
	return middleware.Query{Run: c.Call.Run, Turn: c.Call.Turn, Position: c.Call.Position, Identity: c.Identity}
}

func TestManyWhoLookAtOnceAreEachToldTheirOwn(t *testing.T) {
	all := fresh(t).open(t)
	s := all.Namespace("acme")
	claims := manyClaims("run", 60)
	want := map[int]string{}
	for i, c := range claims {
		switch i % 4 {
		case 0: // found at its place
			want[i] = claimed(t, s, c).Operation
			claims[i].Identity = freshHash()
		case 1: // by its identity
			c.Call.Run = "another"
			want[i] = claimed(t, s, c).Operation
		case 2: // in another namespace
			claimed(t, all, c)
		}
	}
	var group sync.WaitGroup
	s.HoldLooks(len(claims), func() {
		for i, c := range claims {
			group.Go(func() {
				row, ok, err := s.Find(context.Background(), asks(c))
				if err != nil || ok != (want[i] != "") || row.Operation != want[i] {
					t.Errorf("look %d: %v, %s, %v; want %q", i, ok, row.Operation, err, want[i])
				}
			})
		}
	})
	group.Wait()
}

func TestWhoLeavesManyThatLookKeepsNobodyElseFromTheAnswer(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	there := aClaim("run", 1)
	operation := claimed(t, s, there).Operation
	c, err := pgx.Connect(t.Context(), p.dsn)
	check(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	tx, err := c.Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE "+quoted(p.schema, "aliases"))
	check(t, err)
	left := errors.New("left")
	answers := make(chan error, 3)
	look := func() (leave func()) {
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, _, err := s.Find(ctx, asks(there))
			gone <- err
		}()
		return func() {
			cancel(left)
			if err := <-gone; !errors.Is(err, left) {
				t.Errorf("who leaves is told %v", err)
			}
		}
	}
	var leader, member func()
	s.HoldLooks(5, func() {
		leader = look()
		for s.LooksWaiting() < 1 {
		}
		waits := look()
		for s.LooksWaiting() < 2 {
		}
		waits()
		member = look()
		for range 3 {
			go func() {
				row, _, err := s.Find(t.Context(), asks(there))
				if err == nil && row.Operation != operation {
					err = fmt.Errorf("it is told of %q", row.Operation)
				}
				answers <- err
			}()
		}
	})
	waiting(t, p, 1) // all were sent
	member()
	leader()
	check(t, tx.Commit(t.Context()))
	for range 3 {
		check(t, <-answers)
	}
}
