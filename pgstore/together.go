package pgstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// What is usual, brief claims and blind results, is made for many callers by one statement for all of them: so they share
// its parsing, its planning, its commit and its way. Who gets nothing by that goes on alone, as does everybody where it was
// undone.
//
// A claim is two statements here too, for the same reason: the second sees all that was committed before it, and what comes
// between is kept away by the rows of the first. The alias is made by the first, since its place is kept by its key, whatever
// a statement sees. Rows are made and changed in one order in all processes: so no two of them wait for each other in a
// circle, but where they claim the same places for different identities, and that the server ends.
const (
	// setTogether holds for the transaction. A lock that somebody else holds undoes that soon, as only who needs it is to wait.
	// And whatever the server takes the tables for, it is not to read a whole one.
	setTogether = `SELECT set_config('lock_timeout', '500', true), set_config('enable_seqscan', 'off', true)`

	claimTogether = `WITH c AS (
			SELECT * FROM unnest($3::bigint[], $4::text[], $5::bytea[], $6::bytea[], $7::text[], $8::text[], $9::interval[], $10::bytea[],
				$11::bytea[], $12::text[], $13::text[], $14::bigint[], $15::bigint[], $16::text[], $17::bytea[], $18::text[], $19::interval[],
				$20::bytea[], $21::interval[], $22::bigint[])
			AS c (id, namespace, identity, fingerprint, tool, token, deadline, key,
				resource, resource_out, run, turn, position, call_id, arguments, conversation, keep,
				input, retain, place)
		), new AS (` + intoOperations + `
			SELECT c.id, c.namespace, c.identity, c.fingerprint, $1::integer, c.tool, 'running', c.token, 1, statement_timestamp() + c.deadline,
				$2::bigint, 0, c.key, statement_timestamp(), NULL, NULL, c.resource, c.resource_out, c.run, c.turn, c.position, c.call_id, c.arguments,
				c.conversation, statement_timestamp(), statement_timestamp(), c.keep, c.input, c.retain
			FROM c WHERE ` + readsCommitted + ` AND ` + releasedBefore + ` IS NULL` + onlyNew + ` RETURNING id, token, ` + newTimes + `
		), pointed AS (
			INSERT INTO @aliases (namespace, run, turn, position, operation, call_id, tool, arguments, fingerprint)
			SELECT c.namespace, c.run, c.turn, c.place, c.id, c.call_id, c.tool, c.arguments, c.fingerprint FROM new JOIN c ON c.id = new.id AND c.token = new.token
		) SELECT * FROM new`
	// releasedBefore is a subquery that the server answers for one after the other. An EXISTS it could answer by a whole table.
	releasedBefore = `(SELECT 1 FROM @operations AS before WHERE before.namespace = c.namespace AND before.identity = c.identity AND before.released > 0 LIMIT 1)`

	// checkTogether has the arguments ids, namespaces, tokens and identities. It ends the transaction by a division by zero
	// where an identity that was claimed in it had been claimed and released before.
	checkTogether = `SELECT count(1 / CASE WHEN ` + releasedBefore + ` IS NULL OR (SELECT 1 FROM @operations AS mine
			WHERE mine.id = c.id AND (mine.namespace = c.namespace) IS TRUE AND mine.token = c.token) IS NULL THEN 1 ELSE 0 END)
		FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bytea[]) AS c (id, namespace, token, identity)`

	completeTogether = `UPDATE @operations AS operations SET state = 'done', result = c.result, resource = coalesce(c.resource, operations.resource)` + isDone + `
		FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bytea[]) WITH ORDINALITY AS c (id, namespace, token, result, resource, number)
		WHERE operations.id = c.id AND (operations.namespace = c.namespace) IS TRUE AND operations.token = c.token` + takesResult + undoesNothing + `
		RETURNING c.number`
)

// short is how long content may be that goes together with others', in bytes: what is long is none of the many.
const short = 64 << 10

// first makes the first try of a claim, together with others where that may be.
func (n *claiming) first(ctx context.Context) error {
	d := n.s.d
	n.until = time.Now().Add(d.opts.WriteTimeout)
	if !n.brief || n.undoes != 0 || n.repeatOf != 0 || n.impossible() || len(n.input) > short {
		return n.try(ctx)
	}
	alone := func() error { return n.try(ctx) }
	if made, err := oneOrMany(ctx, &d.claims, n, alone, func(all []*claiming) { d.claimTogether(ctx, all) }); made || err != nil || n.tried {
		return err
	}
	return alone()
}

// oneOrMany has alone called, and made is true, or many, with what goes together, by this caller or another.
func oneOrMany[R any](ctx context.Context, g *gatherer[R], what R, alone func() error, many func([]R)) (made bool, err error) {
	failed := g.do(ctx, what, func(all []R) bool {
		if made = len(all) < g.least; made {
			err = alone()
		} else {
			many(all)
		}
		return true
	})
	return made, cmp.Or(failed, err)
}

// wonClaim is what the server says of one.
type wonClaim struct {
	id                                      number
	token                                   word
	deadline, keySince, created, since, now moment
}

