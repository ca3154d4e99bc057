package pgstore

import (
	"context"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

// What each step asks of the row and makes of it, in one statement. The first arguments are always id, namespace, token
// and attempt; where an owner counts, the next are this one and the name of the one seen gone.
const (
	aim = ` WHERE id = $1 AND (namespace = $2) IS TRUE AND token = $3`
	now = `statement_timestamp()`

	toDone = `UPDATE @operations AS operations SET state = 'done', result = $5, resource = coalesce($6, resource)` + isDone
	isDone = `, since = ` + now + `, done_at = ` + now + `, expires = ` + now + ` + keep, settle = NULL, settler = 0, by_person = false`
	toFree = `UPDATE @operations AS operations SET state = 'free', since = ` + now + `, settle = NULL, settler = 0,
		generation = generation + CASE WHEN $5::boolean THEN 1 ELSE 0 END, key = CASE WHEN NOT $5::boolean THEN key END,
		unclear = NOT $5::boolean AND (unclear OR $6::boolean), by_person = `
	toNext = `UPDATE @operations AS operations SET state = 'running', since = CASE state WHEN 'running' THEN since ELSE ` + now + ` END, attempt = attempt + 1,
		owner = $5, deadline = greatest(deadline, ` + now + ` + $7::interval), settle = NULL, settler = 0, unclear = true`
	belowBound = ` AND ($8::integer = 0 OR attempt < $8::integer) AND NOT $9::boolean`

	toDoubt = `UPDATE @operations AS operations SET state = 'in_doubt', since = CASE state WHEN 'in_doubt' THEN since ELSE ` + now + ` END, unclear = true`

	seen        = aim + ` AND attempt = $4`
	anyAttempt  = ` AND $4::integer IS NOT NULL`
	takesResult = ` AND (state IN ('running', 'in_doubt') OR state = 'free' AND by_person)`
	settling    = seen + ` AND state = 'in_doubt' AND settle = `
	owned       = ` AND state = 'running' AND CASE WHEN $6::text = '' THEN owner = $5::bigint ELSE owner <> $5::bigint
		AND EXISTS (SELECT 1 FROM @owners AS owner WHERE owner.id = operations.owner AND owner.name = $6::text AND ` + isGone + `) END`
	unsettled = ` AND state = 'in_doubt' AND (settle IS NULL OR settler <> $5
		AND EXISTS (SELECT 1 FROM @owners AS settler WHERE settler.id = operations.settler AND ` + settlerIsGone + `))`

	releasing = ` RETURNING id, undoes), released AS (
			UPDATE @operations AS operations SET state = 'released', released = operations.id, since = ` + now + ` FROM changed
			WHERE operations.id = changed.undoes AND (operations.namespace = $2) IS TRUE AND operations.state = 'done'
		)`
	undoesNothing = ` AND undoes IS NULL`
	seeOwners     = `, (SELECT owner.name FROM @owners AS owner WHERE owner.id = operations.owner),
		(SELECT ` + isGone + ` FROM @owners AS owner WHERE owner.id = operations.owner),
		(SELECT ` + settlerIsGone + ` FROM @owners AS settler WHERE settler.id = operations.settler), ` + now
	markLate = `UPDATE @operations SET late = true WHERE id = $1 AND (namespace = $2) IS TRUE AND NOT late
		AND NOT (state IN ('done', 'released') AND token = $3 AND result IS NOT DISTINCT FROM $4)`
)

// steps are the statements.
var steps = map[middleware.Step]string{
	middleware.Complete:    toDone + aim + anyAttempt + takesResult,
	middleware.GiveBack:    toFree + `false` + seen + ` AND state IN ('running', 'in_doubt')`,
	middleware.Doubt:       toDoubt + seen + owned,
	middleware.Again:       toNext + seen + owned + belowBound + ` AND ($10::interval IS NULL OR ` + now + ` < key_since + $10::interval)`,
	middleware.Take:        toDoubt + `, settle = $7, settler = $5` + seen + owned,
	middleware.Found:       toDone + settling + `$7`,
	middleware.Absent:      toNext + settling + `$6` + belowBound + ` AND ` + now + ` >= deadline + $10::interval`,
	middleware.Unsure:      `UPDATE @operations AS operations SET settle = NULL, settler = 0` + settling + `$5`,
	middleware.Happened:    toDone + `, settled_by = $7, settled_why = $8` + seen + ` AND state = 'in_doubt'`,
	middleware.NotHappened: toFree + `true, settled_by = $7, settled_why = $8` + seen + ` AND state = 'in_doubt' AND NOT $9::boolean AND deadline <= ` + now,
}

// takeDoubtful is Take of what is in doubt.
const takeDoubtful = toDoubt + `, settle = $6, settler = $5` + seen + unsettled

// Change implements middleware.Ledger in one round trip, but for a step that loses and an undo. The caller's context does not
// cut it short.
func (s *Store) Change(ctx context.Context, t middleware.Transition) (middleware.Row, error) {
	c := changing{s: s, t: t, id: idOf(t.Operation), running: s.d.handlers.Running(t.Operation)}
	if err := c.seal(); err != nil {
		return middleware.Row{}, s.d.wrap("changing an operation in", err)
	}
	if c.takesOver() {
		done, err := s.d.starting()
		if err != nil {
			return middleware.Row{}, s.d.wrap("changing an operation in", err)
		}
		defer done()
	}
	err := c.first(ctx)
	if err == nil && !c.made {
		err = c.whole(ctx)
	}
	if err == nil && !c.made && t.Step == middleware.Complete && c.r.id != 0 && !c.stored() {
		err = c.late(ctx)
	}
	if err == nil && !c.made && c.doubtful {
		c.made, err = c.madeBefore()
	}
	if err != nil {
		return middleware.Row{}, s.d.wrap("changing an operation in", unknown(err, c.doubtful))
	}
	row := s.row(&c.r)
	if c.made {
		return row, nil
	}
	if early := c.early(&row); early != nil {
		return row, early
	}
	return row, middleware.ErrLost
}

// changing is one transition at work.
type changing struct {
	s       *Store
	t       middleware.Transition
	id      number
	running bool // its handler runs in this process
	result  any  // as it is stored, nil for none

	until    time.Time // when the first try must be over
	tried    bool      // it was tried, together with others'
	doubtful bool      // a try whose answer was lost may have made it
	made     bool
	r        record
}

// takesOver reports whether a step begins work, which Close keeps away. One that goes on with work of this process is
// let through, since Close waits for that.
func (c *changing) takesOver() bool {
	switch c.t.Step {
	case middleware.Again, middleware.Take, middleware.Absent: // they make this process run something
		c.s.d.used.Store(true)
		return c.t.Owner != "" || c.t.Step == middleware.Take && c.t.State == middleware.InDoubt
	default:
		return false
	}
}

// seal makes the result what is stored.
func (c *changing) seal() error {
	if !c.t.HasResult {
		return nil
	}
	result, err := c.s.content().PutResult(&c.t)
	c.result = pack(result)
	return err
}

// alone makes the step by one statement, if nothing else is to be changed with it, and reads the row unless blind.
func (c *changing) alone(ctx context.Context) error {
	query, args := c.step()
	if query == "" {
		return nil
	}
	if c.finishes() {
		query += undoesNothing
	}
	if _, act := middleware.VerdictAct(&c.t); act {
		return nil
	}
	doubtful, err := c.s.d.writeUntil(ctx, c.until, func(b *batch) {
		c.r = record{}
		if c.t.Blind {
			b.one(&c.made, query+` RETURNING id`, []any{&c.r.id}, args...)
			return
		}
		b.one(&c.made, query+` RETURNING `+all+seeOwners, c.r.known(), args...)
	})
	c.doubtful = c.doubtful || doubtful
	return err
}

// whole makes the step with all that comes with it, or says why it cannot be made: the row is locked before, so that it is
// read as the step has found or left it.
func (c *changing) whole(ctx context.Context) error {
	doubtful, err := c.s.d.write(ctx, c.queue)
	c.doubtful = c.doubtful || doubtful
	return err
}

func (c *changing) queue(b *batch) {
	query, args := c.step()
	act, person := middleware.VerdictAct(&c.t)
	switch {
	case query == "":
	case c.finishes():
		query = `WITH changed AS (` + query + releasing
	default:
		query = `WITH changed AS (` + query + ` RETURNING id)`
	}
	if person {
		var recording string
		recording, args = c.s.acting(act, ` FROM changed`, args)
		query += `, ` + recording
		b.run(lockActs, c.s.d.opts.Schema)
	}
	var ok bool
	c.made, c.r = false, record{}
	b.one(&ok, lockOperation, []any{new(number)}, c.id, pack(c.s.namespace))
	if query != "" {
		b.one(&c.made, query+` SELECT id FROM changed`, []any{new(number)}, args...)
	}
	c.read(b)
}

// finishes reports whether the step makes the operation done, and what it undoes released.
func (c *changing) finishes() bool {
	return c.t.Step == middleware.Complete || c.t.Step == middleware.Found || c.t.Step == middleware.Happened
}

func (c *changing) read(b *batch) {
	var ok bool
	query, args := finding(c.s.namespace, middleware.Query{Operation: c.t.Operation})
	b.one(&ok, query, append(c.r.known(), &c.r.Repeats, &c.r.undoneBy, new(nullable), new(nullable), new(hash), new(hash)), args...)
}

// late marks a row whose result could not be stored.
func (c *changing) late(ctx context.Context) error {
	_, err := c.s.d.write(ctx, func(b *batch) {
		c.r = record{}
		b.run(markLate, c.id, pack(c.s.namespace), pack(c.t.Token), c.result)
		c.read(b)
	})
	return err
}

// step is the statement and its arguments, "" for a step that cannot be made.
func (c *changing) step() (query string, args []any) {
	t, me := &c.t, c.s.d.owner
	args = []any{c.id, pack(c.s.namespace), pack(t.Token), t.Attempt}
	query = steps[t.Step]
	by, why := pack(t.By), pack(t.Why)
	switch t.Step {
	case middleware.Complete:
		return query, append(args, c.result, hashOrNull(t.Resource))
	case middleware.GiveBack:
		return query, append(args, t.NewKey, t.Unclear)
	case middleware.Doubt:
		return query, append(args, me, t.Owner)
	case middleware.Again:
		window := spanOrNull(t.KeyWindow)
		window.Microseconds = t.KeyWindow.Microseconds() // rounded down: it must not be over
		return query, append(args, me, t.Owner, span(t.Deadline), t.MaxAttempts, c.running, window)
	case middleware.Take:
		switch t.State {
		case middleware.Running:
			return query, append(args, me, t.Owner, pack(t.Mark))
		case middleware.InDoubt:
			return takeDoubtful, append(args, me, pack(t.Mark))
		default:
			return "", nil
		}
	case middleware.Found:
		return query, append(args, c.result, hashOrNull(t.Resource), pack(t.Mark))
	case middleware.Absent:
		return query, append(args, me, pack(t.Mark), span(t.Deadline), t.MaxAttempts, c.running, span(t.AbsentAfter))
	case middleware.Unsure:
		return query, append(args, pack(t.Mark))
	case middleware.Happened:
		return query, append(args, c.result, hashOrNull(t.Resource), by, why)
	case middleware.NotHappened:
		return query, append(args, t.NewKey, t.Unclear, by, why, c.running)
	default:
		return "", nil
	}
}

// early says why "did not happen" cannot be said yet, nil where something else is in the way.
func (c *changing) early(row *middleware.Row) error {
	t := &c.t
	if row.Operation == "" || row.Token != t.Token || row.Attempt != t.Attempt || row.State != middleware.InDoubt {
		return nil
	}
	switch t.Step {
	case middleware.NotHappened:
	case middleware.Absent:
		if row.Settle == "" || row.Settle != t.Mark || t.MaxAttempts > 0 && row.Attempt >= t.MaxAttempts {
			return nil
		}
	default:
		return nil
	}
	if c.running {
		return &middleware.EarlyError{}
	}
	return &middleware.EarlyError{Until: row.Deadline.Add(t.AbsentAfter)}
}

// stored reports that the same claim has stored the same result before.
func (c *changing) stored() bool {
	t, r := &c.t, &c.r
	if r.State != middleware.Done && r.State != middleware.Released || r.Token != t.Token || r.result.valid != t.HasResult {
		return false
	}
	result, err := c.s.content().TakeResult(r.result.text, r.Token)
	return err != nil || result == t.Result // "" where there is none; what cannot be read may be the same
}

// madeBefore says of a step whose first answer was lost, and which cannot be made now, whether it was made then. Where that
// cannot be told from what another may have done, it is ErrUnknown.
func (c *changing) madeBefore() (bool, error) {
	t, r := &c.t, &c.r
	same := r.id != 0 && r.Token == t.Token
	switch t.Step {
	case middleware.Complete, middleware.Found:
		return c.stored(), nil
	case middleware.Happened:
		return c.stored() && r.SettledBy == t.By && r.SettledWhy == t.Why, nil
	case middleware.GiveBack:
		return same && r.State == middleware.Free && r.Attempt == t.Attempt && !r.ByPerson, nil
	case middleware.NotHappened:
		return same && r.State == middleware.Free && r.ByPerson && r.SettledBy == t.By && r.SettledWhy == t.Why, nil
	case middleware.Doubt:
		return same && r.State == middleware.InDoubt && r.Attempt == t.Attempt && !r.settle.valid, nil
	case middleware.Unsure:
		return same && r.State == middleware.InDoubt && r.Attempt == t.Attempt && !r.settle.valid, nil
	case middleware.Take:
		return same && r.State == middleware.InDoubt && r.settle.valid && r.settle.text == t.Mark, nil
	default: // Again and Absent: another call of this process may have made the same
		if same && r.State == middleware.Running && r.Attempt == t.Attempt+1 && int64(r.owner) == c.s.d.owner {
			return false, ErrUnknown
		}
		return false, nil
	}
}
