package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/toolonce/toolonce/internal/pieces"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// The first four arguments are always namespace, now, how old content must be at least, and registry.DefaultRetain. The + before
// namespace keeps SQLite from looking at all rows of a tenant where ids say which.
const (
	// contentOver is NULL for what is running or in doubt.
	contentOver = `CASE state WHEN 'done' THEN done_at WHEN 'released' THEN done_at WHEN 'free' THEN since END
		<= +?2 - max(CASE retain WHEN 0 THEN +?4 ELSE retain END, +?3)`
	hasContent = `(input IS NOT NULL OR result IS NOT NULL)`
	// forgettable is for rows whose content may go.
	forgettable = `(late = 0 AND (state = 'done' AND expires > 0 AND expires <= +?2 AND NOT EXISTS (SELECT 1 FROM operations AS undo
			WHERE undo.undoes = operations.id AND undo.namespace = +?1 AND undo.state IN ('running', 'in_doubt'))
		OR state = 'free' AND by_person = 0 AND unclear = 0 AND generation = 0 AND deadline <= +?2))`
	// openOperations are those that openCall is true for. Of all unfinished runs they are found as quickly as of one.
	openOperations = `(SELECT aliases.operation FROM runs INDEXED BY runs_open CROSS JOIN aliases
		WHERE runs.namespace = +?1 AND runs.finished = 0 AND aliases.namespace = +?1 AND aliases.run = runs.run AND aliases.turn > 0
			AND NOT EXISTS (SELECT 1 FROM outputs WHERE outputs.run = runs.id AND outputs.turn = aliases.turn AND outputs.position = aliases.position))`
	// unfinished is what may have something to forget, now or later. A row that is free may be claimed again.
	unfinished = `NOT (state IN ('done', 'released') AND NOT ` + hasContent + ` AND (state = 'released' OR expires = 0 OR late = 1))`

	scanEnd  = `SELECT max(id) FROM (SELECT id FROM operations WHERE id >= +?1 AND id < +?2 ORDER BY id LIMIT +?3)`
	scanned  = ` FROM operations WHERE id >= +?5 AND id <= +?6 AND +namespace = ?1 AND `
	scanOver = `SELECT id, ` + forgettable + `, id IN ` + openOperations + `, coalesce(octet_length(input), 0) + coalesce(octet_length(result), 0)` +
		scanned + contentOver + ` AND (` + hasContent + ` OR ` + forgettable + `) ORDER BY id`
	scanOldest = `SELECT coalesce(min(created), 0)` + scanned + hasContent + ` AND NOT coalesce(` + contentOver + ` AND id NOT IN ` + openOperations + `, 0)`
	scanLeft   = `SELECT id FROM operations WHERE id >= +?2 AND id <= +?3 AND +namespace = ?1 AND ` + unfinished + ` ORDER BY id LIMIT 1`

	still            = ` WHERE id IN (SELECT value FROM json_each(?5)) AND +namespace = ?1 AND ` + contentOver + ` AND id NOT IN ` + openOperations
	forgetOperations = `DELETE FROM operations` + still + ` AND ` + forgettable + ` RETURNING id, run, turn, position`
	forgetContents   = `UPDATE operations SET input = NULL, result = NULL` + still + ` AND ` + hasContent
	forgetClaimer    = `DELETE FROM aliases` + atPlace + ` AND operation = +?5`

	prunedBelow = `SELECT below FROM pruned WHERE namespace = +?1`
	setPruned   = `INSERT INTO pruned (namespace, below) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET below = max(below, ?2)`
)

// pruning is one Prune at work.
type pruning struct {
	s      *Store
	opts   middleware.PruneOptions
	now    time.Time
	report middleware.PruneReport
	below  int64 // no operation with a lower id has anything left to forget
	stuck  bool  // the one with this id has
}

var _ middleware.Pruner = (*Store)(nil)

// Prune implements middleware.Pruner. It reads the operations of all tenants from the oldest on that may have something to
// forget, without keeping anybody waiting, and writes between the others' writes.
func (s *Store) Prune(ctx context.Context, opts middleware.PruneOptions) (middleware.PruneReport, error) {
	p := pruning{s: s, opts: opts, now: s.f.now()}
	err := p.operations(ctx)
	if err == nil && p.report.Identities > 0 && !opts.DryRun {
		err = p.aliases(ctx)
	}
	if err == nil {
		err = p.approvals(ctx)
	}
	if err == nil {
		err = p.runs(ctx)
	}
	return p.report, s.f.wrap("pruning", err)
}

