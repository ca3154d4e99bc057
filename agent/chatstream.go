package agent

import (
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"
)

// chatStream puts the chunks of a streamed completion together. The zero value is ready. Not safe for concurrent use.
//
// The SDK's own accumulator is not used: it glues calls together, loses some, and forgets the finish_reason where servers
// are not exactly like OpenAI's.
type chatStream struct {
	intake
	id, finish string
	top        fields // of the completion
	choice     fields
	logprobs   fields
	role       string
	content    joined
	message    fields // but role, content, audio and calls
	audio      fields
	calls      streamedCalls
	told       int // of how many calls the arguments were told
	out        []delta
}

// add takes the JSON of the next chunk and tells what it adds. After an error there is no answer: a chunk that is no JSON
// object or too deep, a stream that is too long, pieces of calls that cannot be told apart, or several choices.
func (s *chatStream) add(chunk string) ([]delta, error) {
	s.out = nil
	s.take(chunk).ForEach(func(k, v gjson.Result) bool {
		switch key := k.String(); key {
		case "object":
		case "id": // some servers change it from chunk to chunk
			if s.id == "" {
				s.id = text(v)
			}
		case "choices":
			s.addChoices(v)
		default:
			s.top.latest(key, v)
		}
		return true
	})
	if s.err != nil {
		return nil, s.err
	}
	if s.finish != "" {
		for _, c := range s.calls.list[s.told:] {
			s.out = append(s.out, delta{kind: argumentsComplete, text: c.arguments.string(), position: c.position, id: c.id, tool: c.name.String()})
		}
		s.told = len(s.calls.list)
	}
	return s.out, nil
}

func (s *chatStream) addChoices(list gjson.Result) {
	if !list.IsArray() {
		return
	}
	for i, c := range list.Array() {
		if index := c.Get("index"); index.Type != gjson.Null {
			i = int(index.Int())
		}
		if i != 0 {
			s.err = wrongChoices(max(2, i+1))
			return
		}
		if c.IsObject() {
			c.ForEach(s.addChoice)
		}
	}
}

func (s *chatStream) addChoice(k, v gjson.Result) bool {
	switch key := k.String(); key {
	case "index", "message": // some servers send all that was said so far along with each delta
	case "delta":
		if v.IsObject() {
			s.addDelta(v)
		}
	case "finish_reason": // null behind it does not take it back, nor does another one a reason to run nothing
		if v.Type == gjson.String && v.Str != "" && (s.finish == "" || finished(s.finish, false)) {
			s.finish = v.Str
		}
	case "logprobs":
		addEach(&s.logprobs, v)
	default:
		s.choice.latest(key, v)
	}
	return true
}

func (s *chatStream) addDelta(d gjson.Result) {
	legacy := gjson.Result{}
	d.ForEach(func(k, v gjson.Result) bool {
		switch key := k.String(); key {
		case "role":
			if v.Type == gjson.String && v.Str != "" {
				s.role = v.Str
			}
		case "content":
			s.content.add(v)
			s.tell(textDelta, v)
		case "tool_calls":
			s.addCalls(v)
		case "function_call":
			legacy = v
		case "audio":
			addEach(&s.audio, v)
		default:
			s.message.at(key).add(v)
		}
		return true
	})
	if legacy.IsObject() && (len(s.calls.list) == 0 || s.calls.legacy) { // else it says again what tool_calls say
		s.calls.legacy = true
		s.addCalls(gjson.Parse(`[{"function":` + legacy.Raw + `}]`))
	}
	s.tell(refusalDelta, d.Get("refusal"))
	s.tell(reasoningDelta, d.Get(reasoningAt(d)))
}

// reasoningAt is where a message, or a piece of one, has its reasoning. Servers that have it in two places say the same.
func reasoningAt(m gjson.Result) string {
	if m.Get("reasoning_content").String() == "" {
		return "reasoning"
	}
	return "reasoning_content"
}

// reasoningIn is a message's, "" where it is no text.
func reasoningIn(m gjson.Result) string {
	if v := m.Get(reasoningAt(m)); v.Type == gjson.String {
		return v.String()
	}
	return ""
}

func (s *chatStream) addCalls(list gjson.Result) {
	out, err := s.calls.add(list)
	s.out = append(s.out, out...)
	if err != nil {
		s.err = err
	}
}

func (s *chatStream) tell(kind deltaKind, v gjson.Result) {
	if v.Type == gjson.String && v.Str != "" {
		s.out = append(s.out, delta{kind: kind, text: v.Str})
	}
}

// addEach joins the long members of the object v, and keeps the last of the short ones.
func addEach(f *fields, v gjson.Result) {
	if !v.IsObject() {
		return
	}
	v.ForEach(func(k, v gjson.Result) bool {
		if key := k.String(); v.IsArray() || key == "data" || key == "transcript" {
			f.at(key).add(v)
		} else {
			f.latest(key, v)
		}
		return true
	})
}

// ended is never known: the usage may come behind the end mark.
func (s *chatStream) ended() bool { return false }

// answer is the completion as the server would have sent it in one piece: object is "chat.completion", the calls stand in
// order of arrival, and fields that nobody knows are kept. The same chunks make the same bytes. Without a finish_reason
// it is an [*IncompleteError].
func (s *chatStream) answer() (json.RawMessage, error) {
	switch {
	case s.err != nil:
		return nil, s.err
	case s.finish == "":
		return nil, &IncompleteError{Calls: len(s.calls.list)}
	case s.calls.stray():
		return nil, errors.New("the stream has arguments that belong to no call; nothing was run; ask the model again")
	}
	role := s.role
	if role == "" {
		role = "assistant"
	}
	b := append(make([]byte, 0, s.size), `{"id":`...)
	b = gjson.AppendJSONString(b, s.id)
	b = append(b, `,"object":"chat.completion"`...)
	b = s.top.append(b)
	b = append(b, `,"choices":[{"index":0,"message":{"role":`...)
	b = gjson.AppendJSONString(b, role)
	b = append(b, `,"content":`...)
	b = s.content.append(b)
	b = s.message.append(b)
	b = appendObject(b, "audio", &s.audio)
	b = s.calls.append(b)
	b = append(b, `},"finish_reason":`...)
	b = gjson.AppendJSONString(b, s.finish)
	b = appendObject(b, "logprobs", &s.logprobs)
	b = s.choice.append(b)
	return append(b, `}]}`...), nil
}

// appendObject writes the member key, an object of f, with a comma before it; nothing where f is empty.
func appendObject(b []byte, key string, f *fields) []byte {
	if len(f.keys) == 0 {
		return b
	}
	b = append(append(append(b, `,"`...), key...), `":`...)
	from := len(b)
	b = f.append(b)
	b[from] = '{' // in place of the first comma
	return append(b, '}')
}
