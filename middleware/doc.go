// Package middleware wraps tool handlers. [Once] makes a side effect happen once; [Log] writes what was decided to a
// slog.Logger.
//
// Once owns the rule and a [Ledger] remembers: sqlitestore for production, [Memory] for trials. Before a handler
// starts, its operation is claimed by a durable row under a UNIQUE constraint; after it, the result is kept in the row.
// A call that means the same operation again is answered from the row. An outcome that nobody knows stops: a tool's
// Lookup, a provider that honours idempotency keys, or a person settles it, never the passing of time.
//
//	store, err := sqlitestore.Open("once.db", nil)
//	…
//	handle := tools.Handler(middleware.Log(nil), middleware.Once(store, nil))
//	go middleware.Recover(ctx, tools, store, nil) // settles what a process that died has left
//	result, err := handle(ctx, &registry.Call{Run: registry.Run{ID: "ticket-42"}, Turn: 1, Tool: name, Arguments: arguments})
//
// [OnceOptions] has what can be adjusted. Row, Claim, Query, Transition and Handlers are for those who write a ledger;
// package ledgertest checks it.
package middleware
