//go:build cgo

package sqlitestore_test

import (
	"strings"
	"testing"

	"github.com/toolonce/toolonce/middleware"
	"github.com/toolonce/toolonce/sqlitestore"
)

// TestActsThatWereChangedByHandAreFound has somebody who may write to the file and puts the triggers back afterwards.
func TestActsThatWereChangedByHandAreFound(t *testing.T) {
	const insert = `INSERT INTO acts (number, namespace, at, kind, target, by, why, detail, hash) SELECT 4, namespace, at, kind, target, by, why, detail, hash FROM acts WHERE number = 3`
	for name, c := range map[string]struct{ change, want string }{
		"nothing":             {`SELECT 1`, ""},
		"why":                 {`UPDATE acts SET why = 'another' WHERE number = 2`, "act 2, or what was before it, is not as it was recorded"},
		"by whom":             {`UPDATE acts SET by = 'Bob' WHERE number = 1`, "act 1, or"},
		"when":                {`UPDATE acts SET at = at + 1 WHERE number = 3`, "act 3, or"},
		"whose":               {`UPDATE acts SET namespace = 'acme' WHERE number = 3`, "act 3, or"},
		"a hash":              {`UPDATE acts SET hash = x'00' WHERE number = 1`, "act 1, or"},
		"one is missing":      {`DELETE FROM acts WHERE number = 2`, "act 2 is missing"},
		"the first":           {`DELETE FROM acts WHERE number = 1`, "act 1 is missing"},
		"missing, renumbered": {`DELETE FROM acts WHERE number = 2; UPDATE acts SET number = 2 WHERE number = 3`, "act 2, or"},
		"one is inserted":     {insert, "act 4, or"},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir() + "/once.db"
			s := open(t, path, nil)
			for _, target := range []string{"a", "b", "c"} {
				_, err := s.Record(t.Context(), middleware.Act{Kind: middleware.ActForgot, Target: target, By: "Ann", Why: "she asked"})
				check(t, err)
			}
			var triggers strings.Builder
			names, err := s.Names(t.Context(), `SELECT sql FROM sqlite_schema WHERE name LIKE 'acts\_are%' ESCAPE '\'`)
			check(t, err)
			for _, sql := range names {
				triggers.WriteString(sql + ";")
			}
			for _, by := range []string{`UPDATE acts SET why = ''`, `DELETE FROM acts`} {
				if err := s.Write(by); err == nil {
					t.Errorf("%s was let through", by)
				}
			}
			check(t, s.Write(`DROP TRIGGER acts_are_not_changed; DROP TRIGGER acts_are_not_removed;`+c.change+`;`+triggers.String()))
			report, err := sqlitestore.Verify(t.Context(), path, nil)
			check(t, err)
			if c.want == "" && (len(report.Findings) != 0 || len(report.Acts) != 3) || c.want != "" && (len(report.Findings) != 1 || report.Findings[0].Check != "acts" || !strings.Contains(report.Findings[0].What, c.want)) {
				t.Errorf("want %q, found %v among %d acts", c.want, report.Findings, len(report.Acts))
			}
		})
	}
}
