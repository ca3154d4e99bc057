package registry

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

// Run names one task given to a loop: one user message to answer.
type Run struct {
	// ID is chosen by the caller, who keeps it across retries.
	ID string
	// Conversation is the chat the run belongs to. Set, it widens the scope of argument identity from this run to all
	// runs of the chat.
	Conversation string
}

// Scope is where an operation without a business key is one: the conversation, or the run where it has none.
func (r Run) Scope() string {
	if r.Conversation != "" {
		return "c:" + r.Conversation
	}
	return "r:" + r.ID
}

// Call is one tool call of one model answer. A loop fills the exported fields. A Handler works on a copy, so the
// caller may use its Call again.
type Call struct {
	Run       Run
	Turn      int    // the model answer inside the run, from 1; 0 where the loop has no count
	Position  int    // index among the calls of that answer, from 0
	ID        string // call_id as sent; may be empty or come back, so it is never a key alone
	Tool      string
	Arguments string // as sent
	// Journaled: the loop keeps its turns in a journal, so that a place holds one call for ever. Another call at a place
	// that is taken is a conflict, never a new operation. It is for guarded tools and unknown ones, and needs a Turn.
	Journaled bool
	// Asked is when the user's latest message came, by the store's clock; zero where the loop cannot tell: then no repeat
	// is made on purpose.
	Asked time.Time
	// Resumed: the run goes on behind a stop, before which a person may have denied an equal call, whatever its tool says now.
	Resumed bool
	// OnlyAsk asks for the approval that the call needs, if it needs one, and does nothing else.
	OnlyAsk bool

	info        *Info
	value       any    // what the handler gets
	input       []byte // its canonical form, ignored fields included
	identity    string
	fingerprint string
	resource    string
	repeatOf    string
	refusal     error
	checked     bool
	approved    bool
}

// Info is the tool the call names, nil for an unknown one.
func (c *Call) Info() *Info { return c.info }

// Refusal says why the call cannot run at all: an *ArgumentError, or an error for an unknown tool.
// nil where it can.
func (c *Call) Refusal() error { return c.refusal }

// Operation is the identity of what the call means and the fingerprint of its arguments, both hexadecimal SHA-256
// sums. Both are "" for a call that is refused.
func (c *Call) Operation() (identity, fingerprint string) { return c.identity, c.fingerprint }

// Input is the canonical form of the arguments, nil for a call that is refused. It must not be changed.
func (c *Call) Input() []byte { return c.input }

// Resource is the hash of the argument tagged once:"resource", "" for none.
func (c *Call) Resource() string { return c.resource }

// RepeatOf is what the argument repeat_of names: the operation that the call repeats on purpose, "" for none. It is set
// only where the tool's Repeat lets it, is as the model sent it, up to 64 bytes, and no part of Operation and Input.
func (c *Call) RepeatOf() string { return c.repeatOf }

// ArgumentsHash is a hash of the arguments as sent.
func (c *Call) ArgumentsHash() string {
	return hexadecimal(codec.HashStrings("raw", c.Arguments))
}

// Check asks the tool's Check, once per call. Middleware that answers calls without running them asks it first; the
// innermost handler asks it where nobody has. The context ends after the tool's Timeout.
func (c *Call) Check(ctx context.Context) error {
	if c.refusal != nil {
		return c.refusal
	}
	if c.checked || c.info.check == nil {
		return nil
	}
	c.Checked()
	return c.ask(ctx, c.info.check)
}

// NeedsApproval asks the tool's NeedsApproval, false where it has none. It is for middleware that can get an approval,
// which also knows whether the call is a repeat that needs one. The context ends after the tool's Timeout.
func (c *Call) NeedsApproval(ctx context.Context) (needs bool, err error) {
	if c.refusal != nil || c.info.approval == nil {
		return false, c.refusal
	}
	err = c.ask(ctx, func(ctx context.Context, in any) (err error) {
		needs, err = c.info.approval(ctx, in)
		return err
	})
	return needs, err
}

// ask puts a question about the input. Run gets the value that was hashed, whatever the question does to its own.
func (c *Call) ask(ctx context.Context, question func(context.Context, any) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.info.Timeout)
	defer cancel()
	v, err := c.info.codec.Load(bytes.Clone(c.input))
	if err != nil {
		return err
	}
	return question(ctx, v)
}

// Approved marks the call as one that may run although it needs an approval: somebody has asked for it.
func (c *Call) Approved() { c.approved = true }

// unapproved reports whether the call needs an approval, or might, that nobody has asked for.
func (c *Call) unapproved() bool {
	return !c.approved && (c.info.approval != nil || c.repeatOf != "")
}

// Checked marks the call as one whose Check was asked and is not asked again.
func (c *Call) Checked() { c.checked = true }

// With is the call with another input, as [Call.Input] gave it: what a claim has stored, not what this call says.
func (c *Call) With(input []byte) (*Call, error) {
	if c.info == nil {
		return nil, &unknownToolError{name: c.Tool}
	}
	v, err := c.info.codec.Load(bytes.Clone(input))
	if err != nil {
		return nil, fmt.Errorf("registry: reading a stored input of tool %q: %w", c.Tool, err)
	}
	n := *c
	n.value, n.input, n.refusal, n.checked, n.approved = v, input, nil, true, true
	return &n, nil
}

// Lookup asks the tool whether the call's operation happened. It must not be called where Info().HasLookup is false.
func (c *Call) Lookup(ctx context.Context) (result string, err error) {
	return c.info.lookup(ctx, c.value)
}

// CanonicalVersion is the version of the canonical form behind identities and fingerprints. A record keeps it.
const CanonicalVersion = codec.Version

// resolve finds the tool, decodes the arguments and gives the call its identity.
func (c *Call) resolve(r *Registry) {
	c.info, c.value, c.input, c.identity, c.fingerprint, c.resource = r.byName[c.Tool], nil, nil, "", "", ""
	c.repeatOf, c.refusal, c.checked = "", nil, false
	if c.info == nil {
		c.refusal = unknownTool(r, c.Tool)
		return
	}
	in, err := c.info.codec.Decode(c.Arguments)
	if err != nil {
		c.refusal = argumentError(c.Tool, err)
		return
	}
	c.value, c.input, c.repeatOf = in.Value, in.Stored, in.RepeatOf
	if !c.info.Guarded(c.Turn) {
		return // nobody asks for the identity of what is not recorded
	}
	c.fingerprint = hexadecimal(in.Fingerprint)
	c.resource = hashResource(in.Resource)
	c.identity = c.identify(in)
}

func (c *Call) identify(in *codec.Input) string {
	var h [32]byte
	switch {
	case c.info.Keyed:
		h = codec.Hash([]byte("key"), []byte(c.Tool), in.Key[:])
	case c.info.Identity == ByCall || c.info.Effect == IdempotentWrite:
		// Tool and fingerprint are in it: a loop of its own that asks again after a crash may get another call here.
		h = codec.Hash([]byte("call"), []byte(c.Run.ID), []byte(strconv.Itoa(c.Turn)), []byte(strconv.Itoa(c.Position)), []byte(c.Tool), in.Fingerprint[:])
	default:
		h = codec.Hash([]byte("arguments"), []byte(c.Run.Scope()), []byte(c.Tool), in.Fingerprint[:])
	}
	return hexadecimal(h)
}

// hexadecimal is hex.EncodeToString with one allocation.
func hexadecimal(h [32]byte) string {
	var b [64]byte
	hex.Encode(b[:], h[:])
	return string(b[:])
}
