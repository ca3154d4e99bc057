package agent

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// Store is what a loop needs: a ledger of operations and a journal of runs. A *sqlitestore.Store is both. For a trial in
// memory:
//
//	struct {
//		*middleware.MemoryLedger
//		*journal.MemoryJournal
//	}{middleware.Memory(), journal.Memory()}
type Store interface {
	middleware.Ledger
	journal.Journal
}

// Options of a Loop. nil and the zero value work.
type Options struct {
	// Middleware goes round the guard, outermost first.
	Middleware []registry.Middleware
	// Once adjusts the guard.
	Once *middleware.OnceOptions
	// Parallel are rules about parallel_tool_calls, as those of SerialToolCalls.
	Parallel []ParallelRule
	// Repair has ChatAs and RespondAs ask once more where an answer does not fit its type.
	Repair bool
	// On is told each event, of runs that are not streamed too. It is called by the goroutine of the run, which waits for
	// it; several runs call it at once.
	On func(Event)
	// Trace is told when an attempt at a run begins (turn 0), and within it when the model is asked for an answer (turn 1
	// and on). What is done then gets the context that it returns; the function is called when that has ended, with its
	// error. Both must not be nil. Package middleware/otel has one. nil: nobody is told.
	Trace func(ctx context.Context, run Run, turn int) (context.Context, func(error))

	// The limits. Each ends the run with a *LimitError in a *RunError, whose history the API accepts. What was refused for a
	// limit stays refused: the model may call it again when the run is gone on with.

	// MaxTurns is how many answers a run may ask the model for, over all attempts at it; the calls of the last one are
	// refused. 0: 20, negative: no limit.
	MaxTurns int
	// MaxCalls is how many tool calls a run may make, over all attempts at it. The calls of the turn that exceeds it are
	// refused. 0: no limit.
	MaxCalls int
	// MaxTokens is how many tokens, input and output of all turns, a run may cost before it asks no more. 0: no limit.
	MaxTokens int64
	// MaxTime bounds one attempt at a run. A tool that has started is not cut short by it. 0: no limit.
	MaxTime time.Duration
	// MaxErrors is how many calls in a row may come out as failed, refused (but for a limit) or outcome_unknown. 0: no
	// limit.
	MaxErrors int
	// Reads is how many reads of a turn run at the same time. 0: 8.
	Reads int
}

const (
	defaultMaxTurns = 20
	defaultReads    = 8
	maxSilent       = 3 // answers in a row with neither a call nor a message
)

// Loop asks a model and answers its tool calls until it has an answer, and remembers each step, so that a run whose
// process dies at any moment goes on where it was. It is safe for concurrent use, and cheap: make one for each tenant
// with store.Namespace(tenant).
type Loop struct {
	client openai.Client
	tools  *registry.Registry
	store  Store
	opts   Options
	handle registry.Handler
	recall registry.Handler // what the ledger knows of a call
	serial option.RequestOption
	reads  map[string]bool
	each   map[string]bool   // tools whose every call is meant
	undoes map[string]string // and those that undo what another does
}

// New makes a loop. client is what openai.NewClient returns. The tools are complete with it: adding one afterwards
// panics. It panics on a nil registry or store, where a tool needs approvals that the store cannot keep, and where one is
// Local and the store has no transactions. opts may be
// nil.
func New(client openai.Client, tools *registry.Registry, store Store, opts *Options) *Loop {
	if tools == nil || store == nil {
		panic("agent: New needs a registry and a store: sqlitestore.Open for production")
	}
	_, asks := store.(middleware.Approver)
	_, transacts := store.(interface {
		Within(context.Context, func(context.Context) (middleware.Transition, error)) (middleware.Row, error)
	})
	for _, t := range tools.Tools() {
		if t.Local && !transacts {
			panic(fmt.Sprintf("agent: New: tool %q is Local, and the store runs no tool in a transaction: use sqlitestore or pgstore", t.Name))
		}
		if !asks && (t.HasApproval || t.Repeat == registry.RepeatApproved) {
			panic(fmt.Sprintf("agent: New: tool %q needs approvals, and the store keeps none: use one that is a middleware.Approver, as sqlitestore is", t.Name))
		}
	}
	l := &Loop{client: client, tools: tools, store: store, reads: map[string]bool{}, each: map[string]bool{}, undoes: map[string]string{}}
	if opts != nil {
		l.opts = *opts
	}
	if l.opts.MaxTurns == 0 {
		l.opts.MaxTurns = defaultMaxTurns
	}
	if l.opts.Reads == 0 {
		l.opts.Reads = defaultReads
	}
	var once middleware.OnceOptions
	if l.opts.Once != nil {
		once = *l.opts.Once
	}
	once.Admit = admitWithin(once.Admit)
	chain := append(slices.Clone(l.opts.Middleware), refuseReads, middleware.Once(store, &once))
	l.handle = tools.Handler(chain...)
	l.recall = tools.Handler(middleware.Known(store, &once))
	l.serial = SerialToolCalls(l.opts.Parallel...)
	for _, t := range tools.Tools() {
		l.undoes[t.Name] = t.Undoes
		l.reads[t.Name], l.each[t.Name] = t.Effect == registry.Read, t.Identity == registry.ByCall || t.Effect == registry.IdempotentWrite
	}
	return l
}

