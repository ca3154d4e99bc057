package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/internal/pieces"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// The first three arguments are always namespace, how old content must be at least, and registry.DefaultRetain.
const (
	// contentOver is NULL for what is running or in doubt.
	contentOver = `CASE state WHEN 'done' THEN done_at WHEN 'released' THEN done_at WHEN 'free' THEN since END
		<= statement_timestamp() - greatest(coalesce(retain, $3::interval), $2::interval)`
	hasContent = `(input IS NOT NULL OR result IS NOT NULL)`
	// forgettable is for rows whose content may go.
	forgettable = `(NOT late AND (state = 'done' AND coalesce(expires <= statement_timestamp(), false) AND NOT EXISTS (SELECT 1 FROM @operations AS undo
			WHERE undo.undoes = operations.id AND (undo.namespace = $1) IS TRUE AND undo.state IN ('running', 'in_doubt'))
		OR state = 'free' AND NOT by_person AND NOT unclear AND generation = 0 AND deadline <= statement_timestamp()))`
	// openOperations are those that openCall is true for. Of all unfinished runs they are found as quickly as of one.
	openOperations = `(SELECT aliases.operation FROM @runs AS runs JOIN @aliases AS aliases
			ON aliases.namespace = runs.namespace AND aliases.run = runs.run AND aliases.turn > 0
		WHERE runs.namespace = $1 AND NOT runs.finished
			AND NOT EXISTS (SELECT 1 FROM @outputs AS outputs WHERE outputs.run = runs.id AND outputs.turn = aliases.turn AND outputs.position = aliases.position))`
	// unfinished is what may have something to forget, now or later. A row that is free may be claimed again.
	unfinished = `NOT (state IN ('done', 'released') AND NOT ` + hasContent + ` AND (state = 'released' OR expires IS NULL OR late))`

	scanEnd  = `SELECT max(id) FROM (SELECT id FROM @operations WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3) AS looked`
	scanned  = ` FROM @operations AS operations WHERE id >= $4 AND id <= $5 AND (namespace = $1) IS TRUE AND `
	scanOver = `SELECT id, ` + forgettable + `, id IN ` + openOperations + `, coalesce(octet_length(input), 0) + coalesce(octet_length(result), 0)` +
		scanned + contentOver + ` AND (` + hasContent + ` OR ` + forgettable + `) ORDER BY id`
	scanOldest = `SELECT min(created)` + scanned + hasContent + ` AND NOT coalesce(` + contentOver + ` AND id NOT IN ` + openOperations + `, false)`
	scanLeft   = `SELECT id FROM @operations WHERE id >= $2 AND id <= $3 AND (namespace = $1) IS TRUE AND ` + unfinished + ` ORDER BY id LIMIT 1`

	// Rows are locked before it is seen what they are: so nobody notes or undoes one meanwhile.
	lockOperations   = `SELECT id FROM @operations WHERE id = ANY($2::bigint[]) AND (namespace = $1) IS TRUE ORDER BY id FOR UPDATE`
	still            = ` WHERE id = ANY($4::bigint[]) AND (namespace = $1) IS TRUE AND ` + contentOver + ` AND id NOT IN ` + openOperations
	forgetOperations = `WITH gone AS (DELETE FROM @operations AS operations` + still + ` AND ` + forgettable + ` RETURNING id, run, turn, position), claimers AS (
			DELETE FROM @aliases AS aliases USING gone WHERE aliases.namespace = $1 AND aliases.run = gone.run AND aliases.turn = gone.turn
				AND aliases.position = gone.position AND aliases.operation = gone.id
		) SELECT count(*) FROM gone`
	forgetContents = `WITH gone AS (UPDATE @operations AS operations SET input = NULL, result = NULL` + still + ` AND ` + hasContent + ` RETURNING 1)
		SELECT count(*) FROM gone`

	prunedBelow = `SELECT below FROM @pruned WHERE namespace = $1`
	setPruned   = `INSERT INTO @pruned AS pruned (namespace, below) VALUES ($1, $2)
		ON CONFLICT (namespace) DO UPDATE SET below = greatest(pruned.below, excluded.below)`
)

// pruning is one Prune at work.
type pruning struct {
	s      *Store
	opts   middleware.PruneOptions
	now    time.Time // of this process, as ids have it
	report middleware.PruneReport
	below  int64 // no operation with a lower id has anything left to forget
	stuck  bool  // the one with this id has
}

var _ middleware.Pruner = (*Store)(nil)

