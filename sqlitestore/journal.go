package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/toolonce/toolonce/agent/journal"
)

// A run's id in the file is found under its namespace and its token, in the transaction that uses it; what belongs to the
// run names that id alone.
const (
	myRun = `SELECT id, (SELECT coalesce(max(number), 0) FROM turns WHERE turns.run = runs.id) FROM runs
		WHERE namespace = +?1 AND run = +?2 AND token = +?3 AND owner <> 0`
	insertTurn   = `INSERT INTO turns (run, number, answer) VALUES (?1, ?2, ?3)`
	insertOutput = `INSERT INTO outputs (run, turn, position, content, verdict, operation) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING`
	finishRun    = `UPDATE runs SET finished = 1, owner = 0, ended = +?2 WHERE id = +?1`
	leaveRun     = `UPDATE runs SET owner = 0 WHERE id = +?1`

	turnAnswer  = `SELECT answer FROM turns WHERE run = +?1 AND number = +?2`
	turnOutputs = `SELECT turn, position, content, verdict, operation FROM outputs WHERE run = +?1 AND turn = +?2 ORDER BY position`
)

// openCall is for a query of operations: a call that means the row is one of an unfinished run, and what the model was
// told about it is not stored, so the row is needed for the answer. Nothing but the unfinished runs leads there: calls are
// not found by operation.
const openCall = `EXISTS (SELECT 1 FROM runs INDEXED BY runs_open CROSS JOIN aliases
	WHERE runs.namespace = operations.namespace AND runs.finished = 0
		AND aliases.namespace = operations.namespace AND aliases.run = runs.run AND aliases.turn > 0 AND aliases.operation = operations.id
		AND NOT EXISTS (SELECT 1 FROM outputs WHERE outputs.run = runs.id AND outputs.turn = aliases.turn AND outputs.position = aliases.position))`

// Append implements journal.Journal in one commit. The caller's context does not cut it short. Where it fails, the run is
// left as far as this process is concerned, though not for others: the next Begin in this process takes it.
func (s *Store) Append(ctx context.Context, e journal.Entry) (journal.Entry, error) {
	var stored journal.Entry
	err := s.writeRun(ctx, e.Run, e.Token, func(x *tx, id int64, last int) (left bool, err error) {
		stored, err = s.appendTurn(x, id, last, e)
		return stored.Final, err
	})
	if err != nil {
		return journal.Entry{}, s.f.wrap("storing a turn in", err)
	}
	return stored, nil
}

func (s *Store) appendTurn(x *tx, id int64, last int, e journal.Entry) (journal.Entry, error) {
	stored := journal.Entry{Run: e.Run, Token: e.Token, Turn: journal.Turn{Number: e.Turn.Number, Answer: e.Turn.Answer}}
	before := e.Turn.Number - 1
	var err error
	switch {
	case before >= 0 && before < last: // it is stored
		if _, err = x.one(turnAnswer, []any{(*[]byte)(&stored.Turn.Answer)}, id, e.Turn.Number); err == nil {
			err = s.content().OpenAnswer(e.Run, &stored.Turn)
		}
	case before != last:
		err = fmt.Errorf("turn %d does not follow turn %d: begin the run again and go on from there", e.Turn.Number, last)
	case before == 0 && len(e.Outputs) > 0:
		err = fmt.Errorf("outputs came with turn %d: no turn is before it whose calls they could answer", e.Turn.Number)
	default:
		if err = s.addOutputs(x, id, e.Run, before, e.Outputs); err == nil {
			err = s.addTurn(x, id, e.Run, e.Turn)
		}
		if stored.Final = e.Final; err == nil && e.Final {
			err = x.run(finishRun, id, s.f.now().UnixNano())
		}
	}
	if err != nil || before == 0 {
		return stored, err
	}
	err = x.each(turnOutputs, func(rows *sql.Rows) error {
		_, o, err := scanOutput(rows)
		stored.Outputs = append(stored.Outputs, o)
		return err
	}, id, before)
	if err == nil {
		err = s.content().OpenOutputs(e.Run, before, stored.Outputs)
	}
	return stored, err
}

func (s *Store) addTurn(x *tx, id int64, run string, turn journal.Turn) error {
	answer, err := s.content().PutAnswer(run, turn)
	if err != nil {
		return err
	}
	return x.run(insertTurn, id, turn.Number, answer)
}

// addOutputs stores the outputs of a turn that are new.
func (s *Store) addOutputs(x *tx, id int64, run string, turn int, outputs []journal.Output) error {
	for _, o := range outputs {
		text, err := s.content().PutOutput(run, turn, o)
		if err != nil {
			return err
		}
		if err := x.run(insertOutput, id, turn, o.Position, text, string(o.Verdict), o.Operation); err != nil {
			return err
		}
	}
	return nil
}

// Leave implements journal.Journal in one commit. The caller's context does not cut it short. Whatever comes of it, the
// run is left as far as this process is concerned.
func (s *Store) Leave(ctx context.Context, l journal.Leaving) error {
	err := s.writeRun(ctx, l.Run, l.Token, func(x *tx, id int64, last int) (left bool, err error) {
		if (l.Turn != 0 || len(l.Outputs) > 0) && (l.Turn != last || last == 0) {
			return true, fmt.Errorf("turn %d is not the last one, which is %d: name that, or leave without outputs", l.Turn, last)
		}
		if err := s.addOutputs(x, id, l.Run, l.Turn, l.Outputs); err != nil {
			return true, err
		}
		return true, x.run(leaveRun, id)
	})
	return s.f.wrap("leaving a run in", err)
}

// writeRun runs f in a transaction in which the run is the token's; last is the number of its last turn, 0 for none. The
// caller is at the run no more after an error, and where f has left it.
func (s *Store) writeRun(ctx context.Context, run, token string, f func(x *tx, id int64, last int) (left bool, err error)) error {
	var left bool
	err := s.f.writer.do(ctx, func(x *tx) error {
		var id int64
		var last int
		ok, err := x.one(myRun, []any{&id, &last}, s.namespace, run, token)
		if err == nil && !ok {
			err = journal.ErrLost
		}
		if err == nil {
			left, err = f(x, id, last)
		}
		return err
	})
	if err != nil || left {
		s.f.held.Delete(s.holding(token))
	}
	return err
}
