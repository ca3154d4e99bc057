package sqlitestore

import (
	"context"
	"database/sql"
	"strings"

	"github.com/toolonce/toolonce/middleware"
)

// Every query names the namespace. Where repeats are counted, the first two arguments are it and the
// run that is asked for.
//
// A bare parameter that is compared with a column makes SQLite prepare the statement again whenever it is bound, in case
// a small integer would call for another plan: ten times the work of the query. Hence the + before them.
var (
	byID        = `SELECT ` + all + ` FROM operations WHERE id = +?1 AND namespace = +?2`
	read        = `SELECT ` + all + `, (` + countRepeats + ` = operations.identity) FROM `
	byOperation = read + `operations WHERE id = +?3 AND namespace = +?1`
	byIdentity  = read + `operations WHERE id = ` + ofIdentity + ` AND namespace = +?1`
	ofIdentity  = `coalesce((SELECT id FROM operations WHERE namespace = +?1 AND identity = +?3 AND released = 0),
		(SELECT id FROM (SELECT id, max(generation) FROM operations WHERE namespace = +?1 AND identity = +?3 AND released > 0)))`
	// byCall looks for the operation at a place, and else for that of an identity. It is one statement: each has its own
	// transaction, and that a call is new, as most are, is found by two keys.
	byCall = strings.TrimSuffix(read, ` FROM `) + `, aliases.operation IS NOT NULL, aliases.call_id IS NULL, aliases.call_id, aliases.tool,
			aliases.arguments, aliases.fingerprint
		FROM operations LEFT JOIN aliases ON aliases.operation = operations.id AND ` + atCall + `
		WHERE operations.id = coalesce((SELECT meant.id FROM aliases JOIN operations AS meant ON meant.id = aliases.operation AND meant.namespace = +?1
			WHERE ` + atCall + `), ` + ofIdentity + `) AND operations.namespace = +?1`
	atCall     = `aliases.namespace = +?1 AND aliases.run = +?2 AND aliases.turn = +?4 AND aliases.position = +?5`
	byResource = read + `operations WHERE namespace = +?1 AND tool = +?3 AND resource = +?4 AND state <> 'free'
		ORDER BY CASE state WHEN 'done' THEN 0 WHEN 'released' THEN 2 ELSE 1 END, created DESC, id DESC LIMIT 1`
	undoing = `SELECT id FROM operations WHERE undoes = +?1 AND namespace = +?2 AND state IN ('running', 'in_doubt') LIMIT 1`
)

// countRepeats leaves out the aliases of an expired operation whose place another has taken: they mean nothing any more.
const countRepeats = `SELECT count(*) FROM aliases AS repeated WHERE repeated.namespace = +?1 AND repeated.run = +?2
		AND EXISTS (SELECT 1 FROM operations AS meant WHERE meant.id = repeated.operation) AND repeated.repeats`

// Find implements middleware.Ledger. It looks at the context before it starts: what it does then is over in microseconds,
// and to watch a context meanwhile takes longer.
func (s *Store) Find(ctx context.Context, q middleware.Query) (row middleware.Row, ok bool, err error) {
	if ctx.Err() != nil {
		return row, false, s.f.wrap("looking for an operation in", context.Cause(ctx))
	}
	if row, ok, err = s.find(context.WithoutCancel(ctx), q); err != nil {
		return middleware.Row{}, false, s.f.wrap("looking for an operation in", err)
	}
	return row, ok, nil
}

func (s *Store) find(ctx context.Context, q middleware.Query) (middleware.Row, bool, error) {
	var r record
	var found *middleware.Alias
	var ok bool
	var err error
	read := func(query string, args ...any) {
		if err == nil && !ok {
			ok, err = s.f.one(ctx, query, r.found(), append([]any{s.namespace, q.Run}, args...)...)
		}
	}
	switch {
	case q.Operation != "":
		read(byOperation, idOf(q.Operation))
	case q.Turn > 0:
		found, ok, err = s.call(ctx, &r, q)
		q.Identity = ""
	}
	if q.Identity != "" {
		read(byIdentity, pack(q.Identity))
	}
	if q.Resource != "" {
		read(byResource, q.Tool, pack(q.Resource))
	}
	if err != nil || !ok {
		return middleware.Row{}, false, err
	}
	row, err := s.row(ctx, &r)
	row.Found = found
	if err == nil && q.Resource != "" {
		row.UndoneBy, err = s.undoing(ctx, r.id)
	}
	return row, err == nil, err
}

// undoing is the operation that undoes another and is running or in doubt, "" for none.
func (s *Store) undoing(ctx context.Context, id int64) (string, error) {
	var by int64
	if ok, err := s.f.one(ctx, undoing, []any{&by}, id, s.namespace); err != nil || !ok {
		return "", err
	}
	return operationOf(by), nil
}

// call reads the operation at the place of a call, and its alias, or else that of the identity.
func (s *Store) call(ctx context.Context, r *record, q middleware.Query) (*middleware.Alias, bool, error) {
	var placed, claimer bool
	var id, tool sql.NullString
	var arguments, fingerprint hash
	dest := append(r.found(), &placed, &claimer, &id, &tool, &arguments, &fingerprint)
	ok, err := s.f.one(ctx, byCall, dest, s.namespace, q.Run, packOrNull(q.Identity), q.Turn, q.Position)
	if err != nil || !ok || !placed {
		return nil, ok, err
	}
	a := &middleware.Alias{Run: q.Run, Turn: q.Turn, Position: q.Position, CallID: id.String, Tool: tool.String, Arguments: string(arguments), Fingerprint: string(fingerprint)}
	if claimer {
		a.CallID, a.Tool, a.Arguments, a.Fingerprint = r.Claimer.CallID, r.Tool, r.Claimer.Arguments, r.Fingerprint
	}
	return a, true, nil
}

// List implements middleware.Lister. No states are all states.
func (s *Store) List(ctx context.Context, states []middleware.State, limit int) ([]middleware.Row, error) {
	rows, err := s.list(ctx, states, limit)
	return rows, s.f.wrap("listing operations of", err)
}

// listing selects the rows in the states given, all for none.
func listing(states []middleware.State) string {
	query := `SELECT ` + all + ` FROM operations WHERE namespace = +?1`
	if len(states) == 0 {
		return query
	}
	var in []string
	open := true
	for _, st := range states {
		switch st {
		case middleware.Running, middleware.InDoubt, middleware.Done, middleware.Free, middleware.Released:
			in = append(in, "'"+string(st)+"'")
			open = open && (st == middleware.Running || st == middleware.InDoubt)
		}
	}
	query += ` AND state IN (` + strings.Join(in, ", ") + `)`
	if !open {
		return query
	}
	return query + ` AND listed = 1 UNION ALL ` + query + ` AND listed = 0 AND id >= (` + lowestID + `)`
}

func (s *Store) list(ctx context.Context, states []middleware.State, limit int) ([]middleware.Row, error) {
	if limit <= 0 {
		limit = -1
	}
	return s.rows(ctx, listing(states)+` ORDER BY since DESC, id DESC LIMIT ?2`, s.namespace, limit)
}