// known closes holes in the history that a run of ours is begun with.
func (l *Loop) known(run Run) known {
	return func(ctx context.Context, tool, arguments, id string) (string, bool, error) {
		res, err := l.recall(ctx, &registry.Call{Run: run, ID: id, Tool: tool, Arguments: arguments})
		if err == nil && res.Verdict == "" && l.reads[tool] { // it changes nothing, whether it ran or not
			res = registry.Envelope{
				Status: registry.Failed, Tool: tool, Error: "the call was cut off before its result was recorded", Retryable: new(true),
			}.Result()
		}
		return res.Content, res.Verdict != "", err
	}
}

// Chat answers one user message by Chat Completions. It takes what client.Chat.Completions.New takes, and a run; the
// registry's tools are added to the params' own.
//
// The same run with the same user messages, all of those in params, again goes on where it was, or gives the saved answer
// without any request. System text, model, tools and sampling may be others by then. With other user messages it is
// journal.ErrOtherInput, and journal.ErrRunTaken, before any request, where the run is going on in another process or call;
// journal.ErrForgotten where a person had its content erased.
//
// The calls of a turn run in call order, consecutive reads together, so that the Run of a Read must be safe for concurrent
// use. An answer with calls that was cut off or filtered runs nothing and is an [*IncompleteError]; one without calls is
// the answer, as the API gave it: look at its finish_reason.
//
// A request is sent with tool_choice as given in the first turn, and with auto instead of a forced one after it. Params
// that cannot be answered here are refused before any request: n over 1, functions, custom tools, function tools that the
// registry does not have. One with the name of a tool of the registry stays as it is given.
//
// Any other error is a [*RunError].
func (l *Loop) Chat(ctx context.Context, run Run, params openai.ChatCompletionNewParams, opts ...option.RequestOption) (*ChatReply, error) {
	w := &chatWire{loop: l, run: run, params: params, opts: opts}
	end, err := l.do(ctx, run, w, nil)
	r, err := w.reply(end, err)
	l.ended(Event{Run: run, Turn: len(end.report.Usage), Chat: r}, err)
	return r, err
}

// StreamChat is [Loop.Chat] as it happens. The last event of a run that has ended well is Answered; an error comes last,
// with a zero Event. Leaving the loop early ends the run after the handlers that have started; it can be gone on with.
// Nothing happens before the first event is asked for.
func (l *Loop) StreamChat(ctx context.Context, run Run, params openai.ChatCompletionNewParams, opts ...option.RequestOption) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := &chatWire{loop: l, run: run, params: params, opts: opts}
		y := &yielder{yield: yield}
		end, err := l.do(ctx, run, w, y.emit)
		r, err := w.reply(end, err)
		y.end(l.ended(Event{Run: run, Turn: len(end.report.Usage), Chat: r}, err), err)
	}
}

// Respond is [Loop.Chat] for the Responses API: it takes what client.Responses.New takes. A turn that ends with neither
// a call nor a message is gone on with.
//
// previous_response_id stays that of the params in every request, with all items since behind it, whether responses are
// stored or not. A conversation is refused: what its server adds to it when an answer is lost on the way cannot be
// answered. So are background responses and custom tools.
func (l *Loop) Respond(ctx context.Context, run Run, params responses.ResponseNewParams, opts ...option.RequestOption) (*ResponseReply, error) {
	w := &responseWire{loop: l, run: run, params: params, opts: opts}
	end, err := l.do(ctx, run, w, nil)
	r, err := w.reply(end, err)
	l.ended(Event{Run: run, Turn: len(end.report.Usage), Response: r}, err)
	return r, err
}

// StreamRespond is [Loop.Respond] as it happens; see [Loop.StreamChat].
func (l *Loop) StreamRespond(ctx context.Context, run Run, params responses.ResponseNewParams, opts ...option.RequestOption) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := &responseWire{loop: l, run: run, params: params, opts: opts}
		y := &yielder{yield: yield}
		end, err := l.do(ctx, run, w, y.emit)
		r, err := w.reply(end, err)
		y.end(l.ended(Event{Run: run, Turn: len(end.report.Usage), Response: r}, err), err)
	}
}

// ended makes the last event of an attempt, and tells it.
func (l *Loop) ended(e Event, err error) Event {
	e.Kind, e.Err = Answered, err
	if err != nil {
		e.Kind = Stopped
	}
	if l.opts.On != nil {
		l.opts.On(e)
	}
	return e
}

// yielder hands events on until the reader leaves.
type yielder struct {
	yield func(Event, error) bool
	left  bool
}

func (y *yielder) emit(e Event) bool {
	y.left = y.left || !y.yield(e, nil)
	return !y.left
}

func (y *yielder) end(e Event, err error) {
	switch {
	case y.left:
	case err != nil:
		y.yield(Event{}, err)
	default:
		y.yield(e, nil)
	}
}
