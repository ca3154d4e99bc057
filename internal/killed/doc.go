// Package killed kills processes at each point of one guarded call, for the tests of stores, and compares what came of it
// with what must have.
package killed
