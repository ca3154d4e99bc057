package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/toolonce/toolonce/agent/journal"
	"github.com/toolonce/toolonce/registry"
)

var _ journal.Reader = (*Store)(nil)

const (
	// listRuns counts the turns of those alone that are listed. Ids are in the order in which runs were made.
	listRuns = `SELECT run, conversation, api, created, finished, forgotten, owner, token, (SELECT coalesce(max(number), 0) FROM turns WHERE turns.run = listed.id)
		FROM (SELECT * FROM runs WHERE namespace = +?1 AND (?2 = '' OR conversation = +?2) AND (?3 = 0 OR finished = 0) ORDER BY id DESC LIMIT ?4) AS listed
		ORDER BY id DESC`

	// readRun is one statement, so it sees one moment: the run, then its turns, each before what its calls were told.
	readRun = `SELECT 0 AS number, 0 AS kind, 0 AS position, conversation AS text, api AS verdict, '' AS operation, input, finished, forgotten, created
			FROM runs WHERE namespace = +?1 AND run = +?2
		UNION ALL SELECT number, 1, 0, answer, '', '', NULL, 0, 0, 0 FROM turns WHERE run = (` + runID + `)
		UNION ALL SELECT turn, 2, position, content, verdict, operation, NULL, 0, 0, 0 FROM outputs WHERE run = (` + runID + `)
		ORDER BY number, kind, position`
	runID = `SELECT id FROM runs WHERE namespace = +?1 AND run = +?2`
)

// Runs implements journal.Reader.
func (s *Store) Runs(ctx context.Context, q journal.RunsQuery) ([]journal.Summary, error) {
	all, err := s.runs(ctx, q)
	if err != nil {
		return nil, s.f.wrap("listing runs of", err)
	}
	return all, nil
}

func (s *Store) runs(ctx context.Context, q journal.RunsQuery) ([]journal.Summary, error) {
	if q.Limit <= 0 {
		q.Limit = -1
	}
	type has struct {
		owner int64
		token string
	}
	var all []journal.Summary
	var who []has
	err := s.f.reader.each(ctx, listRuns, func(rows *sql.Rows) error {
		var r journal.Summary
		var h has
		err := rows.Scan(&r.Run.ID, &r.Run.Conversation, &r.API, (*moment)(&r.Created), &r.Finished, &r.Forgotten, &h.owner, &h.token, &r.Turns)
		all, who = append(all, r), append(who, h)
		return err
	}, s.namespace, q.Conversation, q.Unfinished, q.Limit)
	if err != nil {
		return nil, err
	}
	for i, h := range who {
		if h.owner == 0 {
			continue
		}
		e, err := s.f.owners.evidence(ctx, h.owner)
		if err != nil {
			return nil, err
		}
		_, held := s.f.held.Load(s.holding(h.token))
		all[i].Taken, all[i].OwnerUnknown = e == alive && (held || h.owner != s.f.owners.id), e == unknown
	}
	return all, nil
}

// Read implements journal.Reader.
func (s *Store) Read(ctx context.Context, run string) (journal.Record, bool, error) {
	r := journal.Record{Start: journal.Start{Run: registry.Run{ID: run}}}
	known := false
	err := s.f.reader.each(ctx, readRun, func(rows *sql.Rows) error {
		var number, kind int
		var text, input []byte
		var finished, forgotten bool
		var created moment
		var o journal.Output
		if err := rows.Scan(&number, &kind, &o.Position, &text, (*string)(&o.Verdict), &o.Operation, &input, &finished, &forgotten, &created); err != nil {
			return err
		}
		n := len(r.Turns)
		switch {
		case kind == 0:
			known = true
			r.Run.Conversation, r.API, r.Input, r.Created = string(text), string(o.Verdict), input, time.Time(created)
			r.Finished, r.Forgotten = finished, forgotten
		case kind == 1:
			r.Turns = append(r.Turns, journal.Turn{Number: number, Answer: text})
		case n == 0 || r.Turns[n-1].Number != number:
			return fmt.Errorf("an output is of a turn that is missing: %w", ErrDamaged)
		default:
			o.Content = string(text)
			r.Turns[n-1].Outputs = append(r.Turns[n-1].Outputs, o)
		}
		return nil
	}, s.namespace, run)
	if err != nil || !known {
		return journal.Record{}, false, s.f.wrap("reading a run of", err)
	}
	return r, true, s.f.wrap("reading a run of", s.content().OpenRecord(&r))
}
