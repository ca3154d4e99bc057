package content

import (
	"crypto/sha256"
	"encoding/json"
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

// PutAnswer is that of a turn.
func (v View) PutAnswer(run string, turn journal.Turn) (string, error) {
	return v.Put(string(turn.Answer), v.Namespace, "answer", run, strconv.Itoa(turn.Number))
}

// OpenRecord takes the answers and outputs of a run that was read.
func (v View) OpenRecord(r *journal.Record) error {
	for i := range r.Turns {
		t := &r.Turns[i]
		if err := v.OpenAnswer(r.Run.ID, t); err != nil {
			return err
		}
		if err := v.OpenOutputs(r.Run.ID, t.Number, t.Outputs); err != nil {
			return err
		}
	}
	return nil
}

// OpenAnswer takes that of a turn.
func (v View) OpenAnswer(run string, turn *journal.Turn) error {
	answer, err := v.Take(string(turn.Answer), v.Namespace, "answer", run, strconv.Itoa(turn.Number))
	turn.Answer = json.RawMessage(answer)
	return err
}

// PutOutput is what the model is told.
func (v View) PutOutput(run string, turn int, o journal.Output) (string, error) {
	return v.Put(o.Content, v.Namespace, "output", run, strconv.Itoa(turn), strconv.Itoa(o.Position))
}

// OpenOutputs takes those of a turn.
func (v View) OpenOutputs(run string, turn int, outputs []journal.Output) (err error) {
	for i := range outputs {
		o := &outputs[i]
		if o.Content, err = v.Take(o.Content, v.Namespace, "output", run, strconv.Itoa(turn), strconv.Itoa(o.Position)); err != nil {
			return err
		}
	}
	return nil
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
	s, err := v.Put(string(b), append([]string{v.Namespace}, place...)...)
	return []byte(s), err
}

func (v View) takeBytes(b []byte, place ...string) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	s, err := v.Take(string(b), append([]string{v.Namespace}, place...)...)
	if err != nil {
		return nil, err
	}
	return []byte(s), nil
}
