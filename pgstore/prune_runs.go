package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/registry"
)

const (
	// The arguments are namespace, how long after its end a run goes, and ids.
	runOver    = ` WHERE (namespace = $1) IS TRUE AND finished AND NOT forgotten AND ended <= statement_timestamp() - $2::interval`
	runsOver   = `SELECT id FROM @runs` + runOver + ` AND id > $3::bigint ORDER BY id LIMIT $4`
	forgetRuns = `WITH gone AS (UPDATE @runs SET forgotten = true` + runOver + ` AND id = ANY($3::bigint[]) RETURNING id),
		words AS (DELETE FROM @turns AS turns USING gone WHERE turns.run = gone.id),
		told AS (DELETE FROM @outputs AS outputs USING gone WHERE outputs.run = gone.id)
		SELECT count(*) FROM gone`
)

// runs forgets what was said in runs that are finished.
func (p *pruning) runs(ctx context.Context) error {
	ns, after := pack(p.s.namespace), span(max(registry.DefaultRetain, p.opts.OlderThan))
	for last := int64(0); ; {
		var ids []int64
		err := p.s.d.read(ctx, func(b *batch) {
			ids = nil
			b.each(runsOver, func(rows pgx.Rows) error {
				ids = append(ids, 0)
				return rows.Scan(&ids[len(ids)-1])
			}, ns, after, last, pruneBatch)
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		last = ids[len(ids)-1]
		gone := len(ids)
		if !p.opts.DryRun {
			var there bool
			_, err = p.s.d.write(ctx, func(b *batch) { b.one(&there, forgetRuns, []any{&gone}, ns, after, ids) })
		}
		if err != nil {
			return err
		}
		p.report.Runs += gone
		p.told()
		if err := over(ctx); err != nil {
			return err
		}
	}
}
