package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

const (
	maxDifferences = 20 // told of one request
	maxShown       = 60 // characters of a value, and before the place where two texts part
)

// decoded is JSON as values to be compared, its numbers as written. What is no JSON is its text.
func decoded(raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(raw)
	}
	return v
}

// plainHistory is what is compared of messages: all that goes over the wire in either API.
func plainHistory(ms []Message) any {
	list := make([]any, len(ms))
	for i, m := range ms {
		plain := object{"role": m.Role, "content": m.Content}
		if m.ToolCallID != "" {
			plain["tool_call_id"] = m.ToolCallID
		}
		var calls []any
		for _, c := range m.ToolCalls {
			calls = append(calls, object{"id": c.ID, "name": c.Name, "arguments": c.Arguments})
		}
		if calls != nil {
			plain["tool_calls"] = calls
		}
		list[i] = plain
	}
	return object{"messages": list}
}

// differences tells where two values part, a line each: path, saved, sent.
func differences(path string, saved, sent any) []string {
	switch a := saved.(type) {
	case object:
		if b, ok := sent.(object); ok {
			return memberDifferences(path, a, b)
		}
	case []any:
		if b, ok := sent.([]any); ok {
			return elementDifferences(path, a, b)
		}
	case string:
		if b, ok := sent.(string); ok {
			if steady(a) == steady(b) {
				return nil
			}
			a, b = shownFrom(a, b)
			return []string{fmt.Sprintf("%s: saved %q, sent %q", path, a, b)}
		}
	}
	if reflect.DeepEqual(saved, sent) {
		return nil
	}
	return []string{fmt.Sprintf("%s: saved %s, sent %s", path, shown(saved), shown(sent))}
}

// steady is a text without what differs each time: of an envelope, ids and times.
func steady(s string) string {
	var e object
	if json.Unmarshal([]byte(s), &e) != nil || e["toolonce"] == nil {
		return s
	}
	for _, name := range []string{"operation", "first_done_at", "since", "note"} {
		delete(e, name)
	}
	return string(encode(e))
}

func memberDifferences(path string, a, b object) (all []string) {
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := name
		if path != "" {
			at = path + "." + name
		}
		va, ina := a[name]
		vb, inb := b[name]
		switch {
		case !ina:
			all = append(all, fmt.Sprintf("%s: not saved, sent %s", at, shown(vb)))
		case !inb:
			all = append(all, fmt.Sprintf("%s: saved %s, not sent", at, shown(va)))
		default:
			all = append(all, differences(at, va, vb)...)
		}
	}
	return all
}

func elementDifferences(path string, a, b []any) (all []string) {
	for i := range max(len(a), len(b)) {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case i >= len(a):
			all = append(all, fmt.Sprintf("%s: not saved, sent %s", at, shown(b[i])))
		case i >= len(b):
			all = append(all, fmt.Sprintf("%s: saved %s, not sent", at, shown(a[i])))
		default:
			all = append(all, differences(at, a[i], b[i])...)
		}
	}
	return all
}

func shown(v any) string { return shorten(string(encode(v)), maxShown) }

// shownFrom cuts two texts to where they part.
func shownFrom(a, b string) (string, string) {
	ra, rb := []rune(a), []rune(b)
	same := 0
	for same < min(len(ra), len(rb)) && ra[same] == rb[same] {
		same++
	}
	from, mark := max(0, same-maxShown/3), ""
	if from > 0 {
		mark = "…"
	}
	return mark + shorten(string(ra[from:]), maxShown), mark + shorten(string(rb[from:]), maxShown)
}
