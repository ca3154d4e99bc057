package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/registry"
)

var _ journal.Reader = (*Store)(nil)

const (
	// listRuns counts the turns of those alone that are listed. Ids are in the order in which runs were made.
	listRuns = `SELECT runs.run, conversation, api, created, finished, forgotten, runs.owner, token, owner.name, ` + isGone + `,
			(SELECT coalesce(max(number), 0) FROM @turns AS turns WHERE turns.run = runs.id)
		FROM (SELECT * FROM @runs WHERE namespace = $1 AND ($2 = '' OR conversation = $2) AND NOT ($3 AND finished) ORDER BY id DESC LIMIT $4::bigint) AS runs
			LEFT JOIN @owners AS owner ON owner.id = runs.owner
		ORDER BY runs.id DESC`

	// readRun is one statement, so it sees one moment: the run, then its turns, each before what its calls were told.
	readRun = `SELECT 0::bigint AS number, 0 AS kind, 0::bigint AS position, conversation AS text, api AS verdict, '' AS operation, input, finished, forgotten, created
			FROM @runs WHERE namespace = $1 AND run = $2
		UNION ALL SELECT number, 1, 0, answer, '', '', NULL, false, false, NULL FROM @turns WHERE run = (` + runID + `)
		UNION ALL SELECT turn, 2, position, content, verdict, operation, NULL, false, false, NULL FROM @outputs WHERE run = (` + runID + `)
		ORDER BY number, kind, position`
	runID = `SELECT id FROM @runs WHERE namespace = $1 AND run = $2`
)

// Runs implements journal.Reader.
func (s *Store) Runs(ctx context.Context, q journal.RunsQuery) ([]journal.Summary, error) {
	var limit any
	if q.Limit > 0 {
		limit = q.Limit
	}
	var all []journal.Summary
	err := s.d.read(ctx, func(b *batch) {
		all = nil
		b.each(listRuns, func(rows pgx.Rows) error {
			var r journal.Summary
			var owner number
			var token word
			var name nullable
			var gone sql.NullBool
			if err := rows.Scan((*word)(&r.Run.ID), (*word)(&r.Run.Conversation), (*word)(&r.API), (*moment)(&r.Created), &r.Finished, &r.Forgotten,
				&owner, &token, &name, &gone, &r.Turns); err != nil {
				return err
			}
			_, held := s.d.held.Load(s.holding(string(token)))
			switch mine := int64(owner) == s.d.owner; {
			case owner == 0:
			case mine:
				r.Taken = held
			default:
				r.Taken, r.OwnerUnknown = name.valid && !gone.Bool, !name.valid
			}
			all = append(all, r)
			return nil
		}, pack(s.namespace), pack(q.Conversation), q.Unfinished, limit)
	})
	if err != nil {
		return nil, s.d.wrap("listing runs of", err)
	}
	return all, nil
}

// Read implements journal.Reader.
func (s *Store) Read(ctx context.Context, run string) (journal.Record, bool, error) {
	var r journal.Record
	var known bool
	err := s.d.read(ctx, func(b *batch) {
		r, known = journal.Record{Start: journal.Start{Run: registry.Run{ID: run}}}, false
		b.each(readRun, func(rows pgx.Rows) error {
			var n, kind int
			var text raw
			var input []byte
			var finished, forgotten bool
			var created moment
			var o journal.Output
			if err := rows.Scan(&n, &kind, &o.Position, &text, (*word)(&o.Verdict), (*word)(&o.Operation), &input, &finished, &forgotten, &created); err != nil {
				return err
			}
			last := len(r.Turns) - 1
			switch {
			case kind == 0:
				known = true
				r.Run.Conversation, r.API, r.Input, r.Created = string(text), string(o.Verdict), input, time.Time(created)
				r.Finished, r.Forgotten = finished, forgotten
			case kind == 1:
				r.Turns = append(r.Turns, journal.Turn{Number: n, Answer: []byte(text)})
			case last < 0 || r.Turns[last].Number != n:
				return errors.New("an output is of a turn that is missing: restore the schema from a backup")
			default:
				o.Content = string(text)
				r.Turns[last].Outputs = append(r.Turns[last].Outputs, o)
			}
			return nil
		}, pack(s.namespace), pack(run))
	})
	if err != nil || !known {
		return journal.Record{}, false, s.d.wrap("reading a run of", err)
	}
	return r, true, s.d.wrap("reading a run of", s.content().OpenRecord(&r))
}
