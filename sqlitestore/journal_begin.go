package sqlitestore

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/registry"
)

const (
	byRun     = `SELECT id, conversation, api, input, token, owner, finished, forgotten, created FROM runs WHERE namespace = +?1 AND run = +?2`
	insertRun = `INSERT INTO runs (namespace, run, conversation, api, input, token, owner, created)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (namespace, run) DO NOTHING RETURNING id`
	takeRun = `UPDATE runs SET token = +?4, owner = +?5 WHERE id = +?1 AND namespace = +?2 AND token = +?3 AND finished = 0`

	askedBefore = `SELECT created FROM runs WHERE namespace = +?1 AND conversation = +?2 AND conversation <> '' AND api = +?3 AND input IS +?4 AND id < +?5
		ORDER BY id LIMIT 1`

	runTurns   = `SELECT number, answer FROM turns WHERE run = +?1 ORDER BY number`
	runOutputs = `SELECT turn, position, content, verdict, operation FROM outputs WHERE run = +?1 ORDER BY turn, position`
)

// beginning is one call of Begin.
type beginning struct {
	s     *Store
	start journal.Start
	token string
	id    int64 // of the run
	owner int64 // who has it
	r     journal.Record
}

// Begin implements journal.Journal. A context that has ended begins nothing; one that ends later changes nothing. A run
// of this very process is free again when the call that had it has returned from Leave, from an Append with Final, or
// from either with an error.
func (s *Store) Begin(ctx context.Context, start journal.Start) (journal.Record, error) {
	r, err := s.begin(ctx, start)
	if err != nil {
		return journal.Record{}, s.f.wrap("beginning a run in", err)
	}
	return r, nil
}

func (s *Store) begin(ctx context.Context, start journal.Start) (journal.Record, error) {
	if ctx.Err() != nil {
		return journal.Record{}, context.Cause(ctx)
	}
	done, err := s.f.starting()
	if err != nil {
		return journal.Record{}, err
	}
	defer done()
	b := beginning{s: s, start: start, token: rand.Text()}
	s.f.held.Store(s.holding(b.token), nil) // before anybody can see it in the row
	ctx = context.WithoutCancel(ctx)
	err = b.run(ctx)
	if err == nil {
		err = b.load(ctx)
	}
	if err != nil && b.r.Token == b.token { // it was taken, and cannot be gone on with here
		_ = s.Leave(ctx, journal.Leaving{Run: start.Run.ID, Token: b.token})
	}
	if err != nil || b.r.Finished {
		s.f.held.Delete(s.holding(b.token))
	}
	return b.r, err
}

// run makes the run or takes it, or finds it finished.
func (b *beginning) run(ctx context.Context) error {
	for range 8 { // each time somebody else was faster
		known, err := b.read(ctx)
		if err != nil {
			return err
		}
		if known {
			if err := b.may(ctx); err != nil || b.r.Finished {
				return err
			}
		}
		b.s.f.owners.used.Store(true)
		seen := b.r.Token
		err = b.s.f.writer.single(ctx, func(x *tx) error {
			if known {
				return b.take(x, seen)
			}
			return b.make(x)
		})
		if err != nil || b.r.Token == b.token {
			return err
		}
	}
	return journal.ErrRunTaken
}

func (b *beginning) read(ctx context.Context) (bool, error) {
	b.r = journal.Record{Start: journal.Start{Run: registry.Run{ID: b.start.Run.ID}}}
	return b.s.f.one(ctx, byRun, b.dest(), b.s.namespace, b.start.Run.ID)
}

func (b *beginning) dest() []any {
	r := &b.r
	return []any{&b.id, &r.Run.Conversation, &r.API, &r.Input, &r.Token, &b.owner, &r.Finished, &r.Forgotten, (*moment)(&r.Created)}
}

// may says why the run that was read cannot be this caller's.
func (b *beginning) may(ctx context.Context) error {
	r := &b.r
	if r.Run != b.start.Run || r.API != b.start.API || !bytes.Equal(r.Input, b.start.Input) {
		return journal.ErrOtherInput
	}
	if r.Forgotten {
		return journal.ErrForgotten
	}
	return b.taken(ctx)
}

// taken says who has the run that was read, nil for nobody who lives.
func (b *beginning) taken(ctx context.Context) error {
	r, o := &b.r, b.s.f.owners
	if r.Finished || b.owner == 0 {
		return nil
	}
	if b.owner == o.id {
		if _, held := b.s.f.held.Load(b.s.holding(r.Token)); held {
			return journal.ErrRunTaken
		}
		return nil
	}
	e, err := o.evidence(ctx, b.owner)
	switch {
	case err != nil || e == dead:
		return err
	case e == alive:
		return journal.ErrRunTaken
	}
	name, err := o.find(ctx, b.owner)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w, or was: the lock file of process %q is missing: if it has surely gone, say so by Store.DeclareGone", journal.ErrRunTaken, name)
}

func (b *beginning) make(x *tx) error {
	now, start := b.s.f.now(), &b.start
	made, err := x.one(insertRun, []any{&b.id}, b.s.namespace, start.Run.ID, start.Run.Conversation, start.API, start.Input, b.token, b.s.f.owners.id, now.UnixNano())
	if b.r.Token = ""; made {
		b.r = journal.Record{Start: *start, Token: b.token, Created: stored(now)}
		b.r.Input = bytes.Clone(start.Input)
	}
	return err
}

func (b *beginning) take(x *tx, seen string) error {
	n, err := x.exec(takeRun, b.id, b.s.namespace, seen, b.token, b.s.f.owners.id)
	if b.r.Token = seen; n == 1 {
		b.r.Token = b.token
	}
	return err
}

// load reads the turns. Nobody else can add any: the run is this caller's, or finished.
func (b *beginning) load(ctx context.Context) error {
	r := &b.r
	if r.Finished {
		r.Token = ""
	} else if r.Run.Conversation != "" {
		_, err := b.s.f.one(ctx, askedBefore, []any{(*moment)(&r.AskedBefore)}, b.s.namespace, r.Run.Conversation, r.API, r.Input, b.id)
		if err != nil {
			return err
		}
	}
	err := b.s.f.reader.each(ctx, runTurns, func(rows *sql.Rows) error {
		var t journal.Turn
		err := rows.Scan(&t.Number, (*[]byte)(&t.Answer))
		r.Turns = append(r.Turns, t)
		return err
	}, b.id)
	if err != nil || len(r.Turns) == 0 {
		return err
	}
	err = b.s.f.reader.each(ctx, runOutputs, func(rows *sql.Rows) error {
		turn, o, err := scanOutput(rows)
		if err != nil {
			return err
		}
		if turn < 1 || turn > len(r.Turns) {
			return fmt.Errorf("an output is of a turn that is missing: %w", ErrDamaged)
		}
		t := &r.Turns[turn-1]
		t.Outputs = append(t.Outputs, o)
		return nil
	}, b.id)
	if err != nil {
		return err
	}
	return b.s.content().OpenRecord(r)
}

// scanOutput reads an output and the number of its turn.
func scanOutput(rows *sql.Rows) (turn int, o journal.Output, err error) {
	err = rows.Scan(&turn, &o.Position, &o.Content, (*string)(&o.Verdict), &o.Operation)
	return turn, o, err
}
