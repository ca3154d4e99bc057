package agent

import (
	"slices"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"

	"github.com/toolonce/toolonce/registry"
)

// ChatReply is the answer of a run: the completion with which the model ended it, and what happened on the way.
type ChatReply struct {
	*openai.ChatCompletion
	Report Report
	// Messages are the messages of the params, mended where the API would have refused them, and all that the run added,
	// the answer included. Append the next user message to go on with the conversation, in a run with an id of its own.
	Messages []openai.ChatCompletionMessageParamUnion
}

// ResponseReply is [ChatReply] for the Responses API.
type ResponseReply struct {
	*responses.Response
	Report Report
	// Items are the input items of the params and all that the run added, as ChatReply.Messages. Params with a
	// previous_response_id go on with the same one and these, or with the id of this response and new items alone.
	Items responses.ResponseInputParam
}

// Report says what a run did.
type Report struct {
	Run Run
	// Resumed says that turns were there already: this call asked only for what came after them.
	Resumed bool
	// Usage is what each turn cost, from turn 1; zero where the server did not say.
	Usage []Usage
	// Calls are the calls of all turns, in order, those of earlier attempts at the run included.
	Calls []CallReport
}

// Total is what all turns cost together.
func (r *Report) Total() Usage {
	var t Usage
	for _, u := range r.Usage {
		t.Input += u.Input
		t.CachedInput += u.CachedInput
		t.Output += u.Output
		t.Reasoning += u.Reasoning
	}
	return t
}

// and is the report of a run together with that of one behind it, whose turns are counted on.
func (r Report) and(next Report) Report {
	turns := len(r.Usage)
	r.Resumed = r.Resumed && next.Resumed
	r.Usage = slices.Concat(r.Usage, next.Usage)
	r.Calls = slices.Clone(r.Calls)
	for _, c := range next.Calls {
		c.Turn += turns
		r.Calls = append(r.Calls, c)
	}
	return r
}

// CallReport is one call and what was decided for it.
type CallReport struct {
	Turn, Position int
	// CallID is the id as the model sent it; it may be empty or come back.
	CallID    string
	Tool      string
	Verdict   registry.Verdict
	Operation string // "" where no record stands behind the answer
}

// Usage is a number of tokens, as the server counted them.
type Usage struct {
	Input       int64 // CachedInput included
	CachedInput int64
	Output      int64 // Reasoning included
	Reasoning   int64
}

// usageOf reads the usage of an answer of either API.
func usageOf(u gjson.Result) Usage {
	first := func(paths ...string) int64 { // some servers send both
		for _, p := range paths {
			if v := u.Get(p); v.Exists() && v.Type != gjson.Null {
				return v.Int()
			}
		}
		return 0
	}
	return Usage{
		Input:       first("prompt_tokens", "input_tokens"),
		CachedInput: first("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens"),
		Output:      first("completion_tokens", "output_tokens"),
		Reasoning:   first("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens"),
	}
}
