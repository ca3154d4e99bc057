package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// invariant is something that is true of all rows. Its query finds where it is not: an operation's id or another name of the
// row, and the namespace.
type invariant struct{ check, row, broken, query string }

// forgets is true of a namespace in which operations may have been forgotten, so that what points to them points nowhere. A
// key that is older than its operation is that of one whose place this has taken.
const forgets = `(EXISTS (SELECT 1 FROM operations AS kept WHERE kept.namespace = %[1]s.namespace AND (kept.keep > 0 OR kept.key_since < kept.created))
	OR EXISTS (SELECT 1 FROM pruned WHERE pruned.namespace = %[1]s.namespace))`

// No index is used where that might hide what is wrong.
var invariantsOfOperations = []invariant{
	{"one live row", "identity", "more than one of its operations is running, in doubt, done or free: it may happen twice",
		`SELECT lower(hex(identity)), namespace FROM operations NOT INDEXED WHERE state <> 'released' GROUP BY namespace, identity HAVING count(*) > 1`},
	{"states", "operation", "it has no state that there is",
		`SELECT id, namespace FROM operations NOT INDEXED WHERE state NOT IN ('running', 'in_doubt', 'done', 'free', 'released')`},
	{"states", "operation", "it is released and does not point to itself, or it points to itself and is not released",
		`SELECT id, namespace FROM operations WHERE released <> CASE state WHEN 'released' THEN id ELSE 0 END`},
	{"states", "operation", "it is done or released, and has no time when it was done",
		`SELECT id, namespace FROM operations WHERE state IN ('done', 'released') AND done_at <= 0`},
	{"states", "operation", "it is not done, and has a time when it was done or expires",
		`SELECT id, namespace FROM operations WHERE state IN ('running', 'in_doubt', 'free') AND (done_at <> 0 OR expires <> 0)`},
	{"states", "operation", "it expires and is kept for ever, or it does not and is kept for a time",
		`SELECT id, namespace FROM operations WHERE state IN ('done', 'released') AND (keep = 0) <> (expires = 0)`},
	{"states", "operation", "it is running or in doubt, and looking for those does not find it",
		`SELECT id, namespace FROM operations WHERE state IN ('running', 'in_doubt') AND listed = 0 AND id < (SELECT coalesce(max(low), id + 1) FROM meta)`},
	{"states", "operation", "it is in doubt or settled, and listed otherwise",
		`SELECT id, namespace FROM operations WHERE state <> 'running' AND listed <> (state = 'in_doubt')`},
	{"claims", "operation", "it has no attempt", `SELECT id, namespace FROM operations WHERE attempt < 1`},
	{"claims", "operation", "it is running or in doubt without a deadline",
		`SELECT id, namespace FROM operations WHERE state IN ('running', 'in_doubt') AND deadline <= 0`},
	{"claims", "operation", "it has no token", `SELECT id, namespace FROM operations WHERE token IN ('', x'')`},
	{"claims", "operation", "it is running or in doubt without a downstream key",
		`SELECT id, namespace FROM operations WHERE state IN ('running', 'in_doubt') AND (key IS NULL OR key IN ('', x''))`},
	{"claims", "operation", "it is running or in doubt, and its owner is not known",
		`SELECT id, namespace FROM operations WHERE state IN ('running', 'in_doubt') AND owner NOT IN (SELECT id FROM owners)`},
	{"claims", "operation", "it is running or in doubt, and no call means it: the same call again would not find it",
		`SELECT id, namespace FROM operations WHERE state IN ('running', 'in_doubt') AND turn > 0 AND NOT EXISTS (SELECT 1 FROM aliases
			WHERE aliases.namespace = operations.namespace AND aliases.run = operations.run AND aliases.turn = operations.turn AND aliases.position = operations.position)`},
	{"settling", "operation", "Lookup is asked about it, and it is not in doubt",
		`SELECT id, namespace FROM operations WHERE settle IS NOT NULL AND state <> 'in_doubt'`},
	{"settling", "operation", "a person has settled it, and it is running or in doubt",
		`SELECT id, namespace FROM operations WHERE (settled_by <> '' OR by_person <> 0) AND state IN ('running', 'in_doubt')`},
	{"settling", "operation", "a person has freed it, and it is not free", `SELECT id, namespace FROM operations WHERE by_person <> 0 AND state <> 'free'`},
	{"undo", "operation", "it undoes an operation that is not there",
		`SELECT id, namespace FROM operations WHERE undoes IS NOT NULL AND NOT EXISTS (SELECT 1 FROM operations AS undone
			WHERE undone.id = operations.undoes AND undone.namespace = operations.namespace) AND NOT ` + fmt.Sprintf(forgets, "operations")},
	{"undo", "operation", "it is done, and what it undoes is not released",
		`SELECT id, namespace FROM operations WHERE undoes IS NOT NULL AND state IN ('done', 'released') AND EXISTS (SELECT 1 FROM operations AS undone
			WHERE undone.id = operations.undoes AND undone.namespace = operations.namespace AND undone.state = 'done')`},
	{"undo", "operation", "more than one operation is about to undo it",
		`SELECT undoes, namespace FROM operations NOT INDEXED WHERE undoes IS NOT NULL AND state IN ('running', 'in_doubt') GROUP BY undoes, namespace HAVING count(*) > 1`},
	{"meta", "row", "it is missing, or there are several: nothing can be claimed", `SELECT 'meta', '' WHERE (SELECT count(*) FROM meta WHERE id = 1) <> 1 OR (SELECT count(*) FROM meta) <> 1`},
}

