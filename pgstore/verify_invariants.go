package pgstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// most is how many findings of one check are told.
const most = 20

// invariant is something that is true of all rows. Its query finds where it is not: the id of an operation or NULL, another
// name of the row, and the namespace.
type invariant struct{ check, row, broken, query string }

// forgets is true of a namespace in which operations may have been forgotten, so that what points to them points nowhere. A
// key that is older than its operation is that of one whose place this has taken.
const forgets = `(EXISTS (SELECT 1 FROM @operations AS kept WHERE kept.namespace = o.namespace AND (kept.keep IS NOT NULL OR kept.key_since < kept.created))
	OR EXISTS (SELECT 1 FROM @pruned AS pruned WHERE pruned.namespace = o.namespace))`

const (
	operation = `SELECT o.id, '', o.namespace FROM @operations AS o WHERE `
	call      = `SELECT NULL::bigint, o.run || ' ' || o.turn || '.' || o.position, o.namespace FROM @aliases AS o `
	meant     = `EXISTS (SELECT 1 FROM @operations AS meant WHERE meant.id = o.operation AND meant.namespace = o.namespace)`
	undone    = `EXISTS (SELECT 1 FROM @operations AS undone WHERE undone.id = o.undoes AND undone.namespace = o.namespace`
	question  = `SELECT NULL::bigint, o.id, o.namespace FROM @approvals AS o WHERE `
	run       = `SELECT NULL::bigint, o.run, o.namespace FROM @runs AS o WHERE `
	ofRun     = ` FROM @turns AS turns WHERE turns.run = o.id)`
	openRow   = `o.state IN ('running', 'in_doubt') AND `
)

var invariantsOfOperations = []invariant{
	{"one live row", "identity", "more than one of its operations is running, in doubt, done or free: it may happen twice",
		`SELECT NULL::bigint, encode(identity, 'hex'), namespace FROM @operations WHERE state <> 'released' GROUP BY namespace, identity HAVING count(*) > 1`},
	{"states", "operation", "it has no state that there is", operation + `o.state NOT IN ('running', 'in_doubt', 'done', 'free', 'released')`},
	{"states", "operation", "it is released and does not point to itself, or it points to itself and is not released",
		operation + `o.released <> CASE o.state WHEN 'released' THEN o.id ELSE 0 END`},
	{"states", "operation", "it is done or released, and has no time when it was done", operation + `o.state IN ('done', 'released') AND o.done_at IS NULL`},
	{"states", "operation", "it is not done, and has a time when it was done or expires",
		operation + `o.state IN ('running', 'in_doubt', 'free') AND (o.done_at IS NOT NULL OR o.expires IS NOT NULL)`},
	{"states", "operation", "it expires and is kept for ever, or it does not and is kept for a time",
		operation + `o.state IN ('done', 'released') AND (o.keep IS NULL) <> (o.expires IS NULL)`},
	{"claims", "operation", "it has no attempt", operation + `o.attempt < 1`},
	{"claims", "operation", "it is running or in doubt without a deadline", operation + openRow + `o.deadline < o.created`},
	{"claims", "operation", "it has no token", operation + `o.token = ''`},
	{"claims", "operation", "it is running or in doubt without a downstream key", operation + openRow + `(o.key IS NULL OR o.key = '')`},
	{"claims", "operation", "it is running or in doubt, and no call means it: the same call again would not find it",
		operation + openRow + `o.turn > 0 AND NOT EXISTS (SELECT 1 FROM @aliases AS aliases
			WHERE aliases.namespace = o.namespace AND aliases.run = o.run AND aliases.turn = o.turn AND aliases.position = o.position)`},
	{"settling", "operation", "Lookup is asked about it, and it is not in doubt", operation + `o.settle IS NOT NULL AND o.state <> 'in_doubt'`},
	{"settling", "operation", "a person has settled it, and it is running or in doubt", operation + openRow + `(o.settled_by <> '' OR o.by_person)`},
	{"settling", "operation", "a person has freed it, and it is not free", operation + `o.by_person AND o.state <> 'free'`},
	{"undo", "operation", "it undoes an operation that is not there", operation + `o.undoes IS NOT NULL AND NOT ` + undone + `) AND NOT ` + forgets},
	{"undo", "operation", "it is done, and what it undoes is not released",
		operation + `o.undoes IS NOT NULL AND o.state IN ('done', 'released') AND ` + undone + ` AND undone.state = 'done')`},
	{"undo", "operation", "more than one operation is about to undo it",
		`SELECT o.undoes, '', o.namespace FROM @operations AS o WHERE ` + openRow + `o.undoes IS NOT NULL GROUP BY o.undoes, o.namespace HAVING count(*) > 1`},
	{"meta", "row", "it is missing, or there are several", `SELECT NULL::bigint, 'meta', '' WHERE (SELECT count(*) FROM @meta) <> 1`},
}

