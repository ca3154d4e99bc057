package pgstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/middleware"
)

// Every query names the namespace. Where the id says which row it is, IS TRUE keeps the server from looking for it among all
// rows of the namespace, which it takes for few before it has counted them.
const (
	byPlace = `SELECT 1 AS rank, operation AS id, call_id, tool, arguments, fingerprint FROM @aliases
		WHERE namespace = $1 AND run = $2 AND turn = $%d AND position = $%d`
	byOperation = `SELECT 1 AS rank, $%d::bigint AS id, ` + noAlias
	byIdentity  = `(SELECT 2 AS rank, id, ` + noAlias + ` FROM @operations WHERE namespace = $1 AND identity = $%d
		ORDER BY released = 0 DESC, generation DESC LIMIT 1)`
	byResource = `(SELECT 3 AS rank, id, ` + noAlias + ` FROM @operations WHERE namespace = $1 AND tool = $%d AND resource = $%d AND state <> 'free'
		ORDER BY CASE state WHEN 'done' THEN 0 WHEN 'released' THEN 2 ELSE 1 END, created DESC, id DESC LIMIT 1)`
	noAlias = `NULL::text AS call_id, NULL::text AS tool, NULL::bytea AS arguments, NULL::bytea AS fingerprint`

	// countRepeats leaves out the aliases of an expired operation whose place another has taken: they mean nothing any more.
	countRepeats = `(SELECT count(*) FROM @aliases AS repeated WHERE repeated.namespace = $1 AND repeated.run = $2
		AND EXISTS (SELECT 1 FROM @operations AS meant WHERE meant.id = repeated.operation) AND repeated.repeats = operations.identity)`
	undoing = `(SELECT undo.id FROM @operations AS undo WHERE undo.undoes = operations.id AND (undo.namespace = $1) IS TRUE AND undo.state IN ('running', 'in_doubt'))`
)

// finding is a Query as a statement: the first two arguments are the namespace and the run that is asked for. The row is taken
// by LIMIT 1 for each id, as a join would be planned once, while the table is small, to read all of it.
func finding(namespace string, q middleware.Query) (query string, args []any) {
	args = []any{pack(namespace), pack(q.Run)}
	var parts []string
	part := func(query string, more ...any) {
		var at []any
		for i := range more {
			at = append(at, len(args)+i+1)
		}
		args = append(args, more...)
		parts = append(parts, fmt.Sprintf(query, at...))
	}
	switch {
	case q.Operation != "":
		part(byOperation, idOf(q.Operation))
	case q.Turn > 0:
		part(byPlace, q.Turn, q.Position)
	}
	if q.Identity != "" {
		part(byIdentity, packHash(q.Identity))
	}
	undone := `NULL::bigint`
	if q.Resource != "" {
		part(byResource, pack(q.Tool), packHash(q.Resource))
		undone = undoing
	}
	if len(parts) == 0 {
		return "", nil
	}
	return `SELECT ` + all + `, ` + evidence + `, ` + countRepeats + `, ` + undone + `, found.call_id, found.tool, found.arguments, found.fingerprint
		FROM (` + strings.Join(parts, ` UNION ALL `) + `) AS found CROSS JOIN LATERAL (
			SELECT * FROM @operations AS operations WHERE operations.id = found.id AND (operations.namespace = $1) IS TRUE LIMIT 1) AS operations` +
		owners + ` ORDER BY found.rank LIMIT 1`, args
}

// Find implements middleware.Ledger.
func (s *Store) Find(ctx context.Context, q middleware.Query) (row middleware.Row, ok bool, err error) {
	if row, ok, err = s.find(ctx, q); err != nil {
		return middleware.Row{}, false, s.d.wrap("looking for an operation in", err)
	}
	return row, ok, nil
}

func (s *Store) find(ctx context.Context, q middleware.Query) (middleware.Row, bool, error) {
	query, args := finding(s.namespace, q)
	if query == "" {
		return middleware.Row{}, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.d.opts.WriteTimeout)
	defer cancel()
	var r record
	var ok bool
	var id, tool nullable
	var arguments, fingerprint hash
	if q.Turn > 0 && q.Identity != "" && q.Operation == "" && q.Resource == "" {
		if absent, err := s.absent(ctx, &q); err != nil || absent {
			return middleware.Row{}, false, err
		}
	}
	err := s.d.read(ctx, func(b *batch) {
		r = record{}
		b.one(&ok, query, append(r.known(), &r.Repeats, &r.undoneBy, &id, &tool, &arguments, &fingerprint), args...)
	})
	if err != nil || !ok {
		return middleware.Row{}, false, err
	}
	row := s.row(&r)
	if id.valid {
		row.Found = &middleware.Alias{
			Run: q.Run, Turn: q.Turn, Position: q.Position, CallID: id.text, Tool: tool.text, Arguments: string(arguments), Fingerprint: string(fingerprint),
		}
	}
	return row, true, nil
}

// names are states as they stand in a query: as parameters they would hide which index has them.
func names[S ~string](states []S) string {
	var all []string
	for _, st := range states {
		all = append(all, "'"+strings.ReplaceAll(string(st), "'", "")+"'")
	}
	return strings.Join(all, ", ")
}

// List implements middleware.Lister. No states are all states.
func (s *Store) List(ctx context.Context, states []middleware.State, limit int) ([]middleware.Row, error) {
	query := `SELECT ` + all + `, ` + evidence + ` FROM @operations AS operations` + owners + ` WHERE operations.namespace = $1`
	if len(states) > 0 {
		query += ` AND operations.state IN (` + names(states) + `)`
	}
	args := []any{pack(s.namespace), nil}
	if limit > 0 {
		args[1] = limit
	}
	var rows []middleware.Row
	err := s.d.read(ctx, func(b *batch) {
		rows = []middleware.Row{}
		b.each(query+` ORDER BY operations.since DESC, operations.id DESC LIMIT $2::bigint`, func(all pgx.Rows) error {
			var r record
			err := all.Scan(r.known()...)
			rows = append(rows, s.row(&r))
			return err
		}, args...)
	})
	if err != nil {
		return nil, s.d.wrap("listing operations of", err)
	}
	return rows, nil
}
