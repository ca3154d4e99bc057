package agent

import "github.com/toolonce/toolonce/registry"

var deltaEvents = map[deltaKind]EventKind{
	textDelta: TextDelta, refusalDelta: RefusalDelta, reasoningDelta: ReasoningDelta,
	callAnnounced: CallAnnounced, argumentsComplete: ArgumentsComplete,
}

// EventKind says what an Event tells.
type EventKind uint8

const (
	// TextDelta is a piece of what the model says: Text.
	TextDelta EventKind = iota + 1
	// RefusalDelta is a piece of the model's refusal to answer: Text.
	RefusalDelta
	// ReasoningDelta is a piece of the model's reasoning, where the server shows it: Text.
	ReasoningDelta
	// CallAnnounced: the model has begun a tool call: Position, CallID, Tool. Nothing runs before the turn is complete.
	CallAnnounced
	// ArgumentsComplete: the call is written: Position, CallID, Tool, and in Text its arguments as the model sent them.
	ArgumentsComplete
	// VerdictGiven: the call is decided, and has run if it was to: Position, CallID, Tool, Verdict, Operation.
	VerdictGiven
	// ResultGiven is what the model will read about the call: as VerdictGiven, and Text.
	ResultGiven
	// TurnEnded: the turn is stored, and its calls are answered: Usage.
	TurnEnded
	// Answered is the end of the run: Chat or Response.
	Answered
)

// Event is one thing that happened in a run. The fields that its Kind does not name are zero.
//
// CallAnnounced and ArgumentsComplete tell how the answer grows. They count positions as the calls arrive; where a
// server delivers a call twice it is announced twice and decided once.
type Event struct {
	Kind      EventKind
	Turn      int // from 1
	Position  int // of the call in its turn, from 0
	CallID    string
	Tool      string
	Text      string
	Verdict   registry.Verdict
	Operation string
	Usage     Usage
	Chat      *ChatReply
	Response  *ResponseReply
}

// eventOf is what a piece of a stream tells.
func eventOf(d delta, turn int) Event {
	return Event{Kind: deltaEvents[d.kind], Turn: turn, Position: d.position, CallID: d.id, Tool: d.tool, Text: d.text}
}
