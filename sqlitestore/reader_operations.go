package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

var _ middleware.Inspector = (*Store)(nil)

const (
	narrowed = ` AND (?2 = '' OR tool = +?2) AND (?3 = '' OR run = +?3 OR id IN (SELECT operation FROM aliases WHERE namespace = +?1 AND run = +?3))
		AND (?4 = 0 OR since <= ?4)`
	// callsOf looks at all aliases of the tenant: none but a person asks.
	callsOf = `SELECT aliases.run, aliases.turn, aliases.position, aliases.call_id IS NULL, aliases.call_id, aliases.tool, aliases.arguments, aliases.fingerprint,
			operations.call_id, operations.tool, operations.arguments, operations.fingerprint
		FROM aliases JOIN operations ON operations.id = aliases.operation AND operations.namespace = +?1
		WHERE aliases.namespace = +?1 AND aliases.operation = +?2
		ORDER BY aliases.run, aliases.turn, aliases.position`
	countOperations = `SELECT tool, state, count(*), min(since) FROM operations WHERE namespace = +?1 GROUP BY tool, state ORDER BY tool, state`
	countVerdicts   = `SELECT verdict, count(*) FROM outputs JOIN runs ON runs.id = outputs.run WHERE runs.namespace = +?1 GROUP BY verdict`
	sizes           = `SELECT page_count * page_size, freelist_count * page_size FROM pragma_page_count, pragma_page_size, pragma_freelist_count`
)

var pageOf = `SELECT ` + all + ` FROM operations WHERE id > ?2 AND +namespace = ?1 ORDER BY id LIMIT ?3`

// Select implements middleware.Inspector.
func (s *Store) Select(ctx context.Context, sel middleware.Selection) ([]middleware.Row, error) {
	if sel.Limit <= 0 {
		sel.Limit = -1
	}
	since := int64(0)
	if sel.Older > 0 {
		since = s.f.now().Add(-sel.Older).UnixNano()
	}
	query := `SELECT * FROM (` + listing(sel.States) + `) WHERE true` + narrowed + ` ORDER BY since DESC, id DESC LIMIT ?5`
	rows, err := s.rows(ctx, query, s.namespace, sel.Tool, sel.Run, since, sel.Limit)
	return rows, s.f.wrap("listing operations of", err)
}

// Page implements middleware.Inspector.
func (s *Store) Page(ctx context.Context, after string, limit int) ([]middleware.Row, error) {
	if limit <= 0 {
		limit = -1
	}
	rows, err := s.rows(ctx, pageOf, s.namespace, idOf(after), limit)
	return rows, s.f.wrap("listing operations of", err)
}

func (s *Store) rows(ctx context.Context, query string, args ...any) ([]middleware.Row, error) {
	var found []*record
	err := s.f.reader.each(ctx, query, func(rows *sql.Rows) error {
		r := &record{}
		found = append(found, r)
		return rows.Scan(r.dest()...)
	}, args...)
	if err != nil {
		return nil, err
	}
	rows := make([]middleware.Row, len(found))
	for i, r := range found {
		if rows[i], err = s.row(ctx, r); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// Calls implements middleware.Inspector.
func (s *Store) Calls(ctx context.Context, operation string) ([]middleware.Alias, error) {
	var calls []middleware.Alias
	err := s.f.reader.each(ctx, callsOf, func(rows *sql.Rows) error {
		var claimer bool
		var a, own middleware.Alias
		var id, tool sql.NullString
		var arguments, fingerprint hash
		err := rows.Scan(&a.Run, &a.Turn, &a.Position, &claimer, &id, &tool, &arguments, &fingerprint,
			&own.CallID, &own.Tool, (*hash)(&own.Arguments), (*hash)(&own.Fingerprint))
		a.CallID, a.Tool, a.Arguments, a.Fingerprint = id.String, tool.String, string(arguments), string(fingerprint)
		if claimer {
			a.CallID, a.Tool, a.Arguments, a.Fingerprint = own.CallID, own.Tool, own.Arguments, own.Fingerprint
		}
		calls = append(calls, a)
		return err
	}, s.namespace, idOf(operation))
	if err != nil {
		return nil, s.f.wrap("listing the calls of an operation of", err)
	}
	return calls, nil
}

// Counts implements middleware.Inspector.
func (s *Store) Counts(ctx context.Context) ([]middleware.Count, error) {
	var counts []middleware.Count
	err := s.f.reader.each(ctx, countOperations, func(rows *sql.Rows) error {
		var c middleware.Count
		err := rows.Scan(&c.Tool, (*string)(&c.State), &c.N, (*moment)(&c.Oldest))
		counts = append(counts, c)
		return err
	}, s.namespace)
	if err != nil {
		return nil, s.f.wrap("counting operations of", err)
	}
	return counts, nil
}

// Verdicts counts what calls of stored runs were told, by verdict.
func (s *Store) Verdicts(ctx context.Context) (map[registry.Verdict]int, error) {
	counts := map[registry.Verdict]int{}
	err := s.f.reader.each(ctx, countVerdicts, func(rows *sql.Rows) error {
		var v string
		var n int
		err := rows.Scan(&v, &n)
		counts[registry.Verdict(v)] = n
		return err
	}, s.namespace)
	if err != nil {
		return nil, s.f.wrap("counting verdicts of", err)
	}
	return counts, nil
}

// Sizes says how many bytes the file and its write-ahead log take, and how many of the file are of free pages, by name.
func (s *Store) Sizes(ctx context.Context) (map[string]int64, error) {
	var file, free int64
	if _, err := s.f.reader.one(ctx, sizes, []any{&file, &free}); err != nil {
		return nil, s.f.wrap("measuring", err)
	}
	log, err := size(s.f.path + "-wal")
	return map[string]int64{"database": file, "free pages": free, "write-ahead log": log}, s.f.wrap("measuring", err)
}

// size is that of a file, 0 where there is none.
func size(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
