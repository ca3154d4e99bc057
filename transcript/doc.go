// Package transcript works with conversations between a program and a model.
//
// [Read] and [ReadFile] go through saved transcripts of both APIs, one run at a
// time. [Replay] gives the calls of a saved run to the guard and says what it
// would have done; [Audit] does so for files, and compares with what is
// expected.
//
// [Server] is a scripted model server that speaks enough of the Chat Completions
// and Responses APIs, plain and streamed, to drive the real openai-go client in
// tests and demonstrations. It checks what it is sent and refuses with 400 what
// the API refuses, in the API's own words as far as they are publicly known: a
// loop that passes here keeps calls and outputs paired, ids unique and schemas
// strict.
//
// [Record] writes down what a live loop and its model say to each other, and
// [Serve] answers a test from it.
package transcript
