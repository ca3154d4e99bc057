package agent

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/tidwall/gjson"
)

// maxRewrite is the size in bytes up to which a request's body is looked at.
const maxRewrite = 64 << 20

const parallelField = "parallel_tool_calls"

// SerialToolCalls keeps parallel_tool_calls right in any loop on the SDK. Give it to openai.NewClient.
//
// rules come before the built-in table: the first whose Model matches decides, and the table is not asked then.
// ParallelRule{Model: "team-bot-*"} forces false for deployments of that name.
//
// It decides for each POST to …/chat/completions or …/responses, streamed or not:
//   - without tools that the caller answers (function, custom), the field is left out, as the API refuses it there;
//   - for models that refuse the field (o1, o3, o4-mini and relatives, the original gpt-5 at minimal effort) it is left
//     out;
//   - for models that are known to repeat calls (gpt-4.1-nano and what is tuned from it), and with strict tools for
//     every fine-tuned model and at Azure addresses, it is false, although the caller asked for true;
//   - else it is what the caller asked for.
//
// The option learns for as long as it lives, by host, deployment and requested model:
//   - which model answers. An alias (team-bot, or a deployment) is decided by both names from its second request on;
//   - that the field is refused. A 400 that says so is answered by sending the request once more without the field. If
//     that succeeds, later ones are sent without it at once, whatever rules say. Else the second answer is handed on.
//
// So make one option and keep it: one that is given to a single call forgets with it. It knows up to 1,000 names; beyond
// that it forgets any of them. Answers pass as they arrive, byte for byte.
//
// The option changes the body on the wire, on each of the SDK's own retries and on redirects. Every other request stays
// as it is, byte for byte, and so does a body that is not one JSON object, names a field twice or is larger than 64 MiB.
// A request whose tools are in a stored prompt is changed by rules and by a refusal alone. Servers may ignore the field:
// AnswerChat and AnswerResponse run calls one after the other in any case.
//
// Requests over a WebSocket (Responses.Connect) do not pass through here: set ParallelToolCalls by hand there.
//
// The option may be shared by any number of clients and goroutines.
func SerialToolCalls(rules ...ParallelRule) option.RequestOption {
	s := &serial{rules: slices.Clone(rules)}
	return option.WithMiddleware(s.send)
}

// serial is one option, for any number of clients.
type serial struct {
	rules []ParallelRule
	names knownModels
}

// send sends a request with the field as decided and learns from its answer.
func (s *serial) send(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	if !asksModel(req) {
		return next(req)
	}
	body, err := takeBody(req)
	if err != nil {
		return nil, fmt.Errorf("agent: reading the body of a request to %q: %w", req.URL.Path, err)
	}
	b, ok := readRequest(body)
	if !ok {
		return next(req)
	}
	name := nameOf(req, b.ask.model)
	b.ask.model, b.ask.azure, b.ask.learned = name.model, azureAddress(req), s.names.get(name)
	bare := without(body, b)
	wire := body
	switch decide(s.rules, b.ask) {
	case OmitParallel:
		wire = bare
	case ForceSerial:
		wire = withFalse(body, b.value)
	case KeepParallel:
	}
	var again *http.Request
	if !bytes.Equal(wire, bare) {
		again = req.Clone(req.Context()) // before the layers below change the address
		setBody(again, bare)
	}
	if !bytes.Equal(wire, body) {
		setBody(req, wire)
	}
	res, err := next(req)
	if again != nil && err == nil && refusesField(res) && again.Context().Err() == nil {
		res, err = next(again)
		// Without tools it is the request that has no use for the field, not the model.
		if err == nil && succeeded(res) && b.ask.calls {
			s.names.learn(name, func(l *learned) { l.refuses = true })
		}
	}
	if err == nil && succeeded(res) && res.Body != nil {
		s.names.listen(name, res)
	}
	return res, err
}

