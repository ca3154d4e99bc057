// Package pgstore keeps the operations of package middleware and the runs of package journal in PostgreSQL, version 14 or
// later, in a schema of its own.
//
//	store, err := pgstore.Open(ctx, "postgres://app@db.example.com/app", nil)
//	if err != nil {
//		return err
//	}
//	defer store.Close()
//	handle := tools.Handler(middleware.Once(store.Namespace("acme"), nil))
//
// Any number of processes on any number of hosts may use the schema at the same time. Each shows by a heartbeat, a row of
// its own, that it lives. An overdue one is a suspicion and no more: others then settle what that process has left behind,
// or go on with its runs, but nothing counts as not happened before the deadlines of all attempts are over, and what the
// process still writes, should it live, carries its token and attempt. All times are the database's.
//
// It keeps no state in a session, so a pooler in transaction mode (PgBouncer) may stand between. Statements are not
// prepared on the server, as poolers may lose them; their descriptions are kept, so each takes one round trip. Who
// connects directly, or by a pooler that knows prepared statements, saves the server some parsing by
// default_query_exec_mode=cache_statement in the connection string. All that package pgxpool reads from it works too, such
// as pool_max_conns, which is 4 or the number of CPUs otherwise.
package pgstore
