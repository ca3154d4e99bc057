// Package promises is the table of what toolonce promises: what each promise rests on, and the tests that show it. It has
// tests alone. They check that every test in the table is there, and that GUARANTEES.md says what the table says.
package promises
