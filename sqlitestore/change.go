package sqlitestore

import (
	"context"
	"strings"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

// What each step asks of the row and makes of it, in one statement. The first arguments are always id, namespace,
// token, attempt and now.
const (
	aim = ` WHERE id = +?1 AND namespace = +?2 AND token = +?3`

	toDone = `UPDATE operations SET state = 'done', listed = 0, result = +?6, resource = coalesce(?7, resource), since = +?5, done_at = +?5,
		expires = CASE keep WHEN 0 THEN 0 ELSE ?5 + keep END, settle = NULL, settler = 0, by_person = 0`
	toFree = `UPDATE operations SET state = 'free', listed = 0, since = +?5, settle = NULL, settler = 0, generation = generation + ?6,
		key = CASE ?6 WHEN 0 THEN key END, unclear = CASE ?6 WHEN 0 THEN max(unclear, ?7) ELSE 0 END, by_person = +?8`
	toNext = `UPDATE operations SET state = 'running', listed = 1, since = CASE state WHEN 'running' THEN since ELSE ?5 END, attempt = attempt + 1,
		owner = +?6, deadline = max(deadline, ?7), settle = NULL, settler = 0, unclear = 1`

	mine = ` AND attempt = +?4 AND state = 'in_doubt' AND settle = +`
)

var conditions = map[middleware.Step]string{
	middleware.Complete: toDone + aim + ` AND (state IN ('running', 'in_doubt') OR state = 'free' AND by_person = 1)`,
	middleware.GiveBack: toFree + aim + ` AND attempt = +?4 AND state IN ('running', 'in_doubt')`,
	middleware.Doubt: `UPDATE operations SET state = 'in_doubt', listed = 1, since = +?5, unclear = 1` + aim +
		` AND attempt = +?4 AND state = 'running' AND owner = +?6`,
	middleware.Again: toNext + aim + ` AND attempt = +?4 AND state = 'running' AND (?8 = 0 OR attempt < ?8)
		AND owner = +?9 AND ?10 = 0 AND (?11 = 0 OR ?5 - key_since < ?11)`,
	middleware.Take: `UPDATE operations SET state = 'in_doubt', listed = 1, since = CASE state WHEN 'in_doubt' THEN since ELSE ?5 END, settle = +?6,
		settler = +?7, unclear = 1` + aim + ` AND attempt = +?4 AND state = +?8
		AND (state = 'running' AND owner = +?9 OR state = 'in_doubt' AND (settle IS NULL OR settler = +?10))`,
	middleware.Found:    toDone + aim + mine + `?8`,
	middleware.Absent:   toNext + aim + mine + `?9 AND (?8 = 0 OR attempt < ?8) AND ?10 = 0 AND ?5 - ?11 >= deadline`,
	middleware.Unsure:   `UPDATE operations SET settle = NULL, settler = 0` + aim + mine + `?5`,
	middleware.Happened: toDone + `, settled_by = +?8, settled_why = +?9` + aim + ` AND attempt = +?4 AND state = 'in_doubt'`,
	middleware.NotHappened: toFree + `, settled_by = +?9, settled_why = +?10` + aim + ` AND attempt = +?4 AND state = 'in_doubt'
		AND ?11 = 0 AND deadline <= ?5`,
}

// whole are the statements for a transaction, alone those that are one: nothing else is to be changed with them.
var whole, alone = func() (whole, alone map[middleware.Step]string) {
	whole, alone = map[middleware.Step]string{}, map[middleware.Step]string{}
	for step, s := range conditions {
		whole[step] = s + returning
		if step != middleware.Happened && step != middleware.NotHappened { // which are recorded
			alone[step] = s + ` AND undoes IS NULL` + returning
		}
	}
	return whole, alone
}()

const (
	release  = `UPDATE operations SET state = 'released', released = id, since = +?3 WHERE id = +?1 AND namespace = +?2 AND state = 'done'`
	markLate = `UPDATE operations SET late = 1 WHERE id = +?1 AND namespace = +?2`
)

// Change implements middleware.Ledger. The caller's context does not cut it short.
func (s *Store) Change(ctx context.Context, t middleware.Transition) (middleware.Row, error) {
	ctx = context.WithoutCancel(ctx)
	c := changing{s: s, t: t, settler: nobody, running: s.f.handlers.Running(t.Operation)}
	err := c.seal()
	if err == nil {
		err = c.seek(ctx)
	}
	if err == nil {
		err = c.write(ctx)
	}
	if err != nil {
		return middleware.Row{}, s.f.wrap("changing an operation in", err)
	}
	if c.r == nil {
		return middleware.Row{}, c.refused
	}
	row, err := s.row(ctx, c.r)
	if err != nil {
		return middleware.Row{}, s.f.wrap("reading a changed operation in", err)
	}
	return row, c.refused
}

// changing is one transition in its transaction.
type changing struct {
	s *Store
	t middleware.Transition

	owner   int64 // who must own the row: me, or who is gone by evidence; none where there is no evidence
	settler int64 // who must be settling it, gone by evidence
	running bool  // its handler runs in this process
	now     time.Time
	result  any // as it is stored, nil for none

	r       *record // nil: it was not read
	done    bool
	refused error // ErrLost or *EarlyError
}

// nobody is no owner's id.
const nobody = -1

// seal makes the result what is stored.
func (c *changing) seal() (err error) {
	if c.t.HasResult {
		c.result, err = c.s.content().PutResult(&c.t)
	}
	return err
}

// seek looks for evidence that the owner is gone. It lasts: who is gone stays so.
func (c *changing) seek(ctx context.Context) (err error) {
	o := c.s.f.owners
	if c.owner = o.id; c.t.Owner == "" {
		return nil
	}
	if c.owner, err = o.goneByName(ctx, c.t.Owner); c.owner == 0 {
		c.owner = nobody
	}
	return err
}

// seekAgain looks for evidence about the row as it is now: meanwhile somebody may have died who lived, or may not even
// have been there, when the step was asked for.
func (c *changing) seekAgain(x *tx) error {
	if err := c.seek(x.ctx); err != nil || c.t.Step != middleware.Take || c.t.State != middleware.InDoubt {
		return err
	}
	var r record
	if _, err := x.one(byID, r.dest(), idOf(c.t.Operation), c.s.namespace); err != nil {
		return err
	}
	gone, err := c.s.f.owners.isGone(x.ctx, r.settler)
	if gone {
		c.settler = r.settler
	}
	return err
}

func (c *changing) write(ctx context.Context) error {
	switch c.t.Step {
	case middleware.Again, middleware.Take, middleware.Absent: // they make this process run something
		if c.takesOver() {
			done, err := c.s.f.starting()
			if err != nil {
				return err
			}
			defer done()
		}
		c.s.f.owners.used.Store(true)
	default:
	}
	err := c.s.f.writer.single(ctx, func(x *tx) (err error) {
		c.done, err = c.try(x, alone, c.t.Blind)
		return err
	})
	if err != nil || c.done {
		return err
	}
	return c.s.f.writer.do(ctx, c.run)
}

// try changes the row if it is as the step wants it, and reads it unless blind.
func (c *changing) try(x *tx, statements map[middleware.Step]string, blind bool) (bool, error) {
	query, ok := statements[c.t.Step]
	if !ok {
		return false, nil
	}
	c.now = c.s.f.now()
	args := c.arguments(idOf(c.t.Operation))
	if blind {
		n, err := x.exec(strings.TrimSuffix(query, returning), args...)
		return n == 1, err
	}
	c.r = &record{} // it may be another try
	return x.one(query, c.r.dest(), args...)
}

// takesOver reports whether a step begins work, which Close keeps away. One that goes on with work of this process is
// let through, since Close waits for that.
func (c *changing) takesOver() bool {
	return c.t.Owner != "" || c.t.Step == middleware.Take && c.t.State == middleware.InDoubt
}

func (c *changing) run(x *tx) (err error) {
	c.refused = nil
	if err := c.seekAgain(x); err != nil {
		return err
	}
	if c.done, err = c.try(x, whole, false); err != nil {
		return err
	}
	if c.done {
		if a, ok := middleware.VerdictAct(&c.t); ok {
			if _, err := c.s.act(x, a); err != nil {
				return err
			}
		}
		return c.releases(x)
	}
	id := idOf(c.t.Operation)
	c.r = &record{}
	if _, err := x.one(byID, c.r.dest(), id, c.s.namespace); err != nil {
		return err
	}
	c.refused = middleware.ErrLost
	if early := c.early(); early != nil {
		c.refused = early
	}
	if c.t.Step == middleware.Complete && c.r.id != 0 && !c.r.Late && !c.stored() {
		c.r.Late = true
		return x.run(markLate, id, c.s.namespace)
	}
	return nil
}

// arguments are those of the step's statement.
func (c *changing) arguments(id int64) []any {
	t, me, now := &c.t, c.s.f.owners.id, c.now.UnixNano()
	args := []any{id, c.s.namespace, pack(t.Token), t.Attempt, now}
	deadline := after(now, t.Deadline)
	switch t.Step {
	case middleware.Complete:
		return append(args, c.result, packOrNull(t.Resource))
	case middleware.GiveBack:
		return append(args, t.NewKey, t.Unclear, false)
	case middleware.Doubt:
		return append(args, c.owner)
	case middleware.Again:
		return append(args, me, deadline, t.MaxAttempts, c.owner, c.running, int64(t.KeyWindow))
	case middleware.Take:
		return append(args, t.Mark, me, string(t.State), c.owner, c.settler)
	case middleware.Found:
		return append(args, c.result, packOrNull(t.Resource), t.Mark)
	case middleware.Absent:
		return append(args, me, deadline, t.MaxAttempts, t.Mark, c.running, int64(t.AbsentAfter))
	case middleware.Unsure:
		return append(args[:4], t.Mark)
	case middleware.Happened:
		return append(args, c.result, packOrNull(t.Resource), t.By, t.Why)
	default: // NotHappened
		return append(args, t.NewKey, t.Unclear, true, t.By, t.Why, c.running)
	}
}

// releases ends what the operation undoes, now that it is done.
func (c *changing) releases(x *tx) error {
	switch c.t.Step {
	case middleware.Complete, middleware.Found, middleware.Happened:
		if c.r.undoes != 0 {
			return x.run(release, c.r.undoes, c.s.namespace, c.now.UnixNano())
		}
	default:
	}
	return nil
}

// early says why "did not happen" cannot be said yet, nil where something else is in the way.
func (c *changing) early() error {
	t, r := &c.t, c.r
	if r.id == 0 || r.Token != t.Token || r.Attempt != t.Attempt || r.State != middleware.InDoubt {
		return nil
	}
	switch t.Step {
	case middleware.NotHappened:
	case middleware.Absent:
		if !r.settle.Valid || r.settle.String != t.Mark || t.MaxAttempts > 0 && r.Attempt >= t.MaxAttempts {
			return nil
		}
	default:
		return nil
	}
	if c.running {
		return &middleware.EarlyError{}
	}
	return &middleware.EarlyError{Until: r.Deadline.Add(t.AbsentAfter)}
}

// stored reports that the same claim has stored the same result before.
func (c *changing) stored() bool {
	t, r := &c.t, c.r
	if r.State != middleware.Done && r.State != middleware.Released || r.Token != t.Token || r.result.Valid != t.HasResult {
		return false
	}
	result, err := c.s.content().TakeResult(r.result.String, r.Token)
	return err != nil || result == t.Result // "" where there is none; what cannot be read may be the same
}
