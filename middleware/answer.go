package middleware

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolonce/toolonce/registry"
)

const (
	maxCallID  = 256 // bytes of a call_id that are kept; a longer one is kept as its hash
	retryAfter = time.Second
)

func shortID(id string) string {
	h := sha256.Sum256([]byte(id))
	return "sha256:" + hex.EncodeToString(h[:])
}

// undoIdentity is the identity of an undo: its own and the operation that it undoes.
func undoIdentity(identity, operation string) string {
	h := sha256.Sum256([]byte("undo\x00" + identity + "\x00" + operation))
	return hex.EncodeToString(h[:])
}

// doneAnswer answers from a done operation: the call that executed it reads the output, any other that it is done.
func (g *guard) doneAnswer(c *registry.Call, row *Row, same bool, repeats int) registry.Result {
	if same && claimedBy(row, c) && row.HasResult {
		return registry.Result{Content: g.present(row.Result), Verdict: registry.Replayed, Operation: row.Operation}
	}
	e := registry.Envelope{
		Status: registry.AlreadyDone, Operation: row.Operation, Tool: row.Tool, DoneAt: row.DoneAt, Repeats: repeats,
		Note: fmt.Sprintf("This was done at %s. Do not retry it. %s", row.DoneAt.UTC().Format(time.RFC3339), second(c)),
	}
	switch {
	case !row.HasResult:
		e.Note += " Its result is not kept."
	case !sharesResult(c, row):
		e.Note += " It was done in another conversation; its result is not shown here."
	default:
		e.Output = g.embed(row.Result)
	}
	return e.Result()
}

// second says what to do where the user asked for a second one.
func second(c *registry.Call) string {
	if c.Info() != nil && c.Info().Repeat != registry.RepeatNever && c.RepeatOf() == "" {
		return "Only if the user has asked for a second one since, call it again with this operation in repeat_of."
	}
	return "If the user asked for a second one, say that it was not done again."
}

// sharesResult reports whether a repeat may read the first result.
func sharesResult(c *registry.Call, row *Row) bool {
	first := registry.Run{ID: row.Claimer.Run, Conversation: row.Conversation}
	return first.Scope() == c.Run.Scope() || c.Info() != nil && c.Info().ShareResult
}

func unknown(v *visit, row *Row) registry.Result {
	note := "It may or may not have happened. Do not retry it; a person must check."
	if info := v.Info(); info != nil && info.HasLookup {
		note = "It may or may not have happened. Do not retry it: it will be looked up, and still done if it was not."
	}
	return registry.Envelope{Status: registry.OutcomeUnknown, Operation: row.Operation, Tool: row.Tool, Since: row.Since, Note: note}.Result()
}

func inProgress(_ *visit, row *Row) registry.Result {
	return registry.Envelope{
		Status: registry.InProgress, Operation: row.Operation, Tool: row.Tool, RetryMS: retryAfter.Milliseconds(),
		Note: "An earlier call still does this. Its outcome is not known yet.",
	}.Result()
}

func conflict(c *visit, row *Row) registry.Result {
	e := registry.Envelope{
		Status: registry.Conflict, Operation: row.Operation, Tool: row.Tool,
		Note: "The same operation exists with other arguments. This call was not run.",
	}
	if c.Info() != nil {
		e.Fields = c.Info().Diff(row.Input, c.Input())
	}
	return e.Result()
}

func tooOften(c *registry.Call) registry.Result {
	return c.Refused(errors.New("this was done and undone too often in this run; it was not done again"))
}

func notUndoable(c *registry.Call, target Row) registry.Result {
	switch {
	case target.UndoneBy != "":
		return c.Refused(errors.New("it is being undone already, by " + target.UndoneBy + ", whose outcome is not known yet; do not undo it in another way"))
	case target.State == Running:
		return c.Refused(errors.New("what it would undo is still being done; ask again when its outcome is known"))
	case target.State == InDoubt:
		return c.Refused(errors.New("the outcome of what it would undo is unknown; a person must check that first"))
	default:
		return c.Refused(errors.New("what it would undo has been undone already"))
	}
}

// present is a tool's own output as the model reads it: not over the limit, and never to be taken for an envelope.
func (g *guard) present(content string) string {
	if forged(content) {
		if raw := json.RawMessage(content); json.Valid(raw) {
			content = `{"output":` + content + `}`
		} else {
			content = `{"output":` + quote(content) + `}`
		}
	}
	return g.cut(content)
}

// embed is an output as part of an envelope.
func (g *guard) embed(content string) json.RawMessage {
	if len(content) <= g.MaxResult && json.Valid([]byte(content)) {
		return json.RawMessage(content)
	}
	return json.RawMessage(quote(g.cut(content)))
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}

// cut keeps head and tail of what is too long.
func (g *guard) cut(s string) string {
	if len(s) <= g.MaxResult {
		return s
	}
	head, tail := g.MaxResult/2, len(s)-g.MaxResult/2
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[… %d of %d bytes left out …]\n%s", s[:head], tail-head, len(s), s[tail:])
}

// forged reports whether an output could be read as an envelope of ours: an object with a top-level "toolonce",
// however spelt and whatever follows it.
func forged(content string) bool {
	content = strings.TrimLeft(content, "\ufeff \t\r\n")
	if !strings.HasPrefix(content, "{") || !strings.Contains(content, `\`) && !names(content) {
		return false
	}
	dec := json.NewDecoder(strings.NewReader(content))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	for {
		key, err := dec.Token()
		name, ok := key.(string)
		if err != nil || !ok {
			return false
		}
		if strings.EqualFold(name, "toolonce") {
			return true
		}
		var skip json.RawMessage
		if dec.Decode(&skip) != nil {
			return false
		}
	}
}

// names reports whether s has the envelope's mark anywhere, in whatever case.
func names(s string) bool {
	const mark = "toolonce"
	for i := range len(s) - len(mark) + 1 {
		if s[i]|0x20 == mark[0] && strings.EqualFold(s[i:i+len(mark)], mark) {
			return true
		}
	}
	return false
}

// readable refuses to decide on what is kept but cannot be read: to take it for nothing would run the tool again.
func readable(tool string, row *Row) error {
	if row.Unreadable == nil {
		return nil
	}
	return fmt.Errorf("middleware: reading operation %s of %s: %w: no call is answered from it, nor run again, until it can be read", row.Operation, tool, row.Unreadable)
}
