// Package journal is what a loop remembers of its runs: what the model answered and what it was told, as raw JSON and
// text. It knows no SDK. A store implements [Journal] in the same file or database as its ledger; [Memory] is for trials
// and tests, and journaltest checks an implementation.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/toolonce/toolonce/registry"
)

// What a loop can act on. Errors of a Journal match them by errors.Is.
var (
	// ErrRunTaken says that somebody who lives has the run: another process, or another call in this one. Nothing was
	// changed. Try again later; the run is free when that call returns or that process has gone.
	ErrRunTaken = errors.New("journal: the run is going on in another process or call")
	// ErrOtherInput says that the id belongs to a run with other user messages, of another conversation or of another
	// API. Nothing was changed. Every user message to answer is a run with an id of its own; messages of one chat are
	// tied together by Run.Conversation.
	ErrOtherInput = errors.New("journal: the id belongs to a run with another input: give each user message a run of its own, and tie messages of one chat together by Run.Conversation")
	// ErrLost says that the run is no longer this caller's: its process was taken for gone, and another has taken the
	// run over. Nothing was changed.
	ErrLost = errors.New("journal: the run was taken over by another process")
	// ErrForgotten says that a person had the run's content erased: there is nothing to go on with, and no answer. What it
	// did is still known to have been done. Nothing was changed.
	ErrForgotten = errors.New("journal: the run was forgotten: give a new message a run of its own")
)

// Start says which run to begin or to go on with.
type Start struct {
	Run registry.Run
	// API is "chat" or "responses": the form of the stored answers.
	API string
	// Input is a digest of the user's messages, and of nothing else: system text, model and tools may change between
	// two attempts at a run.
	Input []byte
}

// Output is what the model was told about one call, byte for byte.
type Output struct {
	Position  int
	Content   string
	Verdict   registry.Verdict
	Operation string
}

// Turn is one answer of the model.
type Turn struct {
	// Number counts from 1, without gaps.
	Number int
	// Answer is what the API sent, or what its stream amounts to. It is kept byte for byte.
	Answer json.RawMessage
	// Outputs answer the calls of this turn, by position; empty until they are stored, and where there are no calls.
	Outputs []Output
}

// Record is a run as it is stored.
type Record struct {
	Start
	// Token is this caller's right to write, random, new each time the run is taken; "" for a finished run.
	Token string
	Turns []Turn
	// Finished says that the last turn is the answer of the run.
	Finished bool
	// Forgotten says that what the run said and did was erased: it has no turns. Begin never gives such a run.
	Forgotten bool
	Created   time.Time // the store's clock
	// AskedBefore is when the same input was first given in the conversation, by an earlier run: this one then answers no
	// newer message. Zero where there was none, or no conversation, and for a finished run.
	AskedBefore time.Time
}

// Entry is what one commit adds to a run: a turn, and what the model was told before it.
type Entry struct {
	Run, Token string
	// Turn is the next turn. Its own Outputs are ignored: they come with the entry after it.
	Turn Turn
	// Outputs answer the calls of the turn before.
	Outputs []Output
	// Final finishes the run: the turn is its answer.
	Final bool
}

// Leaving gives a run up that is not finished, so that any process may go on with it.
type Leaving struct {
	Run, Token string
	// Turn and Outputs are the last turn and what its calls were answered with; Turn 0 where nothing is to be added.
	Turn    int
	Outputs []Output
}

// Journal remembers runs. It is safe for concurrent use by several processes, and every method works in one namespace.
// Writes do not end with the caller's context half done: they are whole or absent, on a bounded context of the
// journal's own. What is returned shares no memory with what is stored.
//
// The contract, each number a case of journaltest:
//
//  1. Begin of an unknown id makes the run: no turns, a new token. Of two at once one makes it.
//  2. Begin of a run that was left, or whose owner is gone by evidence, takes it: a new token, all its turns and
//     outputs. The token that was seen is compared in the statement that takes it.
//  3. Begin of a run whose owner lives, this process included, is ErrRunTaken. An owner that ended Append or Leave of
//     its run with whatever error in this process has left it as far as this process is concerned.
//  4. Begin of a finished run gives it with Finished and without a token, and writes nothing.
//  5. Begin with another input, conversation or API is ErrOtherInput, whoever has the run and whatever its state.
//  6. Append stores a turn and the outputs of the turn before in one transaction, under the run's token. A token that
//     is not the run's, or a run that is finished, is ErrLost and stores nothing.
//  7. Append of a turn that is stored already, under the run's token, changes nothing and returns the stored entry; so
//     an output that is stored already stays as it is.
//  8. Append of a turn that does not follow the last one is an error and stores nothing.
//  9. Append with Final finishes the run in the same transaction, and gives it up.
//  10. Leave stores outputs of the last turn where there are any, and gives the run up, in one transaction; outputs that
//     are stored already stay as they are. With another token it is ErrLost.
//  11. Runs of one namespace are unknown in another.
//  12. Begin of a run of a conversation tells by AskedBefore when an earlier run of that, with the same API and input, was
//     made.
//  13. Begin of a run that was forgotten is ErrForgotten, and changes nothing; with another input it is ErrOtherInput. The run
//     still counts for AskedBefore.
type Journal interface {
	Begin(ctx context.Context, s Start) (Record, error)
	// Append returns the entry as it is stored now.
	Append(ctx context.Context, e Entry) (Entry, error)
	Leave(ctx context.Context, l Leaving) error
}
