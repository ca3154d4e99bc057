package sqlitestore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"time"

	"github.com/toolonce/toolonce/middleware"
)

const (
	lastAct   = `SELECT number, hash FROM acts ORDER BY number DESC LIMIT 1`
	insertAct = `INSERT INTO acts (number, namespace, at, kind, target, by, why, detail, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)`
	listActs  = `SELECT number, namespace, at, kind, target, by, why, detail, hash FROM acts`
)

// act records what a person does, in the transaction that does it.
func (s *Store) act(x *tx, a middleware.Act) (middleware.Act, error) {
	var before []byte
	a.Number = 0
	if _, err := x.one(lastAct, []any{&a.Number, &before}); err != nil {
		return a, err
	}
	a.Number++
	a.Namespace, a.At = s.namespace, s.f.now().UTC().Truncate(time.Microsecond)
	a.Hash = a.Chained(hex.EncodeToString(before))
	return a, x.run(insertAct, a.Number, a.Namespace, a.At.UnixMicro(), a.Kind, a.Target, a.By, a.Why, a.Detail, pack(a.Hash))
}

// Record implements middleware.Recorder. The caller's context does not cut it short.
func (s *Store) Record(ctx context.Context, a middleware.Act) (middleware.Act, error) {
	if err := a.Check(); err != nil {
		return middleware.Act{}, err
	}
	var recorded middleware.Act
	err := s.f.writer.do(ctx, func(x *tx) (err error) {
		recorded, err = s.act(x, a)
		return err
	})
	if err != nil {
		return middleware.Act{}, s.f.wrap("recording an act in", err)
	}
	return recorded, nil
}

// Acts implements middleware.Recorder.
func (s *Store) Acts(ctx context.Context) ([]middleware.Act, error) {
	return s.acts(ctx, listActs+` WHERE namespace = +?1 ORDER BY number`, s.namespace)
}

// AllActs implements middleware.Recorder.
func (s *Store) AllActs(ctx context.Context) ([]middleware.Act, error) {
	return s.acts(ctx, listActs+` ORDER BY number`)
}

func (s *Store) acts(ctx context.Context, query string, args ...any) ([]middleware.Act, error) {
	var all []middleware.Act
	err := s.f.reader.each(ctx, query, func(rows *sql.Rows) error {
		a, err := scanAct(rows)
		all = append(all, a)
		return err
	}, args...)
	return all, s.f.wrap("listing acts of", err)
}

func scanAct(rows *sql.Rows) (a middleware.Act, err error) {
	var at int64
	err = rows.Scan(&a.Number, &a.Namespace, &at, &a.Kind, &a.Target, &a.By, &a.Why, &a.Detail, (*hash)(&a.Hash))
	a.At = time.UnixMicro(at).UTC()
	return a, err
}

// acts looks whether the chain is whole.
func (v *verifying) acts(ctx context.Context) error {
	v.checks("acts")
	err := rowsOf(ctx, v.conn, listActs+` ORDER BY number`, func(rows *sql.Rows) error {
		a, err := scanAct(rows)
		v.report.Acts = append(v.report.Acts, a)
		return err
	})
	if broken := middleware.CheckActs(v.report.Acts); err == nil && broken != nil {
		v.found("", broken.Error())
	}
	return err
}
