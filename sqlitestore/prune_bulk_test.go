//go:build cgo

package sqlitestore_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/toolonce/toolonce/sqlitestore"
)

// bulkRows is TOOLONCE_ROWS where it is set, else n, or a tenth with -short.
func bulkRows(tb testing.TB, n int) int {
	tb.Helper()
	if testing.Short() {
		n /= 10
	}
	s := os.Getenv("TOOLONCE_ROWS")
	if s == "" {
		return n
	}
	n, err := strconv.Atoi(s)
	check(tb, err)
	return n
}

// bulkIdentity is that of operation n of those that bulk makes.
func bulkIdentity(n int64) string { return fmt.Sprintf("%064x", n*2654435761%4294967296) }

// bulk makes operations that were done half a year ago, in an empty store: identity n is n as 32 bytes, and a run has four.
// The index and the aliases are made afterwards, in order: one by one, that takes ten times as long.
func bulk(tb testing.TB, s *sqlitestore.Store, rows int, retain time.Duration) {
	tb.Helper()
	index, err := s.Definition("operations_identity")
	check(tb, err)
	trigger, err := s.Definition("operations_claimed")
	check(tb, err)
	ago := time.Now().Add(-180 * 24 * time.Hour)
	check(tb, s.Write(fmt.Sprintf(`BEGIN; DROP INDEX operations_identity; DROP TRIGGER operations_claimed;
		INSERT INTO operations (id, namespace, identity, fingerprint, canonical, tool, state, token, attempt, deadline, owner, generation, key, key_since,
			resource_out, run, turn, position, call_id, arguments, conversation, created, since, done_at, keep, retain, input, result)
		WITH RECURSIVE numbers(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < %[1]d)
		SELECT (%[2]d + n) << 21, '', unhex(printf('%%064x', n * 2654435761 %% 4294967296)), randomblob(32), 1, 'issue_refund', 'done', randomblob(16), 1, %[3]d, 1, 0,
			randomblob(32), %[3]d, '', printf('bulk-%%d', n / 4), n %% 4 + 1, 0, 'call_0123456789abcdef01234567', randomblob(32), 'conversation-1',
			%[3]d + n * 1000000, %[3]d + n * 1000000, %[3]d + n * 1000000, 0, %[4]d, zeroblob(100), printf('%%.200c', 'r') FROM numbers;
		INSERT INTO aliases (namespace, run, turn, position, operation)
			SELECT namespace, run, turn, position, id FROM operations ORDER BY namespace, run, turn, position;
		%[5]s; %[6]s; COMMIT`, rows, ago.UnixMilli(), ago.UnixNano(), int64(retain), index, trigger)))
	check(tb, s.Write("PRAGMA wal_checkpoint(TRUNCATE)"))
}
