package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Effect is a tool's class. The zero value is none of them and is refused at registration.
type Effect uint8

const (
	// Read is safe to repeat; a guard keeps no record of it.
	Read Effect = iota + 1
	// IdempotentWrite leads to the same end state however often it runs.
	IdempotentWrite
	// NonIdempotentWrite must not repeat: a refund, an e-mail, an order.
	NonIdempotentWrite
)

// String is the name of the constant.
func (e Effect) String() string {
	switch e {
	case Read:
		return "Read"
	case IdempotentWrite:
		return "IdempotentWrite"
	case NonIdempotentWrite:
		return "NonIdempotentWrite"
	default:
		return "no effect"
	}
}

// MarshalText is String. No effect is an error.
func (e Effect) MarshalText() ([]byte, error) {
	if e < Read || e > NonIdempotentWrite {
		return nil, fmt.Errorf("registry: writing effect %d: it is none", e)
	}
	return []byte(e.String()), nil
}

// UnmarshalText reads what MarshalText writes. Anything else is an error.
func (e *Effect) UnmarshalText(text []byte) error {
	for known := Read; known <= NonIdempotentWrite; known++ {
		if known.String() == string(text) {
			*e = known
			return nil
		}
	}
	return fmt.Errorf("registry: there is no effect %q: use Read, IdempotentWrite or NonIdempotentWrite", text)
}

// Identity says which calls of a NonIdempotentWrite mean one operation where its input has no once:"key" field.
type Identity uint8

const (
	// ByArguments is the default: the conversation (or the run, where it has none), the tool and its arguments.
	ByArguments Identity = iota
	// ByCall means that every call is meant: run, turn, position and what it says. For toggles, reboots, notes.
	ByCall
)

// Recovery says what settles an unclear outcome of a NonIdempotentWrite that has no Lookup.
type Recovery uint8

const (
	// Hold is the default: nobody runs it again until a person has settled it.
	Hold Recovery = iota
	// Rerun runs it again with the same idempotency key. Only for providers that honour the key.
	Rerun
)

// RepeatRule says whether the model may make a NonIdempotentWrite once more because the user asks for a second one. It
// then has an argument repeat_of, in which it names the operation to repeat.
type RepeatRule uint8

const (
	// RepeatNever is the default: equal calls are one operation.
	RepeatNever RepeatRule = iota
	// RepeatApproved lets it where a person approves the repeat.
	RepeatApproved
	// RepeatFreely lets it without.
	RepeatFreely
)

// DefaultRetain is how long a done operation's input and result are kept where nothing else is said.
const DefaultRetain = 90 * 24 * time.Hour

// Defaults and bounds of a tool's other durations.
const (
	defaultTimeout   = 2 * time.Minute
	defaultKeyWindow = 24 * time.Hour
	minKeep          = 24 * time.Hour // of Keep and Retain
)

// Tool is a tool made from Go types: a whole tool at a glance. In is a struct; its fields are the parameters.
type Tool[In, Out any] struct {
	// Name is what the model calls: 1 to 64 of a-z, A-Z, 0-9, _ and -.
	Name string
	// Description tells the model when to call it.
	Description string
	// Effect is required.
	Effect Effect
	// Identity applies where In has no once:"key" field.
	Identity Identity
	// Recovery applies where Lookup is nil.
	Recovery Recovery
	// Repeat adds an optional argument repeat_of to what the model is told; In has no such field, and the identity does
	// not depend on it. For a NonIdempotentWrite that is identified by its arguments, and undoes nothing.
	Repeat RepeatRule

	// Timeout ends the context of Run, Check, NeedsApproval and Lookup. 0: two minutes.
	Timeout time.Duration
	// KeyWindow is how long the provider remembers an idempotency key, for Rerun. 0: 24 hours.
	KeyWindow time.Duration
	// AbsentAfter is how long the provider may take to show an effect to Lookup. 0: at once.
	AbsentAfter time.Duration
	// Keep forgets a done operation after this time, so that the same call is a new one. 0: never. At least 24 hours
	// and KeyWindow.
	Keep time.Duration
	// Retain is how long the input and the result of a done operation are kept. Whoever prunes the store afterwards has it
	// forget them, as toolonce prune does: it is still known that it was done, and a repeat is told that, without the result.
	// 0: DefaultRetain, or KeyWindow where that is longer. At least 24 hours and KeyWindow.
	Retain time.Duration
	// ShareResult lets a repeat from another conversation read the first result. Without it the model there is told
	// that it was done, not what came of it.
	ShareResult bool
	// Undoes names the tool whose operation this one takes back, linked by the fields tagged once:"resource".
	Undoes string
	// Local says that all that Run changes is in the ledger's own database, in the transaction that it gets from the store
	// (sqlitestore.Tx, pgstore.Tx): that and the result are committed together, so that there is no unclear outcome. Run must be short,
	// call nothing over a network, and not end the transaction. After an error or a panic nothing of it stays. For a
	// NonIdempotentWrite without Lookup and Recovery.
	Local bool
	// Loose allows parameters that a strict schema cannot express (maps, any). The model is then not bound to the
	// schema; arguments are checked here all the same.
	Loose bool

	// Check is asked on every call, repeats too: may this caller do this, does the order exist? It changes nothing and
	// does not look at what Run changes. Its error is told to the model as refused. nil: no check.
	Check func(context.Context, In) error
	// NeedsApproval is asked by a guard that would start Run: must a person agree first? Nobody asks it where there is no
	// guard: then the call is not run. It changes nothing. Its error ends the run. nil: no call needs it. Not for a Read. For
	// a tool whose every call does:
	//
	//	NeedsApproval: func(context.Context, In) (bool, error) { return true, nil },
	NeedsApproval func(context.Context, In) (bool, error)
	// Run does it. Any error of a NonIdempotentWrite that is not marked by NoEffect leaves the outcome unclear.
	Run func(context.Context, In) (Out, error)
	// Lookup asks the provider whether it happened. A value: it did, and this is the result. An error marked by
	// NoEffect: it surely did not. Any other error: unsure. nil: Recovery decides.
	Lookup func(context.Context, In) (Out, error)
}

// RawTool is a tool known by its JSON alone: an existing switch, another protocol's tool. The fields it shares with
// [Tool] mean the same.
type RawTool struct {
	Name, Description string
	// Schema is the JSON Schema of the arguments, without the one that Repeat adds. nil: any JSON object, and the model
	// is not told of repeat_of.
	Schema json.RawMessage
	// Strict promises the model provider's strict mode. Refused where Schema is not fit for it.
	Strict   bool
	Effect   Effect
	Identity Identity
	Recovery Recovery
	Repeat   RepeatRule

	// Key and Ignore name the top-level arguments that once:"key" and once:"-" would mark.
	Key, Ignore []string
	// Secret names the top-level arguments that once:"secret" would mark.
	Secret []string
	// ResourceIn and ResourceOut name the argument, or the field of the result, that once:"resource" would mark.
	ResourceIn, ResourceOut string
	Undoes                  string

	Timeout, KeyWindow, AbsentAfter, Keep, Retain time.Duration
	ShareResult, Local                            bool

	Check         func(context.Context, json.RawMessage) error
	NeedsApproval func(context.Context, json.RawMessage) (bool, error)
	Run           func(context.Context, json.RawMessage) (any, error)
	Lookup        func(context.Context, json.RawMessage) (any, error)
}
