package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// The first arguments are always namespace and run; where operations are meant the next are ids that may be the run's.
const (
	// claimedByRun looks at all rows: there is no index for it, as none but a person asks.
	claimedByRun = `SELECT id FROM @operations WHERE (namespace = $1) IS TRUE AND run = $2`
	// claimedIn has those ids, and what was claimed since. Its calls lead to it.
	claimedIn = ` (namespace = $1) IS TRUE AND run = $2
		AND (id = ANY($3::bigint[]) OR id IN (SELECT operation FROM @aliases WHERE namespace = $1 AND run = $2))`
	stillCounts = `(state IN ('pending', 'approved') AND expires > statement_timestamp())`
	hasQuestion = ` namespace = $1 AND run = $2 AND (input IS NOT NULL OR digest IS NOT NULL OR ` + stillCounts + `)`

	knownRun = `SELECT EXISTS (SELECT 1 FROM @operations AS operations WHERE` + claimedIn + `) OR EXISTS (SELECT 1 FROM @aliases WHERE namespace = $1 AND run = $2)
		OR EXISTS (SELECT 1 FROM @approvals WHERE namespace = $1 AND run = $2)`
	openOfRun   = `SELECT id, state FROM @operations AS operations WHERE` + claimedIn + ` AND state IN ('running', 'in_doubt') ORDER BY id LIMIT 1`
	countForget = `SELECT (SELECT count(*) FROM @turns AS turns JOIN @runs AS runs ON turns.run = runs.id WHERE namespace = $1 AND runs.run = $2),
		(SELECT count(*) FROM @outputs AS outputs JOIN @runs AS runs ON outputs.run = runs.id WHERE namespace = $1 AND runs.run = $2),
		(SELECT count(*) FROM @operations AS operations WHERE` + claimedIn + ` AND ` + hasContent + `),
		(SELECT count(*) FROM @approvals WHERE` + hasQuestion + `)`

	lockForget    = `SELECT id FROM @runs WHERE namespace = $1 AND run = $2 FOR UPDATE`
	lockClaimedIn = `SELECT id FROM @operations AS operations WHERE` + claimedIn + ` ORDER BY id FOR UPDATE`
	// forgetRun erases nothing where the run is not as it was seen, by token and owner, or something is not settled.
	forgetRun = `WITH may AS (
			SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM @operations AS operations WHERE` + claimedIn + ` AND state IN ('running', 'in_doubt'))
				AND NOT EXISTS (SELECT 1 FROM @runs WHERE namespace = $1 AND run = $2 AND (token <> $4 OR owner <> $5))
		), ended AS (
			UPDATE @runs AS runs SET finished = true, owner = 0, forgotten = true FROM may, @runs AS before
			WHERE before.id = runs.id AND runs.namespace = $1 AND runs.run = $2 RETURNING before.finished
		), turned AS (
			DELETE FROM @turns AS turns USING may, @runs AS runs WHERE turns.run = runs.id AND runs.namespace = $1 AND runs.run = $2 RETURNING 1
		), told AS (
			DELETE FROM @outputs AS outputs USING may, @runs AS runs WHERE outputs.run = runs.id AND runs.namespace = $1 AND runs.run = $2 RETURNING 1
		), bared AS (
			UPDATE @operations AS operations SET input = NULL, result = NULL FROM may WHERE` + claimedIn + ` AND ` + hasContent + ` RETURNING 1
		), asked AS (
			UPDATE @approvals AS approvals SET input = NULL, digest = NULL, expires = CASE WHEN ` + stillCounts + ` THEN statement_timestamp() ELSE expires END
			FROM may WHERE` + hasQuestion + ` RETURNING 1
		), counted AS (
			SELECT (SELECT count(*) FROM turned) AS turns, (SELECT count(*) FROM told) AS outputs, (SELECT count(*) FROM bared) AS operations,
				(SELECT count(*) FROM asked) AS approvals, EXISTS (SELECT 1 FROM ended WHERE NOT finished) AS ended, EXISTS (SELECT 1 FROM may) AS may,
				'' AS id -- of a run without one
		), `
	somethingForgot = ` FROM counted WHERE turns + outputs + operations + approvals > 0 OR ended`
	whatForgot      = ` SELECT turns, outputs, operations, approvals, ended, may FROM counted`
)