var invariantsOfCalls = []invariant{
	{"calls", "call", "it means an operation that is not there",
		`SELECT run || ' ' || turn || '.' || position, namespace FROM aliases WHERE NOT EXISTS (SELECT 1 FROM operations
			WHERE operations.id = aliases.operation AND operations.namespace = aliases.namespace) AND NOT ` + fmt.Sprintf(forgets, "aliases")},
	{"calls", "call", "its run is not finished and it has no output, and the operation that it means is not there",
		`SELECT aliases.run || ' ' || turn || '.' || position, aliases.namespace FROM aliases JOIN runs ON runs.namespace = aliases.namespace AND runs.run = aliases.run
			WHERE runs.finished = 0 AND turn > 0 AND NOT EXISTS (SELECT 1 FROM operations WHERE operations.id = aliases.operation AND operations.namespace = aliases.namespace)
				AND NOT EXISTS (SELECT 1 FROM outputs WHERE outputs.run = runs.id AND outputs.turn = aliases.turn AND outputs.position = aliases.position)
				AND ` + fmt.Sprintf(forgets, "aliases")},
	{"calls", "call", "it is said to have claimed its operation, which says otherwise",
		`SELECT aliases.run || ' ' || aliases.turn || '.' || aliases.position, aliases.namespace FROM aliases JOIN operations
			ON operations.id = aliases.operation AND operations.namespace = aliases.namespace
			WHERE aliases.call_id IS NULL AND (operations.run, operations.turn, operations.position) <> (aliases.run, aliases.turn, aliases.position)`},
	{"approvals", "approval", "it has no state that there is",
		`SELECT id, namespace FROM approvals NOT INDEXED WHERE state NOT IN ('pending', 'approved', 'denied', 'spent')`},
	{"approvals", "approval", "it is answered and nobody is named, or it is not and somebody is",
		`SELECT id, namespace FROM approvals WHERE (state = 'pending') <> (decided = 0)`},
	{"approvals", "approval", "it is spent on no operation, or has one and is not spent",
		`SELECT id, namespace FROM approvals WHERE (state = 'spent') <> (operation <> '')`},
	{"runs", "run", "a turn is missing", `SELECT run, namespace FROM runs WHERE (SELECT count(*) FROM turns WHERE turns.run = runs.id)
			<> (SELECT coalesce(max(number), 0) FROM turns WHERE turns.run = runs.id) OR (SELECT min(number) FROM turns WHERE turns.run = runs.id) < 1`},
	{"runs", "run", "it is finished and has no turn",
		`SELECT run, namespace FROM runs WHERE finished <> 0 AND forgotten = 0 AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.run = runs.id)`},
	{"runs", "run", "it was forgotten, and has turns or is not finished",
		`SELECT run, namespace FROM runs WHERE forgotten <> 0 AND (finished = 0 OR EXISTS (SELECT 1 FROM turns WHERE turns.run = runs.id))`},
	{"runs", "run", "it is finished and somebody has it", `SELECT run, namespace FROM runs WHERE finished <> 0 AND owner <> 0`},
	{"runs", "run", "its owner is not known", `SELECT run, namespace FROM runs WHERE owner <> 0 AND owner NOT IN (SELECT id FROM owners)`},
	{"runs", "turn", "it is of a run that is not there", `SELECT run || '.' || number, '' FROM turns WHERE run NOT IN (SELECT id FROM runs)`},
	{"runs", "output", "it is of a turn that is not there",
		`SELECT run || '.' || turn || '.' || position, '' FROM outputs WHERE NOT EXISTS (SELECT 1 FROM turns WHERE turns.run = outputs.run AND turns.number = outputs.turn)`},
}

// invariants looks at all rows.
func (v *verifying) invariants(ctx context.Context) error {
	last := ""
	for _, i := range append(invariantsOfOperations, invariantsOfCalls...) {
		if i.check != last {
			v.checks(i.check)
			last = i.check
		}
		n := 0
		err := rowsOf(ctx, v.conn, i.query, func(rows *sql.Rows) error {
			var row any
			var namespace string
			if err := rows.Scan(&row, &namespace); err != nil {
				return err
			}
			if n++; n <= most {
				v.found(where(i.row, row, namespace), i.broken)
			}
			return nil
		})
		if n > most {
			v.found("", fmt.Sprintf("%d more: %s", n-most, i.broken))
		}
		if kind := kindOf(err); err != nil && (kind == nil && ctx.Err() == nil || errors.Is(kind, ErrDamaged)) { // the others may tell more
			v.found("", err.Error())
		} else if err != nil {
			return err
		}
	}
	return nil
}

// where names a row.
func where(kind string, row any, namespace string) string {
	if id, ok := row.(int64); ok {
		row = operationOf(id)
	}
	if b, ok := row.([]byte); ok {
		row = string(b)
	}
	if namespace == "" {
		return fmt.Sprintf("%s %v", kind, row)
	}
	return fmt.Sprintf("%s %v of namespace %q", kind, row, namespace)
}
