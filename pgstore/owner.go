package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"time"
)

// An owner is taken for gone if its row says so, or if its heartbeat is overdue: a suspicion, which may pass. Time in which
// the server was down does not count, as nobody could show then that it lives. A row that is missing says nothing.
const (
	insertOwner = `INSERT INTO @owners (name, since, beat, overdue) VALUES ($1, statement_timestamp(), statement_timestamp(), $2)
		ON CONFLICT (name) DO UPDATE SET beat = excluded.beat RETURNING id`
	deleteOwner = `DELETE FROM @owners WHERE id = $1`
	ownerGone   = `UPDATE @owners SET gone = statement_timestamp() WHERE id = $1 AND gone IS NULL`
	ownerBeats  = `UPDATE @owners SET beat = clock_timestamp() WHERE id = $1`
	ownerGoes   = `INSERT INTO @owners (id, name, since, beat, overdue, gone) OVERRIDING SYSTEM VALUE
		VALUES ($1, $2, statement_timestamp(), statement_timestamp(), '0', statement_timestamp()) ON CONFLICT DO NOTHING`
	ownerLives = `SELECT owner.id, ` + isGone + ` FROM @owners AS owner WHERE owner.name = $1`

	isGone = `(owner.gone IS NOT NULL OR greatest(owner.beat, pg_postmaster_start_time()) + owner.overdue < clock_timestamp())`
	// settlerIsGone is isGone for another alias.
	settlerIsGone = `(settler.gone IS NOT NULL OR greatest(settler.beat, pg_postmaster_start_time()) + settler.overdue < clock_timestamp())`
)

// arrive makes this process an owner, and keeps its heart beating until quiet.
func (d *database) arrive(ctx context.Context) error {
	d.ownerName = rand.Text()
	_, err := d.write(ctx, func(b *batch) {
		var ok bool
		b.one(&ok, insertOwner, []any{&d.owner}, d.ownerName, span(d.opts.Overdue))
	})
	if err == nil {
		go d.beat(context.WithoutCancel(ctx))
	}
	return err
}

// beat shows that this process lives. A beat that fails is made up for soon.
func (d *database) beat(ctx context.Context) {
	defer close(d.stopped)
	for pause := d.opts.Heartbeat; ; {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-d.stop:
			timer.Stop()
			return
		}
		pause = d.opts.Heartbeat
		in, cancel := context.WithTimeout(ctx, d.opts.Heartbeat)
		if err := d.send(in, func(b *batch) { b.run(ownerBeats, d.owner) }); err != nil {
			pause /= 5
		}
		cancel()
	}
}

// quiet ends the heartbeat. It may be called again.
func (d *database) quiet() {
	d.stopOnce.Do(func() { close(d.stop) })
	<-d.stopped
}

// depart records that this owner has gone. One that never owned anything leaves no trace.
func (d *database) depart() error {
	query := ownerGone
	if !d.used.Load() {
		query = deleteOwner
	}
	_, err := d.write(d.ctx, func(b *batch) { b.run(query, d.owner) })
	return err
}

// An owner whose row is missing has a name all the same, by which a person can say that it has gone.
const strayPrefix = "missing-"

func strayName(id number) string { return strayPrefix + strconv.FormatInt(int64(id), 10) }

// stray is 0 for a name that is none of an owner whose row is missing.
func stray(name string) number {
	s, ok := strings.CutPrefix(name, strayPrefix)
	id, err := strconv.ParseInt(s, 10, 64)
	if !ok || err != nil || strayName(number(id)) != name {
		return 0
	}
	return number(id)
}

// declare records an owner as gone on a person's word.
func (d *database) declare(ctx context.Context, name string) error {
	var id number
	var gone, known bool
	err := d.read(ctx, func(b *batch) { b.one(&known, ownerLives, []any{&id, &gone}, pack(name)) })
	switch {
	case err != nil:
		return err
	case !known:
		if id = stray(name); id == 0 {
			return errors.New("there is no such owner: take the name from Row.Owner, or from the error of Begin")
		}
		_, err = d.write(ctx, func(b *batch) { b.run(ownerGoes, id, name) })
		return err
	case !gone:
		return errors.New("that process lives: its heartbeat is not overdue")
	}
	_, err = d.write(ctx, func(b *batch) { b.run(ownerGone, id) })
	return err
}
