package agent

import (
	"context"

	"github.com/toolonce/toolonce/registry"
)

// tell is called with each result, in call order.
func (s *session) tell(position int, c toolCall, r registry.Result) {
	s.note(position, c, r)
	s.limit = s.over()
	e := Event{Kind: VerdictGiven, Turn: s.turn, Position: position, CallID: c.id, Tool: c.name, Verdict: r.Verdict, Operation: r.Operation}
	if s.send(e) {
		e.Kind, e.Text = ResultGiven, r.Content
		s.send(e)
	}
}

// announce tells what an answer says where no stream has.
func (s *session) announce(a *answer) {
	for _, d := range []delta{
		{kind: reasoningDelta, text: a.aside.reasoning}, {kind: textDelta, text: a.text}, {kind: refusalDelta, text: a.aside.refusal},
	} {
		if d.text != "" && !s.send(eventOf(d, s.turn)) {
			return
		}
	}
	for i, c := range a.calls {
		e := Event{Kind: CallAnnounced, Turn: s.turn, Position: i, CallID: c.id, Tool: c.name}
		if !s.send(e) {
			return
		}
		if e.Kind, e.Text = ArgumentsComplete, c.arguments; !s.send(e) {
			return
		}
	}
}

// send hands an event on. Where nobody reads any more it ends what the session does.
func (s *session) send(e Event) bool {
	e.Run = s.rec.Run
	if s.opts.On != nil {
		s.opts.On(e)
	}
	if s.emit != nil && !s.emit(e) {
		s.leave(errStopped)
		return false
	}
	return true
}

// traced tells the program that an attempt, or a request for an answer, begins. What it returns is told of the end.
func (l *Loop) traced(ctx context.Context, run Run, turn int) (context.Context, func(error)) {
	if l.opts.Trace == nil {
		return ctx, func(error) {}
	}
	return l.opts.Trace(ctx, run, turn)
}
