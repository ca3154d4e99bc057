package pgstore_test

import (
	"strings"
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/pgstore"
)

// TestActsThatWereChangedByHandAreFound has somebody who may write to the tables and puts the trigger back afterwards.
func TestActsThatWereChangedByHandAreFound(t *testing.T) {
	p := fresh(t)
	s := p.open(t)
	for _, target := range []string{"a", "b", "c"} {
		_, err := s.Record(t.Context(), middleware.Act{Kind: middleware.ActForgot, Target: target, By: "Ann", Why: "she asked"})
		check(t, err)
	}
	acts := quoted(p.schema, "acts")
	for _, c := range []struct{ change, back, want string }{
		{`SELECT 1`, ``, ""},
		{`UPDATE ` + acts + ` SET why = 'another' WHERE number = 2`, `UPDATE ` + acts + ` SET why = 'she asked' WHERE number = 2`, "act 2, or what was before it, is not as it was recorded"},
		{`UPDATE ` + acts + ` SET at = at + interval '1 second' WHERE number = 3`, `UPDATE ` + acts + ` SET at = at - interval '1 second' WHERE number = 3`, "act 3, or"},
		{`INSERT INTO ` + acts + ` SELECT 4, namespace, at, kind, target, by, why, detail, hash FROM ` + acts + ` WHERE number = 3`, `DELETE FROM ` + acts + ` WHERE number = 4`, "act 4, or"},
		{`DELETE FROM ` + acts + ` WHERE number = 2`, ``, "act 2 is missing"},
	} {
		byHand := func(query string) {
			t.Helper()
			statement(t, p.dsn, `ALTER TABLE `+acts+` DISABLE TRIGGER USER`)
			statement(t, p.dsn, query)
			statement(t, p.dsn, `ALTER TABLE `+acts+` ENABLE TRIGGER USER`)
		}
		byHand(c.change)
		report, err := pgstore.Verify(t.Context(), p.dsn, p.options(pgstore.Options{}))
		check(t, err)
		if c.want == "" && (len(report.Findings) != 0 || len(report.Acts) != 3) || c.want != "" && (len(report.Findings) != 1 || report.Findings[0].Check != "acts" || !strings.Contains(report.Findings[0].What, c.want)) {
			t.Errorf("want %q, found %v among %d acts", c.want, report.Findings, len(report.Acts))
		}
		if c.back != "" {
			byHand(c.back)
		}
	}
}
