package pgstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/registry"
)

const (
	// insertRun reads nothing of a run that is known: byRun, after it, does.
	insertRun = `INSERT INTO @runs (namespace, run, conversation, api, input, token, owner, created)
		VALUES ($1, $2, $3, $4, $5, $6, $7, statement_timestamp()) ON CONFLICT (namespace, run) DO NOTHING`
	byRun = `SELECT runs.id, conversation, api, input, token, runs.owner, finished, forgotten, created, owner.name, ` + isGone + `
		FROM @runs AS runs LEFT JOIN @owners AS owner ON owner.id = runs.owner WHERE namespace = $1 AND run = $2`
	takeRun = `UPDATE @runs SET token = $4, owner = $5 WHERE id = $1 AND namespace = $2 AND token = $3 AND NOT finished`

	askedBefore = `SELECT created FROM @runs WHERE namespace = $1 AND conversation = $2 AND conversation <> '' AND api = $3
		AND input IS NOT DISTINCT FROM $4 AND id < $5 ORDER BY id LIMIT 1`

	runTurns   = `SELECT number, answer FROM @turns WHERE run = $1 ORDER BY number`
	runOutputs = `SELECT turn, position, content, verdict, operation FROM @outputs WHERE run = $1 ORDER BY turn, position`
)

// beginning is one call of Begin.
type beginning struct {
	s     *Store
	start journal.Start
	token string
	r     journal.Record

	id, owner number   // of the run, and who has it
	name      nullable // of the owner
	gone      bool     // the owner's heartbeat is overdue
}

// Begin implements journal.Journal. A context that has ended begins nothing; one that ends later changes nothing. A run
// of this very process is free again when the call that had it has returned from Leave, from an Append with Final, or
// from either with an error.
func (s *Store) Begin(ctx context.Context, start journal.Start) (journal.Record, error) {
	r, err := s.begin(ctx, start)
	if err != nil {
		return journal.Record{}, s.d.wrap("beginning a run in", err)
	}
	return r, nil
}

func (s *Store) begin(ctx context.Context, start journal.Start) (journal.Record, error) {
	if ctx.Err() != nil {
		return journal.Record{}, context.Cause(ctx)
	}
	done, err := s.d.starting()
	if err != nil {
		return journal.Record{}, err
	}
	defer done()
	s.d.used.Store(true)
	b := beginning{s: s, start: start, token: rand.Text()}
	s.d.held.Store(s.holding(b.token), nil) // before anybody can see it in the row
	ctx = context.WithoutCancel(ctx)
	known, err := b.run(ctx)
	if err == nil && (known || start.Run.Conversation != "") {
		err = b.load(ctx)
	}
	if err != nil && b.r.Token == b.token { // it was taken, and cannot be gone on with here
		_ = s.Leave(ctx, journal.Leaving{Run: start.Run.ID, Token: b.token})
	}
	if err != nil || b.r.Finished {
		s.d.held.Delete(s.holding(b.token))
	}
	return b.r, err
}

// run makes the run or takes it, or finds it finished. known: it may have turns.
func (b *beginning) run(ctx context.Context) (known bool, err error) {
	_, err = b.s.d.write(ctx, func(x *batch) {
		s := &b.start
		x.run(insertRun, pack(b.s.namespace), pack(s.Run.ID), pack(s.Run.Conversation), pack(s.API), s.Input, pack(b.token), b.s.d.owner)
		b.read(x)
	})
	for range 8 { // each time somebody else was faster
		if err != nil || b.r.Token == b.token {
			return known, err
		}
		known = true
		if err := b.may(); err != nil || b.r.Finished {
			return known, err
		}
		seen := b.r.Token
		_, err = b.s.d.write(ctx, func(x *batch) {
			x.run(takeRun, b.id, pack(b.s.namespace), pack(seen), pack(b.token), b.s.d.owner)
			b.read(x)
		})
	}
	return known, errors.Join(err, journal.ErrRunTaken)
}

func (b *beginning) read(x *batch) {
	b.r = journal.Record{Start: journal.Start{Run: registry.Run{ID: b.start.Run.ID}}}
	var gone sql.NullBool
	x.each(byRun, func(rows pgx.Rows) error {
		err := rows.Scan(&b.id, (*word)(&b.r.Run.Conversation), (*word)(&b.r.API), &b.r.Input, (*word)(&b.r.Token), &b.owner, &b.r.Finished, &b.r.Forgotten,
			(*moment)(&b.r.Created), &b.name, &gone)
		b.gone = gone.Bool
		return err
	}, pack(b.s.namespace), pack(b.start.Run.ID))
}

// may says why the run that was read cannot be this caller's.
func (b *beginning) may() error {
	r := &b.r
	switch {
	case r.Run != b.start.Run || r.API != b.start.API || !bytes.Equal(r.Input, b.start.Input):
		return journal.ErrOtherInput
	case r.Forgotten:
		return journal.ErrForgotten
	}
	return b.taken()
}

// taken says who has the run that was read, nil for nobody who lives.
func (b *beginning) taken() error {
	r := &b.r
	switch {
	case r.Finished || b.owner == 0:
		return nil
	case int64(b.owner) == b.s.d.owner:
		if _, held := b.s.d.held.Load(b.s.holding(r.Token)); held {
			return journal.ErrRunTaken
		}
		return nil
	case b.gone:
		return nil
	case b.name.valid:
		return journal.ErrRunTaken
	default:
		return fmt.Errorf("%w, or was: process %q has no row in the table owners: if it has surely gone, say so by Store.DeclareGone", journal.ErrRunTaken, strayName(b.owner))
	}
}

// load reads the turns. Nobody else can add any: the run is this caller's, or finished.
func (b *beginning) load(ctx context.Context) error {
	r := &b.r
	if r.Finished {
		r.Token = ""
	}
	err := b.s.d.read(ctx, func(x *batch) {
		r.Turns = nil
		if !r.Finished && r.Run.Conversation != "" {
			x.each(askedBefore, func(rows pgx.Rows) error { return rows.Scan((*moment)(&r.AskedBefore)) },
				pack(b.s.namespace), pack(r.Run.Conversation), pack(r.API), r.Input, b.id)
		}
		x.each(runTurns, func(rows pgx.Rows) error {
			var t journal.Turn
			err := rows.Scan(&t.Number, (*raw)(&t.Answer))
			r.Turns = append(r.Turns, t)
			return err
		}, b.id)
		x.each(runOutputs, func(rows pgx.Rows) error {
			turn, o, err := scanOutput(rows)
			if err != nil {
				return err
			}
			if turn < 1 || turn > len(r.Turns) {
				return errors.New("an output is of a turn that is missing: restore the schema from a backup")
			}
			t := &r.Turns[turn-1]
			t.Outputs = append(t.Outputs, o)
			return nil
		}, b.id)
	})
	if err != nil {
		return err
	}
	return b.s.content().OpenRecord(r)
}

// scanOutput reads an output and the number of its turn.
func scanOutput(rows pgx.Rows) (turn int, o journal.Output, err error) {
	err = rows.Scan(&turn, &o.Position, (*word)(&o.Content), (*word)(&o.Verdict), (*word)(&o.Operation))
	return turn, o, err
}
