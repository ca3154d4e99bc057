package pgstore

import (
	"context"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/registry"
)

// Claim implements middleware.Ledger in one round trip, if it wins, which it may share with others; who loses makes one more to
// see what is in the way. A context that has ended claims nothing; one that ends later changes nothing.
func (s *Store) Claim(ctx context.Context, c middleware.Claim) (row middleware.Row, won bool, err error) {
	row, won, err = s.claim(ctx, c)
	if err != nil {
		return middleware.Row{}, false, s.d.wrap("claiming an operation in", err)
	}
	return row, won, nil
}

func (s *Store) claim(ctx context.Context, c middleware.Claim) (row middleware.Row, won bool, err error) {
	if ctx.Err() != nil {
		return row, false, registry.NoEffect(context.Cause(ctx))
	}
	done, err := s.d.starting()
	if err != nil {
		return row, false, registry.NoEffect(err)
	}
	defer done()
	s.d.used.Store(true)
	ctx = context.WithoutCancel(ctx)
	input, err := s.content().PutInput(c.Input, c.Token)
	if err != nil {
		return row, false, registry.NoEffect(err)
	}
	n := newClaiming(s, c, input)
	for i := range 8 { // three at most, but for what others change meanwhile
		try := n.try
		if i == 0 {
			try = n.first
		}
		if err := try(ctx); err != nil || n.won {
			return s.row(&n.r), n.won, unknown(err, n.doubtful)
		}
		if row, err = s.inTheWay(ctx, c); err != nil {
			return row, false, unknown(err, n.doubtful)
		}
		if n.doubtful && row.Token == c.Token { // it was made, and only its answer was lost
			return s.made(row)
		}
		if c.New && row.Operation != "" || !n.again(&row) {
			break
		}
	}
	if c.New || row.State == middleware.Released && row.Found == nil { // it is what held the identity before
		row = middleware.Row{}
	}
	return row, false, nil
}

// made is a claim that was found by its token. One that others have taken over meanwhile must not run.
func (s *Store) made(row middleware.Row) (middleware.Row, bool, error) {
	if row.State == middleware.Running && row.Attempt == 1 && row.OwnerMine {
		return row, true, nil
	}
	return row, false, ErrUnknown
}

// inTheWay is what the place of a call means, or else who holds the identity, or the last to have been released; zero if
// there is none.
func (s *Store) inTheWay(ctx context.Context, c middleware.Claim) (middleware.Row, error) {
	place, ok, err := s.find(ctx, middleware.Query{Run: c.Call.Run, Turn: c.Call.Turn, Position: c.Call.Position})
	if err != nil || ok && place.Operation != c.SeenAlias {
		return place, err
	}
	row, _, err := s.find(ctx, middleware.Query{Run: c.Call.Run, Identity: c.Identity})
	return row, err
}

const (
	lockOperation = `SELECT id FROM @operations WHERE id = $1 AND (namespace = $2) IS TRUE FOR UPDATE`

	// It is locked for a note too: so it is not forgotten meanwhile, and of two who note at once the second counts both.
	noteAlias = `WITH place AS (
			SELECT operation FROM @aliases WHERE namespace = $1 AND run = $2 AND turn = $3 AND position = $4
				AND NOT EXISTS (SELECT 1 FROM @operations WHERE id = aliases.operation)
		)
		INSERT INTO @aliases AS aliases (namespace, run, turn, position, operation, call_id, tool, arguments, fingerprint, repeats)
		SELECT $1::text, $2::text, $3::bigint, $4::bigint, id, $6::text, $7::text, $8::bytea, $9::bytea, identity FROM @operations WHERE id = $5 AND (namespace = $1) IS TRUE
		` + atTakenPlace + ` AND aliases.operation = (SELECT operation FROM place)`
	countNotes = `SELECT count(*) FROM @aliases AS repeated WHERE repeated.namespace = $1 AND repeated.run = $2
		AND repeated.repeats = (SELECT identity FROM @operations WHERE id = $3)
		AND EXISTS (SELECT 1 FROM @operations AS meant WHERE meant.id = repeated.operation)`
)

// Note implements middleware.Ledger. The caller's context does not cut it short.
func (s *Store) Note(ctx context.Context, operation string, call middleware.Alias) (repeats int, err error) {
	position := int64(call.Position)
	if call.Turn <= 0 { // such an alias is only counted
		position = newID()
	}
	var known, counted bool
	id := idOf(operation)
	_, err = s.d.write(ctx, func(b *batch) {
		b.one(&known, lockOperation, []any{new(number)}, id, pack(s.namespace))
		b.run(noteAlias, pack(s.namespace), pack(call.Run), call.Turn, position, id, pack(call.CallID), pack(call.Tool),
			packHash(call.Arguments), packHash(call.Fingerprint))
		b.one(&counted, countNotes, []any{&repeats}, pack(s.namespace), pack(call.Run), id)
	})
	switch {
	case err != nil:
		return 0, s.d.wrap("noting a repeat in", err)
	case !known:
		return 0, middleware.ErrLost
	}
	return repeats, nil
}
