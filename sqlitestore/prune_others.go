package sqlitestore

import (
	"context"
	"database/sql"

	"github.com/toolonce/toolonce/internal/pieces"
	"github.com/toolonce/toolonce/registry"
)

const (
	// What follows the namespace is a place: the run, turn and position that were looked at last.
	behind   = ` FROM aliases WHERE namespace = +?1 AND (run, turn, position) > (+?2, +?3, +?4)`
	aliasEnd = `SELECT run, turn, position` + behind + ` ORDER BY run, turn, position LIMIT 1 OFFSET +?5`
	strays   = `SELECT run, turn, position` + behind + ` AND (?5 IS NULL OR (run, turn, position) <= (+?5, +?6, +?7)) AND ` + meansNothing
	// An alias without its operation gets a new one where its call is claimed or noted again, and then counts again.
	meansNothing = `NOT EXISTS (SELECT 1 FROM operations WHERE operations.id = aliases.operation)`
	forgetStray  = `DELETE FROM aliases` + atPlace + ` AND ` + meansNothing

	// The arguments are namespace, the latest expiry, and a number.
	approvalOver = ` FROM approvals WHERE +namespace = ?1 AND expires <= +?2 AND NOT EXISTS (SELECT 1 FROM runs
		WHERE runs.namespace = +?1 AND runs.run = approvals.run AND runs.finished = 0)`
	approvalsOver   = `SELECT number` + approvalOver + ` AND number > +?3 ORDER BY number LIMIT +?4`
	forgetApprovals = `DELETE` + approvalOver + ` AND number IN (SELECT value FROM json_each(?3))`
)

// place is where an alias stands.
type place struct {
	run            string
	turn, position int64
}

func (a *place) dest() []any { return []any{&a.run, &a.turn, &a.position} }

// aliases forgets those of operations that have gone. Only what claimed one is found by it; what repeated it is looked for
// among all.
func (p *pruning) aliases(ctx context.Context) error {
	lasting, r, ns := context.WithoutCancel(ctx), p.s.f.reader, p.s.namespace
	last := place{turn: -1}
	for more := true; more; {
		var end place
		var err error
		args := []any{ns, last.run, last.turn, last.position}
		if more, err = r.one(lasting, aliasEnd, end.dest(), append(args, pieces.Scan-1)...); err != nil {
			return err
		}
		if args = append(args, end.run, end.turn, end.position); !more {
			args[4] = nil
		}
		var found []place
		err = r.each(lasting, strays, func(rows *sql.Rows) error {
			var a place
			err := rows.Scan(a.dest()...)
			found = append(found, a)
			return err
		}, args...)
		for err == nil && len(found) > 0 {
			batch := found[:min(len(found), pieces.Batch)]
			found = found[len(batch):]
			if err = p.forgetStrays(lasting, batch); err == nil {
				err = pieces.Over(ctx)
			}
		}
		if last = end; err != nil {
			return err
		}
	}
	return nil
}

func (p *pruning) forgetStrays(ctx context.Context, batch []place) error {
	return p.s.f.writer.do(ctx, func(x *tx) error {
		for _, a := range batch {
			if err := x.run(forgetStray, p.s.namespace, a.run, a.turn, a.position); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *pruning) approvals(ctx context.Context) error {
	expired := p.now.Add(-max(registry.DefaultRetain, p.opts.OlderThan)).UnixNano()
	return p.inOrder(ctx, approvalsOver, expired, &p.report.Approvals, func(ctx context.Context, numbers []int64) (gone int64, err error) {
		err = p.s.f.writer.do(ctx, func(x *tx) (err error) {
			gone, err = x.exec(forgetApprovals, p.s.namespace, expired, list(numbers))
			return err
		})
		return gone, err
	})
}

// inOrder forgets rows whose time was over at a moment, as a query gives their numbers.
func (p *pruning) inOrder(ctx context.Context, query string, until int64, count *int, forget func(context.Context, []int64) (int64, error)) error {
	lasting := context.WithoutCancel(ctx)
	for last := int64(0); ; {
		var numbers []int64
		err := p.s.f.reader.each(lasting, query, func(rows *sql.Rows) error {
			numbers = append(numbers, 0)
			return rows.Scan(&numbers[len(numbers)-1])
		}, p.s.namespace, until, last, pieces.Batch)
		if err != nil || len(numbers) == 0 {
			return err
		}
		last = numbers[len(numbers)-1]
		gone := int64(len(numbers))
		if !p.opts.DryRun {
			gone, err = forget(lasting, numbers)
		}
		if err != nil {
			return err
		}
		*count += int(gone)
		p.told()
		if err := pieces.Over(ctx); err != nil {
			return err
		}
	}
}
