package transcript_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/transcript"
)

func ExampleRead() {
	const saved = `{"id":"r1","messages":[` +
		`{"role":"user","content":"Refund order 1001."},` +
		`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"refund","arguments":"{\"order\":1001}"}}]},` +
		`{"role":"tool","tool_call_id":"a","content":"refunded"}]}` + "\n" +
		"a broken line\n"
	for run, err := range transcript.Read(strings.NewReader(saved), "saved.jsonl") {
		if err != nil {
			fmt.Println(err)
			continue
		}
		for call := range run.Calls() {
			fmt.Println(run.ID, call.Turn, call.Position, call.Name, call.Arguments, "->", call.Output)
		}
	}
	// Output:
	// r1 1 0 refund {"order":1001} -> refunded
	// transcript: reading "saved.jsonl" line 2: invalid character 'a' looking for beginning of value
}

// A script as a list: the first answer calls a tool, the second ends.
func ExampleSteps() {
	server := transcript.NewServer(transcript.Steps(
		transcript.Step{Calls: []transcript.ToolCall{{ID: "call_1", Name: "refund", Arguments: `{"order":1001}`}}},
		transcript.Step{Text: "Refunded."},
	), nil)
	client := openai.NewClient(option.WithAPIKey("any"),
		option.WithBaseURL("http://model.invalid/v1"), option.WithHTTPClient(server.Client()))

	params := openai.ChatCompletionNewParams{Model: "demo-model", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Refund order 1001.")}}
	for range 2 {
		answer, err := client.Chat.Completions.New(context.Background(), params)
		if err != nil {
			fmt.Println(err)
			return
		}
		message := answer.Choices[0].Message
		fmt.Printf("%s%v\n", message.Content, len(message.ToolCalls))
		params.Messages = append(params.Messages, message.ToParam())
		for _, call := range message.ToolCalls {
			params.Messages = append(params.Messages, openai.ToolMessage("ok", call.ID))
		}
	}
	for _, r := range server.Requests() {
		fmt.Println(r.Turn, r.Status, len(r.Messages))
	}
	// Output:
	// 1
	// Refunded.0
	// 1 200 1
	// 2 200 3
}

// A script as a function of the history: stateless, for any number of
// conversations, and answering by what the tools said.
func ExampleScript() {
	script := func(r transcript.Request) transcript.Step {
		switch {
		case strings.HasPrefix(r.FirstUser(), "Refund") && r.Turn == 1:
			return transcript.Step{Calls: []transcript.ToolCall{{ID: "call_1", Name: "refund", Arguments: `{"order":1001}`}}}
		case strings.HasPrefix(r.FirstUser(), "Refund"):
			return transcript.Step{Text: "The tool says: " + r.Outputs()[0].Content}
		}
		return transcript.Step{} // no answer: the server says so
	}
	step := script(transcript.Request{Turn: 2, Messages: []transcript.Message{
		{Role: "user", Content: "Refund order 1001."},
		{Role: "assistant", ToolCalls: []transcript.ToolCall{{ID: "call_1", Name: "refund", Arguments: `{"order":1001}`}}},
		{Role: "tool", ToolCallID: "call_1", Content: "refunded"},
	}})
	fmt.Println(step.Text)
	// Output: The tool says: refunded
}

// What the guard would have done on saved runs: the second refund has other words, and means the first one.
func ExampleReplay() {
	tools, err := transcript.ReadTools(strings.NewReader(`{
		"get_order":    {"effect": "Read"},
		"issue_refund": {"effect": "NonIdempotentWrite", "key": ["order_id"], "ignore": ["reason"]},
		"toggle_alert": {"effect": "NonIdempotentWrite", "identity": "ByCall"}
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for run, err := range transcript.ReadFile("testdata/refunds.jsonl") {
		if err != nil {
			fmt.Println(err)
			continue
		}
		decisions, err := transcript.Replay(context.Background(), tools, run)
		if err != nil {
			fmt.Println(err)
			continue
		}
		for _, d := range decisions {
			if d.Repeats != nil {
				fmt.Printf("%s turn %d: %s of turn %d: %s\n", run.ID, d.Turn, d.Verdict, d.Repeats.Turn, d.Arguments)
			}
		}
	}
	// Output:
	// ticket-1 turn 3: already_done of turn 2: {"reason":"it arrived broken","cents":500,"order_id":"1001"}
	// ticket-2 turn 3: conflict of turn 2: {"order_id":"1002","cents":90}
}