// asksModel tells whether the request may have the field.
func asksModel(req *http.Request) bool {
	return req.Method == http.MethodPost && req.Body != nil && req.Body != http.NoBody &&
		req.ContentLength <= maxRewrite && req.Header.Get("Content-Encoding") == "" &&
		!strings.HasPrefix(strings.ToLower(req.Header.Get("Content-Type")), "multipart/") &&
		(strings.HasSuffix(req.URL.Path, "/chat/completions") || strings.HasSuffix(req.URL.Path, "/responses"))
}

// takeBody reads the body and puts an equal one in its place. It is nil for one that is too large.
func takeBody(req *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRewrite+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxRewrite {
		req.Body = readCloser{io.MultiReader(bytes.NewReader(body), req.Body), req.Body}
		return nil, nil
	}
	if err := req.Body.Close(); err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

func setBody(req *http.Request, body []byte) {
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body = io.NopCloser(bytes.NewReader(body))
}

// chatBody is what matters of a request's body, in both APIs.
type chatBody struct {
	ask        parallelAsk
	key, value gjson.Result // of the field; value.Exists() is false without it
}

// readRequest looks at the top level of a body. ok is false for all but an object without repeated names.
func readRequest(body []byte) (b chatBody, ok bool) {
	if !gjson.ValidBytes(body) {
		return b, false
	}
	root := gjson.ParseBytes(body)
	if !root.IsObject() {
		return b, false
	}
	seen := map[string]bool{}
	ok = true
	root.ForEach(func(key, value gjson.Result) bool {
		name := key.String()
		ok = !seen[name]
		seen[name] = true
		switch name {
		case "model":
			b.ask.model = value.String()
		case "reasoning_effort":
			b.ask.effort = value.String()
		case "reasoning":
			if e := value.Get("effort"); e.Exists() {
				b.ask.effort = e.String()
			}
		case "tools":
			b.ask.calls, b.ask.strict = readTools(value)
		case "prompt":
			b.ask.template = value.IsObject()
		case parallelField:
			b.key, b.value = key, value
		}
		return ok
	})
	return b, ok
}

// readTools tells whether there are tools that the caller answers, and whether one of them is strict.
func readTools(tools gjson.Result) (calls, strict bool) {
	for _, t := range tools.Array() {
		switch t.Get("type").String() {
		case "function":
			calls = true
			strict = strict || t.Get("strict").Type == gjson.True || t.Get("function.strict").Type == gjson.True
		case "custom":
			calls = true
		case "namespace":
			c, s := readTools(t.Get("tools"))
			calls, strict = calls || c, strict || s
		}
	}
	return calls, strict
}

func azureAddress(req *http.Request) bool {
	host := strings.ToLower(req.URL.Hostname())
	return strings.Contains(req.URL.Path, "/openai/deployments/") ||
		slices.ContainsFunc(azureHosts, func(end string) bool { return strings.HasSuffix(host, end) })
}

// deployment is the name in an Azure path, "" for none.
func deployment(path string) string {
	_, rest, _ := strings.Cut(path, "/openai/deployments/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// withFalse sets the field where it stands, or puts it last. The body has at least one other field.
func withFalse(body []byte, value gjson.Result) []byte {
	from := bytes.LastIndexByte(body, '}')
	to, text := from, `,"`+parallelField+`":false`
	if value.Exists() {
		from, to, text = value.Index, value.Index+len(value.Raw), "false"
	}
	return slices.Concat(body[:from], []byte(text), body[to:])
}

// without is the body less the field, with the comma behind it or else the one before it.
func without(body []byte, b chatBody) []byte {
	if !b.value.Exists() {
		return body
	}
	const blanks = " \t\r\n"
	head, tail := body[:b.key.Index], body[b.value.Index+len(b.value.Raw):]
	if rest := bytes.TrimLeft(tail, blanks); bytes.HasPrefix(rest, []byte(",")) {
		tail = bytes.TrimLeft(rest[1:], blanks)
	} else {
		head = bytes.TrimSuffix(bytes.TrimRight(head, blanks), []byte(","))
	}
	return slices.Concat(head, tail)
}
