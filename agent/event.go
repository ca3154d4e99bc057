package agent

import (
	"fmt"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

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
	// CallAnnounced is a tool call that the model has begun: Position, CallID, Tool. Nothing runs before the turn is
	// complete.
	CallAnnounced
	// ArgumentsComplete is a call that is written: Position, CallID, Tool, and in Text its arguments as sent.
	ArgumentsComplete
	// VerdictGiven is a call that is decided, and has run if it was to: Position, CallID, Tool, Verdict, Operation.
	VerdictGiven
	// ResultGiven is what the model will read about the call: as VerdictGiven, and Text.
	ResultGiven
	// ApprovalAsked is a call that waits for a person: Position, CallID, Tool, and in Approval what is asked.
	ApprovalAsked
	// TurnEnded is a turn that is stored, and whose calls are answered: Usage.
	TurnEnded
	// Answered is the end of the run: Chat or Response.
	Answered
	// Stopped is an attempt that has ended without an answer: Err. Streams give that error in its place.
	Stopped
)

var kindNames = []string{
	TextDelta: "text_delta", RefusalDelta: "refusal_delta", ReasoningDelta: "reasoning_delta", CallAnnounced: "call_announced",
	ArgumentsComplete: "arguments_complete", VerdictGiven: "verdict_given", ResultGiven: "result_given",
	ApprovalAsked: "approval_asked", TurnEnded: "turn_ended", Answered: "answered", Stopped: "stopped",
}

// String is the kind's name for logs, such as text_delta.
func (k EventKind) String() string {
	if int(k) >= len(kindNames) || kindNames[k] == "" {
		return fmt.Sprintf("event_%d", uint8(k))
	}
	return kindNames[k]
}

// Event is one thing that happened in a run. Besides Run and Turn, the fields that its Kind does not name are zero.
//
// Where there is no stream, and of what is saved, the text of an answer, a refusal or reasoning is told in one delta.
//
// CallAnnounced and ArgumentsComplete tell how the answer grows. They count positions as the calls arrive; where a
// server delivers a call twice it is announced twice and decided once.
type Event struct {
	Kind      EventKind
	Run       Run
	Turn      int // from 1
	Position  int // of the call in its turn, from 0
	CallID    string
	Tool      string
	Text      string
	Verdict   registry.Verdict
	Operation string
	Approval  *middleware.Approval
	Usage     Usage
	Chat      *ChatReply
	Response  *ResponseReply
	Err       error
}

// eventOf is what a piece of a stream tells.
func eventOf(d delta, turn int) Event {
	return Event{Kind: deltaEvents[d.kind], Turn: turn, Position: d.position, CallID: d.id, Tool: d.tool, Text: d.text}
}
