package transcript

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
)

// wireRequest is what the checks and the answers need of a request's body.
type wireRequest struct {
	Model         string          `json:"model"`
	Stream        bool            `json:"stream"`
	StreamOptions *streamOptions  `json:"stream_options"`
	Tools         json.RawMessage `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	Parallel      json.RawMessage `json:"parallel_tool_calls"`

	Messages json.RawMessage `json:"messages"` // Chat Completions

	Input        json.RawMessage `json:"input"` // Responses, from here on
	Instructions json.RawMessage `json:"instructions"`
	Previous     string          `json:"previous_response_id"`
	Conversation json.RawMessage `json:"conversation"`
	Store        *bool           `json:"store"`
	Include      []string        `json:"include"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// given tells whether a member is there and not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// exchange is one request on its way to an answer.
type exchange struct {
	Request
	opts  Options
	wire  wireRequest
	items []json.RawMessage // Responses: the whole history
}

// check reads the request and applies every check, in the order in which the
// API does. It fills in the exchange as far as it gets.
func (x *exchange) check(method string, history func(string) ([]json.RawMessage, bool)) *refusal {
	if x.API == "" || method != http.MethodPost {
		r := bad("", "", "Invalid URL (%s %s)", method, x.Path)
		r.status = http.StatusNotFound
		return r
	}
	if r := x.checkKey(); r != nil {
		return r
	}
	if err := json.Unmarshal(x.Body, &x.wire); err != nil {
		return bad("", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)")
	}
	x.Model, x.Stream = x.wire.Model, x.wire.Stream
	if x.Model == "" && !x.azure() && !x.opts.Lenient {
		return bad("", "", "you must provide a model parameter")
	}
	if r := x.checkTools(); r != nil && !x.opts.Lenient {
		return r
	}
	if x.API == "chat" {
		return x.checkChat()
	}
	return x.checkResponses(history)
}

func (x *exchange) checkKey() *refusal {
	key := strings.TrimPrefix(x.Header.Get("Authorization"), "Bearer ")
	if x.opts.Lenient || strings.TrimSpace(key) != "" || x.Header.Get("Api-Key") != "" {
		return nil
	}
	r := bad("", "", "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).")
	r.status = http.StatusUnauthorized
	return r
}

// azure tells whether the request came as to an Azure deployment, whose model is
// part of the path and whose refusals carry less.
func (x *exchange) azure() bool { return strings.Contains(x.Path, "/openai/deployments/") }

// deployment is the name in an Azure path, "" elsewhere.
func (x *exchange) deployment() string {
	_, rest, _ := strings.Cut(x.Path, "/openai/deployments/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// isObject tells whether a text is one JSON object.
func isObject(s string) bool {
	b := bytes.TrimSpace([]byte(s))
	return len(b) > 0 && b[0] == '{' && json.Valid(b)
}
