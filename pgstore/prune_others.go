package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/internal/pieces"
	"github.com/toolonce/toolonce/registry"
)

const (
	// What follows the namespace is a place: the run, turn and position that were looked at last.
	behind   = ` FROM @aliases AS aliases WHERE namespace = $1 AND (run, turn, position) > ($2::text, $3::bigint, $4::bigint)`
	aliasEnd = `SELECT run, turn, position` + behind + ` ORDER BY run, turn, position LIMIT 1 OFFSET $5`
	strays   = `SELECT run, turn, position` + behind + ` AND ($5::text IS NULL OR (run, turn, position) <= ($5::text, $6::bigint, $7::bigint)) AND ` + meansNothing
	// An alias without its operation gets a new one where its call is claimed or noted again, and then counts again.
	meansNothing = `NOT EXISTS (SELECT 1 FROM @operations AS operations WHERE operations.id = aliases.operation)`
	atStrays     = ` WHERE namespace = $1 AND (run, turn, position) IN (SELECT * FROM unnest($2::text[], $3::bigint[], $4::bigint[]))`
	lockStrays   = `SELECT 1 FROM @aliases` + atStrays + ` ORDER BY run, turn, position FOR UPDATE`
	forgetStrays = `DELETE FROM @aliases AS aliases` + atStrays + ` AND ` + meansNothing

	// The arguments are namespace, how long after its expiry an approval goes, and a number.
	approvalOver = ` FROM @approvals AS approvals WHERE (namespace = $1) IS TRUE AND expires <= statement_timestamp() - $2::interval
		AND NOT EXISTS (SELECT 1 FROM @runs AS runs WHERE runs.namespace = $1 AND runs.run = approvals.run AND NOT runs.finished)`
	approvalsOver   = `SELECT number` + approvalOver + ` AND number > $3::bigint ORDER BY number LIMIT $4`
	forgetApprovals = `WITH gone AS (DELETE` + approvalOver + ` AND number = ANY($3::bigint[]) RETURNING 1) SELECT count(*) FROM gone`
)

// place is where an alias stands. The run is as it is stored.
type place struct {
	run            string
	turn, position int64
}

func (a *place) dest() []any { return []any{&a.run, &a.turn, &a.position} }

// aliases forgets those of operations that have gone. Only what claimed one is found by it; what repeated it is looked for
// among all.
func (p *pruning) aliases(ctx context.Context) error {
	last := place{turn: -1}
	for more := true; more; {
		var end place
		args := []any{pack(p.s.namespace), last.run, last.turn, last.position}
		err := p.s.d.read(ctx, func(b *batch) { b.one(&more, aliasEnd, end.dest(), append(args, pieces.Scan-1)...) })
		if err != nil {
			return err
		}
		if args = append(args, end.run, end.turn, end.position); !more {
			args[4] = nil
		}
		var found []place
		err = p.s.d.read(ctx, func(b *batch) {
			found = nil
			b.each(strays, func(rows pgx.Rows) error {
				var a place
				err := rows.Scan(a.dest()...)
				found = append(found, a)
				return err
			}, args...)
		})
		for err == nil && len(found) > 0 {
			batch := found[:min(len(found), pieces.Batch)]
			found = found[len(batch):]
			if err = p.forgetStrays(ctx, batch); err == nil {
				err = pieces.Over(ctx)
			}
		}
		if last = end; err != nil {
			return err
		}
	}
	return nil
}

func (p *pruning) forgetStrays(ctx context.Context, all []place) error {
	var runs []string
	var turns, positions []int64
	for _, a := range all {
		runs, turns, positions = append(runs, a.run), append(turns, a.turn), append(positions, a.position)
	}
	_, err := p.s.d.write(ctx, func(b *batch) {
		b.run(lockStrays, pack(p.s.namespace), runs, turns, positions)
		b.run(forgetStrays, pack(p.s.namespace), runs, turns, positions)
	})
	return err
}

func (p *pruning) approvals(ctx context.Context) error {
	return p.inOrder(ctx, approvalsOver, forgetApprovals, &p.report.Approvals)
}

// inOrder forgets rows whose time is over, as one query gives their numbers, by another, which counts them.
func (p *pruning) inOrder(ctx context.Context, query, forget string, count *int) error {
	ns, after := pack(p.s.namespace), span(max(registry.DefaultRetain, p.opts.OlderThan))
	for last := int64(0); ; {
		var numbers []int64
		err := p.s.d.read(ctx, func(b *batch) {
			numbers = nil
			b.each(query, func(rows pgx.Rows) error {
				numbers = append(numbers, 0)
				return rows.Scan(&numbers[len(numbers)-1])
			}, ns, after, last, pieces.Batch)
		})
		if err != nil || len(numbers) == 0 {
			return err
		}
		last = numbers[len(numbers)-1]
		gone := len(numbers)
		if !p.opts.DryRun {
			var there bool
			_, err = p.s.d.write(ctx, func(b *batch) { b.one(&there, forget, []any{&gone}, ns, after, numbers) })
		}
		if err != nil {
			return err
		}
		*count += gone
		p.told()
		if err := pieces.Over(ctx); err != nil {
			return err
		}
	}
}
