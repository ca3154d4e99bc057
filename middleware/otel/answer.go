package otel

import (
	"regexp"

	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel/attribute"
)

// answer is what is told of a model's answer.
type answer struct {
	api     string
	content bool // messages too

	id, model, tier, fingerprint     string
	finish                           []string
	counted                          bool // the server has told the usage
	input, output, cached, reasoning int64
	failed                           string // error.type
	complete                         bool   // the end mark was there
	said                             []message
	pieces                           *pieces // of a streamed completion
}

// whole takes an answer that has come in one piece.
func (a *answer) whole(root gjson.Result) {
	a.complete = true
	if a.api == "responses" {
		a.response(root)
		return
	}
	a.completion(root)
	if a.content {
		for _, c := range root.Get("choices").Array() {
			a.said = append(a.said, chatMessage(c.Get("message"), c.Get("finish_reason").String()))
		}
	}
}

// event takes one event of a stream.
func (a *answer) event(e gjson.Result) {
	if a.api == "chat_completions" {
		a.completion(e)
		a.complete = a.complete || len(a.finish) > 0
		if a.content {
			if a.pieces == nil {
				a.pieces = &pieces{}
			}
			a.pieces.add(e)
		}
		return
	}
	switch e.Get("type").String() {
	case "response.created":
		a.named(e.Get("response"))
	case "response.completed", "response.incomplete", "response.failed":
		a.complete = true
		a.response(e.Get("response"))
	case "error":
		a.failed = word(e.Get("code").String())
	}
}

// completion takes a completion or a chunk of one.
func (a *answer) completion(root gjson.Result) {
	a.named(root)
	a.usage(root.Get("usage"))
	for _, c := range root.Get("choices").Array() {
		if reason := c.Get("finish_reason"); reason.Type == gjson.String && reason.Str != "" {
			a.finish = append(a.finish, word(reason.Str))
		}
	}
}

// response takes a whole response of the Responses API.
func (a *answer) response(r gjson.Result) {
	a.named(r)
	a.usage(r.Get("usage"))
	reason := r.Get("status").String()
	if why := r.Get("incomplete_details.reason").String(); why != "" {
		reason = why
	}
	if reason != "" {
		a.finish = []string{word(reason)}
	}
	if r.Get("status").String() == "failed" && a.failed == "" {
		a.failed = other
	}
	if a.content {
		a.said = itemsOf(r.Get("output"))
		for i := range a.said {
			a.said[i].Finish = word(reason)
		}
	}
}

// named takes what says who has answered, and an error.
func (a *answer) named(r gjson.Result) {
	for key, to := range map[string]*string{"id": &a.id, "model": &a.model, "service_tier": &a.tier, "system_fingerprint": &a.fingerprint} {
		if v := r.Get(key); v.Type == gjson.String && v.Str != "" && len(v.Str) <= maxID {
			*to = v.Str
		}
	}
	if e := r.Get("error"); e.IsObject() {
		a.failed = word(e.Get("code").String())
	}
}

// usage takes the number of tokens. Each API has its own names for them.
func (a *answer) usage(u gjson.Result) {
	if !u.IsObject() {
		return
	}
	of := func(chat, responses string) int64 {
		if v := u.Get(chat); v.Exists() {
			return v.Int()
		}
		return u.Get(responses).Int()
	}
	a.counted = true
	a.input, a.output = of("prompt_tokens", "input_tokens"), of("completion_tokens", "output_tokens")
	a.cached = of("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens")
	a.reasoning = of("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens")
}

// attributes are what a span tells of the answer.
func (a *answer) attributes() []attribute.KeyValue {
	attrs := given(given(nil, responseID, a.id), responseModel, a.model)
	attrs = given(given(attrs, responseTier, a.tier), fingerprint, a.fingerprint)
	if len(a.finish) > 0 {
		attrs = append(attrs, attribute.StringSlice(finishReasons, a.finish))
	}
	if a.counted {
		attrs = append(attrs, attribute.Int64(inputTokens, a.input), attribute.Int64(outputTokens, a.output),
			attribute.Int64(cachedTokens, a.cached), attribute.Int64(reasoningTokens, a.reasoning))
	}
	if a.pieces != nil {
		a.said = append(a.said, a.pieces.message(a.finish))
	}
	if len(a.said) > 0 {
		attrs = append(attrs, attribute.String(outputMessages, asJSON(a.said)))
	}
	return attrs
}

var plainWord = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// word is a server's word for something, if it is one: anything else might be a text.
func word(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return other
}
