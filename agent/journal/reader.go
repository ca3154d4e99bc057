package journal

import (
	"context"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// RunsQuery says which runs to list. The zero value is all.
type RunsQuery struct {
	// Conversation names the one whose runs are meant; "": those of every conversation, and of none.
	Conversation string
	// Unfinished leaves out the runs that have their answer.
	Unfinished bool
	// Limit is how many at most; 0: all.
	Limit int
}

// Summary is what a list says of a run.
type Summary struct {
	Run registry.Run
	// API is "chat" or "responses".
	API     string
	Created time.Time // the store's clock
	// Turns is how many answers of the model are stored.
	Turns    int
	Finished bool
	// Forgotten says that the run's content was erased.
	Forgotten bool
	// Taken says that somebody who lives has the run, so that Begin of it is ErrRunTaken.
	Taken bool
	// OwnerUnknown says that somebody has or had the run, and nothing shows whether they live; Begin of it is ErrRunTaken,
	// and says how to mend that.
	OwnerUnknown bool
}

// Reader is a Journal that can be looked through: what operators need. It takes nothing and changes nothing, and works in
// one namespace like every method of a Journal. What is returned shares no memory with what is stored.
//
//  1. Runs lists the runs that the query means, the one made last first.
//  2. Read gives a whole run as it was at one moment, whoever has it and whatever its state, without its token and without
//     AskedBefore; false where there is none. Where content cannot be opened the error says why, and the run comes with it
//     all the same, that content left out.
type Reader interface {
	Runs(ctx context.Context, q RunsQuery) ([]Summary, error)
	Read(ctx context.Context, run string) (Record, bool, error)
}
