package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/agent"
	"github.com/toolonce/toolonce/registry"
)

// benchTurns is how many answers the model gives in a run, the last one included.
const benchTurns = 8

// canned answers in this process, at once: what is measured is the client's side alone.
type canned struct{}

func (canned) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	turn := bytes.Count(body, []byte(`"tool_call_id"`)) + 1
	message, finish := `{"role":"assistant","content":"It has arrived.","refusal":null,"annotations":[]}`, "stop"
	if turn < benchTurns {
		finish = "tool_calls"
		message = fmt.Sprintf(`{"role":"assistant","content":null,"refusal":null,"annotations":[],"tool_calls":[`+
			`{"id":"call_%024d","type":"function","function":{"name":"look_up","arguments":"{\"order_id\":\"%d\"}"}}]}`, turn, turn)
	}
	answer := fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion","created":1767225600,"model":"gpt-4.1-mini-2025-04-14",`+
		`"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%q}],"usage":{"prompt_tokens":300,"completion_tokens":20,`+
		`"total_tokens":320,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,`+
		`"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_1"}`,
		turn, message, finish)
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader([]byte(answer))), ContentLength: int64(len(answer)),
	}, nil
}

func cannedClient() openai.Client {
	return openai.NewClient(option.WithAPIKey("any"), option.WithBaseURL("http://model.invalid/v1"), option.WithHTTPClient(&http.Client{Transport: canned{}}))
}

func benchParams(tools *registry.Registry) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "gpt-4.1-mini", Tools: agent.ChatTools(tools),
		Messages: messages{openai.SystemMessage("Be kind."), openai.UserMessage(request)},
	}
}

// bare is the loop that everybody writes first.
func bare(ctx context.Context, client *openai.Client, params openai.ChatCompletionNewParams) (string, error) {
	for {
		c, err := client.Chat.Completions.New(ctx, params)
		if err != nil {
			return "", err
		}
		m := c.Choices[0].Message
		if len(m.ToolCalls) == 0 {
			return m.Content, nil
		}
		params.Messages = append(params.Messages, m.ToParam())
		for _, call := range m.ToolCalls {
			var in lookInput
			if err := json.Unmarshal([]byte(call.Function.Arguments), &in); err != nil {
				return "", err
			}
			params.Messages = append(params.Messages, openai.ToolMessage("order "+in.OrderID+" arrived", call.ID))
		}
	}
}

// BenchmarkLoopTurn compares a turn of the loop, without a store, with one of the loop that everybody writes, on the same
// server in this process.
func BenchmarkLoopTurn(b *testing.B) {
	var bk bank
	tools := bk.tools()
	client := cannedClient()
	l := agent.New(client, tools, memory(), nil)
	params := benchParams(tools)
	turn := func(run func(i int) (string, error)) func(i int) time.Duration {
		return func(i int) time.Duration {
			began := time.Now()
			if text, err := run(i); err != nil || text != "It has arrived." {
				b.Fatalf("%q, %v", text, err)
			}
			return time.Since(began)
		}
	}
	hand := turn(func(int) (string, error) { return bare(b.Context(), &client, params) })
	ours := turn(func(i int) (string, error) {
		r, err := l.Chat(b.Context(), agent.Run{ID: fmt.Sprint("run-", i)}, params)
		if err != nil {
			return "", err
		}
		return r.Choices[0].Message.Content, nil
	})
	var floor, own time.Duration
	for i := 0; b.Loop(); i++ { // in turns, so that both see the same machine
		floor += hand(i)
		own += ours(i)
	}
	n := time.Duration(b.N * benchTurns)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64((own/n).Nanoseconds())/1000, "us/turn")
	b.ReportMetric(float64((floor/n).Nanoseconds())/1000, "us/bare-turn")
	b.ReportMetric(float64(own)/float64(floor), "x-bare")
}
