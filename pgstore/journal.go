package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/agent/journal"
)

// A run is locked before it is written, so what is read of it in the same transaction stays so. Each write says for itself
// whether the run is as it must be: namespace, run and token are its first arguments, then the turn.
const (
	seeRun = `SELECT id, owner <> 0, finished, (SELECT coalesce(max(number), 0) FROM @turns AS turns WHERE turns.run = runs.id) FROM @runs AS runs
		WHERE namespace = $1 AND run = $2 AND token = $3`
	lockRun = `SELECT id FROM @runs WHERE namespace = $1 AND run = $2 AND token = $3 FOR UPDATE`
	myRun   = ` FROM @runs AS runs WHERE namespace = $1 AND run = $2 AND token = $3 AND owner <> 0
		AND (SELECT coalesce(max(number), 0) FROM @turns AS turns WHERE turns.run = runs.id) = $4`

	insertOutput = `INSERT INTO @outputs (run, turn, position, content, verdict, operation)
		SELECT id, $4::bigint, $5::bigint, $6::text, $7::text, $8::text` + myRun + ` ON CONFLICT DO NOTHING`
	insertTurn = `WITH stored AS (INSERT INTO @turns (run, number, answer) SELECT id, $4::bigint + 1, $5::text` + myRun + ` RETURNING run)
		UPDATE @runs AS runs SET finished = $6, ended = CASE WHEN $6 THEN statement_timestamp() END, owner = CASE WHEN $6 THEN 0 ELSE owner END FROM stored WHERE runs.id = stored.run RETURNING id`
	leaveRun = `UPDATE @runs SET owner = 0 WHERE namespace = $1 AND run = $2 AND token = $3 AND owner <> 0
		AND ($4::bigint = 0 OR $4 = (SELECT coalesce(max(number), 0) FROM @turns AS turns WHERE turns.run = runs.id))`

	turnAnswer  = `SELECT answer FROM @turns AS turns JOIN @runs AS runs ON turns.run = runs.id WHERE namespace = $1 AND runs.run = $2 AND token = $3 AND number = $4`
	turnOutputs = `SELECT turn, position, content, verdict, operation FROM @outputs AS outputs JOIN @runs AS runs ON outputs.run = runs.id
		WHERE namespace = $1 AND runs.run = $2 AND token = $3 AND turn = $4 ORDER BY position`
)

// openCall is for a query of operations: a call that means the row is one of an unfinished run, and what the model was
// told about it is not stored, so the row is needed for the answer.
const openCall = `EXISTS (SELECT 1 FROM @runs AS runs JOIN @aliases AS aliases
		ON aliases.namespace = runs.namespace AND aliases.run = runs.run AND aliases.turn > 0 AND aliases.operation = operations.id
	WHERE runs.namespace = operations.namespace AND NOT runs.finished
		AND NOT EXISTS (SELECT 1 FROM @outputs AS outputs WHERE outputs.run = runs.id AND outputs.turn = aliases.turn AND outputs.position = aliases.position))`

// writing is one write of a run's.
type writing struct {
	s          *Store
	run, token string

	known, owned, finished bool // before the write
	id                     number
	last                   int // its last turn, 0 for none
}

// see queues the lock and what is known of the run.
func (w *writing) see(b *batch) {
	b.run(lockRun, w.args()...)
	b.one(&w.known, seeRun, []any{&w.id, &w.owned, &w.finished, &w.last}, w.args()...)
}

func (w *writing) args(more ...any) []any {
	return append([]any{pack(w.s.namespace), pack(w.run), pack(w.token)}, more...)
}

// outputs queues those of a turn that are new, if that is the last.
func (w *writing) outputs(b *batch, turn int, outputs []journal.Output) {
	for _, o := range outputs {
		b.run(insertOutput, w.args(turn, o.Position, pack(o.Content), pack(string(o.Verdict)), pack(o.Operation))...)
	}
}

// Append implements journal.Journal in one commit and one round trip. The caller's context does not cut it short. Where it
// fails, the run is left as far as this process is concerned, though not for others: the next Begin in this process takes it.
func (s *Store) Append(ctx context.Context, e journal.Entry) (journal.Entry, error) {
	stored, err := s.append(ctx, e)
	if err != nil || stored.Final {
		s.d.held.Delete(s.holding(e.Token))
	}
	if err != nil {
		return journal.Entry{}, s.d.wrap("storing a turn in", err)
	}
	return stored, nil
}

func (s *Store) append(ctx context.Context, e journal.Entry) (journal.Entry, error) {
	w := writing{s: s, run: e.Run, token: e.Token}
	n, before := e.Turn.Number, e.Turn.Number-1
	var stored journal.Entry
	var made, there bool
	e, err := s.content().PutEntry(e)
	if err != nil {
		return stored, err
	}
	doubtful, err := s.d.write(ctx, func(b *batch) {
		stored = journal.Entry{Run: e.Run, Token: e.Token, Turn: journal.Turn{Number: n}}
		w.see(b)
		if before > 0 {
			w.outputs(b, before, e.Outputs)
		}
		if before > 0 || len(e.Outputs) == 0 {
			b.one(&made, insertTurn, []any{new(number)}, w.args(before, pack(string(e.Turn.Answer)), e.Final)...)
		}
		b.one(&there, turnAnswer, []any{(*raw)(&stored.Turn.Answer)}, w.args(n)...)
		b.each(turnOutputs, func(rows pgx.Rows) error {
			_, o, err := scanOutput(rows)
			stored.Outputs = append(stored.Outputs, o)
			return err
		}, w.args(before)...)
	})
	if err == nil {
		err = s.content().OpenEntry(&stored)
	}
	lost := !w.known || !w.owned
	if lost && doubtful && w.finished && e.Final && n == w.last { // only the first answer was lost
		lost, stored.Final = false, true
	}
	switch {
	case err != nil:
		return stored, err
	case lost:
		return stored, journal.ErrLost
	case made:
		stored.Final = e.Final
		return stored, nil
	case there:
		return stored, nil
	case before == 0 && w.last == 0:
		return stored, fmt.Errorf("outputs came with turn %d: no turn is before it whose calls they could answer", n)
	default:
		return stored, fmt.Errorf("turn %d does not follow turn %d: begin the run again and go on from there", n, w.last)
	}
}

// Leave implements journal.Journal in one commit and one round trip. The caller's context does not cut it short. Whatever
// comes of it, the run is left as far as this process is concerned.
func (s *Store) Leave(ctx context.Context, l journal.Leaving) error {
	defer s.d.held.Delete(s.holding(l.Token))
	w := writing{s: s, run: l.Run, token: l.Token}
	nameless := l.Turn == 0 && len(l.Outputs) > 0
	outputs, err := s.content().PutOutputs(l.Run, l.Turn, l.Outputs)
	if err != nil {
		return s.d.wrap("leaving a run in", err)
	}
	doubtful, err := s.d.write(ctx, func(b *batch) {
		w.see(b)
		if nameless {
			return
		}
		if l.Turn > 0 {
			w.outputs(b, l.Turn, outputs)
		}
		b.run(leaveRun, w.args(l.Turn)...)
	})
	switch {
	case err != nil:
	case doubtful && w.known && !w.owned && !w.finished: // only the first answer was lost
	case !w.known || !w.owned:
		err = journal.ErrLost
	case nameless || l.Turn != 0 && l.Turn != w.last:
		err = fmt.Errorf("turn %d is not the last one, which is %d: name that, or leave without outputs", l.Turn, w.last)
	}
	return s.d.wrap("leaving a run in", err)
}
