package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/tidwall/gjson"
)

func TestABadStreamHasNoAnswer(t *testing.T) {
	const secret = "4111-secret"
	call := pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`)
	for name, c := range map[string]struct {
		chunk, want string
		late        bool // found only in the answer
	}{
		"nothing":        {"", "no JSON object", false},
		"no JSON":        {`{"choices":` + secret, "no JSON object", false},
		"two objects":    {`{} {"` + secret + `":1}`, "no JSON object", false},
		"no object":      {`["` + secret + `"]`, "no JSON object", false},
		"too deep":       {`{"` + secret + `":` + strings.Repeat("[", maxStreamDepth) + strings.Repeat("]", maxStreamDepth) + `}`, "over 1000 levels", false},
		"far too deep":   {`{"` + secret + `":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`, "no JSON object", false},
		"too long":       {`{"` + secret + `":"` + strings.Repeat("x", maxStream) + `"}`, "over 64 MiB", false},
		"second choice":  {`{"choices":[{"index":1,"delta":{"content":"` + secret + `"}}]}`, "2 choices", false},
		"fourth choice":  {`{"choices":[{"index":3,"delta":{}}]}`, "4 choices", false},
		"two choices":    {`{"choices":[{"delta":{}},{"delta":{}}]}`, "2 choices", false},
		"pieces of two":  {chunks("stop", pieces(`{"function":{"arguments":"`+secret+`"}}`, `{"function":{"arguments":"{}"}}`))[0], "cannot be told apart", false},
		"lost arguments": {chunks("stop", pieces(`{"index":1,"function":{"arguments":"`+secret+`"}}`))[0], "belong to no call", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := addAll(t, chunks("tool_calls", call))
			_, err := s.add(c.chunk)
			if c.late != (err == nil) {
				t.Fatal(err)
			}
			if _, again := s.add("{}"); !c.late && again == nil {
				t.Error("it goes on after an error")
			}
			raw, last := s.answer()
			if raw != nil || last == nil || err != nil && !errors.Is(last, err) {
				t.Fatalf("%.100s, %v", raw, last)
			}
			if !strings.Contains(last.Error(), c.want) || strings.Contains(last.Error(), secret) {
				t.Error(last)
			}
			if _, ok := errors.AsType[*IncompleteError](last); ok != strings.Contains(name, "choice") {
				t.Errorf("%T", last)
			}
		})
	}
}

// cutBody is a body that ends when the request is cancelled.
type cutBody struct {
	io.Reader
	ctx    context.Context
	cancel func()
}

func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.cancel()
		return n, context.Cause(b.ctx)
	}
	return n, err
}

func (*cutBody) Close() error { return nil }

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// playing is the SDK's client on a server that answers with body.
func playing(contentType string, body io.ReadCloser) openai.Client {
	return openai.NewClient(option.WithAPIKey("any"), option.WithBaseURL("https://api.example.com/v1"), option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: transportFunc(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {contentType}}, Body: body, Request: r}, nil
		})}))
}

func TestACancelledStreamIsNoEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	list := chunks("tool_calls", pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`))
	client := playing("text/event-stream", &cutBody{strings.NewReader("data: " + list[0] + "\n\n"), ctx, cancel})
	stream := client.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{})
	var s chatStream
	for stream.Next() {
		if _, err := s.add(stream.Current().RawJSON()); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.calls.list) != 1 || !errors.Is(stream.Err(), context.Canceled) {
		t.Fatal(len(s.calls.list), stream.Err())
	}
	if raw, err := s.answer(); raw != nil || err == nil {
		t.Errorf("%s, %v", raw, err)
	}
}

// What is allocated grows with the stream, not with its square.
func TestTheCostOfAStreamIsLinear(t *testing.T) {
	for name, piece := range map[string]string{
		"text":         `{"content":"word ","reasoning_content":"word "}`,
		"arguments":    pieces(`{"index":0,"id":"a","function":{"name":"f","arguments":"word "}}`),
		"name":         pieces(`{"index":0,"function":{"name":"word"}}`),
		"calls":        pieces(`{"index":0,"function":{"name":"f","arguments":"{}"}}`),
		"other fields": `{"x":{"a":"word"},"list":["word"]}`,
	} {
		cost := func(n int) uint64 {
			list := chunks("stop", piece)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			var s chatStream
			for i := range n + 1 {
				if _, err := s.add(list[i/n]); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.answer(); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		cost(1)
		if few, many := cost(1000), cost(8000); many > 16*few {
			t.Errorf("%s: 8 times the chunks cost %.1f times as much", name, float64(many)/float64(few))
		}
	}
}

// Whatever is in a stream, an answer can be decoded, and each of its calls has something to be told by.
func FuzzChatStream(f *testing.F) {
	for _, list := range [][]string{
		chunks("stop", `{"role":"assistant","content":"h","x":["a",{"b":[]}],"y":1.50}`, `{"content":["t"],"x":"s","x":[ ],"audio":{"data":"A"}}`),
		chunks("tool_calls", pieces(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}`, `{"id":1,"custom":{"name":"c","input":"\ud83d"}}`), pieces(`{"index":0,"function":{"arguments":"}"}}`, `{"index":-1,"function":{"arguments":{"a":[1]}}}`)),
		chunks("function_call", `{"function_call":{"name":"f","arguments":"{}"}}`),
		{`{"choices":[{"index":1}]}`, `{"choices":{},"usage":{"a":1}}`, `{"choices":[{"finish_reason":"stop","logprobs":{"content":[1]}}]}`, `[]`, "{"},
	} {
		f.Add(strings.Join(list, "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s chatStream
		announced := 0
		for chunk := range strings.Lines(text) {
			ds, err := s.add(chunk)
			for _, d := range ds {
				if d.kind == callAnnounced {
					announced++
				}
			}
			if err != nil {
				break
			}
		}
		raw, err := s.answer()
		if (raw == nil) == (err == nil) {
			t.Fatalf("%s, %v", raw, err)
		}
		if err != nil {
			return
		}
		var c openai.ChatCompletion
		if err := json.Unmarshal(raw, &c); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		if len(c.Choices) != 1 || c.Choices[0].FinishReason == "" {
			t.Fatalf("%s", raw)
		}
		named := 0
		for _, call := range gjson.GetBytes(raw, "choices.0.message.tool_calls").Array() {
			name := call.Get("function.name").String() + call.Get("custom.name").String()
			if name != "" {
				named++
			}
			if name == "" && blank(call.Get("id").String()) || !call.Get("function.arguments").Exists() && !call.Get("custom.input").Exists() {
				t.Errorf("call %s", call.Raw)
			}
		}
		if named != announced {
			t.Errorf("%d calls, %d announced", named, announced)
		}
	})
}
