package pgstore_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/toolonce/toolonce/internal/earlier"
	"github.com/toolonce/toolonce/internal/pgtest"
	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
)

// TestEveryVersionOfTheSchemaOpensAndKeepsAllThatIsInIt has a dump of each version, as the program of that time left it: one
// operation running, one in doubt, one free, one released and three done, two runs, an approval and two acts. A version
// that has been released is not changed any more: the next one gets a migration and a dump here.
func TestEveryVersionOfTheSchemaOpensAndKeepsAllThatIsInIt(t *testing.T) {
	for version := 1; version <= pgstore.SchemaVersion(); version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			dsn, opts := pgtest.Start(t), &pgstore.Options{Schema: fmt.Sprint("toolonce_v", version), MustExist: true}
			restore(t, dsn, version)
			all, err := pgstore.Open(t.Context(), dsn, opts)
			check(t, err)
			t.Cleanup(func() { _ = all.Close() })
			report, err := pgstore.Verify(t.Context(), dsn, opts)
			check(t, err)
			for _, f := range report.Findings {
				t.Errorf("%+v", f)
			}
			s := all.Namespace("acme")
			earlier.Check(t, s)
			if row := claimed(t, s, aClaim("new", 1)); row.State != middleware.Running {
				t.Errorf("a new claim is %s", row.State)
			}
		})
	}
}

// restore makes the schema of a version.
func restore(t *testing.T, dsn string, version int) {
	t.Helper()
	dump, err := os.ReadFile(fmt.Sprintf("testdata/v%d.sql", version))
	check(t, err)
	conn, err := pgx.Connect(t.Context(), dsn)
	check(t, err)
	defer func() { check(t, conn.Close(context.Background())) }()
	_, err = conn.PgConn().Exec(t.Context(), fmt.Sprintf("DROP SCHEMA IF EXISTS toolonce_v%d CASCADE;", version)+string(dump)).ReadAll()
	check(t, err)
}
