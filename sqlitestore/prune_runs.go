package sqlitestore

import (
	"context"
	"database/sql"

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
	lasting := context.WithoutCancel(ctx)
	until := p.now.Add(-max(registry.DefaultRetain, p.opts.OlderThan)).UnixNano()
	for last := int64(0); ; {
		var ids []int64
		err := p.s.f.reader.each(lasting, runsOver, func(rows *sql.Rows) error {
			ids = append(ids, 0)
			return rows.Scan(&ids[len(ids)-1])
		}, p.s.namespace, until, last, pruneBatch)
		if err != nil || len(ids) == 0 {
			return err
		}
		last = ids[len(ids)-1]
		gone := int64(len(ids))
		if !p.opts.DryRun {
			gone, err = p.forgetRuns(lasting, until, ids)
		}
		if err != nil {
			return err
		}
		p.report.Runs += int(gone)
		p.told()
		if err := over(ctx); err != nil {
			return err
		}
	}
}

func (p *pruning) forgetRuns(ctx context.Context, until int64, ids []int64) (gone int64, err error) {
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
}
