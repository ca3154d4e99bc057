package agent

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/toolonce/toolonce/registry"
)

var errWhole = errors.New("params are JSON as a whole, to which nothing can be added: fill in their fields, and what the SDK does not know by SetExtraFields")

// missing are the tools of ours that the caller has not put among his own, by the name at path.
func missing[T any](given, ours []T, path string) []T {
	known := map[string]bool{}
	for _, t := range given {
		known[gjson.Get(asJSON(t), path).String()] = true
	}
	var add []T
	for _, t := range ours {
		if !known[gjson.Get(asJSON(t), path).String()] {
			add = append(add, t)
		}
	}
	return add
}

// asJSON is a parameter as it goes over the wire, "" where it cannot: then the request says so.
func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// answerable refuses tools whose calls the loop could not answer.
func answerable[T any](r *registry.Registry, tools []T, path string) error {
	known := map[string]bool{}
	for _, t := range r.Tools() {
		known[t.Name] = true
	}
	for _, t := range tools {
		j := asJSON(t)
		name := gjson.Get(j, path).String()
		switch gjson.Get(j, "type").String() {
		case "custom":
			return fmt.Errorf("tool %q takes free text, of which nobody can say what it does twice: make it a function tool of the registry", name+gjson.Get(j, "custom.name").String())
		case "function":
			if !known[name] {
				return fmt.Errorf("params have a function tool %q that the registry does not have, so nobody could run it: add it there", name)
			}
		}
	}
	return nil
}

// laterChoice is the tool_choice for the turns after the first: a model that is forced to call calls for ever.
func laterChoice(choice any) (raw json.RawMessage, changed bool) {
	j := asJSON(choice)
	v := gjson.Parse(j)
	switch {
	case v.Type == gjson.String && v.String() == "required":
		return json.RawMessage(`"auto"`), true
	case !v.IsObject():
		return nil, false
	case v.Get("type").String() != "allowed_tools":
		return json.RawMessage(`"auto"`), true
	}
	path := "mode"
	if v.Get("allowed_tools").IsObject() {
		path = "allowed_tools.mode"
	}
	if v.Get(path).String() != "required" {
		return nil, false
	}
	j, err := sjson.Set(j, path, "auto")
	return json.RawMessage(j), err == nil
}

// digest is of the user's messages: of what they say, in whichever of its forms.
type digest struct{ h hash.Hash }

func (d digest) part(kind, text string) {
	var size [8]byte
	for _, s := range []string{kind, text} {
		binary.BigEndian.PutUint64(size[:], uint64(len(s)))
		d.h.Write(size[:])
		d.h.Write([]byte(s))
	}
}

// message adds a message, if it is a user's.
func (d digest) message(raw string) {
	m := gjson.Parse(raw)
	if m.Get("role").String() != "user" {
		return
	}
	d.part("user", m.Get("name").String())
	content := m.Get("content")
	if content.Type == gjson.String {
		d.part("text", content.String())
		return
	}
	for _, p := range content.Array() {
		switch p.Get("type").String() {
		case "text", "input_text":
			d.part("text", p.Get("text").String())
		default:
			var v any
			if err := json.Unmarshal([]byte(p.Raw), &v); err == nil { // sorts the keys
				d.part("part", asJSON(v))
			} else {
				d.part("raw", p.Raw)
			}
		}
	}
}

func chatInput(messages []openai.ChatCompletionMessageParamUnion) []byte {
	d := digest{sha256.New()}
	for _, m := range messages {
		d.message(asJSON(m))
	}
	return d.h.Sum(nil)
}

func responseInput(in responses.ResponseNewParamsInputUnion) []byte {
	d := digest{sha256.New()}
	if in.OfString.Valid() {
		d.part("user", "")
		d.part("text", in.OfString.Value)
	}
	for _, item := range in.OfInputItemList {
		d.message(asJSON(item))
	}
	return d.h.Sum(nil)
}