// Prune implements middleware.Pruner. It reads the operations of all tenants from the oldest on that may have something to
// forget. The content of an operation that was claimed by a process whose clock was behind by more than a day may stay.
func (s *Store) Prune(ctx context.Context, opts middleware.PruneOptions) (middleware.PruneReport, error) {
	p := pruning{s: s, opts: opts, now: time.Now()}
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
	return p.report, s.d.wrap("pruning", err)
}

func (p *pruning) args(more ...any) []any {
	return append([]any{pack(p.s.namespace), span(p.opts.OlderThan), span(registry.DefaultRetain)}, more...)
}

func (p *pruning) operations(ctx context.Context) error {
	var known bool
	err := p.s.d.read(ctx, func(b *batch) { b.one(&known, prunedBelow, []any{&p.below}, pack(p.s.namespace)) })
	if err != nil {
		return err
	}
	began, until := p.below, idAt(p.now.Add(pieces.Margin)) // what is younger has no time that is over
	for from := p.below; err == nil; {
		var there bool
		var end number
		err = p.s.d.read(ctx, func(b *batch) { b.one(&there, scanEnd, []any{&end}, from, until, pieces.Scan) })
		if err != nil || end == 0 {
			break
		}
		if err = p.scan(ctx, from, int64(end)); err == nil {
			from = int64(end) + 1
		}
	}
	if p.below = min(p.below, idAt(p.now.Add(-pieces.Margin))); p.opts.DryRun || p.below <= began {
		return err
	}
	_, failed := p.s.d.write(ctx, func(b *batch) { b.run(setPruned, pack(p.s.namespace), p.below) })
	if err == nil {
		err = failed
	}
	return err
}

// scan looks at the operations with ids in a range, and forgets what can be.
func (p *pruning) scan(ctx context.Context, from, end int64) error {
	var due []pieces.Candidate
	err := p.s.d.read(ctx, func(b *batch) {
		due = nil
		b.each(scanOver, func(rows pgx.Rows) error {
			var c pieces.Candidate
			err := rows.Scan(&c.ID, &c.Whole, &c.Needed, &c.Bytes)
			due = append(due, c)
			return err
		}, p.args(from, end)...)
	})
	if err != nil {
		return err
	}
	due = p.free(due)
	for len(due) > 0 {
		var batch []pieces.Candidate
		batch, due = pieces.Cut(due)
		if err := p.forget(ctx, batch); err != nil {
			return err
		}
		p.told()
		if err := pieces.Over(ctx); err != nil {
			return err
		}
	}
	return p.look(ctx, from, end)
}

// look sees what is left in a range.
func (p *pruning) look(ctx context.Context, from, end int64) error {
	left, oldest := end+1, time.Time{}
	var stuck, there bool
	err := p.s.d.read(ctx, func(b *batch) {
		b.one(&there, scanOldest, []any{(*moment)(&oldest)}, p.args(from, end)...)
		b.one(&stuck, scanLeft, []any{&left}, pack(p.s.namespace), from, end)
	})
	if err != nil {
		return err
	}
	if p.report.Oldest.IsZero() {
		p.report.Oldest = oldest
	}
	if !p.stuck {
		p.stuck, p.below = stuck, left
	}
	return nil
}

// free counts and leaves out what is needed.
func (p *pruning) free(due []pieces.Candidate) []pieces.Candidate {
	var free []pieces.Candidate
	for _, c := range due {
		if c.Needed {
			p.report.Needed++
		} else {
			free = append(free, c)
		}
	}
	return free
}

func (p *pruning) told() {
	if p.opts.Progress != nil {
		p.opts.Progress(p.report)
	}
}

// forget is one batch in its transaction.
func (p *pruning) forget(ctx context.Context, all []pieces.Candidate) error {
	var ids []int64
	whole := 0
	for _, c := range all {
		ids = append(ids, c.ID)
		if c.Whole {
			whole++
		}
	}
	contents := len(all) - whole
	if !p.opts.DryRun {
		var counted, again bool
		_, err := p.s.d.write(ctx, func(b *batch) {
			b.run(lockOperations, pack(p.s.namespace), ids)
			b.one(&counted, forgetOperations, []any{&whole}, p.args(ids)...)
			b.one(&again, forgetContents, []any{&contents}, p.args(ids)...)
		})
		if err != nil {
			return err
		}
	}
	p.report.Identities += whole
	p.report.Contents += contents
	return nil
}

// idAt is the lowest id that an operation gets at a time.
func idAt(t time.Time) int64 { return t.UnixMilli() << idRandom }
