package content

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
)

// View is the Box of one namespace. What is sealed is bound to its place: an operation's content to its claim, by the token,
// that of a run to where it stands there.
type View struct {
	Box
	Namespace string
}

// PutInput is a claim's.
func (v View) PutInput(input []byte, token string) ([]byte, error) {
	return v.putBytes(input, "input", token)
}

// PutResult is that of a step.
func (v View) PutResult(t *middleware.Transition) (string, error) {
	return v.Put(t.Result, v.Namespace, "result", t.Token)
}

// TakeResult is what was put by the claim that has the token.
func (v View) TakeResult(stored, token string) (string, error) {
	return v.Take(stored, v.Namespace, "result", token)
}

// OpenRow takes input and result of a row that was read, or says in it why that cannot be.
func (v View) OpenRow(row *middleware.Row) {
	row.Input, row.Unreadable = v.takeBytes(row.Input, "input", row.Token)
	result, err := v.TakeResult(row.Result, row.Token)
	if row.Result = result; err != nil {
		row.Unreadable = err
	}
}

// PutQuestion is the input of an approval.
func (v View) PutQuestion(input []byte, id string) ([]byte, error) {
	return v.putBytes(input, "approval", id)
}

// OpenApproval is OpenRow for an approval.
func (v View) OpenApproval(a *middleware.Approval) {
	a.Input, a.Unreadable = v.takeBytes(a.Input, "approval", a.ID)
}

// PutEntry is an entry as it is stored.
func (v View) PutEntry(e journal.Entry) (journal.Entry, error) {
	answer, err := v.Put(string(e.Turn.Answer), v.Namespace, "answer", e.Run, strconv.Itoa(e.Turn.Number))
	if err != nil {
		return e, err
	}
	e.Turn.Answer = json.RawMessage(answer)
	e.Outputs, err = v.PutOutputs(e.Run, e.Turn.Number-1, e.Outputs)
	return e, err
}

// OpenEntry takes what an entry that was read says.
func (v View) OpenEntry(e *journal.Entry) error {
	if err := v.openAnswer(e.Run, &e.Turn); err != nil {
		return err
	}
	return v.openOutputs(e.Run, e.Turn.Number-1, e.Outputs)
}

// OpenRecord takes the answers and outputs of a run that was read. What cannot be opened is left out, and the first reason is
// the error: what else there is to see of the run is not lost with it.
func (v View) OpenRecord(r *journal.Record) (closed error) {
	for i := range r.Turns {
		t := &r.Turns[i]
		closed = cmp.Or(closed, v.openAnswer(r.Run.ID, t), v.openOutputs(r.Run.ID, t.Number, t.Outputs))
	}
	return closed
}

func (v View) openAnswer(run string, turn *journal.Turn) error {
	answer, err := v.Take(string(turn.Answer), v.Namespace, "answer", run, strconv.Itoa(turn.Number))
	turn.Answer = json.RawMessage(answer)
	return err
}

// PutOutputs are those of a turn as they are stored.
func (v View) PutOutputs(run string, turn int, outputs []journal.Output) ([]journal.Output, error) {
	outputs = slices.Clone(outputs)
	for i := range outputs {
		o := &outputs[i]
		var err error
		if o.Content, err = v.Put(o.Content, v.Namespace, "output", run, strconv.Itoa(turn), strconv.Itoa(o.Position)); err != nil {
			return nil, err
		}
	}
	return outputs, nil
}

func (v View) openOutputs(run string, turn int, outputs []journal.Output) (closed error) {
	for i := range outputs {
		o := &outputs[i]
		content, err := v.Take(o.Content, v.Namespace, "output", run, strconv.Itoa(turn), strconv.Itoa(o.Position))
		o.Content, closed = content, cmp.Or(closed, err)
	}
	return closed
}

// Digest stands for an input where two are compared, since what is sealed twice is not equal. It is nil for nil.
func Digest(input []byte) []byte {
	if input == nil {
		return nil
	}
	h := sha256.Sum256(input)
	return h[:]
}

func (v View) putBytes(b []byte, place ...string) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	if v.Codec == nil && !bytes.HasPrefix(b, []byte(mark)) {
		return bytes.Clone(b), nil
	}
	s, err := v.Put(string(b), append([]string{v.Namespace}, place...)...)
	return []byte(s), err
}

func (v View) takeBytes(b []byte, place ...string) ([]byte, error) {
	if !bytes.HasPrefix(b, []byte(mark)) {
		return b, nil
	}
	s, err := v.Take(string(b), append([]string{v.Namespace}, place...)...)
	if err != nil {
		return nil, err
	}
	return []byte(s), nil
}
