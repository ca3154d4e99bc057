package pgstore

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/internal/content"
	"github.com/toolonce/toolonce/middleware"
)

// The first arguments are the same for all that ask what an approval is bound to: namespace, run, tool, fingerprint, turn,
// position, identity, generation and the digest of the input.
const (
	approvalColumns = `id, state, run, turn, position, call_id, tool, arguments, fingerprint, identity, generation, conversation, input,
		repeat_of, asked, expires, decided, decided_by, why, operation, statement_timestamp()`

	equalCall = `namespace = $1 AND run = $2 AND tool = $3 AND fingerprint = $4`
	bound     = `turn = $5 AND position = $6 AND identity = $7 AND generation = $8 AND digest IS NOT DISTINCT FROM $9 AND expires > statement_timestamp()`

	// lockCall is so that of two who ask the same at once one stores the question and the other finds it.
	lockCall         = `SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(' ', 'toolonce', $1::text, $2::text, $3::text), 0))`
	countingApproval = `SELECT ` + approvalColumns + ` FROM @approvals
		WHERE ` + equalCall + ` AND (state = 'denied' OR state IN ('pending', 'approved') AND ` + bound + `)
		ORDER BY state = 'denied' DESC, number DESC LIMIT 1`
	insertApproval = `INSERT INTO @approvals (namespace, run, tool, fingerprint, turn, position, identity, generation, digest, id, state,
			call_id, arguments, conversation, repeat_of, asked, expires, input)
		SELECT $1::text, $2::text, $3::text, $4::bytea, $5::bigint, $6::bigint, $7::bytea, $8::integer, $9::bytea, $10::text, 'pending', $11::text, $12::bytea,
			$13::text, $14::text, statement_timestamp(), statement_timestamp() + $15::interval, $16::bytea
		WHERE NOT EXISTS (SELECT 1 FROM @approvals WHERE ` + equalCall + ` AND (state = 'denied' OR state IN ('pending', 'approved') AND ` + bound + `))
		RETURNING ` + approvalColumns

	atQuestion   = `namespace = $1 AND run = $2 AND turn = $3 AND position = $4`
	lockQuestion = `SELECT id FROM @approvals WHERE ` + atQuestion + ` ORDER BY number FOR UPDATE`
	openQuestion = atQuestion + ` AND state = 'pending' AND expires > statement_timestamp() AND NOT ` + moot
	// moot is a question that nobody waits for any more: the call is answered, or somebody does it or has done it.
	moot = `(EXISTS (SELECT 1 FROM @runs AS runs JOIN @outputs AS outputs ON outputs.run = runs.id WHERE runs.namespace = approvals.namespace
			AND runs.run = approvals.run AND outputs.turn = approvals.turn AND outputs.position = approvals.position)
		OR EXISTS (SELECT 1 FROM @operations AS operations WHERE operations.namespace = approvals.namespace AND operations.identity = approvals.identity
		AND released = 0 AND operations.state <> 'free' AND (operations.expires IS NULL OR operations.expires > statement_timestamp())))`
	decideApproval = `WITH changed AS (UPDATE @approvals AS approvals SET state = $6, decided = statement_timestamp(), decided_by = $7, why = $8
		WHERE ` + openQuestion + ` AND (id = $5 OR $5 = '' AND (SELECT count(*) FROM @approvals AS approvals WHERE ` + openQuestion + `) = 1)
		RETURNING ` + approvalColumns + `), `
	lastApproval = `SELECT ` + approvalColumns + ` FROM @approvals WHERE ` + atQuestion + ` ORDER BY number DESC LIMIT 1`
)

// approval is one as it is stored.
type approval struct{ middleware.Approval }

func (a *approval) dest() []any {
	c := &a.Call
	return []any{
		(*word)(&a.ID), (*string)(&a.State), (*word)(&c.Run), &c.Turn, &c.Position, (*word)(&c.CallID), (*word)(&c.Tool), (*hash)(&c.Arguments),
		(*hash)(&c.Fingerprint), (*hash)(&a.Identity), &a.Generation, (*word)(&a.Conversation), &a.Input, (*word)(&a.RepeatOf), (*moment)(&a.Asked),
		(*moment)(&a.Expires), (*moment)(&a.Decided), (*word)(&a.By), (*word)(&a.Why), (*word)(&a.Operation), (*moment)(&a.Now),
	}
}

