package sqlitestore

import (
	"context"
	"errors"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

const (
	lastGeneration = `SELECT coalesce(max(generation), -1) FROM operations WHERE namespace = +?1 AND identity = +?2 AND released > 0`

	insertOperation = newOperation + ` SELECT ?1, ?2, ?3, ` + ofOperation + ` WHERE ` + mayBegin + onlyNew
	// insertFirst fails on a constraint where insertOperation inserts nothing. Next to the trigger, SQLite keeps what a SELECT
	// gives in a table made for it, which takes a third of the time of a claim.
	insertFirst = newOperation + ` VALUES (?1, ?2, CASE WHEN ` + mayBegin + ` THEN ?3 END, ` + ofOperation + `)`

	newOperation = `INSERT INTO operations (id, namespace, identity, fingerprint, canonical, tool, state, token, attempt,
			deadline, owner, generation, key, key_since, unclear, undoes, resource, resource_out, run, turn, position, call_id,
			arguments, conversation, created, since, keep, input, repeat_of, retain)`
	ofOperation = `?4, ?5, ?6, 'running', ?7, 1, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
			?23, ?24, ?25, ?26, ?28`
	mayBegin = namedAreDone + ` AND NOT EXISTS (SELECT 1 FROM operations WHERE namespace = +?2 AND identity = +?3 AND released > 0
			AND generation > ?27) AND ?1 >= (` + lowestID + `)`
	onlyNew      = ` ON CONFLICT (namespace, identity, released) DO NOTHING`
	namedAreDone = `(?14 IS NULL OR EXISTS (SELECT 1 FROM operations WHERE id = +?14 AND namespace = +?2 AND state = 'done')
			AND NOT EXISTS (SELECT 1 FROM operations WHERE undoes = +?14 AND namespace = +?2 AND state IN ('running', 'in_doubt')))
		AND (?26 IS NULL OR EXISTS (SELECT 1 FROM operations WHERE id = +?26 AND namespace = +?2 AND state = 'done'
			AND (expires = 0 OR expires > ?23)))`

	// The arguments are those of insertOperation, but ?27 is the token seen.
	claimFree = `UPDATE operations SET fingerprint = +?4, canonical = +?5, tool = +?6, state = 'running', listed = 1, token = +?7, attempt = 1,
			deadline = max(deadline, ?8), owner = +?9, settle = NULL, settler = 0, key = +?11, key_since = +?12, by_person = 0, undoes = +?14,
			resource = +?15, resource_out = +?16, run = +?17, turn = +?18, position = +?19, call_id = +?20, arguments = +?21, conversation = +?22,
			since = +?23, keep = +?24, input = +?25, repeat_of = +?26, retain = +?28, result = NULL, done_at = 0, expires = 0, settled_by = '', settled_why = ''
		WHERE id = +?1 AND namespace = +?2 AND identity = +?3 AND state = 'free' AND token = +?27 AND generation = +?10 AND unclear = +?13
			AND ` + namedAreDone

	forgetExpired = `DELETE FROM operations
		WHERE id = +?1 AND namespace = +?2 AND state = 'done' AND token = +?3 AND expires > 0 AND expires <= ?4
			AND NOT ` + openCall

	// keepCall gives the alias of the claim that is over what it has left to the operation's row.
	keepCall = `UPDATE aliases SET call_id = +?6, tool = +?7, arguments = +?8, fingerprint = +?9
		WHERE namespace = +?1 AND run = +?2 AND turn = +?3 AND position = +?4 AND operation = +?5 AND call_id IS NULL`

	placed     = `SELECT operation, EXISTS (SELECT 1 FROM operations WHERE id = aliases.operation) FROM aliases` + atPlace
	clearPlace = `DELETE FROM aliases` + atPlace
	claimAgain = `INSERT INTO aliases (namespace, run, turn, position, operation) VALUES (?1, ?2, ?3, ?4, ?5)`
	countClaim = `UPDATE aliases SET repeats = ?5` + atPlace
	atPlace    = ` WHERE namespace = +?1 AND run = +?2 AND turn = +?3 AND position = +?4`

	noteAlias = `INSERT INTO aliases (namespace, run, turn, position, operation, call_id, tool, arguments, fingerprint, repeats)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
		ON CONFLICT DO UPDATE SET operation = ?5, call_id = ?6, tool = ?7, arguments = ?8, fingerprint = ?9, repeats = ?10
		WHERE NOT EXISTS (SELECT 1 FROM operations WHERE id = aliases.operation)`
	noteCounted = `INSERT INTO aliases (namespace, run, turn, position, operation, call_id, tool, arguments, fingerprint, repeats)
		SELECT ?1, ?2, 0, coalesce(max(position) + 1, 0), ?3, ?4, ?5, ?6, ?7, ?8
		FROM aliases WHERE namespace = +?1 AND run = +?2 AND turn = 0`
)

// Claim implements middleware.Ledger. A context that has ended claims nothing; one that ends later changes nothing.
func (s *Store) Claim(ctx context.Context, c middleware.Claim) (row middleware.Row, won bool, err error) {
	n, _ := s.f.spare.Get().(*claiming)
	if n == nil {
		n = &claiming{}
	}
	*n = claiming{s: s, c: c, undoes: idOf(c.Undoes), repeatOf: idOf(c.RepeatOf)}
	row, won, err = s.claim(ctx, n)
	*n = claiming{}
	s.f.spare.Put(n)
	if err != nil {
		return middleware.Row{}, false, s.f.wrap("claiming an operation in", err)
	}
	return row, won, nil
}

func (s *Store) claim(ctx context.Context, n *claiming) (row middleware.Row, won bool, err error) {
	c := &n.c
	if ctx.Err() != nil {
		return row, false, registry.NoEffect(context.Cause(ctx))
	}
	done, err := s.f.starting()
	if err != nil {
		return row, false, registry.NoEffect(err)
	}
	defer done()
	s.f.owners.used.Store(true)
	if s.f.claims.Add(1)%raiseEvery == 0 {
		if err := s.f.raise(ctx); err != nil {
			return row, false, registry.NoEffect(err)
		}
	}
	if n.input, err = s.content().PutInput(c.Input, c.Token); err != nil {
		return row, false, registry.NoEffect(err)
	}
	var ran, doubtful bool // doubtful: it was run again, though the time before may have been made
	try := func(f func(*claiming, *tx) error) func(*tx) error {
		again := false
		return func(x *tx) error {
			ran, doubtful, again = true, doubtful || again, true
			return f(n, x)
		}
	}
	if c.Seen.Operation == "" && c.SeenAlias == "" && c.Call.Turn > 0 && !c.Repeat && c.Approval == "" {
		err = s.f.writer.single(ctx, try((*claiming).first))
	}
	if err == nil && !n.won {
		for range 8 { // ids are random: even the second try is rare
			if err = s.f.writer.do(ctx, try((*claiming).run)); !sameKey(err) {
				break
			}
		}
	}
	if err == nil && n.won {
		row, err = s.row(ctx, &n.r)
		return row, err == nil, err
	}
	if !ran {
		return row, false, registry.NoEffect(err)
	}
	if c.New && err == nil && !doubtful {
		return row, false, nil
	}
	row, failed := s.inTheWay(ctx, c)
	if made := row.Token == c.Token && row.State == middleware.Running && row.Attempt == 1 && row.OwnerMine; failed == nil && made && (doubtful || err != nil) {
		return row, true, nil // only the answer was lost
	}
	keep(&err, failed)
	if c.New {
		row = middleware.Row{}
	}
	return row, false, err
}

// inTheWay is what the place of a call means, or else who holds the identity; zero if there is none.
func (s *Store) inTheWay(ctx context.Context, c *middleware.Claim) (middleware.Row, error) {
	ctx = context.WithoutCancel(ctx)
	place, ok, err := s.find(ctx, middleware.Query{Run: c.Call.Run, Turn: c.Call.Turn, Position: c.Call.Position})
	if err != nil || ok && place.Operation != c.SeenAlias {
		return place, err
	}
	row, ok, err := s.find(ctx, middleware.Query{Run: c.Call.Run, Identity: c.Identity})
	if err != nil || !ok || row.State == middleware.Released {
		return middleware.Row{}, err
	}
	return row, nil
}

// Note implements middleware.Ledger.
func (s *Store) Note(ctx context.Context, operation string, call middleware.Alias) (repeats int, err error) {
	err = s.f.writer.do(ctx, func(x *tx) error {
		var r record
		ok, err := x.one(byID, r.dest(), idOf(operation), s.namespace)
		if err != nil {
			return err
		}
		if !ok {
			return middleware.ErrLost
		}
		rest := []any{r.id, call.CallID, call.Tool, pack(call.Arguments), pack(call.Fingerprint), pack(r.Identity)}
		if call.Turn > 0 {
			_, err = x.exec(noteAlias, append([]any{s.namespace, call.Run, call.Turn, call.Position}, rest...)...)
		} else {
			_, err = x.exec(noteCounted, append([]any{s.namespace, call.Run}, rest...)...)
		}
		if err == nil {
			repeats, err = s.repeats(x, call.Run, r.Identity)
		}
		return err
	})
	if errors.Is(err, middleware.ErrLost) {
		return 0, err
	}
	return repeats, s.f.wrap("noting a repeat in", err)
}
