package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// The first arguments are always namespace and run; where operations are meant the next are ids that may be the run's.
const (
	// claimedByRun looks at all rows: there is no index for it, as none but a person asks.
	claimedByRun = `SELECT id FROM operations WHERE +namespace = ?1 AND run = ?2`
	// ofRun has those ids, and what was claimed since. Its calls lead to it.
	ofRun = ` FROM operations WHERE id IN (SELECT value FROM json_each(?3) UNION SELECT operation FROM aliases WHERE namespace = +?1 AND run = +?2)
		AND +namespace = ?1 AND run = ?2`
	knownRun = `SELECT EXISTS (SELECT 1` + ofRun + `) OR EXISTS (SELECT 1 FROM aliases WHERE namespace = +?1 AND run = +?2)
		OR EXISTS (SELECT 1 FROM approvals WHERE namespace = +?1 AND run = +?2)`
	unsettled = `SELECT id, state` + ofRun + ` AND state IN ('running', 'in_doubt') ORDER BY id LIMIT 1`

	forgetTurns     = `DELETE FROM turns WHERE run = +?1`
	forgetOutputs   = `DELETE FROM outputs WHERE run = +?1`
	forgetOfRun     = `UPDATE operations SET input = NULL, result = NULL WHERE id IN (SELECT id` + ofRun + `) AND ` + hasContent
	forgetQuestions = `UPDATE approvals SET input = NULL, digest = NULL, expires = CASE WHEN ` + stillCounts + ` THEN ?3 ELSE expires END
		WHERE namespace = +?1 AND run = +?2 AND (input IS NOT NULL OR digest IS NOT NULL OR ` + stillCounts + `)`
	stillCounts = `state IN ('pending', 'approved') AND expires > ?3`
	markForgot  = `UPDATE runs SET finished = 1, owner = 0, forgotten = 1 WHERE id = +?1`
)

var _ middleware.Forgetter = (*Store)(nil)

// Forget implements middleware.Forgetter. The caller's context does not cut short what was begun.
//
// What is deleted SQLite writes over, and the write-ahead log is emptied, for which nobody may be reading an older state: where
// somebody does for longer than Options.WriteTimeout that is the error, and to forget the run again tries it again. Some bytes
// may stay in the unused part of a page, where SQLite has moved a row between pages before; VACUUM has them gone. Backups, and
// what file system and disk keep, are the operator's.
func (s *Store) Forget(ctx context.Context, run string, a middleware.Act) (middleware.ForgetReport, error) {
	a = middleware.ForgetAct(run, a)
	if err := a.Check(); err != nil {
		return middleware.ForgetReport{}, err
	}
	f := forgetting{s: s, run: run, act: &a}
	if err := f.forget(ctx); err != nil {
		return middleware.ForgetReport{}, s.f.wrap("forgetting a run in", err)
	}
	return f.report, s.f.wrap("forgetting a run in", s.f.writer.empty(ctx))
}

// Forgettable implements middleware.Forgetter.
func (s *Store) Forgettable(ctx context.Context, run string) (middleware.ForgetReport, error) {
	f := forgetting{s: s, run: run}
	if err := f.forget(ctx); err != nil {
		return middleware.ForgetReport{}, s.f.wrap("looking what to forget in", err)
	}
	return f.report, nil
}

// forgetting is one run being forgotten.
type forgetting struct {
	s      *Store
	run    string
	act    *middleware.Act // nil: what it would do is undone
	report middleware.ForgetReport
}

func (f *forgetting) forget(ctx context.Context) error {
	var ids []int64
	err := f.s.f.reader.each(ctx, claimedByRun, func(rows *sql.Rows) error {
		ids = append(ids, 0)
		return rows.Scan(&ids[len(ids)-1])
	}, f.s.namespace, f.run)
	if err != nil {
		return err
	}
	return f.s.f.writer.do(ctx, func(x *tx) error {
		f.report = middleware.ForgetReport{}
		b := beginning{s: f.s, start: journal.Start{Run: registry.Run{ID: f.run}}}
		if _, err := x.one(byRun, b.dest(), f.s.namespace, f.run); err != nil {
			return err
		}
		args := []any{f.s.namespace, f.run, list(ids)}
		if err := f.may(x, &b, args); err != nil {
			return err
		}
		if err := f.erase(x, &b, args); err != nil {
			return err
		}
		switch {
		case f.act == nil:
			return errUndo
		case f.report == middleware.ForgetReport{}:
			return nil
		}
		_, err := f.s.act(x, *f.act)
		return err
	})
}

// may says why the run cannot be forgotten.
func (f *forgetting) may(x *tx, b *beginning, args []any) error {
	known := b.id != 0
	if !known {
		if _, err := x.one(knownRun, []any{&known}, args...); err != nil {
			return err
		}
	}
	if !known {
		return middleware.ErrUnknownRun
	}
	if err := b.taken(x.ctx); err != nil {
		return err
	}
	var id int64
	var state string
	open, err := x.one(unsettled, []any{&id, &state}, args...)
	if err == nil && open {
		err = fmt.Errorf("%w: %s is %s", middleware.ErrUnsettled, operationOf(id), state)
	}
	return err
}

func (f *forgetting) erase(x *tx, b *beginning, args []any) error {
	var err error
	count := func(to *int, query string, args ...any) {
		if err == nil {
			var n int64
			n, err = x.exec(query, args...)
			*to = int(n)
		}
	}
	count(&f.report.Operations, forgetOfRun, args...)
	count(&f.report.Approvals, forgetQuestions, args[0], args[1], f.s.f.now().UnixNano())
	if b.id == 0 {
		return err
	}
	count(&f.report.Outputs, forgetOutputs, b.id)
	count(&f.report.Turns, forgetTurns, b.id)
	f.report.Ended = !b.r.Finished
	if err == nil && !b.r.Forgotten {
		err = x.run(markForgot, b.id)
	}
	return err
}

// empty has the write-ahead log moved into the file and cut to nothing. Between two tries other writes have their turn.
func (w *writer) empty(ctx context.Context) error {
	for until := time.Now().Add(w.timeout); ; {
		var busy bool
		err := w.alone(ctx, func(x *tx) error {
			_, err := x.one("PRAGMA wal_checkpoint(TRUNCATE)", []any{&busy, new(int), new(int)})
			return err
		})
		switch waits := errors.Is(kindOf(err), ErrBusy) || err == nil && busy; {
		case !waits:
			return err
		case time.Now().After(until):
			return fmt.Errorf("the run is forgotten, but somebody reads an older state and the write-ahead log still has what was erased: forget it again when they have ended: %w", ErrBusy)
		}
	}
}
