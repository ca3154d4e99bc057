package middleware

import (
	"context"
	"time"
)

// PruneOptions say what is forgotten. The zero value forgets all whose time is over.
type PruneOptions struct {
	// OlderThan keeps what is younger, even where its own time is over. It makes no time shorter. 0: each its own time.
	OlderThan time.Duration
	// DryRun counts what would be forgotten, and changes nothing.
	DryRun bool
	// Progress is told after each batch what has been done until then. nil: nobody is told.
	Progress func(PruneReport)
}

// PruneReport counts what was forgotten, or would be.
type PruneReport struct {
	// Contents are the operations whose input and result have gone. That they were done is still known.
	Contents int
	// Identities are the operations that are not known any more, with all the calls that meant them.
	Identities int
	// Approvals are questions that were answered or have expired.
	Approvals int
	// Runs are those whose turns and outputs have gone. That they were finished is still known.
	Runs int
	// Needed are the operations whose time is over but which stay whole: a call of an unfinished run means them, and what the
	// model was told about it is not stored.
	Needed int
	// Oldest is when the oldest operation was claimed that still has input or result; zero where none has.
	Oldest time.Time
}

// Pruner is a Ledger that can forget. Like every method of a ledger, Prune works in one namespace.
//
//  1. The input and the result of an operation that is done or released go when Claim.Retain has passed since it was done,
//     those of a free one when it has since it was freed. All else of the row stays, so the operation is still done.
//     A ledger that is no journal, as Memory, knows no unfinished runs, and keeps nothing for them.
//  2. A done row goes with its aliases where it has expired, its content may go, and no operation that undoes it is running
//     or in doubt. So does a free row of which a later claim would read nothing that counts: its deadlines are over, no
//     person freed it, no claim under its key has ended unclear, and it is at its first key. A row that is marked Late stays.
//  3. A released row stays for good: the generation of the next claim, and what an undo means, depend on it.
//  4. Nothing of a row goes that is running or in doubt, or that a call means which is one of an unfinished run and has no
//     stored output.
//  5. An approval goes when registry.DefaultRetain has passed since it expired, whatever was answered, but for one of an
//     unfinished run.
//  6. Where the store is a journal too, the turns and outputs of a finished run go when registry.DefaultRetain has passed since
//     its end. Begin is journal.ErrForgotten then.
//  7. Each row goes by its id, in a statement that checks state and dates once more. The work is done in short batches,
//     between which other callers have their turn; where ctx ends, what was done until then stays and the error is that of ctx.
type Pruner interface {
	Prune(ctx context.Context, opts PruneOptions) (PruneReport, error)
}
