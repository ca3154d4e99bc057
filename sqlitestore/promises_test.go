//go:build cgo

package sqlitestore_test

import (
	"database/sql"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A name that two packages give to their drivers ends a program as it starts.
func TestTheStoreNamesNoDriverOfItsOwn(t *testing.T) {
	open(t, t.TempDir()+"/once.db", nil)
	if diff := cmp.Diff([]string{"sqlite3"}, sql.Drivers()); diff != "" { // the driver's own, which a program may use too
		t.Error(diff)
	}
}
