package registry

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/toolonce/toolonce/registry/internal/codec"
)

// Info is the read-only view of a registered tool that middleware sees. Durations are never 0 where a default exists.
type Info struct {
	Name, Description string
	Effect            Effect
	Identity          Identity
	Recovery          Recovery
	// Repeat other than RepeatNever: a call may name an operation to repeat, see [Call.RepeatOf].
	Repeat RepeatRule
	// Keyed: a business key identifies the operation.
	Keyed bool
	// HasCheck: the tool has a Check.
	HasCheck bool
	// HasApproval: the tool has a NeedsApproval.
	HasApproval bool
	// HasLookup: the tool can ask its provider whether an operation happened.
	HasLookup bool
	// Schema is the JSON Schema of the parameters; Strict says whether it obeys OpenAI's strict mode.
	Schema json.RawMessage
	Strict bool
	// Undoes names the tool whose operation this one takes back, "" for none.
	Undoes string
	// ResourceOut names the field of the result that links an operation to the tool that undoes it, "" for none.
	ResourceOut string

	Timeout, KeyWindow, AbsentAfter, Keep, Retain time.Duration
	ShareResult, Local                            bool

	codec    *codec.Codec
	check    func(context.Context, any) error
	approval func(context.Context, any) (bool, error)
	run      func(context.Context, any) (string, error)
	lookup   func(context.Context, any) (string, error)
}

// SchemaFor is Schema as a model takes it. A fine-tuned one ("ft:…") refuses bounds, patterns and formats in strict mode:
// they are told it in words, and checked here all the same.
func (i *Info) SchemaFor(model string) json.RawMessage {
	if i.Strict && strings.HasPrefix(model[strings.LastIndexByte(model, '/')+1:], "ft:") {
		return codec.Tuned(i.Schema)
	}
	return i.Schema
}

// Guarded reports whether calls of the tool are recorded. turn is Call.Turn: an IdempotentWrite is identified by its
// call, so a loop that cannot give a turn runs it unguarded.
func (i *Info) Guarded(turn int) bool {
	return i.Effect == NonIdempotentWrite || i.Effect == IdempotentWrite && turn > 0
}

// Diff names the fields in which two stored inputs of the tool differ, never their values. Fields that are no part of
// the identity are left out. nil where either is missing.
func (i *Info) Diff(a, b []byte) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	if names := i.codec.Diff(a, b); len(names) > 0 {
		return names
	}
	return i.codec.Secrets() // what differs is not stored
}

// ResultResource is the hash of what the result names as the thing that can be undone, "" for none.
func (i *Info) ResultResource(result string) string { return ResourceHash(i.ResourceOut, result) }

// ResourceHash is the hash of the field called name of a result, as an operation's row keeps it. It is "" where name is
// "" or the result has no such field.
func ResourceHash(name, result string) string {
	if name == "" {
		return ""
	}
	return hashResource(codec.ResourceOf([]byte(result), name))
}

func hashResource(v string) string {
	if v == "" {
		return ""
	}
	h := codec.Hash([]byte("resource"), []byte(v))
	return hex.EncodeToString(h[:])
}
