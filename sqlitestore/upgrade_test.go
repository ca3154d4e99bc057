//go:build cgo

package sqlitestore_test

import (
	"database/sql"
	"fmt"
	"os"
	"testing"

	"github.com/toolonce/toolonce/internal/earlier"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// TestAFileOfEverySchemaOpensAndKeepsAllThatIsInIt has a file of each version, as the program of that time left it: one
// operation running, one in doubt, one free, one released and three done, two runs, an approval and two acts. A version
// that has been released is not changed any more: the next one gets a migration and a file here.
func TestAFileOfEverySchemaOpensAndKeepsAllThatIsInIt(t *testing.T) {
	for version := 1; version <= sqlitestore.SchemaVersion(); version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			path := t.TempDir() + "/once.db"
			restore(t, path, version)
			s := open(t, path, &sqlitestore.Options{MustExist: true}).Namespace("acme")
			report, err := sqlitestore.Verify(t.Context(), path, nil)
			check(t, err)
			for _, f := range report.Findings {
				t.Errorf("%+v", f)
			}
			earlier.Check(t, s)
			if row := claimed(t, s, aClaim("new", 1)); row.State != middleware.Running {
				t.Errorf("a new claim is %s", row.State)
			}
		})
	}
}

// restore makes the file of a version.
func restore(t *testing.T, path string, version int) {
	t.Helper()
	dump, err := os.ReadFile(fmt.Sprintf("testdata/v%d.sql", version))
	check(t, err)
	db, err := sql.Open("sqlite3", path)
	check(t, err)
	defer func() { check(t, db.Close()) }()
	_, err = db.ExecContext(t.Context(), string(dump)+fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", 0x6f6e6365, version))
	check(t, err)
}