func (s *Store) opened(a *approval) middleware.Approval {
	s.content().OpenApproval(&a.Approval)
	return a.Approval
}

// Ask implements middleware.Approver. The caller's context does not cut it short.
func (s *Store) Ask(ctx context.Context, a middleware.Approval, expires time.Duration) (middleware.Approval, error) {
	c := &a.Call
	id := rand.Text()
	args := []any{
		pack(s.namespace), pack(c.Run), pack(c.Tool), packHash(c.Fingerprint), c.Turn, c.Position, packHash(a.Identity), a.Generation, content.Digest(a.Input),
	}
	input, err := s.content().PutQuestion(a.Input, id)
	if err != nil {
		return middleware.Approval{}, s.d.wrap("asking for an approval in", err)
	}
	var made, stored approval
	var isMade, isStored bool
	_, err = s.d.write(ctx, func(b *batch) {
		made, stored = approval{}, approval{}
		if expires >= 0 {
			b.run(lockCall, pack(s.namespace), pack(c.Run), pack(c.Tool))
			b.one(&isMade, insertApproval, made.dest(), append(slices.Clip(args), id, pack(c.CallID), packHash(c.Arguments),
				pack(a.Conversation), pack(a.RepeatOf), span(expires), input)...)
		}
		b.one(&isStored, countingApproval, stored.dest(), args...)
	})
	switch {
	case err != nil:
		return middleware.Approval{}, s.d.wrap("asking for an approval in", err)
	case isMade: // it may have expired at once, and then is not among those that count
		return s.opened(&made), nil
	default:
		return s.opened(&stored), nil
	}
}

// Decide implements middleware.Approver. The caller's context does not cut it short.
func (s *Store) Decide(ctx context.Context, d middleware.Decision) (middleware.Approval, error) {
	state := middleware.Denied
	if d.Approve {
		state = middleware.Approved
	}
	at := []any{pack(s.namespace), pack(d.Run), d.Turn, d.Position}
	var a, last approval
	var ok, known bool
	act := middleware.DecisionAct(&middleware.Approval{State: state, By: d.By, Why: d.Why})
	deciding, args := s.acting(act, ` FROM changed`, append(slices.Clip(at), pack(d.ID), string(state), pack(d.By), pack(d.Why)))
	doubtful, err := s.d.write(ctx, func(b *batch) {
		a, last = approval{}, approval{}
		b.run(lockActs, s.d.opts.Schema)
		b.run(lockQuestion, at...)
		b.one(&ok, decideApproval+deciding+` SELECT * FROM changed`, a.dest(), args...)
		b.one(&known, lastApproval, last.dest(), at...)
	})
	before := doubtful && last.State == state && last.By == d.By && last.Why == d.Why && (d.ID == "" || d.ID == last.ID)
	switch {
	case err != nil:
		return middleware.Approval{}, s.d.wrap("deciding on an approval in", err)
	case ok:
		return s.opened(&a), nil
	case before: // only the first answer was lost
		return s.opened(&last), nil
	default:
		return s.opened(&last), middleware.ErrLost
	}
}

// Approvals implements middleware.Approver.
func (s *Store) Approvals(ctx context.Context, states ...middleware.ApprovalState) ([]middleware.Approval, error) {
	query := `SELECT ` + approvalColumns + ` FROM @approvals WHERE namespace = $1`
	if len(states) > 0 {
		query += ` AND (state <> 'pending' OR NOT ` + moot + `) AND state IN (` + names(states) + `)`
	}
	var all []middleware.Approval
	err := s.d.read(ctx, func(b *batch) {
		all = nil
		b.each(query+` ORDER BY number`, func(rows pgx.Rows) error {
			var a approval
			err := rows.Scan(a.dest()...)
			all = append(all, s.opened(&a))
			return err
		}, pack(s.namespace))
	})
	if err != nil {
		return nil, s.d.wrap("listing approvals of", err)
	}
	return all, nil
}
