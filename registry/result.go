package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"
)

// Verdict is what was decided for a call. In an envelope it stands as "status".
type Verdict string

const (
	// Executed means that the tool ran for this call; the content is its own output.
	Executed Verdict = "executed"
	// Replayed means the same call again; the content is its own output, as it was.
	Replayed Verdict = "replayed"
	// AlreadyDone means that another call meant an operation that is done; the envelope carries the first result.
	AlreadyDone Verdict = "already_done"
	// InProgress means that an attempt runs.
	InProgress Verdict = "in_progress"
	// OutcomeUnknown means that it may have happened; a person must check.
	OutcomeUnknown Verdict = "outcome_unknown"
	// Conflict means the same operation with other arguments.
	Conflict Verdict = "conflict"
	// Failed means that it surely did not happen, or that repeating it is safe.
	Failed Verdict = "failed"
	// Refused means an unknown tool, bad arguments, Check, or a limit.
	Refused Verdict = "refused"
)

// Result is the answer to a call.
type Result struct {
	// Content is what the model reads: the tool's own output, or an Envelope as JSON.
	Content string
	Verdict Verdict
	// Operation is the id of the row behind the answer, "" for none.
	Operation string
}

// maxErrorText is how many bytes of an error's text the model reads.
const maxErrorText = 1024

// Envelope is what the model reads instead of a tool's output: one JSON object with "toolonce":1 and a status. The
// fields that a status does not use are left out.
type Envelope struct {
	Version   int             `json:"toolonce"` // set by Result
	Status    Verdict         `json:"status"`
	Operation string          `json:"operation,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	DoneAt    time.Time       `json:"first_done_at,omitzero"`   // already_done
	Repeats   int             `json:"repeats,omitempty"`        // already_done: how often this run has repeated it
	Since     time.Time       `json:"since,omitzero"`           // outcome_unknown
	RetryMS   int64           `json:"retry_after_ms,omitempty"` // in_progress, in milliseconds
	Fields    []string        `json:"fields,omitempty"`         // conflict: names of the fields that differ
	Reason    string          `json:"reason,omitempty"`         // refused
	Path      string          `json:"path,omitempty"`           // refused arguments: where
	Rule      string          `json:"rule,omitempty"`           // refused arguments: which rule
	Error     string          `json:"error,omitempty"`          // failed
	Retryable *bool           `json:"retryable,omitempty"`      // failed
	Output    json.RawMessage `json:"result,omitempty"`         // already_done: the first result, whole
	Note      string          `json:"note,omitempty"`
}

// Result is the envelope as the answer to a call.
func (e Envelope) Result() Result {
	e.Version = 1
	e.DoneAt, e.Since = e.DoneAt.UTC().Truncate(time.Millisecond), e.Since.UTC().Truncate(time.Millisecond)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil { // only Output can fail, and it is checked where it is set
		e.Output = nil
		b.Reset()
		_ = enc.Encode(e)
	}
	return Result{Content: strings.TrimSuffix(b.String(), "\n"), Verdict: e.Status, Operation: e.Operation}
}

// Refused is the result that tells the model why the call was not run.
func (c *Call) Refused(err error) Result {
	e := Envelope{Status: Refused, Tool: clip(c.Tool, 64), Reason: clip(err.Error(), maxErrorText)}
	if ae, ok := errors.AsType[*ArgumentError](err); ok {
		e.Reason, e.Path, e.Rule = clip(ae.Message, maxErrorText), ae.Path, ae.Rule
	}
	return e.Result()
}

// Failed is the result that tells the model that the call surely did nothing, or may be made again without harm.
// operation is "" where no row stands behind it.
func (c *Call) Failed(operation string, err error) Result {
	return Envelope{Status: Failed, Operation: operation, Tool: c.Tool, Error: clip(err.Error(), maxErrorText), Retryable: new(true)}.Result()
}

// clip cuts s to at most n bytes of whole characters.
func clip(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return strings.ToValidUTF8(s, "�")
}
