package sqlitestore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/toolonce/toolonce/internal/content"
	"github.com/toolonce/toolonce/middleware"
)

// The first arguments are the same for all that ask what an approval is bound to: namespace, run, tool, fingerprint, turn,
// position, identity, generation, now and the digest of the input.
const (
	approvalColumns = `id, state, run, turn, position, call_id, tool, arguments, fingerprint, identity, generation, conversation, input,
		repeat_of, asked, expires, decided, decided_by, why, operation`

	equalCall = `namespace = +?1 AND run = +?2 AND tool = +?3 AND fingerprint = +?4`
	bound     = `turn = +?5 AND position = +?6 AND identity = +?7 AND generation = +?8 AND expires > +?9 AND digest IS +?10`

	countingApproval = `SELECT ` + approvalColumns + ` FROM approvals
		WHERE ` + equalCall + ` AND (state = 'denied' OR state IN ('pending', 'approved') AND ` + bound + `)
		ORDER BY state = 'denied' DESC, number DESC LIMIT 1`
	insertApproval = `INSERT INTO approvals (namespace, run, tool, fingerprint, turn, position, identity, generation, asked, digest, id, state,
			call_id, arguments, conversation, repeat_of, expires, input)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'pending', ?12, ?13, ?14, ?15, ?16, ?17) RETURNING ` + approvalColumns
	spendApproval = `UPDATE approvals SET state = 'spent', operation = +?12
		WHERE id = +?11 AND state = 'approved' AND ` + equalCall + ` AND ` + bound

	atQuestion   = `namespace = +?1 AND run = +?2 AND turn = +?3 AND position = +?4`
	openQuestion = atQuestion + ` AND state = 'pending' AND expires > +?5 AND NOT ` + moot + `?5)))`
	// moot is a question that nobody waits for any more: the call is answered, or somebody does it or has done it. What comes
	// next is the time.
	moot = `(EXISTS (SELECT 1 FROM runs JOIN outputs ON outputs.run = runs.id WHERE runs.namespace = approvals.namespace AND runs.run = approvals.run
			AND outputs.turn = approvals.turn AND outputs.position = approvals.position)
		OR EXISTS (SELECT 1 FROM operations WHERE operations.namespace = approvals.namespace AND operations.identity = approvals.identity
		AND released = 0 AND operations.state <> 'free' AND (operations.expires = 0 OR operations.expires > +`
	decideApproval = `UPDATE approvals SET state = +?7, decided = +?5, decided_by = +?8, why = +?9
		WHERE ` + openQuestion + ` AND (id = +?6 OR ?6 = '' AND (SELECT count(*) FROM approvals WHERE ` + openQuestion + `) = 1)
		RETURNING ` + approvalColumns
	lastApproval = `SELECT ` + approvalColumns + ` FROM approvals WHERE ` + atQuestion + ` ORDER BY number DESC LIMIT 1`
)

// approval is one as it is stored.
type approval struct{ middleware.Approval }

func (a *approval) dest() []any {
	c := &a.Call
	return []any{
		&a.ID, (*string)(&a.State), &c.Run, &c.Turn, &c.Position, &c.CallID, &c.Tool, (*hash)(&c.Arguments), (*hash)(&c.Fingerprint),
		(*hash)(&a.Identity), &a.Generation, &a.Conversation, &a.Input, &a.RepeatOf, (*moment)(&a.Asked), (*moment)(&a.Expires),
		(*moment)(&a.Decided), &a.By, &a.Why, &a.Operation,
	}
}

// Ask implements middleware.Approver. The caller's context does not cut it short.
func (s *Store) Ask(ctx context.Context, a middleware.Approval, expires time.Duration) (middleware.Approval, error) {
	var got approval
	id := rand.Text()
	input, err := s.content().PutQuestion(a.Input, id)
	if err != nil {
		return middleware.Approval{}, s.f.wrap("asking for an approval in", err)
	}
	err = s.f.writer.do(ctx, func(x *tx) error {
		got = approval{}
		c, now := &a.Call, s.f.now()
		args := []any{s.namespace, c.Run, c.Tool, pack(c.Fingerprint), c.Turn, c.Position, pack(a.Identity), a.Generation, now.UnixNano(), content.Digest(a.Input)}
		ok, err := x.one(countingApproval, got.dest(), args...)
		if err == nil && !ok && expires < 0 {
			return errUndo
		}
		if err == nil && !ok {
			args = append(args, id, c.CallID, pack(c.Arguments), a.Conversation, a.RepeatOf, after(now.UnixNano(), expires), input)
			_, err = x.one(insertApproval, got.dest(), args...)
		}
		got.Now = stored(now)
		return err
	})
	if err != nil {
		return middleware.Approval{}, s.f.wrap("asking for an approval in", err)
	}
	if got.ID == "" {
		return middleware.Approval{}, nil
	}
	s.content().OpenApproval(&got.Approval)
	return got.Approval, nil
}

// Decide implements middleware.Approver. The caller's context does not cut it short.
func (s *Store) Decide(ctx context.Context, d middleware.Decision) (middleware.Approval, error) {
	var a approval
	err := s.f.writer.do(ctx, func(x *tx) error {
		a = approval{}
		now, state := s.f.now(), middleware.Denied
		if d.Approve {
			state = middleware.Approved
		}
		at := []any{s.namespace, d.Run, d.Turn, d.Position}
		ok, err := x.one(decideApproval, a.dest(), append(at, now.UnixNano(), d.ID, string(state), d.By, d.Why)...)
		if err == nil && !ok {
			if ok, err = x.one(lastApproval, a.dest(), at...); err == nil {
				err = middleware.ErrLost
			}
		} else if err == nil {
			_, err = s.act(x, middleware.DecisionAct(&a.Approval))
		}
		if ok {
			a.Now = stored(now)
		}
		return err
	})
	if err != nil && !errors.Is(err, middleware.ErrLost) {
		return middleware.Approval{}, s.f.wrap("deciding on an approval in", err)
	}
	s.content().OpenApproval(&a.Approval)
	return a.Approval, err
}

// Approvals implements middleware.Approver.
func (s *Store) Approvals(ctx context.Context, states ...middleware.ApprovalState) ([]middleware.Approval, error) {
	var all []middleware.Approval
	now := s.f.now()
	args := []any{s.namespace}
	if len(states) > 0 {
		args = append(args, now.UnixNano())
	}
	err := s.f.reader.each(ctx, listingApprovals(states), func(rows *sql.Rows) error {
		var a approval
		err := rows.Scan(a.dest()...)
		a.Now = stored(now)
		s.content().OpenApproval(&a.Approval)
		all = append(all, a.Approval)
		return err
	}, args...)
	if err != nil {
		return nil, s.f.wrap("listing approvals of", err)
	}
	return all, nil
}

// listingApprovals selects those in the states given, all for none.
func listingApprovals(states []middleware.ApprovalState) string {
	query := `SELECT ` + approvalColumns + ` FROM approvals WHERE namespace = +?1`
	if len(states) > 0 {
		query += ` AND (state <> 'pending' OR NOT ` + moot + `?2))))`
		var in []string
		for _, st := range states {
			switch st {
			case middleware.Pending, middleware.Approved, middleware.Denied, middleware.Spent:
				in = append(in, "'"+string(st)+"'")
			}
		}
		query += ` AND state IN (` + strings.Join(in, ", ") + `)`
	}
	return query + ` ORDER BY number`
}
