package crossing_test

import (
	"testing"

	"github.com/toolonce/toolonce/internal/crossing"
	"github.com/toolonce/toolonce/internal/pgtest"
	"github.com/toolonce/toolonce/pgstore"
)

func TestNoMethodOfAPostgreSQLStoreCrossesNamespaces(t *testing.T) {
	s, err := pgstore.Open(t.Context(), pgtest.Start(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	crossing.Check(t, func(namespace string) crossing.Store { return s.Namespace(namespace) })
}
