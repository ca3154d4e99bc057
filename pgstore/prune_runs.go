package pgstore

import "context"

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
	return p.inOrder(ctx, runsOver, forgetRuns, &p.report.Runs)
}
