package pgstore

import (
	"context"
	"fmt"
	"time"

	"github.com/toolonce/toolonce/internal/content"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// A claim is two statements in one transaction: the first makes the row or takes it, the second has the place of the call
// mean it, spends the approval, and ends the transaction by a division by zero if any of that cannot be. Each sees all that
// was committed before it; what comes between is kept away by the row of the first.
//
// What is new in every way, as most is, has shorter ones.
const (
	// insertOperation and its siblings have these arguments: the operation's id, namespace, identity, fingerprint,
	// canonical, tool, token, deadline, owner, generation, key, undoes, repeat_of, resource, resource_out, run, turn,
	// position, call_id, arguments, conversation, keep, input and retain. For a row seen come the key window, its id and its token.
	insertOperation = intoOperations + `
		SELECT $1::bigint, $2::text, $3::bytea, $4::bytea, $5::integer, $6::text, 'running', $7::text, 1, statement_timestamp() + $8::interval,
			$9::bigint, $10::integer, $11::bytea, statement_timestamp(), $12::bigint, $13::bigint, $14::bytea, $15::text, $16::text, $17::bigint,
			$18::bigint, $19::text, $20::bytea, $21::text, statement_timestamp(), statement_timestamp(), $22::interval, $23::bytea, $24::interval
		WHERE `
	intoOperations = `INSERT INTO @operations AS operations (id, namespace, identity, fingerprint, canonical, tool, state, token, attempt, deadline,
			owner, generation, key, key_since, undoes, repeat_of, resource, resource_out, run, turn, position, call_id, arguments,
			conversation, created, since, keep, input, retain)`
	onlyNew  = ` ON CONFLICT DO NOTHING`
	newTimes = `deadline, key_since, created, since, statement_timestamp()`

	// pointNew has the arguments namespace, id, token, run, turn, position, call_id, tool, arguments and fingerprint. It ends the
	// transaction where the place is taken, and by a NULL where the identity was claimed and released before.
	pointNew = `INSERT INTO @aliases (namespace, run, turn, position, operation, call_id, tool, arguments, fingerprint)
		SELECT $1::text, $4::text, $5::bigint, $6::bigint, CASE WHEN NOT EXISTS (SELECT 1 FROM @operations AS before
			WHERE before.namespace = $1 AND before.identity = operations.identity AND before.released > 0) THEN id END,
			$7::text, $8::text, $9::bytea, $10::bytea FROM @operations AS operations WHERE id = $2 AND (namespace = $1) IS TRUE AND token = $3`

	takeOperation = `UPDATE @operations AS operations SET id = $1, fingerprint = $4, canonical = $5, tool = $6, state = 'running', token = $7, attempt = 1,
			owner = $9, settle = NULL, settler = 0, key = $11, by_person = false, undoes = $12, repeat_of = $13, resource = $14, resource_out = $15,
			key_since = CASE WHEN key IS NULL OR statement_timestamp() > key_since + $25::interval THEN statement_timestamp() ELSE key_since END,
			run = $16, turn = $17, position = $18, call_id = $19, arguments = $20, conversation = $21, since = statement_timestamp(), keep = $22,
			input = $23, retain = $24, result = NULL, done_at = NULL, expires = NULL, settled_by = '', settled_why = '', `
	ifSeen      = ` WHERE id = $26 AND (namespace = $2) IS TRUE AND identity = $3 AND token = $27 AND generation = $10 AND `
	takeFree    = takeOperation + `deadline = greatest(deadline, statement_timestamp() + $8::interval)` + ifSeen + `state = 'free' AND `
	takeExpired = takeOperation + `deadline = statement_timestamp() + $8::interval, created = statement_timestamp(), late = false` + ifSeen +
		`state = 'done' AND expires <= statement_timestamp() AND NOT ` + openCall + ` AND `

	// What the claim names is kept as it is until the claim is committed. That nothing else undoes the same is for the index
	// operations_undoes to see.
	named        = `WITH named AS (SELECT id, state, expires FROM @operations WHERE id IN ($12, $13) AND (namespace = $2) IS TRUE FOR SHARE) `
	namedAreDone = `($12::bigint IS NULL OR (SELECT count(*) FROM named WHERE id = $12 AND state = 'done') = 1)
		AND ($13::bigint IS NULL OR (SELECT count(*) FROM named WHERE id = $13 AND state = 'done'
			AND (expires IS NULL OR expires > statement_timestamp())) = 1)`
	namesNone = `$12::bigint IS NULL AND $13::bigint IS NULL`

	// readsCommitted fails in a session that somebody has set to another isolation level, where the second statement would not
	// see what was committed before it. It is answered anew in each transaction.
	readsCommitted = `CASE WHEN current_setting('transaction_isolation') = 'read committed' THEN true
		ELSE (current_setting('transaction_isolation') || ' is set in this session')::boolean END`

	// point has the arguments namespace, id, token, run, turn, position, call_id, tool, arguments, fingerprint, whether it is a
	// repeat, the operation seen at the place, that of the row seen, and whether the row is new. pointAndSpend has besides
	// the approval, the digest of the input, and the operation by its name.
	mine = `WITH mine AS (
			SELECT id, identity, generation FROM @operations WHERE id = $2 AND (namespace = $1) IS TRUE AND token = $3 AND state = 'running' AND attempt = 1
		), place AS (
			SELECT operation, EXISTS (SELECT 1 FROM @operations WHERE id = aliases.operation AND (namespace = $1) IS TRUE) AS known
			FROM @aliases WHERE namespace = $1 AND run = $4 AND turn = $5 AND position = $6
		), pointed AS (
			INSERT INTO @aliases AS aliases (namespace, run, turn, position, operation, call_id, tool, arguments, fingerprint, repeats)
			SELECT $1::text, $4::text, $5::bigint, $6::bigint, mine.id, $7::text, $8::text, $9::bytea, $10::bytea, CASE WHEN $11 THEN mine.identity END FROM mine
			WHERE CASE WHEN $12::bigint IS NULL THEN NOT EXISTS (SELECT 1 FROM place WHERE known OR operation = $13)
				ELSE EXISTS (SELECT 1 FROM place WHERE operation = $12 AND (known OR operation = $13)) END
			` + atTakenPlace + ` AND aliases.operation = (SELECT operation FROM place)
			RETURNING 1
		)`
	spend = `, spent AS (
			UPDATE @approvals AS approvals SET state = 'spent', operation = $17 FROM mine
			WHERE approvals.id = $15 AND (approvals.namespace = $1) IS TRUE AND approvals.state = 'approved' AND approvals.run = $4 AND approvals.turn = $5
				AND approvals.position = $18 AND approvals.tool = $8 AND approvals.fingerprint = $10 AND approvals.identity = mine.identity
				AND approvals.generation = mine.generation AND approvals.expires > statement_timestamp() AND approvals.digest IS NOT DISTINCT FROM $16
			RETURNING 1
		)`
	// Of the repeats, what stood at the place of this call has gone.
	orElse = ` SELECT CASE WHEN $11::boolean THEN 1 ELSE 0 END + (SELECT count(*) FROM @aliases AS repeated WHERE repeated.namespace = $1
				AND repeated.run = $4 AND NOT (repeated.turn = $5 AND repeated.position = $6) AND repeated.repeats = mine.identity
				AND EXISTS (SELECT 1 FROM @operations AS meant WHERE meant.id = repeated.operation)),
			1 / CASE WHEN EXISTS (SELECT 1 FROM pointed) AND (NOT $14::boolean OR mine.generation =
				(SELECT coalesce(max(generation) + 1, 0) FROM @operations WHERE namespace = $1 AND identity = mine.identity AND released > 0))`
	point         = mine + orElse + ` THEN 1 ELSE 0 END FROM mine`
	pointAndSpend = mine + spend + orElse + ` AND EXISTS (SELECT 1 FROM spent) THEN 1 ELSE 0 END FROM mine`

	// atTakenPlace is for an alias at a place that is taken. What must follow makes sure that it is taken by what was seen to
	// mean nothing any more, and not by another who has just come.
	atTakenPlace = `ON CONFLICT (namespace, run, turn, position) DO UPDATE SET operation = excluded.operation, call_id = excluded.call_id,
			tool = excluded.tool, arguments = excluded.arguments, fingerprint = excluded.fingerprint, repeats = excluded.repeats
		WHERE true`
)

var returning = " RETURNING " + all + ", statement_timestamp()"

// claiming is one claim at work.
type claiming struct {
	s *Store
	c middleware.Claim

	input            []byte // as it is stored
	id               number // that the operation gets
	position         int64  // of the call's alias
	generation       int    // that it must be at
	undoes, repeatOf number // the operations that the claim names, 0 for none

	brief    bool      // it is new in every way, as far as is known
	doubtful bool      // a try whose answer was lost may have won
	until    time.Time // when it must be over
	tried    bool      // it was tried, together with others'
	r        record    // of the operation that was won
	won      bool
}

func newClaiming(s *Store, c middleware.Claim, input []byte) *claiming {
	n := &claiming{s: s, c: c, input: input, id: number(s.d.newID()), generation: c.Seen.Generation, undoes: idOf(c.Undoes), repeatOf: idOf(c.RepeatOf), position: int64(c.Call.Position)}
	if c.Call.Turn <= 0 { // such an alias is only counted
		n.position = newID()
	}
	if c.Seen.State == middleware.Free {
		n.id = idOf(c.Seen.Operation)
	}
	n.brief = c.Seen.Operation == "" && n.generation == 0 && c.SeenAlias == "" && !c.Repeat && c.Approval == ""
	return n
}

// impossible reports that the claim names what is no operation of any ledger of ours, or has seen what cannot be.
func (n *claiming) impossible() bool {
	c := &n.c
	return n.undoes == 0 && c.Undoes != "" || n.repeatOf == 0 && c.RepeatOf != "" || c.Call.Turn <= 0 && c.SeenAlias != "" ||
		c.SeenAlias != "" && idOf(c.SeenAlias) == 0 || c.Seen.Operation != "" && (idOf(c.Seen.Operation) == 0 ||
		c.Seen.State != middleware.Free && c.Seen.State != middleware.Done)
}

// try claims, if all is as it was seen.
func (n *claiming) try(ctx context.Context) error {
	if n.impossible() {
		return nil
	}
	fill := n.whole
	if n.brief {
		fill = n.new
	}
	doubtful, err := n.s.d.writeUntil(ctx, n.until, fill)
	n.doubtful = n.doubtful || doubtful
	n.r.ownerName = nullable{n.s.d.ownerName, true}
	if hasCode(err, codeText) {
		return fmt.Errorf("%w: a session of the store's was set to another isolation level than READ COMMITTED: it is for nobody to change: %w", ErrSettings, err)
	}
	if hasCode(err, codeDivision, codeUnique, codeNull) { // the answer of a statement that was undone
		n.won, err = false, nil
	}
	return err
}

func (n *claiming) whole(b *batch) {
	var locked, pointed bool
	var passed int
	n.r = record{}
	if n.c.Seen.Operation != "" {
		b.one(&locked, lockOperation, []any{new(number)}, idOf(n.c.Seen.Operation), pack(n.s.namespace))
	}
	query, args := n.take()
	b.one(&n.won, query+returning, append(n.r.dest(), (*moment)(&n.r.Now)), args...)
	query, args = n.point()
	b.one(&pointed, query, []any{&n.r.Repeats, &passed}, args...)
}

// asNew makes r what is stored of a claim that has won what has never been claimed, but for the times.
func (n *claiming) asNew() {
	c := &n.c
	n.r = record{Row: middleware.Row{
		Identity: c.Identity, Fingerprint: c.Call.Fingerprint, Canonical: registry.CanonicalVersion, Tool: c.Call.Tool,
		State: middleware.Running, Token: c.Token, Attempt: 1, Key: registry.DownstreamKey(n.s.namespace, c.Identity, 0), Resource: c.Resource,
		ResourceOut: c.ResourceOut, Input: n.input, Claimer: c.Call, Conversation: c.Conversation,
	}, id: n.id, owner: number(n.s.d.owner), undoes: n.undoes, repeatOf: n.repeatOf, ownerName: nullable{n.s.d.ownerName, true}}
}

// new claims what has never been claimed, at a place of which nothing is known. Of such a row nothing but the times need be
// read.
func (n *claiming) new(b *batch) {
	c := &n.c
	query, args := n.take()
	n.asNew()
	r := &n.r
	b.one(&n.won, query+` RETURNING `+newTimes,
		[]any{(*moment)(&r.Deadline), (*moment)(&r.KeySince), (*moment)(&r.Created), (*moment)(&r.Since), (*moment)(&r.Now)}, args...)
	call := &c.Call
	b.run(pointNew, pack(n.s.namespace), n.id, pack(c.Token), pack(call.Run), call.Turn, n.position, pack(call.CallID), pack(call.Tool),
		packHash(call.Arguments), packHash(call.Fingerprint))
}

// take makes or takes the operation's row.
func (n *claiming) take() (query string, args []any) {
	c, call := &n.c, &n.c.Call
	args = []any{
		n.id, pack(n.s.namespace), packHash(c.Identity), packHash(call.Fingerprint), registry.CanonicalVersion, pack(call.Tool), pack(c.Token),
		span(c.Deadline), n.s.d.owner, n.generation, packHash(registry.DownstreamKey(n.s.namespace, c.Identity, n.generation)),
		n.undoes.orNull(), n.repeatOf.orNull(), hashOrNull(c.Resource), pack(c.ResourceOut), pack(call.Run), call.Turn, call.Position, pack(call.CallID),
		packHash(call.Arguments), pack(c.Conversation), spanOrNull(c.Keep), n.input, spanOrNull(c.Retain),
	}
	names := namesNone
	if n.undoes != 0 || n.repeatOf != 0 {
		query, names = named, namedAreDone
	}
	names += ` AND ` + readsCommitted
	switch c.Seen.State {
	case middleware.Free:
		query += takeFree + names
	case middleware.Done:
		query += takeExpired + names
	default:
		return query + insertOperation + names + onlyNew, args
	}
	return query, append(args, span(c.KeyWindow), idOf(c.Seen.Operation), pack(c.Seen.Token))
}

// point makes the place of the call mean the operation.
func (n *claiming) point() (query string, args []any) {
	c, call := &n.c, &n.c.Call
	args = []any{
		pack(n.s.namespace), n.id, pack(c.Token), pack(call.Run), call.Turn, n.position, pack(call.CallID), pack(call.Tool),
		packHash(call.Arguments), packHash(call.Fingerprint), c.Repeat, idOf(c.SeenAlias).orNull(), idOf(c.Seen.Operation).orNull(), c.Seen.Operation == "",
	}
	if c.Approval == "" {
		return point, args
	}
	return pointAndSpend, append(args, pack(c.Approval), content.Digest(c.Input), pack(operationOf(n.id)), call.Position)
}

// again reports whether a claim that was not won may be in another way: not as a new one, or with another generation.
func (n *claiming) again(inTheWay *middleware.Row) bool {
	g, brief, seen := n.generation, n.brief, &n.c.Seen
	if n.brief = false; seen.State != middleware.Free { // the id may be another's: of a thousand a millisecond, every fourth time
		n.id = number(n.s.d.newID())
	}
	switch {
	case inTheWay.Operation == "":
		return brief
	case inTheWay.State == middleware.Released && inTheWay.Found == nil && seen.Operation == "":
		n.generation = inTheWay.Generation + 1
		return brief || n.generation != g
	case seen.Operation != "" && inTheWay.Operation == seen.Operation && inTheWay.State == seen.State && inTheWay.Token == seen.Token:
		n.generation = inTheWay.Generation
	}
	return n.generation != g
}