var _ middleware.Forgetter = (*Store)(nil)

// Forget implements middleware.Forgetter. The caller's context does not cut short what was begun. Where the first answer is
// lost the report may count nothing.
//
// What is erased PostgreSQL keeps in dead rows, until they are vacuumed and written over, in its write-ahead log, and in
// replicas and backups: those are the operator's.
func (s *Store) Forget(ctx context.Context, run string, a middleware.Act) (middleware.ForgetReport, error) {
	a = middleware.ForgetAct(run, a)
	if err := a.Check(); err != nil {
		return middleware.ForgetReport{}, err
	}
	f := forgetting{s: s, run: run, act: a}
	if err := f.forget(ctx); err != nil {
		return middleware.ForgetReport{}, s.d.wrap("forgetting a run in", err)
	}
	return f.report, nil
}

// Forgettable implements middleware.Forgetter.
func (s *Store) Forgettable(ctx context.Context, run string) (middleware.ForgetReport, error) {
	f := forgetting{s: s, run: run}
	if err := f.look(ctx); err != nil {
		return middleware.ForgetReport{}, s.d.wrap("looking what to forget in", err)
	}
	return f.report, nil
}

// forgetting is one run being forgotten.
type forgetting struct {
	s   *Store
	run string
	act middleware.Act

	ids    []int64   // of operations that it may have claimed
	row    beginning // as the run was seen
	report middleware.ForgetReport
}

func (f *forgetting) args(more ...any) []any {
	return append([]any{pack(f.s.namespace), pack(f.run), f.ids}, more...)
}

// look sees what there is to forget, or why it cannot be.
func (f *forgetting) look(ctx context.Context) error {
	var known, open, counted bool
	var id number
	var state string
	var r middleware.ForgetReport
	err := f.s.d.read(ctx, func(b *batch) {
		f.ids = nil
		b.each(claimedByRun, func(rows pgx.Rows) error {
			f.ids = append(f.ids, 0)
			return rows.Scan(&f.ids[len(f.ids)-1])
		}, f.args()[:2]...)
	})
	if err != nil {
		return err
	}
	err = f.s.d.read(ctx, func(b *batch) {
		f.row = beginning{s: f.s, start: journal.Start{Run: registry.Run{ID: f.run}}}
		f.row.read(b)
		b.one(new(bool), knownRun, []any{&known}, f.args()...)
		b.one(&open, openOfRun, []any{&id, &state}, f.args()...)
		b.one(&counted, countForget, []any{&r.Turns, &r.Outputs, &r.Operations, &r.Approvals}, f.args()...)
	})
	switch {
	case err != nil:
		return err
	case !known && f.row.id == 0:
		return middleware.ErrUnknownRun
	}
	if err := f.row.taken(); err != nil {
		return err
	}
	if open {
		return fmt.Errorf("%w: %s is %s", middleware.ErrUnsettled, operationOf(id), state)
	}
	r.Ended = f.row.id != 0 && !f.row.r.Finished
	f.report = r
	return nil
}

func (f *forgetting) forget(ctx context.Context) error {
	for range 8 { // each time somebody else was faster
		if err := f.look(ctx); err != nil {
			return err
		}
		made, err := f.erase(ctx)
		if err != nil || made {
			return err
		}
	}
	return journal.ErrRunTaken
}

func (f *forgetting) erase(ctx context.Context) (made bool, err error) {
	query, args := f.s.acting(f.act, somethingForgot, f.args(pack(f.row.r.Token), f.row.owner))
	var r middleware.ForgetReport
	_, err = f.s.d.write(ctx, func(b *batch) {
		b.run(lockActs, f.s.d.opts.Schema)
		b.run(lockForget, f.args()[:2]...)
		b.run(lockClaimedIn, f.args()...)
		b.one(new(bool), forgetRun+query+whatForgot, []any{&r.Turns, &r.Outputs, &r.Operations, &r.Approvals, &r.Ended, &made}, args...)
	})
	f.report = r
	return made, err
}