var invariantsOfCalls = []invariant{
	{"calls", "call", "it means an operation that is not there", call + `WHERE NOT ` + meant + ` AND NOT ` + forgets},
	{"calls", "call", "its run is not finished and it has no output, and the operation that it means is not there",
		call + `JOIN @runs AS runs ON runs.namespace = o.namespace AND runs.run = o.run WHERE NOT runs.finished AND o.turn > 0 AND NOT ` + meant + ` AND ` + forgets + `
			AND NOT EXISTS (SELECT 1 FROM @outputs AS outputs WHERE outputs.run = runs.id AND outputs.turn = o.turn AND outputs.position = o.position)`},
	{"approvals", "approval", "it has no state that there is", question + `o.state NOT IN ('pending', 'approved', 'denied', 'spent')`},
	{"approvals", "approval", "it is answered and nobody is named, or it is not and somebody is", question + `(o.state = 'pending') <> (o.decided IS NULL)`},
	{"approvals", "approval", "it is spent on no operation, or has one and is not spent", question + `(o.state = 'spent') <> (o.operation <> '')`},
	{"runs", "run", "a turn is missing", run + `(SELECT count(*)` + ofRun + ` <> (SELECT coalesce(max(number), 0)` + ofRun + ` OR (SELECT min(number)` + ofRun + ` < 1`},
	{"runs", "run", "it is finished and has no turn", run + `o.finished AND NOT o.forgotten AND NOT EXISTS (SELECT 1` + ofRun},
	{"runs", "run", "it was forgotten, and has turns or is not finished", run + `o.forgotten AND (NOT o.finished OR EXISTS (SELECT 1` + ofRun + `)`},
	{"runs", "run", "it is finished and somebody has it", run + `o.finished AND o.owner <> 0`},
	{"runs", "turn", "it is of a run that is not there",
		`SELECT NULL::bigint, run || '.' || number, '' FROM @turns AS turns WHERE NOT EXISTS (SELECT 1 FROM @runs AS runs WHERE runs.id = turns.run)`},
	{"runs", "output", "it is of a turn that is not there", `SELECT NULL::bigint, run || '.' || turn || '.' || position, '' FROM @outputs AS outputs
		WHERE NOT EXISTS (SELECT 1 FROM @turns AS turns WHERE turns.run = outputs.run AND turns.number = outputs.turn)`},
}

// invariants looks at all rows.
func (v *verifying) invariants(ctx context.Context) error {
	last := ""
	for _, i := range slices.Concat(invariantsOfOperations, invariantsOfCalls) {
		if i.check != last {
			v.checks(i.check)
			last = i.check
		}
		if err := v.try(ctx, func(tx pgx.Tx) error { return v.invariant(ctx, tx, i) }); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifying) invariant(ctx context.Context, tx pgx.Tx, i invariant) error {
	rows, err := tx.Query(ctx, v.d.text(i.query))
	if err != nil {
		return err
	}
	var id number
	var name string
	var namespace word
	n := 0
	_, err = pgx.ForEachRow(rows, []any{&id, &name, &namespace}, func() error {
		if n++; n <= most {
			v.found(where(i.row, id, name, string(namespace)), i.broken)
		}
		return nil
	})
	if n > most {
		v.found("", fmt.Sprintf("%d more: %s", n-most, i.broken))
	}
	return err
}

// where names a row.
func where(kind string, id number, name, namespace string) string {
	if id != 0 {
		name = operationOf(id)
	}
	if namespace == "" {
		return kind + " " + name
	}
	return fmt.Sprintf("%s %s of namespace %q", kind, name, namespace)
}
