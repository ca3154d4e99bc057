// Package crash kills real processes in the middle of a run, at each of its points and at random ones, goes on with the
// run in another process, and compares what came of it with what must have. It has tests alone.
//
// A run asks for a refund and a look at the order, for the same refund under another id in its next turn, and then
// answers. The payment provider and the model live in the process of the test, which kills the others by SIGKILL; so what
// they have seen outlives every kill. What is demanded depends on how far the run had come, and it is always exact.
package crash
