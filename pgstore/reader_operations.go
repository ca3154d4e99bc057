package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

var _ middleware.Inspector = (*Store)(nil)

const (
	narrowed = ` AND ($2 = '' OR operations.tool = $2) AND ($3 = '' OR operations.run = $3
			OR operations.id IN (SELECT operation FROM @aliases WHERE namespace = $1 AND run = $3))
		AND ($4::interval = '0' OR operations.since <= statement_timestamp() - $4::interval) ORDER BY operations.since DESC, operations.id DESC LIMIT $5::bigint`
	// callsOf looks at all aliases of the tenant: none but a person asks.
	callsOf = `SELECT run, turn, position, call_id, tool, arguments, fingerprint FROM @aliases WHERE namespace = $1 AND operation = $2
		AND EXISTS (SELECT 1 FROM @operations AS operations WHERE operations.id = $2 AND (operations.namespace = $1) IS TRUE)
		ORDER BY run COLLATE "C", turn, position`
	countOperations = `SELECT tool, state, count(*), min(since) FROM @operations WHERE namespace = $1 GROUP BY tool, state ORDER BY tool COLLATE "C", state COLLATE "C"`
	countVerdicts   = `SELECT verdict, count(*) FROM @outputs AS outputs JOIN @runs AS runs ON runs.id = outputs.run WHERE runs.namespace = $1 GROUP BY verdict`
	sizes           = `SELECT relname, pg_total_relation_size(pg_class.oid) FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
		WHERE relkind = 'r' AND nspname = $1`
)

// Select implements middleware.Inspector.
func (s *Store) Select(ctx context.Context, sel middleware.Selection) ([]middleware.Row, error) {
	where := ` WHERE operations.namespace = $1`
	if len(sel.States) > 0 {
		where += ` AND operations.state IN (` + names(sel.States) + `)`
	}
	var limit any
	if sel.Limit > 0 {
		limit = sel.Limit
	}
	rows, err := s.rows(ctx, where+narrowed, pack(s.namespace), pack(sel.Tool), pack(sel.Run), span(max(sel.Older, 0)), limit)
	return rows, s.d.wrap("listing operations of", err)
}

// Page implements middleware.Inspector.
func (s *Store) Page(ctx context.Context, after string, limit int) ([]middleware.Row, error) {
	var most any
	if limit > 0 {
		most = limit
	}
	rows, err := s.rows(ctx, ` WHERE operations.id > $2 AND operations.namespace = $1 ORDER BY operations.id LIMIT $3::bigint`, pack(s.namespace), idOf(after), most)
	return rows, s.d.wrap("listing operations of", err)
}

func (s *Store) rows(ctx context.Context, where string, args ...any) (rows []middleware.Row, err error) {
	err = s.d.read(ctx, func(b *batch) {
		rows = nil
		b.each(`SELECT `+all+`, `+evidence+` FROM @operations AS operations`+owners+where, func(all pgx.Rows) error {
			var r record
			err := all.Scan(r.known()...)
			rows = append(rows, s.row(&r))
			return err
		}, args...)
	})
	return rows, err
}

// Calls implements middleware.Inspector.
func (s *Store) Calls(ctx context.Context, operation string) ([]middleware.Alias, error) {
	var calls []middleware.Alias
	err := s.d.read(ctx, func(b *batch) {
		calls = nil
		b.each(callsOf, func(rows pgx.Rows) error {
			var a middleware.Alias
			err := rows.Scan((*word)(&a.Run), &a.Turn, &a.Position, (*word)(&a.CallID), (*word)(&a.Tool), (*hash)(&a.Arguments), (*hash)(&a.Fingerprint))
			calls = append(calls, a)
			return err
		}, pack(s.namespace), idOf(operation))
	})
	if err != nil {
		return nil, s.d.wrap("listing the calls of an operation of", err)
	}
	return calls, nil
}

// Counts implements middleware.Inspector.
func (s *Store) Counts(ctx context.Context) ([]middleware.Count, error) {
	var counts []middleware.Count
	err := s.d.read(ctx, func(b *batch) {
		counts = nil
		b.each(countOperations, func(rows pgx.Rows) error {
			var c middleware.Count
			err := rows.Scan((*word)(&c.Tool), (*string)(&c.State), &c.N, (*moment)(&c.Oldest))
			counts = append(counts, c)
			return err
		}, pack(s.namespace))
	})
	if err != nil {
		return nil, s.d.wrap("counting operations of", err)
	}
	return counts, nil
}

// Verdicts counts what calls of stored runs were told, by verdict.
func (s *Store) Verdicts(ctx context.Context) (map[registry.Verdict]int, error) {
	counts := map[registry.Verdict]int{}
	err := s.d.read(ctx, func(b *batch) {
		clear(counts)
		b.each(countVerdicts, func(rows pgx.Rows) error {
			var v word
			var n int
			err := rows.Scan(&v, &n)
			counts[registry.Verdict(v)] = n
			return err
		}, pack(s.namespace))
	})
	if err != nil {
		return nil, s.d.wrap("counting verdicts of", err)
	}
	return counts, nil
}

// Sizes says how many bytes each table takes with its indexes, by name.
func (s *Store) Sizes(ctx context.Context) (map[string]int64, error) {
	bytes := map[string]int64{}
	err := s.d.read(ctx, func(b *batch) {
		clear(bytes)
		b.each(sizes, func(rows pgx.Rows) error {
			var name string
			var n int64
			err := rows.Scan(&name, &n)
			bytes["table "+name] = n
			return err
		}, s.d.opts.Schema)
	})
	if err != nil {
		return nil, s.d.wrap("measuring", err)
	}
	return bytes, nil
}
