package sqlitestore

import (
	"context"

	"github.com/toolonce/toolonce/registry"
)

const (
	// The arguments are namespace, the latest end, and an id.
	runOver   = ` FROM runs WHERE +namespace = ?1 AND finished = 1 AND forgotten = 0 AND ended > 0 AND ended <= +?2`
	runsOver  = `SELECT id` + runOver + ` AND id > +?3 ORDER BY id LIMIT +?4`
	forgetRun = `UPDATE runs SET forgotten = 1 WHERE id = +?3 AND id IN (SELECT id` + runOver + ` AND id = +?3)`
)

// runs forgets what was said in runs that are finished.
func (p *pruning) runs(ctx context.Context) error {
	until := p.now.Add(-max(registry.DefaultRetain, p.opts.OlderThan)).UnixNano()
	return p.inOrder(ctx, runsOver, until, &p.report.Runs, func(ctx context.Context, ids []int64) (gone int64, err error) {
		err = p.s.f.writer.do(ctx, func(x *tx) error {
			gone = 0
			for _, id := range ids {
				n, err := x.exec(forgetRun, p.s.namespace, until, id)
				if err == nil && n == 1 {
					err = x.run(forgetTurns, id)
				}
				if err == nil && n == 1 {
					err = x.run(forgetOutputs, id)
				}
				if err != nil {
					return err
				}
				gone += n
			}
			return nil
		})
		return gone, err
	})
}
