package middleware

import (
	"context"
	"time"
)

// Selection says which operations to list. The zero value is all.
type Selection struct {
	// States are those that an operation may be in; none: all.
	States []State
	// Tool names the one whose operations are meant; "": those of all.
	Tool string
	// Run names the one whose calls mean the operations; "": those of all.
	Run string
	// Older leaves out what has changed its state since; 0: nothing.
	Older time.Duration
	// Limit is how many at most; 0: all.
	Limit int
}

// Count is how many operations of a tool are in a state.
type Count struct {
	Tool   string
	State  State
	N      int
	Oldest time.Time // when the one that has not changed its state for longest came to be in it
}

// Inspector is a Ledger that can be looked into: what operators need beside a [Lister]. It changes nothing, and works in
// one namespace like every method of a Ledger.
//
//  1. Select lists the operations that the selection means, newest change first.
//  2. Page lists operations in the order in which they were made, those after one; "" is before all. So a store is read to
//     its end in pieces, and what is there from the first piece to the last is read once.
//  3. Calls gives the calls that have meant an operation and are still remembered, the one that claimed it included, by run,
//     turn and position.
//  4. Counts counts the operations by tool and state.
type Inspector interface {
	Select(ctx context.Context, s Selection) ([]Row, error)
	Page(ctx context.Context, after string, limit int) ([]Row, error)
	Calls(ctx context.Context, operation string) ([]Alias, error)
	Counts(ctx context.Context) ([]Count, error)
}
