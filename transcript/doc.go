// Package transcript works with conversations between a program and a model.
//
// [Read] and [ReadFile] go through saved Chat Completions transcripts, one run
// at a time. [Server] is a scripted model server that speaks enough of the
// Chat Completions and Responses APIs, plain and streamed, to drive the real
// openai-go client in tests and demonstrations. It checks what it is sent and
// refuses with 400 what the API refuses, in the API's own words as far as they
// are publicly known: a loop that passes here keeps calls and outputs paired,
// ids unique and schemas strict.
package transcript
