package agent_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/toolonce/toolonce/agent"
)

// talker is a model that calls a tool in every answer but the last, at once and in this process.
type talker struct {
	turns           int
	tool, arguments string // %d in the arguments is the turn
	asked           func(turn int, body []byte)
}

func (m talker) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	turn := bytes.Count(body, []byte(`"tool_call_id"`)) + 1
	if m.asked != nil {
		m.asked(turn, body)
	}
	message, finish := `{"role":"assistant","content":"It has arrived."}`, "stop"
	if turn < m.turns {
		finish = "tool_calls"
		message = calling([3]string{fmt.Sprintf("call_%024d", turn), m.tool, fmt.Sprintf(m.arguments, turn)})
	}
	answer := fmt.Appendf(nil, `{"id":"chatcmpl-%d","object":"chat.completion","created":1767225600,"model":"gpt-4.1-mini-2025-04-14",`+
		`"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%q}],"usage":{"prompt_tokens":300,"completion_tokens":20,"total_tokens":320}}`,
		turn, message, finish)
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(answer)), ContentLength: int64(len(answer)),
	}, nil
}

func (m talker) client() openai.Client {
	return openai.NewClient(option.WithAPIKey("any"), option.WithBaseURL("http://model.invalid/v1"), option.WithHTTPClient(&http.Client{Transport: m}))
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What a run holds is its history, the store's copy of it in memory, and a report: some times the transcript, never a part
// of it for each turn.
func TestMemoryGrowsWithTheTranscriptOnly(t *testing.T) {
	grown := func(turns int) (held, transcript int64) {
		var b bank
		began := heap()
		m := talker{turns: turns, tool: "look_up", arguments: `{"order_id":"%d"}`, asked: func(turn int, body []byte) {
			if turn == turns { // the run is as long as it gets
				held, transcript = heap()-began, int64(len(body))
			}
		}}
		l := agent.New(m.client(), b.tools(), memory(), &agent.Options{MaxTurns: turns})
		if o := (form{"chat", false}).do(t, l, run, request); o.err != nil {
			t.Fatal(o.err)
		}
		return held, transcript
	}
	grown(10) // what is allocated once
	short, _ := grown(200)
	long, transcript := grown(400)
	if long > 3*short+1<<20 || long > 30*transcript {
		t.Errorf("%d bytes after 200 turns, %d after 400, of which the transcript is %d", short, long, transcript)
	}
}
