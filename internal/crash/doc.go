// Package crash kills real processes in the middle of a run, at each of its points and at random ones, goes on with the
// run in another process, and compares what came of it with what must have. It has tests alone.
//
// All of it happens on each store, SQLite and PostgreSQL.
//
// A run asks for a refund and a look at the order, for the same refund under another id in its next turn, and then
// answers. The payment provider and the model live in the process of the test, which kills the others by SIGKILL; so what
// they have seen outlives every kill. A refund that is local is in the store's own transaction, and there is no provider. On
// PostgreSQL the heartbeat of a dead process is made overdue as soon as the server has come to the end of what it was sent.
// What is demanded depends on how far the run had come, and it is always exact.
package crash
