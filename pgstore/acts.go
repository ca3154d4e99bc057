package pgstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/middleware"
)

// The chain is made by the server, in the statement that does what is recorded: the hash is that of
// middleware.Act.Chained, over the words as they are stored.
const (
	// lockActs has the schema's name as its argument.
	lockActs = `SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(' ', 'toolonce acts', $1::text), 0))`

	// recorded adds what a query "act" before it gives: none or one row of namespace, kind, target, by, why and detail.
	recorded = `, next AS (
			SELECT act.*, statement_timestamp() AS at, coalesce((SELECT max(number) FROM @acts), 0) + 1 AS number,
				coalesce((SELECT hash FROM @acts ORDER BY number DESC LIMIT 1), ''::bytea) AS before FROM act
		), fields AS (
			SELECT next.*, array[number::text, namespace, floor(extract(epoch FROM at) * 1000000)::bigint::text, kind, target, by, why, detail] AS all FROM next
		), recorded AS (
			INSERT INTO @acts (number, namespace, at, kind, target, by, why, detail, hash)
			SELECT number, namespace, at, kind, target, by, why, detail, sha256(before || convert_to(
				(SELECT string_agg(octet_length(field) || ':' || field, '' ORDER BY place) FROM unnest(fields.all) WITH ORDINALITY AS f (field, place)), 'UTF8'))
			FROM fields RETURNING number, at, hash
		)`
	act       = `act AS (SELECT $%d::text AS namespace, $%d::text AS kind, $%d::text AS by, $%d::text AS why, $%d::text AS detail, `
	insertAct = ` SELECT number, at, hash FROM recorded`
	listActs  = `SELECT number, namespace, at, kind, target, by, why, detail, hash FROM @acts`
)

// packed is an act whose texts are as they are stored, which is how they are hashed.
func packed(a middleware.Act) middleware.Act {
	for _, w := range []*string{&a.Kind, &a.Target, &a.By, &a.Why, &a.Detail} {
		*w = pack(*w)
	}
	return a
}

// acting is the query "act" for a WITH, with its arguments after those there are, and what records it. An act without a
// Target is on the id that from gives.
func (s *Store) acting(a middleware.Act, from string, args []any) (query string, _ []any) {
	a = packed(a)
	var at []any
	for i := range 5 {
		at = append(at, len(args)+i+1)
	}
	args = append(args, pack(s.namespace), a.Kind, a.By, a.Why, a.Detail)
	target := `id`
	if a.Target != "" || from == "" {
		args = append(args, a.Target)
		target = fmt.Sprintf(`$%d::text`, len(args))
	}
	return fmt.Sprintf(act, at...) + target + ` AS target` + from + `)` + recorded, args
}

// Record implements middleware.Recorder. The caller's context does not cut it short. Where the first answer is lost the act
// may stand there twice.
func (s *Store) Record(ctx context.Context, a middleware.Act) (middleware.Act, error) {
	if err := a.Check(); err != nil {
		return middleware.Act{}, err
	}
	query, args := s.acting(a, ``, nil)
	a = packed(a)
	a.Namespace = pack(s.namespace)
	_, err := s.d.write(ctx, func(b *batch) {
		var sum []byte
		b.run(lockActs, s.d.opts.Schema)
		b.each(`WITH `+query+insertAct, func(rows pgx.Rows) error {
			err := rows.Scan(&a.Number, (*moment)(&a.At), &sum)
			a.Hash = hex.EncodeToString(sum)
			return err
		}, args...)
	})
	if err != nil {
		return middleware.Act{}, s.d.wrap("recording an act in", err)
	}
	return a, nil
}

// Acts implements middleware.Recorder.
func (s *Store) Acts(ctx context.Context) ([]middleware.Act, error) {
	return s.acts(ctx, listActs+` WHERE namespace = $1 ORDER BY number`, pack(s.namespace))
}

// AllActs implements middleware.Recorder.
func (s *Store) AllActs(ctx context.Context) ([]middleware.Act, error) {
	return s.acts(ctx, listActs+` ORDER BY number`)
}

func (s *Store) acts(ctx context.Context, query string, args ...any) ([]middleware.Act, error) {
	var all []middleware.Act
	err := s.d.read(ctx, func(b *batch) {
		all = nil
		b.each(query, func(rows pgx.Rows) error {
			a, err := scanAct(rows)
			all = append(all, a)
			return err
		}, args...)
	})
	return all, s.d.wrap("listing acts of", err)
}

func scanAct(rows pgx.Rows) (a middleware.Act, err error) {
	var sum []byte
	err = rows.Scan(&a.Number, &a.Namespace, (*moment)(&a.At), &a.Kind, &a.Target, &a.By, &a.Why, &a.Detail, &sum)
	a.At, a.Hash = a.At.Truncate(time.Microsecond), hex.EncodeToString(sum)
	return a, err
}

// acts looks whether the chain is whole.
func (v *verifying) acts(ctx context.Context) error {
	v.checks("acts")
	return v.try(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, v.d.text(listActs+` ORDER BY number`))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			a, err := scanAct(rows)
			if err != nil {
				return err
			}
			v.report.Acts = append(v.report.Acts, a)
		}
		if broken := middleware.CheckActs(v.report.Acts); rows.Err() == nil && broken != nil {
			v.found("", broken.Error())
		}
		return rows.Err()
	})
}
