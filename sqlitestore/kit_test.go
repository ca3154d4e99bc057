package sqlitestore_test

import (
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

func open(tb testing.TB, path string, opts *sqlitestore.Options) *sqlitestore.Store {
	tb.Helper()
	s, err := sqlitestore.Open(path, opts)
	check(tb, err)
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

func claimed(tb testing.TB, s *sqlitestore.Store, c middleware.Claim) middleware.Row {
	tb.Helper()
	row, won, err := s.Claim(tb.Context(), c)
	check(tb, err)
	if !won {
		tb.Fatalf("the claim is lost to %s", row.Operation)
	}
	return row
}

func found(tb testing.TB, s *sqlitestore.Store, operation string) middleware.Row {
	tb.Helper()
	row, ok, err := s.Find(tb.Context(), middleware.Query{Operation: operation})
	check(tb, err)
	if !ok {
		tb.Fatalf("%s is not there", operation)
	}
	return row
}