func (p *pruning) args(more ...any) []any {
	return append([]any{p.s.namespace, p.now.UnixNano(), int64(p.opts.OlderThan), int64(registry.DefaultRetain)}, more...)
}

func (p *pruning) operations(ctx context.Context) error {
	lasting, r := context.WithoutCancel(ctx), p.s.f.reader
	if _, err := r.one(lasting, prunedBelow, []any{&p.below}, p.s.namespace); err != nil {
		return err
	}
	began, until := p.below, idAt(p.now)+1<<idRandom // what is younger has no time that is over
	err := pieces.Over(ctx)
	for from := p.below; err == nil; {
		var end sql.NullInt64
		if _, err = r.one(lasting, scanEnd, []any{&end}, from, until, pieces.Scan); err != nil || !end.Valid {
			break
		}
		if err = p.scan(ctx, from, end.Int64); err == nil {
			from = end.Int64 + 1
			err = pieces.Over(ctx)
		}
	}
	if p.below = min(p.below, idAt(p.now.Add(-pieces.Margin))); p.opts.DryRun || p.below <= began {
		return err
	}
	keep(&err, p.remember(lasting))
	return err
}

// scan looks at the operations with ids in a range, and forgets what can be.
func (p *pruning) scan(ctx context.Context, from, end int64) error {
	lasting, r := context.WithoutCancel(ctx), p.s.f.reader
	var due []pieces.Candidate
	err := r.each(lasting, scanOver, func(rows *sql.Rows) error {
		var c pieces.Candidate
		err := rows.Scan(&c.ID, &c.Whole, &c.Needed, &c.Bytes)
		if p.report.Needed += btoi(c.Needed); !c.Needed {
			due = append(due, c)
		}
		return err
	}, p.args(from, end)...)
	for err == nil && len(due) > 0 {
		var batch []pieces.Candidate
		batch, due = pieces.Cut(due)
		if err = p.forget(lasting, batch); err != nil {
			break
		}
		p.told()
		err = pieces.Over(ctx)
	}
	if err == nil && p.report.Oldest.IsZero() {
		_, err = r.one(lasting, scanOldest, []any{(*moment)(&p.report.Oldest)}, p.args(from, end)...)
	}
	if err != nil || p.stuck {
		return err
	}
	left := end + 1
	p.stuck, err = r.one(lasting, scanLeft, []any{&left}, p.s.namespace, from, end)
	if err == nil {
		p.below = left
	}
	return err
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (p *pruning) told() {
	if p.opts.Progress != nil {
		p.opts.Progress(p.report)
	}
}

// forget is one batch in its transaction.
func (p *pruning) forget(ctx context.Context, batch []pieces.Candidate) error {
	if p.opts.DryRun {
		for _, c := range batch {
			p.report.Identities += btoi(c.Whole)
			p.report.Contents += btoi(!c.Whole)
		}
		return nil
	}
	ids := make([]int64, len(batch))
	for i, c := range batch {
		ids[i] = c.ID
	}
	var whole, contents int64
	err := p.s.f.writer.do(ctx, func(x *tx) (err error) {
		if whole, err = p.remove(x, list(ids)); err == nil {
			contents, err = x.exec(forgetContents, p.args(list(ids))...)
		}
		return err
	})
	if err == nil {
		p.report.Identities += int(whole)
		p.report.Contents += int(contents)
	}
	return err
}

// remove forgets operations altogether, with the calls that have claimed them.
func (p *pruning) remove(x *tx, ids string) (int64, error) {
	var claimers [][]any
	err := x.each(forgetOperations, func(rows *sql.Rows) error {
		var id, turn, position int64
		var run string
		err := rows.Scan(&id, &run, &turn, &position)
		claimers = append(claimers, []any{p.s.namespace, run, turn, position, id})
		return err
	}, p.args(ids)...)
	for _, at := range claimers {
		if err == nil {
			err = x.run(forgetClaimer, at...)
		}
	}
	return int64(len(claimers)), err
}

// remember keeps how far the tenant is pruned. No new operation gets an id below that: its content would stay for ever.
func (p *pruning) remember(ctx context.Context) error {
	return p.s.f.writer.do(ctx, func(x *tx) error {
		if err := x.run(setPruned, p.s.namespace, p.below); err != nil {
			return err
		}
		if err := x.run(listOld, p.below); err != nil {
			return err
		}
		return x.run(raiseLow, p.below)
	})
}

// idAt is the lowest id that an operation gets at a time.
func idAt(t time.Time) int64 { return t.UnixMilli() << idRandom }

// list is ids as one argument.
func list(ids []int64) string {
	b, _ := json.Marshal(ids) // numbers always encode
	return string(b)
}
