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
	stored, err := s.append(ctx, e)
	if err != nil || stored.Final {
		s.f.held.Delete(s.holding(e.Token))
	}
	if err != nil {
		return journal.Entry{}, s.f.wrap("storing a turn in", err)
	}
	return stored, nil
}

func (s *Store) append(ctx context.Context, e journal.Entry) (stored journal.Entry, err error) {
	if e, err = s.content().PutEntry(e); err != nil {
		return stored, err
	}
	err = s.writeRun(ctx, e.Run, e.Token, func(x *tx, id int64, last int) (err error) {
		stored, err = s.appendTurn(x, id, last, e)
		return err
	})
	if err == nil {
		err = s.content().OpenEntry(&stored)
	}
	return stored, err
}

func (s *Store) appendTurn(x *tx, id int64, last int, e journal.Entry) (journal.Entry, error) {
	stored := journal.Entry{Run: e.Run, Token: e.Token, Turn: journal.Turn{Number: e.Turn.Number, Answer: e.Turn.Answer}}
	before := e.Turn.Number - 1
	var err error
	switch {
	case before >= 0 && before < last: // it is stored
		_, err = x.one(turnAnswer, []any{(*[]byte)(&stored.Turn.Answer)}, id, e.Turn.Number)
	case before != last:
		err = fmt.Errorf("turn %d does not follow turn %d: begin the run again and go on from there", e.Turn.Number, last)
	case before == 0 && len(e.Outputs) > 0:
		err = fmt.Errorf("outputs came with turn %d: no turn is before it whose calls they could answer", e.Turn.Number)
	default:
		if err = addOutputs(x, id, before, e.Outputs); err == nil {
			err = x.run(insertTurn, id, e.Turn.Number, string(e.Turn.Answer))
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
	return stored, err
}

// addOutputs stores the outputs of a turn that are new.
func addOutputs(x *tx, id int64, turn int, outputs []journal.Output) error {
	for _, o := range outputs {
		if err := x.run(insertOutput, id, turn, o.Position, o.Content, string(o.Verdict), o.Operation); err != nil {
			return err
		}
	}
	return nil
}

// Leave implements journal.Journal in one commit. The caller's context does not cut it short. Whatever comes of it, the
// run is left as far as this process is concerned.
func (s *Store) Leave(ctx context.Context, l journal.Leaving) error {
	defer s.f.held.Delete(s.holding(l.Token))
	outputs, err := s.content().PutOutputs(l.Run, l.Turn, l.Outputs)
	if err == nil {
		err = s.writeRun(ctx, l.Run, l.Token, func(x *tx, id int64, last int) error {
			if (l.Turn != 0 || len(l.Outputs) > 0) && (l.Turn != last || last == 0) {
				return fmt.Errorf("turn %d is not the last one, which is %d: name that, or leave without outputs", l.Turn, last)
			}
			if err := addOutputs(x, id, l.Turn, outputs); err != nil {
				return err
			}
			return x.run(leaveRun, id)
		})
	}
	return s.f.wrap("leaving a run in", err)
}

// writeRun runs f in a transaction in which the run is the token's; last is the number of its last turn, 0 for none.
func (s *Store) writeRun(ctx context.Context, run, token string, f func(x *tx, id int64, last int) error) error {
	return s.f.writer.do(ctx, func(x *tx) error {
		var id int64
		var last int
		ok, err := x.one(myRun, []any{&id, &last}, s.namespace, run, token)
		if err == nil && !ok {
			err = journal.ErrLost
		}
		if err != nil {
			return err
		}
		return f(x, id, last)
	})
}
