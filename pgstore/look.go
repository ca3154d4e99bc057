package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/middleware"
)

// lookTogether asks for many at once what is asked first of every guarded call, and mostly finds nothing: is there anything
// at a place, or of an identity? Scalar subqueries are answered one by one, whatever the server takes the tables for.
const lookTogether = `SELECT c.number FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[]) WITH ORDINALITY
		AS c (namespace, run, turn, position, identity, number)
	WHERE coalesce(
		(SELECT 1 FROM @aliases AS aliases WHERE aliases.namespace = c.namespace AND aliases.run = c.run AND aliases.turn = c.turn AND aliases.position = c.position LIMIT 1),
		(SELECT 1 FROM @operations AS operations WHERE operations.namespace = c.namespace AND operations.identity = c.identity LIMIT 1)) IS NOT NULL`

// look is one of those questions.
type look struct {
	namespace string
	q         *middleware.Query
	nothing   bool // there is nothing, as far as was asked
}

// absent reports whether there is surely nothing that a query asks for.
func (s *Store) absent(ctx context.Context, q *middleware.Query) (bool, error) {
	l := &look{namespace: s.namespace, q: q}
	err := s.d.looks.do(ctx, l, func(all []*look) bool { return s.d.look(ctx, all) })
	return err == nil && l.nothing, err
}

// look asks for many. It is false where its caller has gone. Where it fails each asks for itself, in the time that is left.
func (d *database) look(ctx context.Context, all []*look) bool {
	var there []int
	soon, cancel := context.WithTimeout(ctx, d.opts.WriteTimeout/2)
	defer cancel()
	err := d.send(soon, func(b *batch) {
		there = nil
		b.each(lookTogether, func(rows pgx.Rows) error {
			var n int
			err := rows.Scan(&n)
			there = append(there, n-1)
			return err
		},
			column(all, func(l *look) string { return pack(l.namespace) }),
			column(all, func(l *look) string { return pack(l.q.Run) }),
			column(all, func(l *look) int64 { return int64(l.q.Turn) }),
			column(all, func(l *look) int64 { return int64(l.q.Position) }),
			column(all, func(l *look) []byte { return packHash(l.q.Identity) }))
	})
	if ctx.Err() != nil {
		return false
	}
	for _, l := range all {
		l.nothing = err == nil
	}
	for _, i := range there {
		all[i].nothing = false
	}
	return true
}
