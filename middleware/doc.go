// Package middleware wraps tool handlers. [Once] makes a side effect happen once; [Log] writes what was decided to a
// slog.Logger.
//
// Once owns the rule and a [Ledger] remembers: sqlitestore for production, [Memory] for trials. Before a handler
// starts, its operation is claimed by a durable row under a UNIQUE constraint; after it, the result is kept in the row.
// A call that means the same operation again is answered from the row. An outcome that nobody knows stops: a tool's
// Lookup, a provider that honours idempotency keys, or a person settles it, never the passing of time.
package middleware