// claimTogether tries many claims, the leader's first. It says to each of them how far it got.
func (d *database) claimTogether(ctx context.Context, all []*claiming) {
	ctx, cancel := inHalf(ctx, all[0].until)
	defer cancel()
	slices.SortFunc(all, func(a, b *claiming) int {
		return cmp.Or(cmp.Compare(a.s.namespace, b.s.namespace), cmp.Compare(a.c.Identity, b.c.Identity))
	})
	won := map[number]wonClaim{}
	err := d.send(ctx, func(b *batch) {
		clear(won)
		b.run(setTogether)
		queueClaims(b, all, func(rows pgx.Rows) error {
			var w wonClaim
			err := rows.Scan(&w.id, &w.token, &w.deadline, &w.keySince, &w.created, &w.since, &w.now)
			won[w.id] = w
			return err
		})
	})
	if err == nil {
		d.commits.Add(1)
	}
	for _, n := range all {
		n.tried, n.doubtful = err == nil, mayBeMade(err)
		w, ok := won[n.id]
		if n.won = ok && err == nil && string(w.token) == n.c.Token; !n.won { // two may have got one id
			continue
		}
		n.asNew()
		n.r.Deadline, n.r.KeySince = time.Time(w.deadline), time.Time(w.keySince)
		n.r.Created, n.r.Since, n.r.Now = time.Time(w.created), time.Time(w.since), time.Time(w.now)
	}
}

// inHalf is for what goes together: where the connection has gone silent, each has the other half of its time to go alone. Who
// leads has waited for the longest.
func inHalf(ctx context.Context, until time.Time) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Until(until)/2)
}

// mayBeMade reports whether what was sent may have been made although there is an error.
func mayBeMade(err error) bool {
	lost, ok := errors.AsType[*lostError](err)
	return ok && lost.sent
}

func column[T, V any](all []T, f func(T) V) []V {
	column := make([]V, len(all))
	for i, one := range all {
		column[i] = f(one)
	}
	return column
}

func queueClaims(b *batch, all []*claiming, row func(pgx.Rows) error) {
	text := func(f func(n *claiming) string) []string {
		return column(all, func(n *claiming) string { return pack(f(n)) })
	}
	bytes := func(f func(n *claiming) string) [][]byte {
		return column(all, func(n *claiming) []byte { return packHash(f(n)) })
	}
	ids := column(all, func(n *claiming) int64 { return int64(n.id) })
	namespaces := text(func(n *claiming) string { return n.s.namespace })
	identities := bytes(func(n *claiming) string { return n.c.Identity })
	tokens := text(func(n *claiming) string { return n.c.Token })
	b.each(claimTogether, row, registry.CanonicalVersion, b.d.owner, ids, namespaces, identities,
		bytes(func(n *claiming) string { return n.c.Call.Fingerprint }),
		text(func(n *claiming) string { return n.c.Call.Tool }),
		tokens,
		column(all, func(n *claiming) pgtype.Interval { return span(n.c.Deadline) }),
		bytes(func(n *claiming) string { return registry.DownstreamKey(n.s.namespace, n.c.Identity, 0) }),
		column(all, func(n *claiming) []byte { return hashOrNull(n.c.Resource) }),
		text(func(n *claiming) string { return n.c.ResourceOut }),
		text(func(n *claiming) string { return n.c.Call.Run }),
		column(all, func(n *claiming) int64 { return int64(n.c.Call.Turn) }),
		column(all, func(n *claiming) int64 { return int64(n.c.Call.Position) }),
		text(func(n *claiming) string { return n.c.Call.CallID }),
		bytes(func(n *claiming) string { return n.c.Call.Arguments }),
		text(func(n *claiming) string { return n.c.Conversation }),
		column(all, func(n *claiming) pgtype.Interval { return spanOrNull(n.c.Keep) }),
		column(all, func(n *claiming) []byte { return n.input }),
		column(all, func(n *claiming) pgtype.Interval { return spanOrNull(n.c.Retain) }),
		column(all, func(n *claiming) int64 { return n.position }))
	b.run(checkTogether, ids, namespaces, tokens, identities)
}

// first makes the step by one statement, if that may be, and a blind result together with others.
func (c *changing) first(ctx context.Context) error {
	d, ctx := c.s.d, context.WithoutCancel(ctx)
	c.until = time.Now().Add(d.opts.WriteTimeout)
	if result, _ := c.result.(string); c.t.Step != middleware.Complete || !c.t.Blind || len(result) > short {
		return c.alone(ctx)
	}
	alone := func() error { return c.alone(ctx) }
	if made, err := oneOrMany(ctx, &d.results, c, alone, func(all []*changing) { d.completeTogether(ctx, all) }); made || err != nil || c.tried {
		return err
	}
	return alone()
}

// completeTogether stores many results, the leader's first. It says to each of them how far it got.
func (d *database) completeTogether(ctx context.Context, all []*changing) {
	ctx, cancel := inHalf(ctx, all[0].until)
	defer cancel()
	slices.SortFunc(all, func(a, b *changing) int { return cmp.Compare(a.id, b.id) })
	made := make([]bool, len(all))
	err := d.send(ctx, func(b *batch) {
		clear(made)
		b.run(setTogether)
		b.each(completeTogether, func(rows pgx.Rows) error {
			var number int
			err := rows.Scan(&number)
			if err == nil {
				made[number-1] = true
			}
			return err
		},
			column(all, func(c *changing) int64 { return int64(c.id) }),
			column(all, func(c *changing) string { return pack(c.s.namespace) }),
			column(all, func(c *changing) string { return pack(c.t.Token) }),
			column(all, func(c *changing) pgtype.Text {
				result, ok := c.result.(string)
				return pgtype.Text{String: result, Valid: ok}
			}),
			column(all, func(c *changing) []byte { return hashOrNull(c.t.Resource) }))
	})
	if err == nil {
		d.commits.Add(1)
	}
	for i, c := range all {
		c.tried, c.doubtful = err == nil, mayBeMade(err)
		if c.made = err == nil && made[i]; c.made {
			c.r = record{id: c.id}
		}
	}
}
