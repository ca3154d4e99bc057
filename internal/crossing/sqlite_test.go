//go:build cgo

package crossing_test

import (
	"testing"

	"github.com/toolonce/toolonce/internal/crossing"
	"github.com/toolonce/toolonce/sqlitestore"
)

func TestNoMethodOfAnSQLiteStoreCrossesNamespaces(t *testing.T) {
	s, err := sqlitestore.Open(t.TempDir()+"/once.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	crossing.Check(t, func(namespace string) crossing.Store { return s.Namespace(namespace) })
}
