package transcript

import (
	"net/http"
	"time"
)

// Script chooses the answer to a request. It is called after the request has
// passed the checks, from several goroutines at once.
//
// A script that is a function of the request's messages alone needs no state:
// any number of conversations can go on at once, and a request that is sent
// again, by the SDK's retry or by a program that was killed and started anew,
// gets the same answer. [Steps] makes one from a list; a script for several
// conversations picks by [Request.FirstUser]. The zero Step says that the
// script has no answer: the server answers 501 and says for which request.
type Script func(Request) Step

// Steps answers the first turn of a conversation with the first step, the
// second turn with the second, and so on, counting the answers in the
// request's history. Behind the last step it has no answer.
func Steps(steps ...Step) Script {
	return func(r Request) Step {
		if r.Turn > len(steps) {
			return Step{}
		}
		return steps[r.Turn-1]
	}
}

// Step is one answer of the model.
type Step struct {
	// Text is what the model says, with or without calls.
	Text string
	// Calls are the tool calls. Ids go out exactly as they are here: they may
	// collide, be too long or be empty.
	Calls []ToolCall
	// Reasoning is the summary of a reasoning item that comes first
	// (Responses); Chat Completions has no place for it.
	Reasoning string
	// FinishReason defaults to "tool_calls" if there are calls, else "stop".
	// With "length" and "content_filter" a response is incomplete.
	FinishReason string
	// Model is the model that says it answered; the default is the one asked.
	Model string
	// Raw is sent in place of the generated body, as JSON or, where a stream
	// was asked for, as text/event-stream: for answers no such server makes.
	Raw string
	// Faults happen before the answer, in order: the first to the first
	// attempt, and so on. An attempt is a request with the same path, body and
	// API key as an earlier one; programs that share a server and send equal
	// requests keep their counts apart by different keys.
	Faults []Fault
}

// empty tells a step that says nothing at all from an answer without text.
func (s Step) empty() bool {
	return s.Text == "" && len(s.Calls) == 0 && s.Reasoning == "" && s.FinishReason == "" &&
		s.Model == "" && s.Raw == "" && len(s.Faults) == 0
}

// Fault is something that goes wrong with an attempt. A Fault that only has a
// Delay, or is zero, lets the step's answer through.
type Fault struct {
	// Times is how many attempts in a row it happens to; 0 means 1, a negative
	// number all from here on.
	Times int
	// Delay is the time that passes first. It ends early when the client goes.
	Delay time.Duration
	// Status is an HTTP error to answer with, such as 429 or 500; 0 is none.
	Status int
	// Message and Code go into the error's body. "" is the API's usual text for
	// 429, 500 and 503, and no code but for 429.
	Message, Code string
	// RetryAfter is sent as Retry-After-Ms and, rounded up, as Retry-After; 0 is
	// not sent.
	RetryAfter time.Duration
	// Drop breaks the connection after After bytes of the body; with 0 before
	// the status line.
	Drop bool
	// Truncate ends the body after After events of a stream, or After bytes
	// where none was asked for, as if it were complete.
	Truncate bool
	// After belongs to Drop and Truncate.
	After int
}

// faultFor is the fault of the given attempt, from 1.
func faultFor(faults []Fault, attempt int) Fault {
	for _, f := range faults {
		if f.Times < 0 {
			return f
		}
		if attempt <= max(f.Times, 1) {
			return f
		}
		attempt -= max(f.Times, 1)
	}
	return Fault{}
}

// Request is one request that a [Server] received.
type Request struct {
	// API is "chat" or "responses", "" if the path was neither.
	API string
	// Path is the URL's path, Header the request's header.
	Path   string
	Header http.Header
	// Body is what was sent, byte for byte.
	Body []byte
	// Model is the model asked for.
	Model string
	// Stream tells whether the answer was to be streamed.
	Stream bool
	// Messages is the history in one form for both APIs. In the Responses API it
	// includes what previous_response_id stands for, instructions are a system
	// message, and model items that follow each other are one assistant message.
	Messages []Message
	// Turn is the number of the answer asked for: the assistant messages in
	// Messages and one.
	Turn int
	// Attempt counts requests with this path, body and API key, from 1.
	Attempt int
	// Status is the HTTP status of the answer; 0 before it, and for a connection
	// that was dropped.
	Status int
	// Refusal is the message of a failed check, or why there was no answer.
	Refusal string
}

// FirstUser is the text of the first user message, "" if there is none: what
// tells one scripted conversation from another.
func (r Request) FirstUser() string {
	for _, m := range r.Messages {
		if m.Role == "user" {
			return m.Content
		}
	}
	return ""
}

// Outputs are the tool messages since the last assistant message, in order: what
// an answer may depend on.
func (r Request) Outputs() []Message {
	var out []Message
	for _, m := range r.Messages {
		switch m.Role {
		case "assistant":
			out = nil
		case "tool":
			out = append(out, m)
		}
	}
	return out
}
