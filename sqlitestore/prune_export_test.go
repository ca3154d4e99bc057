//go:build cgo

package sqlitestore

import (
	"context"
	"database/sql"
)

// PrunePlans are how the queries of Prune find their rows.
func (s *Store) PrunePlans() (plans []string, err error) {
	for _, q := range []string{scanEnd, scanOver, scanOldest, scanLeft, forgetOperations, forgetContents, strays, forgetStray, approvalsOver, forgetApprovals} {
		err := s.f.reader.each(context.Background(), "EXPLAIN QUERY PLAN "+q, func(rows *sql.Rows) error {
			plans = append(plans, "")
			var unused int
			return rows.Scan(&unused, &unused, &unused, &plans[len(plans)-1])
		}, make([]any, parameters(q))...)
		if err != nil {
			return nil, err
		}
	}
	return plans, nil
}

// Below is the id below which the store's tenant is pruned.
func (s *Store) Below() (id int64, err error) {
	_, err = s.f.reader.one(context.Background(), prunedBelow, []any{&id}, s.namespace)
	return id, err
}

// IDOf is the number in an operation's id.
func IDOf(operation string) int64 { return idOf(operation) }
